"""CIE Lab of sRGB pixels, skin angles and the CIEDE2000 colour difference.

Lab follows CIE 15 with the D65 white point of the 2-degree observer; sRGB follows IEC 61966-2-1.
Everything is float: Lab in eight bits is too coarse for dark skin. CIEDE2000 follows Sharma, Wu
and Dalal, "The CIEDE2000 color-difference formula: implementation notes, supplementary test data,
and mathematical observations", Color Research and Application 30 (2005) 21-30. The individual
typology angle follows Chardon, Cretois and Hourseau (1991).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]

_WHITE = np.array([0.95047, 1.0, 1.08883])
_TO_XYZ = np.array(
    [
        [0.412453, 0.357580, 0.180423],
        [0.212671, 0.715160, 0.072169],
        [0.019334, 0.119193, 0.950227],
    ]
)
_TO_XYZ_OVER_WHITE = (_TO_XYZ / _WHITE[:, None]).astype(np.float32)
_KNEE = (6 / 29) ** 3
_SLOPE = (29 / 6) ** 2 / 3
_OFFSET = 4 / 29
_TO_LAB = np.array([[0.0, 116.0, 0.0], [500.0, -500.0, 0.0], [0.0, 200.0, -200.0]])
_LAB_ZERO = np.array([-16.0, 0.0, 0.0])


def _linear_light() -> npt.NDArray[np.float32]:
    code = np.arange(256) / 255.0
    return np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4).astype(
        np.float32
    )


LINEAR_LIGHT = _linear_light()
"""(256,) float32: linear light 0..1 of each 8-bit sRGB code."""


@dataclass(frozen=True, slots=True)
class LabColour:
    """One colour: lightness 0..100, a* (green to red) and b* (blue to yellow)."""

    lightness: float
    a: float
    b: float

    @property
    def chroma(self) -> float:
        """Distance from grey: hypot(a*, b*)."""
        return float(np.hypot(self.a, self.b))

    @property
    def hue(self) -> float:
        """Hue angle atan2(b*, a*) in degrees, -180..180."""
        return float(np.degrees(np.arctan2(self.b, self.a)))

    @property
    def ita(self) -> float:
        """Individual typology angle atan2(L* - 50, b*) in degrees; light skin is high."""
        return float(np.degrees(np.arctan2(self.lightness - 50.0, self.b)))

    def as_array(self) -> npt.NDArray[np.float64]:
        """(3,) float64: L*, a*, b*."""
        return np.array([self.lightness, self.a, self.b])


def _response(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """The cube-root response f(X/Xn), f(Y/Yn), f(Z/Zn): (h, w, 3) float32, of (h, w, 3) sRGB."""
    ratio = cv2.transform(cv2.LUT(pixels, LINEAR_LIGHT), _TO_XYZ_OVER_WHITE)
    ratio = ratio.reshape(pixels.shape)  # cv2 drops an axis of a single pixel
    root = cv2.exp(cv2.log(np.maximum(ratio, np.float32(1e-6))) * (1 / 3))
    response: npt.NDArray[np.float32] = root.reshape(pixels.shape)
    dark = ratio <= _KNEE
    if dark.any():
        response[dark] = ratio[dark] * np.float32(_SLOPE) + np.float32(_OFFSET)
    return response


def rgb_to_lab(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Lab of every pixel: (h, w, 3) uint8 sRGB in R, G, B order to (h, w, 3) float32 L*, a*, b*."""
    lab: npt.NDArray[np.float32] = cv2.transform(
        _response(pixels), np.hstack([_TO_LAB, _LAB_ZERO[:, None]]).astype(np.float32)
    )
    return lab


def mean_lab(pixels: npt.NDArray[np.uint8]) -> LabColour:
    """Mean Lab of (n, 3) uint8 sRGB pixels, n >= 1.

    Lab is linear in the cube-root response, so the response is averaged and turned into Lab once:
    the same figure as averaging the Lab of every pixel.
    """
    if pixels.ndim != 2 or pixels.shape[0] < 1:
        raise ValueError(f"a mean colour needs (n, 3) pixels, n >= 1, not {pixels.shape}")
    response = _response(pixels.reshape(-1, 1, 3))
    mean = np.array(cv2.mean(response)[:3])
    lightness, a, b = _TO_LAB @ mean + _LAB_ZERO
    return LabColour(float(lightness), float(a), float(b))


def angle_change(before: float, after: float) -> float:
    """Signed change between two angles in degrees, the short way round: (-180, 180]."""
    change = (after - before) % 360.0
    return change - 360.0 if change > 180.0 else change


def ciede2000(first: FloatArray, second: FloatArray) -> npt.NDArray[np.float64]:
    """CIEDE2000 difference (kL = kC = kH = 1) of Lab colours (..., 3); returns (...,) float64."""
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    l1, l2 = one[..., 0], two[..., 0]
    (c1, h1), (c2, h2) = _adapted_chroma_hue(one, two)
    d_l, d_c = l2 - l1, c2 - c1
    coloured = c1 * c2 != 0
    d_hue = np.where(coloured, (h2 - h1 + 180.0) % 360.0 - 180.0, 0.0)
    d_h = 2.0 * np.sqrt(c1 * c2) * np.sin(np.radians(d_hue) / 2.0)
    mean_l, mean_c = (l1 + l2) / 2.0, (c1 + c2) / 2.0
    apart = np.abs(h1 - h2) > 180.0
    mean_h = np.where(apart, (h1 + h2 + 360.0) / 2.0 % 360.0, (h1 + h2) / 2.0)
    mean_h = np.where(coloured, mean_h, h1 + h2)
    s_l = 1.0 + 0.015 * (mean_l - 50.0) ** 2 / np.sqrt(20.0 + (mean_l - 50.0) ** 2)
    s_c = 1.0 + 0.045 * mean_c
    s_h = 1.0 + 0.015 * mean_c * _hue_weight(mean_h)
    l_term, c_term, h_term = d_l / s_l, d_c / s_c, d_h / s_h
    square = l_term**2 + c_term**2 + h_term**2 + _rotation(mean_c, mean_h) * c_term * h_term
    return np.asarray(np.sqrt(np.maximum(square, 0.0)), np.float64)


def _adapted_chroma_hue(
    one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]
) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """C' and h' (degrees, 0..360) of both colours, with a* stretched near grey."""
    mean_c7 = ((np.hypot(one[..., 1], one[..., 2]) + np.hypot(two[..., 1], two[..., 2])) / 2.0) ** 7
    stretch = 1.5 - 0.5 * np.sqrt(mean_c7 / (mean_c7 + 25.0**7))
    found = []
    for colour in (one, two):
        a, b = stretch * colour[..., 1], colour[..., 2]
        found.append((np.hypot(a, b), np.degrees(np.arctan2(b, a)) % 360.0))
    return found


def _hue_weight(h: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(
        1.0
        - 0.17 * np.cos(np.radians(h - 30.0))
        + 0.24 * np.cos(np.radians(2.0 * h))
        + 0.32 * np.cos(np.radians(3.0 * h + 6.0))
        - 0.20 * np.cos(np.radians(4.0 * h - 63.0))
    )


def _rotation(c: npt.NDArray[np.float64], h: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    angle = 30.0 * np.exp(-(((h - 275.0) / 25.0) ** 2))
    return np.asarray(-2.0 * np.sqrt(c**7 / (c**7 + 25.0**7)) * np.sin(np.radians(2.0 * angle)))
