"""Other ways to look at a picture in which a short-range detector saw no face at first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from domain.pictures import RgbPixels
from preprocess.candidates import Candidate

QUARTER_TURNS = {
    90: cv2.ROTATE_90_CLOCKWISE,
    180: cv2.ROTATE_180,
    270: cv2.ROTATE_90_COUNTERCLOCKWISE,
}
_TILE_STEP = 0.6
"""Tiles overlap by 40 %, so that a face up to that size is whole in one of them."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A part of a picture, or the picture with a border around it. ``x``, ``y`` is the place of the
    view's first pixel in the picture."""

    pixels: RgbPixels
    x: int = 0
    y: int = 0

    def back(self, found: Candidate) -> Candidate:
        """A face seen in the view, in pixels of the picture."""
        return found.moved(1.0, self.x, self.y)


def padded(pixels: RgbPixels, share: float, border: int) -> View:
    """A border of ``share`` of the longer side all around; for faces that fill the frame."""
    width = int(share * max(pixels.shape[:2]))
    grown = cv2.copyMakeBorder(pixels, width, width, width, width, border)
    return View(np.asarray(grown, dtype=np.uint8), -width, -width)


def centre(pixels: RgbPixels, share: float) -> View:
    """The middle part, ``share`` of each side."""
    height, width = pixels.shape[:2]
    y, x = int(height * (1 - share) / 2), int(width * (1 - share) / 2)
    return View(np.ascontiguousarray(pixels[y : height - y, x : width - x]), x, y)


def around(pixels: RgbPixels, found: Candidate, times: float) -> View:
    """A square ``times`` as wide as a face around it, clipped to the picture."""
    height, width = pixels.shape[:2]
    half = times * max(found.box[2:]) / 2
    cx, cy = found.centre
    x0, y0 = max(int(cx - half), 0), max(int(cy - half), 0)
    x1, y1 = min(int(cx + half), width), min(int(cy + half), height)
    return View(np.ascontiguousarray(pixels[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)]), x0, y0)


def close_looks(pixels: RgbPixels) -> Iterator[View]:
    """For faces that fill the frame, are cut by it or half lost in shadow; likely ones first."""
    yield View(pixels)
    yield centre(pixels, 0.8)
    yield padded(pixels, 0.25, cv2.BORDER_REFLECT)
    yield padded(pixels, 0.25, cv2.BORDER_REPLICATE)
    yield padded(pixels, 0.5, cv2.BORDER_CONSTANT)


def tiles(pixels: RgbPixels, share: float) -> Iterator[View]:
    """Overlapping squares of ``share`` of the longer side, row by row; for small faces."""
    height, width = pixels.shape[:2]
    side = max(int(share * max(height, width)), 1)
    for y in _starts(height, side):
        for x in _starts(width, side):
            yield View(np.ascontiguousarray(pixels[y : y + side, x : x + side]), x, y)


def _starts(length: int, side: int) -> list[int]:
    room = max(length - side, 0)
    count = int(np.ceil(room / (side * _TILE_STEP))) + 1
    return [int(v) for v in np.unique(np.linspace(0, room, count).astype(int))]
