"""FLRR, the facial landmark retention rate, and the mean displacement of the landmarks.

A landmark model always returns all of its points, found or made up. So a point counts as retained
only when it is still in its place and what surrounds it still looks alike: the contrast-structure
term of SSIM (Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment", IEEE TIP 2004) on a patch
around the point. The share of displaced points alone is 1 - NERF of the alignment literature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from domain.measurements import Measurement
from metrics.affine import Points
from metrics.contract import Direction, MetricSpec
from metrics.pair import FacePair, Luma

RADIUS = 0.08
"""IED; a point further than this from its place is displaced."""
STRUCTURE = 0.5
"""Least contrast-structure term at which the anatomy around a point counts as still there."""
PATCH = 0.30
"""Side of the patch around a point, in IED."""
SEARCH = 0.045
"""How far, in IED, the patch may be looked for in the edited picture."""
PATCH_IED = 80.0
"""Largest eye distance in pixels at which patches are compared; lumas are shrunk by a whole factor."""
SMOOTHING = 0.0125
"""Sigma, in IED, of the smoothing before patches are compared."""
C2 = (0.03 * 255) ** 2
"""SSIM's constant: contrast below some 8 levels fades out of the comparison."""
MEAN_LUMA = 128.0
"""Both lumas are scaled by what brings the original's face to this mean, so that a patch of dark or
dim skin counts as much as one of light skin."""
MIN_CONTRAST = 2.0
"""Standard deviation, in levels, of an original's patch below which nothing is shown there."""
MIN_POINTS = 20
COLLAPSE = 0.15
"""Least share of the original's narrower spread of points; below it the points are crowded on a
line or a spot."""

Patches: TypeAlias = npt.NDArray[np.float32]
"""(n, pixels of a patch)."""
Indices: TypeAlias = npt.NDArray[np.intp]
"""(n, 2): x then y."""
Bools: TypeAlias = npt.NDArray[np.bool_]

