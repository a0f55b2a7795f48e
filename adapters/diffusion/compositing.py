"""What happens around a mask's edge: the size made whole, protected pixels put back, drift and seam
measured. Pictures are (h, w, 3) uint8 RGB, masks (h, w) uint8 with white = edit; figures are in
levels of 0..255."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from domain.pictures import RgbPixels

MaskPixels = npt.NDArray[np.uint8]
CHANGED = 2
"""A pixel counts as changed when a channel is off by more levels than this."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the tool's own picture is off where the mask is 0: ``mean`` and ``most`` of the
    absolute difference in levels, and the share of pixels that changed by more than 2 levels."""

    mean: float
    most: int
    changed: float

    def as_meta(self) -> dict[str, float]:
        """Rounded, for ``Edited.meta``."""
        return {
            "mean": round(self.mean, 3),
            "max": self.most,
            "changed_share": round(self.changed, 4),
        }


def pad_to_multiple(
    pixels: npt.NDArray[np.uint8], multiple: int, least: int
) -> npt.NDArray[np.uint8]:
    """The picture with its last row and column repeated until both sides are multiples and at least
    ``least`` px. Nothing is resampled: cutting the result to the old size undoes it exactly."""
    height, width = pixels.shape[:2]
    down, right = (_short(side, multiple, least) for side in (height, width))
    if not down and not right:
        return pixels
    padded = cv2.copyMakeBorder(pixels, 0, down, 0, right, cv2.BORDER_REPLICATE)
    return np.asarray(padded, dtype=np.uint8)


def _short(side: int, multiple: int, least: int) -> int:
    return max(-(-side // multiple), -(-least // multiple)) * multiple - side


def composite(original: RgbPixels, painted: RgbPixels, mask: MaskPixels, seam: int) -> RgbPixels:
    """``painted`` inside the mask, ``original`` to the last bit where the mask is 0. Inside, the two
    fade into each other over ``seam`` px from the edge, so that no hard line is left."""
    weight = mask.astype(np.float32) / 255
    if seam and not mask.all():
        inside = (mask > 0).astype(np.uint8)
        far = cv2.distanceTransform(inside, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        weight *= np.clip(far / (seam + 1), 0, 1)
    ours = original.astype(np.float32)
    mixed = ours + weight[..., None] * (painted.astype(np.float32) - ours)
    return np.rint(mixed).astype(np.uint8)


def drift(original: RgbPixels, painted: RgbPixels, mask: MaskPixels) -> Drift | None:
    """The drift where the mask is 0; None when nothing is protected."""
    protected = mask == 0
    if not protected.any():
        return None
    off = np.abs(painted[protected].astype(np.int16) - original[protected])
    return Drift(float(off.mean()), int(off.max()), float((off.max(axis=1) > CHANGED).mean()))


def seam_step(pixels: RgbPixels, mask: MaskPixels) -> float | None:
    """The mean absolute step between neighbours on the two sides of the mask's edge, in levels over
    the channels; None when the mask has no edge. The original's own step is what to hold it against.
    """
    inside = mask > 0
    values = pixels.astype(np.int16)
    steps = [
        np.abs(values[1:] - values[:-1])[inside[1:] != inside[:-1]],
        np.abs(values[:, 1:] - values[:, :-1])[inside[:, 1:] != inside[:, :-1]],
    ]
    every = np.concatenate(steps)
    return float(every.mean()) if len(every) else None


def edge_figures(
    original: RgbPixels, painted: RgbPixels, result: RgbPixels, mask: MaskPixels
) -> dict[str, Any]:
    """``raw_drift`` of the painted picture outside the mask, and the ``seam`` in the original, in
    the painted picture and in the result; {} when nothing is protected."""
    found = drift(original, painted, mask)
    if found is None:
        return {}
    steps = {
        name: seam_step(picture, mask)
        for name, picture in (("original", original), ("raw", painted), ("result", result))
    }
    rounded = {name: None if step is None else round(step, 3) for name, step in steps.items()}
    return {"raw_drift": found.as_meta(), "seam": rounded}
