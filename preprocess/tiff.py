"""Decoding TIFF: Pillow where it keeps every bit, OpenCV for 16-bit colour and float."""

from __future__ import annotations

import io
import warnings
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, TiffImagePlugin

from domain.errors import PictureRejected
from preprocess.exif_tags import ExifFacts, read_exif
from preprocess.limits import Limits
from preprocess.raster import Raster

_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _FORMAT, _ICC, _SAMPLES = 256, 257, 258, 262, 339, 34675, 277
_FLOAT, _LAB = 3, 8


def decode_tiff(data: bytes, limits: Limits) -> Raster:
    """The first page of a TIFF as a Raster. Raises PictureRejected."""
    frames = check_tiff(data, limits)
    facts = read_exif(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raster = _decode(data, limits)
    except PictureRejected:
        raise
    except Exception as error:  # any failure of a decoder is the file's
        raise PictureRejected(f"damaged image (TIFF: {str(error)[:80]})", "damaged") from error
    raster.orientation, raster.frames = facts.orientation, frames
    raster.warnings += _warnings(facts, frames)
    return raster


def _warnings(facts: ExifFacts, frames: int) -> list[str]:
    found = list(facts.warnings)
    if frames > 1:
        found.append(f"The file holds {frames} pages; the first one is used.")
    return found


def check_tiff(data: bytes, limits: Limits) -> int:
    """Check the first page's size from its directory and count the pages, loops included."""
    order = "little" if data[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        raw = data[at : at + size]
        if len(raw) < size:
            raise PictureRejected("truncated TIFF (directory outside the file)", "truncated")
        return int.from_bytes(raw, "little" if order == "little" else "big")

    if number(2, 2) == 43:
        raise PictureRejected("BigTIFF not supported", "not_supported")
    at, pages, seen = number(4, 4), 0, set[int]()
    while at and at not in seen:
        seen.add(at)
        pages += 1
        limits.check_frames(pages)
        count = number(at, 2)
        if pages == 1:
            _check_page(data, at, count, number, limits)
        following = at + 2 + 12 * count
        at = number(following, 4) if following + 4 <= len(data) else 0
    if not pages:
        raise PictureRejected("damaged TIFF (no picture in it)", "damaged")
    return pages


def _check_page(data: bytes, at: int, count: int, number: Any, limits: Limits) -> None:
    size = {_WIDTH: 0, _HEIGHT: 0}
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        if entry + 12 > len(data):
            break
        if (tag := number(entry, 2)) in size:
            size[tag] = number(entry + 8, 2 if number(entry + 2, 2) == 3 else 4)
    limits.check_size(size[_WIDTH], size[_HEIGHT], "TIFF")


def _decode(data: bytes, limits: Limits) -> Raster:
    with Image.open(io.BytesIO(data), formats=["TIFF"]) as image:
        assert isinstance(image, TiffImagePlugin.TiffImageFile)
        tags = image.tag_v2
        limits.check_size(*image.size, "TIFF")
        bits = _first(tags.get(_BITS, 1))
        samples = _first(tags.get(_SAMPLES, 1))
        profile = tags.get(_ICC)
        if (bits > 8 and samples >= 3) or (_first(tags.get(_FORMAT, 1)) == _FLOAT):
            raster = _by_opencv(data)
        else:
            image.load()
            raster = _by_pillow(image)
        raster.bit_depth = bits
        raster.profile = profile if isinstance(profile, bytes) and profile else None
        return raster


def _first(value: Any) -> int:
    return int(value[0] if isinstance(value, tuple) else value)


def _by_opencv(data: bytes) -> Raster:
    pixels: npt.NDArray[Any] | None
    pixels = cv2.imdecode(
        np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    )
    if pixels is None:
        raise PictureRejected("unsupported TIFF (wide samples in an unusual layout)", "not_supported")
    warnings: list[str] = []
    if pixels.dtype.kind == "f":
        pixels = np.nan_to_num(pixels.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0)
        if float(pixels.max()) > 1.0 or float(pixels.min()) < 0.0:
            warnings.append("Float samples outside 0-1 were clipped: colour is unreliable.")
        pixels = np.clip(pixels, 0.0, 1.0)
    elif pixels.dtype not in (np.uint8, np.uint16):
        raise PictureRejected(f"{pixels.dtype} TIFF not supported", "not_supported")
    if pixels.ndim == 2:
        return Raster(pixels, "grey", "TIFF", warnings=warnings)
    rgb = np.ascontiguousarray(pixels[:, :, 2::-1])
    alpha = np.ascontiguousarray(pixels[:, :, 3]) if pixels.shape[2] == 4 else None
    return Raster(rgb, "rgb", "TIFF", alpha=alpha, warnings=warnings)


def _by_pillow(image: Image.Image) -> Raster:
    warnings: list[str] = []
    if image.mode == "1":
        warnings.append(
            "The picture has 1 bit a pixel: no tonal information, texture figures are unreliable."
        )
    raster = raster_of(image, "TIFF")
    raster.warnings += warnings
    return raster


def raster_of(image: Image.Image, name: str) -> Raster:
    """A loaded Pillow picture of any mode as a Raster. Raises PictureRejected for unknown modes."""
    mode = image.mode
    if mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif mode == "PA":
        image = image.convert("RGBA")
    elif mode in ("1", "YCbCr", "HSV", "RGBX"):
        image = image.convert("L" if mode == "1" else "RGB")
    pixels = np.asarray(image)
    mode = image.mode
    if mode == "L" or mode.startswith("I;16"):
        return Raster(np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("=")), "grey", name)
    if mode == "I":
        top = 65535 if int(pixels.max()) > 255 else 255
        grey = np.clip(pixels, 0, top).astype(np.uint16 if top > 255 else np.uint8)
        return Raster(grey, "grey", name)
    if mode == "F":
        return Raster(np.clip(np.nan_to_num(pixels), 0.0, 1.0), "grey", name)
    if mode in ("LA", "La"):
        return Raster(pixels[:, :, 0].copy(), "grey", name, alpha=pixels[:, :, 1].copy())
    if mode in ("RGBA", "RGBa"):
        pixels = np.asarray(image.convert("RGBA"))
        return Raster(pixels[:, :, :3].copy(), "rgb", name, alpha=pixels[:, :, 3].copy())
    if mode in ("RGB", "CMYK"):
        return Raster(np.ascontiguousarray(pixels), mode.lower(), name)
    if mode == "LAB":  # stored L* as 0-255, a* and b* as signed bytes (TIFF 6.0 section 23)
        lab = np.empty(pixels.shape, np.float32)
        lab[:, :, 0] = pixels[:, :, 0] * np.float32(100 / 255)
        lab[:, :, 1:] = pixels[:, :, 1:].view(np.int8)
        return Raster(lab, "lab", name)
    raise PictureRejected(f"{name} with samples of kind {mode} not supported", "not_supported")
