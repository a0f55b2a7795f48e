"""Which pixels of a pair a tool was told to change, and which it was told to leave alone.

With a mask, whole pictures are compared pixel by pixel where their sizes agree; where the tool
returned another size, the registered crop of the face is compared under the same mask. Large
pictures are thinned to every so many rows, which moves a mean or a share by well under a percent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from metrics.per_pair import once_per_pair

if TYPE_CHECKING:
    from metrics.pair import FacePair

Pixels = npt.NDArray[np.uint8]

CHANGED_LEVELS = 4
"""A pixel counts as changed when any channel moves by more than this: rounding of two decodes and
a colour conversion stays within it."""
MAX_COMPARED = 65_000
MIN_COMPARED = 100
ACT = 128


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """(h, w, 3) original and edited pixels side by side, with two (h, w) uint8 0/1 masks: where
    the tool was told to act and where it was told not to touch (None when it had no mask)."""

    original: Pixels
    edited: Pixels
    act: Pixels
    protect: Pixels | None


@once_per_pair
def compared(pair: FacePair) -> Compared:
    """The pixels of a pair that are set side by side, cached."""
    mask = pair.edit_mask
    if mask is None:
        return _thin(pair.original_crop, pair.edited_crop, None, [pair.valid])
    before, after = pair.original.picture, pair.edited.picture
    if before.pixels.shape == after.pixels.shape and mask.values.shape == before.pixels.shape[:2]:
        opaque = [p.opaque for p in (before, after) if p.opaque is not None]
        return _thin(before.pixels, after.pixels, mask.values, opaque)
    whole = cv2.resize(mask.values, (before.width, before.height), interpolation=cv2.INTER_NEAREST)
    height, width = pair.valid.shape
    placed = cv2.warpAffine(whole, pair.to_crop, (width, height), flags=cv2.INTER_NEAREST)
    return _thin(pair.original_crop, pair.edited_crop, placed, [pair.valid])


def _thin(
    original: Pixels, edited: Pixels, mask: Pixels | None, real: list[npt.NDArray[np.bool_]]
) -> Compared:
    height, width = original.shape[:2]
    # whole rows: picking single pixels out of each row costs more than the figures themselves
    step = max(1, round(height * width / MAX_COMPARED))
    grid = slice(step // 2, None, step)
    before, after = (np.ascontiguousarray(side[grid]) for side in (original, edited))
    shown = np.ones(before.shape[:2], np.uint8)
    for flags in real:
        shown &= flags[grid].astype(np.uint8)
    if mask is None:
        return Compared(before, after, shown, None)
    values = mask[grid]
    act = (values >= ACT).astype(np.uint8) & shown
    return Compared(before, after, act, (values == 0).astype(np.uint8) & shown)


def difference(sides: Compared, chosen: Pixels) -> tuple[float, float]:
    """Mean |difference| in 8-bit levels and share of changed pixels, under a 0/1 mask."""
    apart = cv2.absdiff(sides.original, sides.edited)
    return sum(cv2.mean(apart, mask=chosen)[:3]) / 3.0, _share(apart, chosen)


def changed_share(sides: Compared, chosen: Pixels) -> float:
    """Share of changed pixels under a 0/1 mask."""
    return _share(cv2.absdiff(sides.original, sides.edited), chosen)


def _share(apart: Pixels, chosen: Pixels) -> float:
    still = cv2.inRange(apart, (0, 0, 0), (CHANGED_LEVELS,) * 3)
    total = cv2.countNonZero(chosen)
    return (total - cv2.countNonZero(cv2.bitwise_and(still, chosen))) / total
