"""What a phone's beautify SDK does to a face: skin found by its colour, smoothed with its edges kept,
whitened; eyes enlarged and the jaw slimmed by local warps. Each step has a strength of 0 to 1.

Guided filter: He, Sun and Tang, "Guided image filtering", TPAMI 2013. Local warps after Gustafsson,
"Interactive image warping", 1993. The same pixels and strengths give the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Points: TypeAlias = npt.NDArray[np.float64]
Pixels: TypeAlias = npt.NDArray[np.uint8]

DEFAULTS: Mapping[str, float] = {"smooth": 0.5, "whiten": 0.3, "eyes": 0.2, "jaw": 0.2}
"""Every parameter, 0 to 1, with the strength it has when nobody says another."""

_SMOOTH_RADIUS = 0.12
"""Of the eye distance: as wide as pores and stubble, narrower than the folds that make a face."""
_SMOOTH_EDGE = 0.05
"""Contrast, of full scale, above which an edge counts as one and is kept."""
_EYE_REACH, _EYE_MOST = 0.45, 0.35
_JAW_REACH, _JAW_MOST = 0.8, 0.22
"""Reach of a warp and how far it moves at strength 1, of the eye distance (eyes: of the radius)."""
_JAW_SIDES = ((range(3, 7), 1.0), (range(10, 14), -1.0))


@dataclass(frozen=True, slots=True)
class Strengths:
    """How much of each step, 0 (none) to 1."""

    smooth: float = DEFAULTS["smooth"]
    whiten: float = DEFAULTS["whiten"]
    eyes: float = DEFAULTS["eyes"]
    jaw: float = DEFAULTS["jaw"]


def beautify(pixels: Pixels, points: Points | None, strengths: Strengths) -> Pixels:
    """(h, w, 3) RGB with the face at ``points`` (68 in 300-W order) made up; as it was without."""
    if points is None:
        return pixels.copy()
    skin = skin_mask(pixels, points)[..., None]
    work = pixels.astype(np.float32)
    if strengths.smooth:
        work += strengths.smooth * skin * (_guided(work, _ied(points)) - work)
    if strengths.whiten:
        work += skin * (_whitened(work, strengths.whiten) - work)
    moved = _shift(pixels.shape[:2], points, strengths)
    if moved is not None:
        work = cv2.remap(work, *moved, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(np.clip(np.rint(work), 0, 255), dtype=np.uint8)


def skin_mask(pixels: Pixels, points: Points) -> Floats:
    """(h, w) float32, 0 to 1: pixels of the colour of this face's own cheeks, in and under the face,
    without eyes, brows and mouth. The colour is measured on the face, not presumed."""
    height, width = pixels.shape[:2]
    chroma = cv2.cvtColor(pixels, cv2.COLOR_RGB2YCrCb)[..., 1:].astype(np.float32)
    face = _filled((height, width), [points[np.r_[0:17, 26:16:-1]]])
    features = _filled(
        (height, width),
        [points[a:b] for a, b in ((17, 22), (22, 27), (36, 42), (42, 48), (48, 60))],
    )
    own = chroma[(face > 0) & (features == 0)]
    if len(own) < 50:
        return np.zeros((height, width), np.float32)
    centre = np.median(own, axis=0)
    spread = np.maximum(1.4826 * np.median(np.abs(own - centre), axis=0), 3.0)
    distance = (((chroma - centre) / spread) ** 2).sum(axis=-1)
    likely = np.exp(-distance / (2 * 2.5**2))
    ied = _ied(points)
    middle = points[27:36].mean(axis=0)
    where = np.zeros((height, width), np.float32)
    axes = (max(1, round(1.6 * ied)), max(1, round(2.6 * ied)))
    cv2.ellipse(where, (round(middle[0]), round(middle[1])), axes, 0, 0, 360, 1.0, -1)
    reach = round(0.1 * ied) | 1
    wide = cv2.dilate(features, np.ones((reach, reach), np.uint8)).astype(np.float32) / 255
    mask = cv2.GaussianBlur(likely * where * (1 - wide), (0, 0), max(0.05 * ied, 0.5))
    return np.asarray(np.clip(mask, 0, 1), dtype=np.float32)


def _ied(points: Points) -> float:
    return max(float(np.hypot(*(points[42:48].mean(axis=0) - points[36:42].mean(axis=0)))), 1.0)


def _filled(size: tuple[int, int], outlines: list[Points]) -> Pixels:
    mask = np.zeros(size, np.uint8)
    for outline in outlines:
        cv2.fillConvexPoly(mask, cv2.convexHull(np.rint(outline).astype(np.int32)), 255)
    return mask


def _guided(pixels: Floats, ied: float) -> Floats:
    """The picture smoothed by a guided filter whose guide is its own brightness."""
    radius = max(1, round(_SMOOTH_RADIUS * ied))
    size = (2 * radius + 1, 2 * radius + 1)
    guide = pixels @ np.array([0.299, 0.587, 0.114], np.float32)
    mean = cv2.blur(guide, size)
    variance = cv2.blur(guide * guide, size) - mean * mean
    flat = (255 * _SMOOTH_EDGE) ** 2
    out = np.empty_like(pixels)
    for channel in range(3):
        values = np.ascontiguousarray(pixels[..., channel])
        average = cv2.blur(values, size)
        slope = (cv2.blur(guide * values, size) - mean * average) / (variance + flat)
        offset = average - slope * mean
        out[..., channel] = cv2.blur(slope, size) * guide + cv2.blur(offset, size)
    return out


def _whitened(pixels: Floats, strength: float) -> Floats:
    """Brightness lifted along a logarithm, the colours in proportion."""
    base = 1 + 4 * strength
    light = np.clip(pixels @ np.array([0.299, 0.587, 0.114], np.float32) / 255, 1e-3, 1)
    lifted = np.log1p(light * (base - 1)) / np.log(base)
    return np.asarray(pixels * (lifted / light)[..., None], dtype=np.float32)


def _shift(
    size: tuple[int, int], points: Points, strengths: Strengths
) -> tuple[Floats, Floats] | None:
    """Where each pixel is fetched from, as cv2.remap takes it; None when nothing moves."""
    if not (strengths.eyes or strengths.jaw):
        return None
    ied = _ied(points)
    y, x = np.mgrid[: size[0], : size[1]].astype(np.float32)
    from_x, from_y = x.copy(), y.copy()
    for eye in (points[36:42], points[42:48]):
        cx, cy = (float(v) for v in eye.mean(axis=0))
        near = np.clip(1 - np.hypot(x - cx, y - cy) / (_EYE_REACH * ied), 0, 1) ** 2
        pull = np.float32(_EYE_MOST * strengths.eyes) * near
        from_x -= pull * (x - cx)
        from_y -= pull * (y - cy)
    across = points[45] - points[36]
    across = across / max(float(np.hypot(*across)), 1e-6)
    far = _JAW_MOST * strengths.jaw * ied
    for side, sign in _JAW_SIDES:
        near = np.zeros(size, np.float32)
        for cx, cy in points[list(side)]:
            gap = ((x - cx) ** 2 + (y - cy) ** 2) / (_JAW_REACH * ied) ** 2
            near = np.maximum(near, np.clip(1 - gap, 0, 1) ** 2)
        from_x -= np.float32(sign * far * across[0]) * near
        from_y -= np.float32(sign * far * across[1]) * near
    return np.asarray(from_x, np.float32), np.asarray(from_y, np.float32)
