"""Fine detail of both faces, region by region: what PDL, detail change and coherence share.

Detail is the 3 x 3 four-neighbour Laplacian of BT.601 luma (0..255). The noise floor is the white
noise that Immerkaer's difference mask sees ("Fast noise variance estimation", Computer Vision and
Image Understanding 64, 1996), taken as a median so that edges do not count: texture of skin falls
off towards the finest scale, sensor noise does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from metrics.per_pair import once_per_pair
from metrics.regions import NAMES, Region, regions

if TYPE_CHECKING:
    from metrics.pair import FacePair

LAPLACIAN_GAIN = 20.0
"""Variance of the Laplacian of white noise of variance 1 (16 + 4 x 1)."""
ROUNDING = LAPLACIAN_GAIN / 12.0
"""Laplacian variance that rounding to eight bits leaves by itself."""
_NOISE_KERNEL = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)
_NOISE_GAIN = 36.0
_MAD_TO_SIGMA = 1.4826
_BINS_TO_A_LEVEL = (32.0, 8.0, 4.0, 2.0, 1.0, 0.5)
"""Finest first; the next one where the median lies beyond 255 bins (a very noisy picture)."""


Floors: TypeAlias = tuple[float, float]
_HALVES = ("upper_face", "lower_face")
_HALF_OF = {
    "upper_face": "upper_face",
    "eye_sockets": "upper_face",
    "forehead": "upper_face",
    "lower_face": "lower_face",
    "beard": "lower_face",
    "larynx": "lower_face",
}
"""Whose noise floor a region takes; those that reach over both halves take the mean."""


@dataclass(frozen=True, slots=True)
class RegionDetail:
    """Laplacian variances (levels squared) of the original and the edit, their covariance, and
    both mean lumas (0..255). ``noise`` are the Laplacian variances that white noise explains there
    in original and edit. ``reason`` says why the region has no figures, else None."""

    original: float
    edited: float
    covariance: float
    original_luma: float
    edited_luma: float
    reason: str | None = None
    noise: Floors = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PairDetail:
    """``noise`` is that of the whole face."""

    regions: dict[str, RegionDetail]
    noise: Floors


@once_per_pair
def pair_detail(pair: FacePair) -> PairDetail:
    """Detail of every region of a pair, cached."""
    found = regions(pair)
    face = found["face"]
    if face.reason is not None and face.pixels == 0:
        empty = RegionDetail(0.0, 0.0, 0.0, 0.0, 0.0, face.reason)
        return PairDetail(dict.fromkeys(NAMES, empty), (0.0, 0.0))
    window = _window(list(found.values()), pair.original_luma.shape)
    lumas = [y[window] for y in (pair.original_luma, pair.edited_luma)]
    planes = [*(cv2.Laplacian(y, cv2.CV_32F) for y in lumas), *lumas]
    corner = (window[0].start, window[1].start)
    floors = _floors(found, lumas, corner)
    each = {
        name: _region_detail(
            found[name], planes, corner, floors.get(_HALF_OF.get(name, "face"), floors["face"])
        )
        for name in NAMES
    }
    return PairDetail(each, floors["face"])


def _floors(
    found: dict[str, Region], lumas: list[npt.NDArray[np.float32]], corner: tuple[int, int]
) -> dict[str, Floors]:
    """The noise floor of each half of the face that is seen, and of the whole.

    One floor for the whole face would charge a filter that takes the noise of the lower half alone
    to both halves: a loss below would read as twice the loss, and as a gain above.
    """
    floors, weights = {}, {}
    for name in _HALVES if all(found[h].reason is None for h in _HALVES) else ("face",):
        region = found[name]
        inner = _local(region, corner)
        floors[name] = tuple(noise_floor(y[inner], region.mask) for y in lumas)
        weights[name] = region.pixels
    total = max(sum(weights.values()), 1)
    mean = [sum(floors[n][side] * weights[n] for n in floors) / total for side in (0, 1)]
    return {**{n: (f[0], f[1]) for n, f in floors.items()}, "face": (mean[0], mean[1])}


def noise_floor(luma: npt.NDArray[np.float32], mask: npt.NDArray[np.uint8]) -> float:
    """Laplacian variance (levels squared) explained by white noise under a (h, w) 0/1 mask.

    Every other row is looked at: half the pixels give the same median for half the time.
    """
    response = cv2.filter2D(luma, cv2.CV_32F, _NOISE_KERNEL)[::2]
    below = mask[::2]
    for bins in _BINS_TO_A_LEVEL:
        counts = cv2.calcHist(
            [cv2.convertScaleAbs(response, alpha=bins)], [0], below, [256], [0, 256]
        ).ravel()
        cumulative = np.cumsum(counts)
        half = float(cumulative[-1]) / 2
        at = int(np.searchsorted(cumulative, half))
        if at < 255:  # the last bin holds all that is beyond
            break
    if half == 0:
        return 0.0
    before = float(cumulative[at - 1]) if at else 0.0
    # bin n holds n - 1/2 to n + 1/2, the first one only 0 to 1/2
    inside = (half - before) / max(float(counts[at]), 1.0)
    sigma = _MAD_TO_SIGMA * (at - 0.5 + inside if at else inside / 2) / bins
    return LAPLACIAN_GAIN * sigma * sigma / _NOISE_GAIN


def _window(found: list[Region], shape: tuple[int, ...]) -> tuple[slice, slice]:
    """The part of the crop that holds every region, with one pixel around it."""
    used = [region for region in found if region.pixels]
    top = min(region.top for region in used)
    left = min(region.left for region in used)
    bottom = max(region.top + region.mask.shape[0] for region in used)
    right = max(region.left + region.mask.shape[1] for region in used)
    return (
        slice(max(top - 1, 0), min(bottom + 1, shape[0])),
        slice(max(left - 1, 0), min(right + 1, shape[1])),
    )


def _local(region: Region, corner: tuple[int, int]) -> tuple[slice, slice]:
    top, left = region.top - corner[0], region.left - corner[1]
    return slice(top, top + region.mask.shape[0]), slice(left, left + region.mask.shape[1])


def _region_detail(
    region: Region,
    planes: list[npt.NDArray[np.float32]],
    corner: tuple[int, int],
    noise: Floors,
) -> RegionDetail:
    """``planes`` are both Laplacians, then both lumas. Norms and scalar products are many times
    faster than cv2's masked mean and deviation, which branch at every pixel."""
    if region.reason is not None:
        return RegionDetail(0.0, 0.0, 0.0, 0.0, 0.0, region.reason)
    mask, count = region.mask, region.pixels
    first, second, *lumas = (plane[_local(region, corner)] for plane in planes)
    energies = [cv2.norm(plane, cv2.NORM_L2SQR, mask) / count for plane in (first, second)]
    apart = cv2.norm(first, second, cv2.NORM_L2SQR, mask) / count
    weights = mask.astype(np.float32)
    one, other = (float(np.vecdot(p, weights).sum()) / count for p in (first, second))
    covariance = (energies[0] + energies[1] - apart) / 2.0 - one * other
    levels = [cv2.norm(luma, cv2.NORM_L1, mask) / count for luma in lumas]  # no luma is below 0
    variances = energies[0] - one * one, energies[1] - other * other
    return RegionDetail(*variances, covariance, levels[0], levels[1], None, noise)
