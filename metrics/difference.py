"""Which pixels of a pair a tool was told to change, and which it was told to leave alone.

With a mask, whole pictures are compared pixel by pixel where their sizes agree; where the tool
returned another size, the registered crop of the face is compared under the same mask. Large
pictures are thinned to a regular grid, which moves a mean or a share by well under a percent.
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
MAX_COMPARED = 260_000
MIN_COMPARED = 100
FULLY_EDIT = 255


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """(h, w, 3) original and edited pixels with the (h, w) uint8 mask given to the tool (None
    where there was none) and the (h, w) flags of real pixels."""

    original: Pixels
    edited: Pixels
    mask: Pixels | None
    real: npt.NDArray[np.bool_]


@once_per_pair
def compared(pair: FacePair) -> Compared:
    """The pixels of a pair that are set side by side, cached."""
    mask = pair.edit_mask
    if mask is None:
        return Compared(pair.original_crop, pair.edited_crop, None, pair.valid)
    before, after = pair.original.picture, pair.edited.picture
    if before.pixels.shape == after.pixels.shape and mask.values.shape == before.pixels.shape[:2]:
        step = max(1, round((mask.values.size / MAX_COMPARED) ** 0.5))
        thin = (slice(step // 2, None, step), slice(step // 2, None, step))
        real = np.ones(mask.values[thin].shape, np.bool_)
        for picture in (before, after):
            if picture.opaque is not None:
                real &= picture.opaque[thin]
        return Compared(before.pixels[thin], after.pixels[thin], mask.values[thin], real)
    height, width = pair.valid.shape
    spread = cv2.resize(mask.values, (before.width, before.height), interpolation=cv2.INTER_NEAREST)
    placed = cv2.warpAffine(
        spread,
        pair.to_crop,
        (width, height),
        flags=cv2.INTER_NEAREST,
        borderValue=FULLY_EDIT // 2,
    )
    return Compared(pair.original_crop, pair.edited_crop, placed, pair.valid)


def difference(sides: Compared, chosen: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Mean |difference| in 8-bit levels and share of changed pixels, over the chosen ones."""
    apart = cv2.absdiff(
        np.ascontiguousarray(sides.original[chosen]), np.ascontiguousarray(sides.edited[chosen])
    )
    changed = apart.max(axis=1) > CHANGED_LEVELS
    return float(apart.mean()), float(changed.mean())