SPECS: tuple[MetricSpec, ...] = (
    MetricSpec(
        id="flrr",
        name="facial landmark retention rate",
        unit="%",
        low=0.0,
        high=100.0,
        direction=Direction.HIGHER_IS_BETTER,
        perfect=100.0,
        reference="1 - NERF at 0.08 IED, and SSIM contrast-structure >= 0.5 around each point",
        threshold=95.0,
        threshold_source="warning line of the method that the audit follows",
        margin=5.0,
        harm="facial landmarks displaced or wiped out",
    ),
    MetricSpec(
        id="nme",
        name="mean landmark displacement",
        unit="% of IED",
        low=0.0,
        high=None,
        direction=Direction.LOWER_IS_BETTER,
        perfect=0.0,
        reference="normalised mean error between the faces' own landmarks, by inter-eye distance",
        margin=1.0,
        harm="facial landmarks displaced",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Retention:
    """Per point, each (68,): ``displacement`` in IED, ``shown`` (the original has something there),
    ``structure`` (best contrast-structure term, NaN where not shown), ``displaced``, ``retained``."""

    displacement: npt.NDArray[np.float64]
    shown: Bools
    structure: npt.NDArray[np.float64]

    @property
    def displaced(self) -> Bools:
        """Further than ``RADIUS`` from its place."""
        return self.displacement > RADIUS

    @property
    def anatomy(self) -> Bools:
        """What the original shows around the point is still there."""
        return self.shown & (np.nan_to_num(self.structure, nan=-1.0) >= STRUCTURE)

    @property
    def retained(self) -> Bools:
        """In its place, with its anatomy."""
        return self.anatomy & ~self.displaced


def measure(pair: FacePair) -> list[Measurement]:
    """``flrr`` in % and ``nme`` in % of IED, with the figures of each point as evidence."""
    displacement = np.hypot(*(pair.landmark_points - pair.points).T) / pair.ied
    nme = Measurement("nme", float(100 * displacement.mean()), "% of IED")
    if collapsed(pair.landmark_points, pair.points):
        evidence = {"collapsed": True, "displacement": _rounded(displacement)}
        flrr = Measurement("flrr", 0.0, "%", reason="collapsed", evidence=evidence)
        return [flrr, nme]
    found = retention(pair, displacement)
    shown = int(found.shown.sum())
    if shown < MIN_POINTS:
        reason = f"the original shows only {shown} of 68 points"
        return [Measurement.missing("flrr", "%", reason), nme]
    value = 100.0 * float(found.retained.sum()) / shown
    return [Measurement("flrr", value, "%", evidence=_evidence(found)), nme]


def collapsed(edited: Points, original: Points) -> bool:
    """True when (68, 2) points are crowded on a line or a spot, next to the original's spread."""
    return _narrow_spread(edited) < COLLAPSE * _narrow_spread(original)


def _narrow_spread(points: Points) -> float:
    """Standard deviation of the points along their narrower main axis."""
    x, y = (points - points.mean(axis=0)).T
    xx, yy, xy = float(x @ x), float(y @ y), float(x @ y)
    # the smaller eigenvalue of a symmetric (2, 2) matrix
    variance = (xx + yy) / 2 - math.hypot((xx - yy) / 2, xy)
    return math.sqrt(max(variance, 0.0) / (len(points) - 1))


def retention(pair: FacePair, displacement: npt.NDArray[np.float64]) -> Retention:
    """Position and anatomy of each point. ``displacement`` is (68,) in IED."""
    step = max(math.ceil(pair.ied / PATCH_IED), 1)
    ied = pair.ied / step
    half, reach = max(round(PATCH * ied / 2), 2), max(round(SEARCH * ied), 1)
    pad = half + reach
    area, at = _area(pair, step, pad)
    original, edited = (
        _smoothed(luma[area], step, ied) for luma in (pair.original_luma, pair.edited_luma)
    )
    original, edited = _lit(original, edited, at)
    o, e = (
        cv2.copyMakeBorder(p, pad, pad, pad, pad, cv2.BORDER_REPLICATE) for p in (original, edited)
    )
    height, width = original.shape
    inside = ((at >= 0) & (at < (width, height))).all(axis=1)
    at = np.clip(at, 0, (width - 1, height - 1))
    seen = pair.valid[area][at[:, 1] * step, at[:, 0] * step]
    patches = _patches(o, at + pad, half)
    shown = inside & seen & (_variance(patches) >= MIN_CONTRAST**2)
    structure = np.full(68, np.nan)
    structure[shown] = _structure(patches[shown], _patches(e, at[shown] + pad, half))
    for i in np.flatnonzero(shown):
        if structure[i] < STRUCTURE:
            around = at[i] + pad + _offsets(reach)
            structure[i] = _structure(patches[i][None], _patches(e, around, half)).max()
    return Retention(displacement, shown, structure)


def _area(pair: FacePair, step: int, pad: int) -> tuple[tuple[slice, slice], Indices]:
    """The part of the crop around the points, its sides multiples of ``step``, and the (68, 2)
    pixels nearest to the points once it is shrunk by ``step``."""
    height, width = pair.original_luma.shape
    border = (pad + 1) * step
    low = np.maximum(np.floor(pair.points.min(axis=0)).astype(np.intp) - border, 0)
    high = np.minimum(
        np.ceil(pair.points.max(axis=0)).astype(np.intp) + border + 1, (width, height)
    )
    low = np.minimum(low, np.array([width, height]) - step)
    size = np.maximum((high - low) // step, 1) * step
    area = (slice(low[1], low[1] + size[1]), slice(low[0], low[0] + size[0]))
    return area, np.round((pair.points - low + 0.5) / step - 0.5).astype(np.intp)


def _smoothed(luma: Luma, step: int, ied: float) -> Luma:
    """Luma shrunk by ``step`` and lightly smoothed."""
    size = (luma.shape[1] // step, luma.shape[0] // step)
    small = cv2.resize(luma, size, interpolation=cv2.INTER_AREA) if step > 1 else luma
    return np.asarray(cv2.GaussianBlur(small, (5, 5), max(SMOOTHING * ied, 0.3)))


def _lit(original: Luma, edited: Luma, at: Indices) -> tuple[Luma, Luma]:
    """Both lumas times what brings the original's face to ``MEAN_LUMA``."""
    low, high = np.maximum(at.min(axis=0), 0), np.maximum(at.max(axis=0), 1)
    face = original[low[1] : high[1], low[0] : high[0]]
    gain = np.float32(np.clip(MEAN_LUMA / max(float(face.mean()), 1.0), 0.5, 4.0))
    return original * gain, edited * gain


def _patches(plane: Luma, at: Indices, half: int) -> Patches:
    """Square patches of 2 half + 1 pixels a side around n places (x, y), each less its mean."""
    side = 2 * half + 1
    windows = np.lib.stride_tricks.sliding_window_view(plane, (side, side))
    found = windows[at[:, 1] - half, at[:, 0] - half].reshape(len(at), side * side)
    return np.asarray(found - found.mean(axis=1, keepdims=True))


def _variance(patches: Patches) -> npt.NDArray[np.float32]:
    return np.asarray(np.vecdot(patches, patches) / patches.shape[1])


def _structure(original: Patches, edited: Patches) -> npt.NDArray[np.float64]:
    """(n,) contrast-structure term of SSIM, -1..1, of patches of the same count (or one original)."""
    covariance = np.vecdot(original, edited) / original.shape[1]
    spread = _variance(original) + _variance(edited)
    return np.asarray((2 * covariance + C2) / (spread + C2), dtype=np.float64)


@cache
def _offsets(reach: int) -> Indices:
    """(n, 2) whole-pixel shifts up to ``reach`` each way."""
    steps = np.arange(-reach, reach + 1)
    return np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)


def _evidence(found: Retention) -> dict[str, object]:
    """Compact lists for the diagnosis picture: indices of points, displacement of each in IED."""
    return {
        "points_shown": int(found.shown.sum()),
        "not_shown": np.flatnonzero(~found.shown).tolist(),
        "displaced": np.flatnonzero(found.displaced).tolist(),
        "anatomy_gone": np.flatnonzero(found.shown & ~found.anatomy).tolist(),
        "lost": np.flatnonzero(found.shown & ~found.retained).tolist(),
        "displacement": _rounded(found.displacement),
    }


def _rounded(values: npt.NDArray[np.float64]) -> list[float]:
    rounded: list[float] = np.round(values, 4).tolist()
    return rounded
