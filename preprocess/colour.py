"""Bringing samples of any colour space to 8-bit sRGB, at full depth until the last step.

Matrix and grey profiles are applied here in float32 from the profile's own curves and primaries, for
8 and 16 bits by the same code: reducing linear light to 8 bits first would lose the shadows. Profiles
made of tables (all CMYK, some scanners) go through Little CMS. A profile that cannot be used never
costs the picture: it is then taken as sRGB, with a warning.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageCms

from domain.pictures import RgbPixels
from preprocess.icc import (
    SRGB_TO_XYZ_D50,
    XYZ_D50_TO_SRGB,
    Profile,
    ProfileProblem,
    coded_profile,
    evaluate,
    parse_profile,
)
from preprocess.raster import Raster

_STRIP = 1 << 20
_SAME = 0.75 / 255
ADOBE_RGB = "EXIF says Adobe RGB but no profile is embedded: the picture is read as sRGB, colours may be too dull."


def encode_srgb(linear: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Linear light 0..1 to the sRGB curve 0..1 (IEC 61966-2-1)."""
    power = 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055
    return np.where(linear <= 0.0031308, 12.92 * linear, power)


@lru_cache(maxsize=1)
def _encoding_table() -> npt.NDArray[np.uint8]:
    """sRGB bytes of 65,536 equal steps of linear light."""
    return np.rint(encode_srgb(np.linspace(0.0, 1.0, 65536)) * 255).astype(np.uint8)


def to_srgb(raster: Raster) -> tuple[RgbPixels, str, list[str]]:
    """8-bit sRGB (h, w, 3), what was done about the profile, and warnings as sentences."""
    problem = raster.profile_problem
    if raster.profile is not None and problem is None:
        try:
            return _apply(raster, raster.profile)
        except ProfileProblem as error:
            problem = str(error)
    coded = coded_profile(*raster.code_points) if raster.code_points else None
    if coded is not None and raster.model == "rgb" and raster.profile is None:
        return _matrix(raster.samples, coded), coded.name, []
    pixels = _without_profile(raster)
    warnings: list[str] = []
    name = "none"
    if problem is not None:
        name = f"unreadable: {problem}"
        warnings.append(
            f"The embedded colour profile is unreadable or unsuitable ({problem}); read as sRGB."
        )
    elif raster.adobe_rgb:
        warnings.append(ADOBE_RGB)
    if raster.model == "cmyk":
        warnings.append(
            "The picture is CMYK without a usable profile: colour figures are unreliable."
        )
    return pixels, name, warnings


def _apply(raster: Raster, data: bytes) -> tuple[RgbPixels, str, list[str]]:
    profile = _parsed(data)
    if isinstance(profile, str):
        raise ProfileProblem(profile)
    if raster.model == "lab":
        return _from_lab(raster.samples), profile.name, []
    wanted = {"rgb": "RGB ", "grey": "GRAY", "cmyk": "CMYK"}[raster.model]
    if profile.space != wanted:
        raise ProfileProblem(f"a {profile.space.strip()} profile in a {raster.model} picture")
    if profile.has_table:
        return _by_lcms(raster, data), profile.name, []
    if _is_srgb(data):
        return _without_profile(raster), profile.name, []
    if raster.model == "grey":
        return _grey(raster.samples, profile), profile.name, []
    return _matrix(raster.samples, profile), profile.name, []


@lru_cache(maxsize=16)
def _parsed(data: bytes) -> Profile | str:
    """The profile, or in words why not (so that a bad one is parsed once as well)."""
    try:
        profile = parse_profile(data)
        for curve in profile.curves:
            evaluate(curve, 256)
    except ProfileProblem as error:
        return str(error)
    except (ValueError, ArithmeticError, LookupError, struct.error, MemoryError):
        return "damaged"
    return profile


@lru_cache(maxsize=16)
def _is_srgb(data: bytes) -> bool:
    """True when applying the profile would move no channel by more than about half a level."""
    profile = _parsed(data)
    if isinstance(profile, str) or not profile.curves:
        return False
    x = np.linspace(0.0, 1.0, 256)
    for curve in profile.curves:
        if np.abs(encode_srgb(evaluate(curve, 256).astype(np.float64)) - x).max() > _SAME:
            return False
    if profile.matrix is None:
        return True
    return bool(np.abs(XYZ_D50_TO_SRGB @ profile.matrix - np.eye(3)).max() < 6e-4)


def _without_profile(raster: Raster) -> RgbPixels:
    if raster.model == "lab":
        return _from_lab(raster.samples)
    samples = to_bytes(raster.samples)
    if raster.model == "cmyk":
        return _naive_cmyk(samples)
    if samples.ndim == 2:
        return np.repeat(samples[:, :, None], 3, axis=2)
    return samples


