"""What can be wrong with a tool's answer as a whole, before any figure is trusted."""

from __future__ import annotations

import cv2

from domain.pictures import Picture

BLANK_STD = 2.0
"""8-bit levels: a plain picture after JPEG stays below, the darkest portrait in the sets is at 4."""
SAMPLES = 48
"""A side's pixels that are looked at to call a picture blank."""
SMALLEST_SIDE = 96


def blank(picture: Picture) -> str | None:
    """A sentence when the picture is one plain colour, as filters return instead of a refusal."""
    step = max(1, min(picture.width, picture.height) // SAMPLES)
    if cv2.meanStdDev(picture.pixels[::step, ::step])[1].max() >= BLANK_STD:
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
