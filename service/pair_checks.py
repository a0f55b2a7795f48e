"""What can be wrong with a tool's answer as a whole, before any figure is trusted."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from domain.faces import Face
from domain.pictures import Picture

BLANK_STD = 2.0
"""8-bit levels: a plain picture after JPEG stays below, the darkest portrait in the sets is at 4."""
SMALLEST_SIDE = 96
STRETCH = 0.05


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