def to_bytes(samples: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Samples of full range (uint8, uint16, or float 0..1) rounded to 8 bits."""
    if samples.dtype == np.uint8:
        return samples
    if samples.dtype == np.uint16:
        out = np.empty(samples.shape, np.uint8)
        for rows in strips(samples.shape):
            out[rows] = (samples[rows].astype(np.uint32) * 255 + 32767) // 65535
        return out
    return np.asarray(np.rint(np.clip(samples, 0.0, 1.0) * 255), np.uint8)


def _naive_cmyk(inks: npt.NDArray[np.uint8]) -> RgbPixels:
    """(1 - ink)(1 - black), for want of a profile."""
    paper = 255 - inks.astype(np.uint16)
    return ((paper[:, :, :3] * paper[:, :, 3:] + 127) // 255).astype(np.uint8)


def strips(shape: tuple[int, ...]) -> list[slice]:
    """Slices of rows of about a million pixels each, so that temporary arrays stay small."""
    rows = max(1, _STRIP // max(1, shape[1]))
    return [slice(i, min(i + rows, shape[0])) for i in range(0, shape[0], rows)]


def _in_strips(
    samples: npt.NDArray[Any], convert: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
) -> RgbPixels:
    """Convert strip by strip to linear sRGB in 0..65535 and encode, so that memory stays small."""
    table = _encoding_table()
    out = np.empty((*samples.shape[:2], 3), np.uint8)
    for rows in strips(samples.shape):
        linear = convert(np.ascontiguousarray(samples[rows]))
        steps = cv2.add(linear, (0.0, 0.0, 0.0, 0.0), dtype=cv2.CV_16U)  # rounds and saturates
        np.take(table, steps.reshape(out[rows].shape), out=out[rows], mode="clip")
    return out


def _device_codes(samples: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Samples as whole-number codes, and how many codes there are."""
    if samples.dtype.kind == "f":
        return np.rint(np.clip(samples, 0.0, 1.0) * 65535).astype(np.uint16), 65536
    return samples, 256 if samples.dtype == np.uint8 else 65536


def _matrix(samples: npt.NDArray[Any], profile: Profile) -> RgbPixels:
    """Curves, then primaries to linear sRGB by the profile connection space (ICC.1:2022 F.3)."""
    assert profile.matrix is not None
    matrix = (XYZ_D50_TO_SRGB @ profile.matrix * 65535).astype(np.float32)
    codes, count = _device_codes(samples)
    curves = [evaluate(curve, count) for curve in profile.curves]
    table = np.stack(curves, axis=1)[None]

    def convert(strip: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if count == 256:
            linear = cv2.LUT(strip, table)
        else:
            linear = cv2.merge([curves[c][strip[:, :, c]] for c in range(3)])
        return np.asarray(cv2.transform(linear, matrix))

    return _in_strips(codes, convert)


def _grey(samples: npt.NDArray[Any], profile: Profile) -> RgbPixels:
    codes, count = _device_codes(samples)
    curve = evaluate(profile.curves[0], count) * np.float32(65535)

    def convert(strip: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.repeat(curve[strip][:, :, None], 3, axis=2)

    return _in_strips(codes, convert)


_D50 = SRGB_TO_XYZ_D50.sum(axis=1)
"""White as the sRGB matrix has it, so that neutral Lab stays neutral to the last bit."""


def _from_lab(lab: npt.NDArray[Any]) -> RgbPixels:
    """CIE L*a*b* (D50, the white of TIFF and ICC) to sRGB (CIE 15:2018 section 8.2.1)."""

    def convert(strip: npt.NDArray[Any]) -> npt.NDArray[Any]:
        fy = (strip[:, :, 0].astype(np.float64) + 16) / 116
        f = np.stack([fy + strip[:, :, 1] / 500, fy, fy - strip[:, :, 2] / 200], axis=2)
        xyz = np.where(f > 6 / 29, f**3, 3 * (6 / 29) ** 2 * (f - 4 / 29)) * _D50
        return np.asarray(xyz @ XYZ_D50_TO_SRGB.T * 65535, np.float32)

    return _in_strips(lab, convert)


@lru_cache(maxsize=4)
def _transform(data: bytes, mode: str) -> ImageCms.ImageCmsTransform | str:
    try:
        return ImageCms.buildTransform(
            ImageCms.ImageCmsProfile(io.BytesIO(data)),
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB",
            ImageCms.Intent.PERCEPTUAL,
        )
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError) as error:
        return str(error)[:80] or "cannot be used"


def _by_lcms(raster: Raster, data: bytes) -> RgbPixels:
    """Apply a table profile with Little CMS at 8 bits."""
    mode = {"rgb": "RGB", "grey": "L", "cmyk": "CMYK"}[raster.model]
    transform = _transform(data, mode)
    if isinstance(transform, str):
        raise ProfileProblem(transform)
    image = Image.fromarray(to_bytes(raster.samples), mode=None if mode != "CMYK" else "CMYK")
    try:
        return np.asarray(transform.apply(image))
    except (ImageCms.PyCMSError, OSError, ValueError) as error:
        raise ProfileProblem(str(error)[:80]) from error
