"""Edits of skin and texture of known size, as functions of pixels and points."""

from __future__ import annotations

import warnings

import cv2
import numpy as np
import numpy.typing as npt
from skimage.color import lab2rgb, rgb2lab

from metrics.regions import find_regions
from tests.planted import Pixels, PlantedEdit, Points


def shift_lab(d_l: float = 0.0, d_a: float = 0.0, d_b: float = 0.0) -> PlantedEdit:
    """Move every pixel in Lab; what leaves the sRGB gamut is clipped, as in any 8-bit picture."""

    def edit(pixels: Pixels, points: Points) -> Pixels:
        lab = rgb2lab(pixels) + np.array([d_l, d_a, d_b])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-image warns of colours out of gamut
            return np.asarray(np.clip(lab2rgb(lab), 0, 1) * 255 + 0.5).astype(np.uint8)

    return edit


def bilateral(diameter: int = 9, colour: float = 40, space: float = 7) -> PlantedEdit:
    """The usual beautifier: it smooths what differs little and keeps edges."""
    return lambda pixels, points: cv2.bilateralFilter(pixels, diameter, colour, space)


def only_in(region: str, edit: PlantedEdit) -> PlantedEdit:
    """An edit done to one region, softly blended at its border."""

    def local(pixels: Pixels, points: Points) -> Pixels:
        found = find_regions(points, np.ones(pixels.shape[:2], np.bool_))[region]
        share = np.zeros(pixels.shape[:2], np.float32)
        share[found.window] = found.mask
        soft = cv2.GaussianBlur(share, (0, 0), 3)[..., None]
        return np.rint(pixels * (1 - soft) + edit(pixels, points) * soft).astype(np.uint8)

    return local


def around_face(pixels: Pixels, points: Points) -> tuple[Pixels, npt.NDArray[np.float64]]:
    """The part of a picture that the metrics look at, and the points in it: edits run faster."""
    ied = np.hypot(*(points[36:42].mean(axis=0) - points[42:48].mean(axis=0)))
    low = np.maximum(points.min(axis=0) - 1.1 * ied, 0).astype(int)
    high = (points.max(axis=0) + 1.1 * ied).astype(int)
    part = pixels[low[1] : high[1], low[0] : high[0]]
    return np.ascontiguousarray(part), points - low
