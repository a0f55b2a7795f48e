"""Edits of known kind, planted on a portrait: harmless ones and harms, for tests and the validity bench.

Each takes (h, w, 3) uint8 RGB pixels and the (68, 2) points of the face, and returns edited pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

Pixels: TypeAlias = npt.NDArray[np.uint8]
Points: TypeAlias = npt.NDArray[np.float64]
PlantedEdit: TypeAlias = Callable[[Pixels, Points], Pixels]


def ied_of(points: Points) -> float:
    """Inter-eye distance in pixels."""
    return float(np.hypot(*(points[36:42].mean(axis=0) - points[42:48].mean(axis=0))))


def identity(pixels: Pixels, points: Points) -> Pixels:
    return pixels.copy()


def jpeg(quality: int) -> PlantedEdit:
    def edit(pixels: Pixels, points: Points) -> Pixels:
        _, data = cv2.imencode(".jpg", pixels[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
        return np.ascontiguousarray(cv2.imdecode(data, cv2.IMREAD_COLOR)[:, :, ::-1])

    return edit


def half_and_back(pixels: Pixels, points: Points) -> Pixels:
    h, w = pixels.shape[:2]
    small = cv2.resize(pixels, (w // 2, h // 2), interpolation=cv2.INTER_AREA)
    return cv2.resize(small, (w, h), interpolation=cv2.INTER_CUBIC)


def resize_75(pixels: Pixels, points: Points) -> Pixels:
    h, w = pixels.shape[:2]
    size = (round(w * 0.75), round(h * 0.75))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)


def gamma(power: float) -> PlantedEdit:
    lut = np.clip(255 * (np.arange(256) / 255) ** power + 0.5, 0, 255).astype(np.uint8)
    return lambda pixels, points: lut[pixels]


def brightness(factor: float) -> PlantedEdit:
    lut = np.clip(np.arange(256) * factor + 0.5, 0, 255).astype(np.uint8)
    return lambda pixels, points: lut[pixels]


def crop(pixels: Pixels, points: Points) -> Pixels:
    h, w = pixels.shape[:2]
    low, high = points.min(axis=0), points.max(axis=0)
    ied = ied_of(points)
    x0, y0 = (int(max(v, 0)) for v in low - (0.9 * ied, 1.3 * ied))
    x1, y1 = int(min(high[0] + 1.1 * ied, w)), int(min(high[1] + 0.8 * ied, h))
    return np.ascontiguousarray(pixels[y0:y1, x0:x1])


def rotate(degrees: float) -> PlantedEdit:
    def edit(pixels: Pixels, points: Points) -> Pixels:
        h, w = pixels.shape[:2]
        matrix = cv2.getRotationMatrix2D(tuple(points.mean(axis=0)), degrees, 1.0)
        return cv2.warpAffine(
            pixels, matrix, (w, h), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
        )

    return edit


def noise(sigma: float, seed: int = 7) -> PlantedEdit:
    def edit(pixels: Pixels, points: Points) -> Pixels:
        grain = np.random.default_rng(seed).standard_normal(pixels.shape, dtype=np.float32)
        return np.clip(pixels + sigma * grain + 0.5, 0, 255).astype(np.uint8)

    return edit


def blur(ieds: float) -> PlantedEdit:
    """Gaussian, sigma in inter-eye distances."""
    return lambda pixels, points: cv2.GaussianBlur(pixels, (0, 0), ieds * ied_of(points))


def blur_then_grain(ieds: float = 0.03, sigma: float = 15) -> PlantedEdit:
    """A beautifier that smooths the skin and covers it with fake grain."""
    return lambda pixels, points: noise(sigma)(blur(ieds)(pixels, points), points)


def skin_colour(pixels: Pixels, points: Points) -> npt.NDArray[np.float64]:
    """Median colour of both cheeks, (3,)."""
    ied = ied_of(points)
    patches = []
    for jaw, nose in ((2, 31), (14, 35)):
        x, y = (points[jaw] * 0.4 + points[nose] * 0.6).astype(int)
        r = max(int(0.12 * ied), 1)
        patches.append(pixels[max(y - r, 0) : y + r, max(x - r, 0) : x + r].reshape(-1, 3))
    return np.asarray(np.median(np.concatenate(patches), axis=0))


def paint_over(part: slice, grow: float) -> PlantedEdit:
    """The hull of some points, grown by ``grow`` IED, filled with the colour of the cheeks."""

    def edit(pixels: Pixels, points: Points) -> Pixels:
        ied = ied_of(points)
        area = np.zeros(pixels.shape[:2], np.uint8)
        cv2.fillConvexPoly(area, cv2.convexHull(points[part].round().astype(np.int32)), 255)
        size = 2 * round(grow * ied) + 1
        area = cv2.dilate(area, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))
        x, y, w, h = cv2.boundingRect(area)
        border = round(0.08 * ied) + 1
        rows, columns = (
            slice(max(y - border, 0), y + h + border),
            slice(max(x - border, 0), x + w + border),
        )
        mask = area[rows, columns].astype(np.float32) / 255
        soft = cv2.GaussianBlur(mask, (0, 0), 0.02 * ied)[:, :, None]
        out = pixels.copy()
        mixed = pixels[rows, columns] * (1 - soft) + skin_colour(pixels, points) * soft
        out[rows, columns] = np.clip(mixed + 0.5, 0, 255).astype(np.uint8)
        return out

    return edit


def both(first: PlantedEdit, second: PlantedEdit) -> PlantedEdit:
    return lambda pixels, points: second(first(pixels, points), points)


BENIGN: Mapping[str, PlantedEdit] = {
    "jpeg 92": jpeg(92),
    "jpeg 75": jpeg(75),
    "jpeg 40": jpeg(40),
    "half size and back": half_and_back,
    "gamma 0.8": gamma(0.8),
    "half brightness": brightness(0.5),
    "crop": crop,
    "75 % resize": resize_75,
    "8 degrees": rotate(8.0),
    "noise sigma 15": noise(15),
    "blur 0.01 IED": blur(0.01),
    "blur 0.02 IED": blur(0.02),
}
HARMFUL: Mapping[str, PlantedEdit] = {
    "mouth painted over": paint_over(slice(48, 68), 0.10),
    "one eye gone": paint_over(slice(36, 42), 0.10),
    "brows gone": both(paint_over(slice(17, 22), 0.06), paint_over(slice(22, 27), 0.06)),
    "nose smoothed away": paint_over(slice(27, 36), 0.08),
    "blur 0.08 IED": blur(0.08),
}
