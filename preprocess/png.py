"""Decoding PNG: Pillow up to 8 bits a channel, OpenCV for 16 (Pillow would drop the low byte)."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from domain.errors import PictureRejected
from preprocess.exif_tags import read_exif, xmp_orientation_warning
from preprocess.limits import Limits
from preprocess.png_checks import CHANNELS, PngFile, read_png, require_rows
from preprocess.raster import Raster


def decode_png(data: bytes, limits: Limits) -> Raster:
    """The (first) picture of a PNG as a Raster. Raises PictureRejected."""
    png = read_png(data, limits)
    samples, alpha = _wide(png) if png.depth == 16 else _narrow(png)
    model = "rgb" if samples.ndim == 3 else "grey"
    raster = Raster(samples, model, "PNG", png.depth, alpha, warnings=png.warnings)
    raster.profile, raster.profile_problem, raster.frames = png.icc, png.icc_problem, png.frames
    raster.code_points = png.code_points
    if png.frames > 1:
        raster.warnings.append(
            f"The file is an animation of {png.frames} frames; the first picture is used."
        )
    if png.depth == 1 and png.colour == 0:
        raster.warnings.append(
            "The picture has 1 bit a pixel: no tonal information, texture figures are unreliable."
        )
    if png.exif is not None:
        facts = read_exif(png.exif)
        raster.orientation, raster.adobe_rgb = facts.orientation, facts.adobe_rgb
        raster.warnings += facts.warnings
    elif png.xmp is not None:
        raster.warnings += xmp_orientation_warning(png.xmp)
    return raster


def _wide(png: PngFile) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    require_rows(png, png.image_data)  # OpenCV fills missing rows without a word
    pixels: npt.NDArray[Any] | None
    pixels = cv2.imdecode(np.frombuffer(png.stream, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.dtype != np.uint16:
        raise PictureRejected("damaged PNG (image data)", "damaged")
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    if channels == 1:
        grey = pixels.reshape(pixels.shape[:2])
        return grey, _key_alpha(grey, png)
    rgb = np.ascontiguousarray(pixels[:, :, 2::-1])
    if channels == 4:
        alpha = np.ascontiguousarray(pixels[:, :, 3])
        return (rgb[:, :, 0].copy(), alpha) if CHANNELS[png.colour] == 2 else (rgb, alpha)
    return rgb, _key_alpha(rgb, png)


def _narrow(png: PngFile) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    try:
        with Image.open(io.BytesIO(png.stream), formats=["PNG"]) as image:
            image.load()
            pixels = np.asarray(image)
    except Exception as error:  # any failure of the decoder is the file's
        require_rows(png, png.image_data)
        raise PictureRejected(f"damaged PNG ({error})", "damaged") from error
    if png.interlaced or not pixels[-1].any():  # Pillow leaves missing rows at zero, silently
        require_rows(png, png.image_data)
    if png.colour == 3:
        return _paint(pixels, png)
    if png.colour == 0:
        grey = (pixels * np.uint8(255)) if pixels.dtype == np.bool_ else pixels
        return np.ascontiguousarray(grey), _key_alpha(grey, png)
    if png.colour == 4:
        return np.ascontiguousarray(pixels[:, :, 0]), np.ascontiguousarray(pixels[:, :, 1])
    rgb = np.ascontiguousarray(pixels[:, :, :3])
    return rgb, np.ascontiguousarray(pixels[:, :, 3]) if png.colour == 6 else _key_alpha(rgb, png)


def _paint(
    indices: npt.NDArray[Any], png: PngFile
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Palette and its transparency; an index beyond the palette becomes black, as libpng does."""
    indices = indices.astype(np.uint8)
    colours = np.zeros((256, 3), np.uint8)
    count = min(len(png.palette) // 3, 256)
    colours[:count] = np.frombuffer(png.palette[: count * 3], np.uint8).reshape(-1, 3)
    if int(indices.max()) >= count:
        png.warnings.append("Some pixels point beyond the palette and are shown black.")
    if png.trns is None:
        return colours[indices], None
    alphas = np.full(256, 255, np.uint8)
    alphas[: len(png.trns[:256])] = np.frombuffer(png.trns[:256], np.uint8)
    return colours[indices], alphas[indices]


def _key_alpha(samples: npt.NDArray[Any], png: PngFile) -> npt.NDArray[Any] | None:
    """Alpha of the one colour that tRNS declares transparent (PNG 11.3.1.1)."""
    if png.trns is None or png.colour not in (0, 2) or len(png.trns) < 2 * CHANNELS[png.colour]:
        return None
    key = np.frombuffer(png.trns[: 2 * CHANNELS[png.colour]], ">u2").astype(np.int64)
    key &= (1 << png.depth) - 1
    if png.depth < 8:
        key = key * 255 // ((1 << png.depth) - 1)
    hit = samples == key[0] if samples.ndim == 2 else (samples == key).all(axis=2)
    return np.where(hit, 0, np.iinfo(samples.dtype).max).astype(samples.dtype)
