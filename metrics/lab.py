"""CIE Lab of sRGB pixels, skin angles and the CIEDE2000 colour difference.

Lab follows CIE 15 with the D65 white point of the 2-degree observer; sRGB follows IEC 61966-2-1.
Everything is float: Lab in eight bits is too coarse for dark skin. CIEDE2000 follows Sharma, Wu
and Dalal, "The CIEDE2000 color-difference formula: implementation notes, supplementary test data,
and mathematical observations", Color Research and Application 30 (2005) 21-30. The individual
typology angle follows Chardon, Cretois and Hourseau (1991).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians, sin
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
    d_l, d_c, product = l2 - l1, c2 - c1, c1 * c2
    coloured = product != 0
    half_turn = (h2 - h1) / 2.0  # its sine only changes sign where the hues are over pi apart
    apart = np.abs(half_turn) > np.pi / 2.0
    d_h = 2.0 * np.sqrt(product) * np.where(apart, -1.0, 1.0) * np.sin(half_turn)
    mean_l, mean_c = (l1 + l2) / 2.0, (c1 + c2) / 2.0
    mean_h = (h1 + h2) / 2.0
    mean_h = np.where(apart, np.where(mean_h < np.pi, mean_h + np.pi, mean_h - np.pi), mean_h)
    mean_h = np.where(coloured, mean_h, h1 + h2)
    lightness2 = np.square(mean_l - 50.0)
    l_term = d_l / (1.0 + 0.015 * lightness2 / np.sqrt(20.0 + lightness2))
    c_term = d_c / (1.0 + 0.045 * mean_c)
    h_term = d_h / (1.0 + 0.015 * mean_c * _hue_weight(mean_h))
    square = l_term * l_term + c_term * c_term + h_term * h_term
    square += _rotation(mean_c, mean_h) * c_term * h_term
    return np.asarray(np.sqrt(np.maximum(square, 0.0)), np.float64)


def _seventh_share(c: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """sqrt(C^7 / (C^7 + 25^7)); a power by multiplications is many times faster."""
    square = c * c
    seventh = square * square * square * c
    return np.asarray(np.sqrt(seventh / (seventh + 25.0**7)))


def _adapted_chroma_hue(
    one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]
) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """C' and h' (radians, 0..2 pi) of both colours, with a* stretched near grey."""
    mean_c = (np.hypot(one[..., 1], one[..., 2]) + np.hypot(two[..., 1], two[..., 2])) / 2.0
    stretch = 1.5 - 0.5 * _seventh_share(mean_c)
    found = []
    for colour in (one, two):
        a, b = stretch * colour[..., 1], colour[..., 2]
        hue = np.arctan2(b, a)
        found.append((np.hypot(a, b), np.where(hue < 0, hue + 2.0 * np.pi, hue)))
    return found


def _hue_weight(h: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """T of a hue in radians. Sines and cosines of its multiples follow from those of itself."""
    c, s = np.cos(h), np.sin(h)
    c2, s2 = c * c - s * s, 2.0 * s * c
    c3, s3 = c * c2 - s * s2, s * c2 + c * s2
    c4, s4 = c2 * c2 - s2 * s2, 2.0 * s2 * c2
    return np.asarray(
        1.0
        - 0.17 * (_COS[30] * c + _SIN[30] * s)
        + 0.24 * c2
        + 0.32 * (_COS[6] * c3 - _SIN[6] * s3)
        - 0.20 * (_COS[63] * c4 + _SIN[63] * s4)
    )


_COS = {degrees: cos(radians(degrees)) for degrees in (6, 30, 63)}
_SIN = {degrees: sin(radians(degrees)) for degrees in (6, 30, 63)}


def _rotation(c: npt.NDArray[np.float64], h: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from_blue = (h - radians(275.0)) / radians(25.0)
    twice = radians(60.0) * np.exp(-from_blue * from_blue)
    return np.asarray(-2.0 * _seventh_share(c) * np.sin(twice))
