"""An original and an edited face on one pixel grid: what every metric looks at.

Everything expensive is a cached property, so that the metrics of one pair share it.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil, floor
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import Face
from domain.masks import Mask
from domain.pictures import Picture, RgbPixels
from metrics.affine import Matrix, Points, apply, compose, invert, resizing, shifting
from metrics.registration import Grid, Registration, mirrored, register
from metrics.resampling import KEEP, resample

Luma: TypeAlias = npt.NDArray[np.float32]
"""(h, w) float32, BT.601 luma of the 8-bit sRGB values, 0..255."""
Flags: TypeAlias = npt.NDArray[np.bool_]
"""(h, w) bool."""

REFERENCE_IED = 256.0
"""Working scale: the eyes are at most so many pixels apart, so that figures of fine detail compare."""
STRANGE = 0.15
"""Agreement of the registration below which the edited face is hardly the original's; heavy blur (0.08
IED) is at 0.35, another person at 0.0."""
_BAND = 64
"""Rows turned into luma at a time: their three float channels then stay in the processor's cache."""
_SIDE, _ABOVE, _BELOW = 0.35, 0.9, 0.9
"""What the crop shows around the 68 points, in IED: hair line above, larynx below."""


class FacePair:
    """One original and one edited face. ``edit_mask`` is the mask the tool was given, if any.

    The edited picture is registered to the original and both are cut to the face. Where the tool
    left the pixel grid alone (or moved it by whole pixels) the pixels are only sliced, and shrunk
    alike above the working scale; otherwise both go through the same smoothing kernel onto a
    coarser grid, never a finer one, so that resampling cannot pass for a loss of detail.
    """

    def __init__(self, original: Face, edited: Face, edit_mask: Mask | None = None) -> None:
        self.original = original
        self.edited = edited
        self.edit_mask = edit_mask

    @cached_property
    def registration(self) -> Registration:
        """Map of the edited picture's pixels (flipped first where ``mirrored``) to the original's."""
        return register(self.original, self.edited)

    @cached_property
    def rectangle(self) -> tuple[int, int, int, int]:
        """(x, y, width, height) of the crop in pixels of the original."""
        ied, picture = self._eyes_apart, self.original.picture
        left, top = self.original.points.min(axis=0).tolist()
        right, bottom = self.original.points.max(axis=0).tolist()
        x0 = min(max(floor(left - _SIDE * ied), 0), picture.width - 2)
        y0 = min(max(floor(top - _ABOVE * ied), 0), picture.height - 2)
        x1 = min(max(ceil(right + _SIDE * ied), x0 + 2), picture.width)
        y1 = min(max(ceil(bottom + _BELOW * ied), y0 + 2), picture.height)
        return x0, y0, x1 - x0, y1 - y0

    @cached_property
    def size(self) -> tuple[int, int]:
        """(width, height) of the crop on the working grid."""
        scale = min(1.0, REFERENCE_IED / self._eyes_apart)
        if self.registration.grid is Grid.RESAMPLED:
            scale = min(scale, KEEP, KEEP / self.registration.scale)
        _, _, width, height = self.rectangle
        return max(round(width * scale), 1), max(round(height * scale), 1)

    @cached_property
    def to_crop(self) -> Matrix:
        """(2, 3) map of the original's pixels to pixels of the crop."""
        x, y, width, height = self.rectangle
        return compose(resizing(self.size[0] / width, self.size[1] / height), shifting(-x, -y))

    @cached_property
    def scale(self) -> float:
        """Crop pixels to an original pixel, at most 1."""
        return self.size[0] / self.rectangle[2]

    @cached_property
    def ied(self) -> float:
        """Inter-eye distance of the original in crop pixels."""
        return self._eyes_apart * self.scale

    @cached_property
    def points(self) -> Points:
        """(68, 2) of the original, in crop pixels."""
        return apply(self.to_crop, self.original.points)

    @cached_property
    def edited_points(self) -> Points:
        """(68, 2) of the edited face, registered into the crop."""
        return apply(compose(self.to_crop, self.registration.matrix), self._upright.points)

    @cached_property
    def landmark_points(self) -> Points:
        """(68, 2) of the edited face, brought into the crop by the stable points alone (Umeyama)."""
        return apply(compose(self.to_crop, self.registration.landmarks), self._upright.points)

    @cached_property
    def original_crop(self) -> RgbPixels:
        """(h, w, 3) uint8 RGB."""
        return self._crops[0]

    @cached_property
    def edited_crop(self) -> RgbPixels:
        """(h, w, 3) uint8 RGB on the grid of ``original_crop``; black where not ``valid``."""
        return self._crops[1]

    @cached_property
    def original_luma(self) -> Luma:
        """(h, w) float32, 0..255."""
        return luma_of(self.original_crop)

    @cached_property
    def edited_luma(self) -> Luma:
        """(h, w) float32, 0..255."""
        return luma_of(self.edited_crop)

    @cached_property
    def valid(self) -> Flags:
        """(h, w) bool: both pictures have opaque pixels there."""
        return self._crops[2]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Full sentences on how the pair was brought together."""
        notes = list(self.registration.notes)
        if self.registration.agreement < STRANGE:
            notes.append(
                "hardly any detail of the original face is found again in the edited one: "
                "another person, or redrawn"
            )
        if self.registration.grid is Grid.RESAMPLED:
            notes.append(
                f"the tool moved or scaled the face; both pictures were resampled to eyes "
                f"{self.ied:.0f} px apart"
            )
        if self._eyes_apart < REFERENCE_IED / 2:
            notes.append(
                f"the original's eyes are {self._eyes_apart:.0f} px apart; "
                f"detail figures refer to {REFERENCE_IED:.0f} px"
            )
        return tuple(notes)

    @cached_property
    def _eyes_apart(self) -> float:
        return self.original.ied

    @cached_property
    def _upright(self) -> Face:
        return mirrored(self.edited) if self.registration.mirrored else self.edited

    @cached_property
    def _crops(self) -> tuple[RgbPixels, RgbPixels, Flags]:
        if self.registration.grid is Grid.RESAMPLED:
            return self._resampled()
        x, y, width, height = self.rectangle
        dx, dy = (round(v) for v in self.registration.shift)
        original, seen_o = _cut(self.original.picture, x, y, width, height)
        edited, seen_e = _cut(self._upright.picture, x - dx, y - dy, width, height)
        if self.size != (width, height):
            original = _shrink(original, self.size)
            edited = _shrink(edited, self.size)
        seen = [flags for flags in (seen_o, seen_e) if flags is not None]
        if not seen:
            return original, edited, np.ones(self.size[::-1], bool)
        valid = np.logical_and.reduce(seen)
        if self.size != (width, height):
            share = cv2.resize(valid.astype(np.float32), self.size, interpolation=cv2.INTER_AREA)
            valid = np.asarray(share) > 0.999
        return original, edited, valid

    def _resampled(self) -> tuple[RgbPixels, RgbPixels, Flags]:
        to_original = invert(self.to_crop)
        to_edited = compose(self.registration.inverse(), to_original)
        original, seen_o = resample(self.original.picture, to_original, self.size)
        edited, seen_e = resample(self._upright.picture, to_edited, self.size)
        return original, edited, seen_o & seen_e


def luma_of(pixels: RgbPixels) -> Luma:
    """(h, w) float32 BT.601 luma, 0..255, unrounded."""
    height, width = pixels.shape[:2]
    luma = np.empty((height, width), np.float32)
    floats = np.empty((min(height, _BAND), width, 3), np.float32)
    for top in range(0, height, _BAND):
        band = pixels[top : top + _BAND]
        part = floats[: len(band)]
        np.copyto(part, band)
        cv2.cvtColor(part, cv2.COLOR_RGB2GRAY, dst=luma[top : top + _BAND])
    return luma


def _shrink(pixels: RgbPixels, size: tuple[int, int]) -> RgbPixels:
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _cut(
    picture: Picture, x: int, y: int, width: int, height: int
) -> tuple[RgbPixels, Flags | None]:
    """A rectangle of a picture, which may reach out of it: black and not seen there. A view of the
    picture where it lies inside; None for the flags where all of it is seen."""
    x0, y0 = min(max(x, 0), picture.width), min(max(y, 0), picture.height)
    x1, y1 = max(min(x + width, picture.width), x0), max(min(y + height, picture.height), y0)
    inner = picture.pixels[y0:y1, x0:x1]
    opaque = None if picture.opaque is None else picture.opaque[y0:y1, x0:x1]
    if inner.shape[:2] == (height, width):
        return inner, opaque
    pixels = np.zeros((height, width, 3), np.uint8)
    seen = np.zeros((height, width), bool)
    where = (slice(y0 - y, y1 - y), slice(x0 - x, x1 - x))
    if x1 > x0 and y1 > y0:
        pixels[where] = inner
        seen[where] = True if opaque is None else opaque
    return pixels, seen
