"""What can be wrong with a tool's answer as a whole, before any figure is trusted."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import STABLE, Face
from domain.pictures import Picture

BLANK_STD = 2.0
"""8-bit levels: a plain picture after JPEG stays below, the darkest portrait in the sets is at 4."""
SMALLEST_SIDE = 96
STRETCH = 0.05
MIRROR_GAIN = 0.12
PATCH = 64

MIRROR_68 = np.array(
    [*range(16, -1, -1), *range(26, 16, -1), 27, 28, 29, 30, 35, 34, 33, 32, 31]
    + [45, 44, 43, 42, 47, 46, 39, 38, 37, 36, 41, 40]
    + [54, 53, 52, 51, 50, 49, 48, 59, 58, 57, 56, 55, 64, 63, 62, 61, 60, 67, 66, 65]
)
"""Index of the point that takes the place of each of the 68 when the face is mirrored."""


def blank(picture: Picture) -> str | None:
    """A sentence when the picture is one plain colour, as filters return instead of a refusal."""
    small = cv2.resize(picture.pixels, (64, 64), interpolation=cv2.INTER_AREA)
    if small.std(axis=(0, 1)).max() >= BLANK_STD:
        return None
    level = picture.pixels.mean()
    colour = "black" if level < 16 else "white" if level > 239 else "one-colour"
    return f"the tool returned a blank image (plain {colour})"


def too_small(original: Picture, edited: Picture) -> str | None:
    """A sentence when the answer is too small to judge a face by."""
    side = min(edited.width, edited.height)
    if side >= SMALLEST_SIDE or side >= min(original.width, original.height):
        return None
    return f"edit too small ({edited.width} x {edited.height} px, at least {SMALLEST_SIDE} needed)"


def stretch(original: Face, edited: Face) -> float | None:
    """The factor by which the edited picture is too wide, None when it was not stretched.

    A changed picture shape alone is no stretch (bars and crops change it too): the face's own
    points must be stretched by the same factor.
    """
    shape = edited.picture.width / edited.picture.height
    shape /= original.picture.width / original.picture.height
    if abs(np.log(shape)) < STRETCH:
        return None
    spread_e = np.ptp(edited.points, axis=0)
    spread_o = np.ptp(original.points, axis=0)
    face = float((spread_e[0] / spread_e[1]) / (spread_o[0] / spread_o[1]))
    return float(shape) if abs(np.log(face / shape)) < abs(np.log(shape)) / 2 else None


def unstretch(picture: Picture, factor: float) -> Picture:
    """Undo a horizontal stretch by shrinking the longer way, so that no detail is made up."""
    width, height = picture.width, picture.height
    if factor > 1:
        width = max(1, round(width / factor))
    else:
        height = max(1, round(height * factor))
    pixels = cv2.resize(picture.pixels, (width, height), interpolation=cv2.INTER_AREA)
    return replace(picture, pixels=pixels.astype(np.uint8), opaque=None)


def mirrored(original: Face, edited: Face) -> bool:
    """True when the edited face matches the original clearly better after a left-right flip."""
    direct = _likeness(original, edited)
    return _likeness(original, flip(edited)) > direct + MIRROR_GAIN and direct < 0.9


def flip(face: Face) -> Face:
    """The face in its picture mirrored left to right, points renamed to stay in the scheme."""
    last = face.picture.width - 1
    points = face.points[MIRROR_68].copy()
    points[:, 0] = last - points[:, 0]
    x, y, w, h = face.box
    picture = replace(
        face.picture,
        pixels=np.ascontiguousarray(face.picture.pixels[:, ::-1]),
        opaque=None if face.picture.opaque is None else face.picture.opaque[:, ::-1],
    )
    return replace(face, picture=picture, points=points, box=(last - x - w, y, w, h))


def _likeness(a: Face, b: Face) -> float:
    """Correlation of the two faces' luma on a coarse common grid, -1..1."""
    x, y = _patch(a), _patch(b)
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum() / scale) if scale > 0 else 0.0


def _patch(face: Face) -> npt.NDArray[np.float32]:
    """The face on a PATCH x PATCH grid, eyes level, 2.6 inter-eye distances a side."""
    right, left = face.eye_centres
    centre = face.points[STABLE].mean(axis=0)
    axis = left - right
    scale = PATCH / (2.6 * max(float(np.hypot(*axis)), 1e-6))
    turn = -np.arctan2(axis[1], axis[0])
    c, s = np.cos(turn) * scale, np.sin(turn) * scale
    matrix = np.array([[c, -s, 0.0], [s, c, 0.0]])
    matrix[:, 2] = PATCH / 2 - matrix[:, :2] @ centre
    grey = cv2.cvtColor(face.picture.pixels, cv2.COLOR_RGB2GRAY)
    patch = cv2.warpAffine(grey, matrix, (PATCH, PATCH), flags=cv2.INTER_AREA)
    return patch.astype(np.float32)
