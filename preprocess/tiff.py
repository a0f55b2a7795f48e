"""Decoding TIFF: Pillow where it keeps every bit, OpenCV for 16-bit colour and float."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from domain.errors import PictureRejected
from preprocess.exif_tags import ExifFacts, read_exif
from preprocess.limits import Limits
from preprocess.quiet import quiet
from preprocess.raster import Raster

_WIDTH, _HEIGHT, _BITS, _FORMAT, _ICC, _SAMPLES = 256, 257, 258, 339, 34675, 277
_ORIENTATION, _PHOTOMETRIC, _PLANAR, _FLOAT = 274, 262, 284, 3


def decode_tiff(data: bytes, limits: Limits) -> Raster:
    """The first page of a TIFF as a Raster. Raises PictureRejected."""
    frames, page = check_tiff(data, limits)
    facts = read_exif(data)
    data = _unturned(data, page.orientation_at)
    try:
        with quiet():
            raster = _decode(data, page, limits)
    except PictureRejected:
        raise
    except Exception as error:  # any failure of a decoder is the file's
        text = "its header cannot be read" if "cannot identify" in str(error) else str(error)[:80]
        kind = "truncated" if "truncated" in text else "damaged"
        raise PictureRejected(f"{kind} image (TIFF: {text})", kind) from error
    raster.orientation, raster.frames = facts.orientation, frames
    raster.warnings += _warnings(facts, frames)
    return raster


def _warnings(facts: ExifFacts, frames: int) -> list[str]:
    found = list(facts.warnings)
    if frames > 1:
        found.append(f"The file holds {frames} pages; the first one is used.")
    return found


@dataclass(slots=True)
class _Page:
    """First entries of a page's directory: tag -> numbers; ``orientation_at`` is its entry."""

    numbers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    profile: bytes | None = None
    orientation_at: int | None = None

    def first(self, tag: int, default: int) -> int:
        return (self.numbers.get(tag) or (default,))[0]


def _unturned(data: bytes, at: int | None) -> bytes:
    """The file with orientation 1 in its place: Pillow and OpenCV each turn TIFFs by themselves."""
    if at is None:
        return data
    one = b"\x01\0\0\0" if data[:2] == b"II" else b"\0\x01\0\0"
    short = b"\x03\0\x01\0\0\0" if data[:2] == b"II" else b"\0\x03\0\0\0\x01"
    return data[: at + 2] + short + one + data[at + 12 :]


def check_tiff(data: bytes, limits: Limits) -> tuple[int, _Page]:
    """Check the first page's size from its directory and count the pages, loops included."""
    reader = _Reader(data)
    if reader.number(2, 2) == 43:
        raise PictureRejected("BigTIFF not supported", "not_supported")
    at, pages, seen, page = reader.number(4, 4), 0, set[int](), _Page()
    while at and at not in seen:
        seen.add(at)
        pages += 1
        limits.check_frames(pages)
        count = reader.number(at, 2)
        if pages == 1:
            page = reader.page(at, count)
            limits.check_size(page.first(_WIDTH, 0), page.first(_HEIGHT, 0), "TIFF")
        following = at + 2 + 12 * count
        at = reader.number(following, 4) if following + 4 <= len(data) else 0
    if not pages:
        raise PictureRejected("damaged TIFF (no picture in it)", "damaged")
    return pages, page


class _Reader:
    """Numbers of a TIFF in its own byte order, bounds checked (TIFF 6.0 section 2)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.little = data, data[:2] == b"II"

    def number(self, at: int, size: int) -> int:
        raw = self.data[at : at + size]
        if len(raw) < size:
            raise PictureRejected("truncated TIFF (directory outside the file)", "truncated")
        return int.from_bytes(raw, "little" if self.little else "big")

    def page(self, at: int, count: int) -> _Page:
        page = _Page()
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            if entry + 12 > len(self.data):
                break
            tag, kind, size = (self.number(entry + i, n) for i, n in ((0, 2), (2, 2), (4, 4)))
            start = self.number(entry + 8, 4)
            if tag == _ORIENTATION and page.orientation_at is None:
                page.orientation_at = entry
            elif tag == _ICC and start + size <= len(self.data) and size > 4:
                page.profile = self.data[start : start + size]
            elif kind in (3, 4):
                width = 2 if kind == 3 else 4
                at_values = entry + 8 if width * size <= 4 else start
                if at_values + width <= len(self.data):
                    page.numbers.setdefault(tag, (self.number(at_values, width),))
        return page


def _decode(data: bytes, page: _Page, limits: Limits) -> Raster:
    bits, samples = page.first(_BITS, 1), page.first(_SAMPLES, 1)
    plain = page.first(_PHOTOMETRIC, 1) in (1, 2) and page.first(_PLANAR, 1) == 1
    if plain and ((bits > 8 and samples >= 3) or page.first(_FORMAT, 1) == _FLOAT):
        raster = _by_opencv(data)
    elif bits > 8 and samples >= 3 and page.first(_PLANAR, 1) != 1:  # Pillow mixes the planes up
        raise PictureRejected(
            f"{bits}-bit TIFF stored plane by plane not supported", "not_supported"
        )
    else:
        with Image.open(io.BytesIO(data), formats=["TIFF"]) as image:
            limits.check_size(*image.size, "TIFF")
            image.info.pop("xmp", None)  # Pillow would turn by XMP's orientation
            image.load()
            raster = _by_pillow(image)
    if raster.samples.dtype == np.uint16 and 8 < bits < 16:  # 12 bits lie in the low end of 16
        raster.samples = (raster.samples.astype(np.uint32) * 65535 // (2**bits - 1)).astype("u2")
    raster.bit_depth, raster.profile = bits, page.profile
    return raster


def _by_opencv(data: bytes) -> Raster:
    pixels: npt.NDArray[Any] | None
    pixels = cv2.imdecode(
        np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    )
    if pixels is None:
        raise PictureRejected("damaged TIFF, or wide samples in an unusual layout", "damaged")
    notes: list[str] = []
    if pixels.dtype.kind == "f":
        notes.append("Float samples are read as sRGB-encoded values of 0-1.")
        pixels = np.nan_to_num(pixels.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0)
        if float(pixels.max()) > 1.0 or float(pixels.min()) < 0.0:
            notes.append("Float samples outside 0-1 were clipped: colour is unreliable.")
        pixels = np.clip(pixels, 0.0, 1.0)
    elif pixels.dtype not in (np.uint8, np.uint16):
        raise PictureRejected(f"{pixels.dtype} TIFF not supported", "not_supported")
    if pixels.ndim == 2:
        return Raster(pixels, "grey", "TIFF", warnings=notes)
    rgb = np.ascontiguousarray(pixels[:, :, 2::-1])
    alpha = np.ascontiguousarray(pixels[:, :, 3]) if pixels.shape[2] == 4 else None
    return Raster(rgb, "rgb", "TIFF", alpha=alpha, warnings=notes)


def _by_pillow(image: Image.Image) -> Raster:
    raster = raster_of(image, "TIFF")
    if image.mode == "1":
        raster.warnings.append(
            "The picture has 1 bit a pixel: no tonal information, texture figures are unreliable."
        )
    return raster


def raster_of(image: Image.Image, name: str) -> Raster:
    """A loaded Pillow picture of any mode as a Raster. Raises PictureRejected for unknown modes."""
    mode = image.mode
    if mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif mode in _CONVERTED:
        image = image.convert(_CONVERTED[mode])
    pixels = np.asarray(image)
    if image.mode in ("RGB", "CMYK"):
        return Raster(np.ascontiguousarray(pixels), image.mode.lower(), name)
    if image.mode == "RGBA":
        return Raster(pixels[:, :, :3].copy(), "rgb", name, alpha=pixels[:, :, 3].copy())
    if image.mode == "LA":
        return Raster(pixels[:, :, 0].copy(), "grey", name, alpha=pixels[:, :, 1].copy())
    if image.mode == "LAB":  # L* as 0-255, a* and b* as signed bytes (TIFF 6.0 section 23)
        lab = np.empty(pixels.shape, np.float32)
        lab[:, :, 0] = pixels[:, :, 0] * np.float32(100 / 255)
        lab[:, :, 1:] = pixels[:, :, 1:].view(np.int8)
        return Raster(lab, "lab", name)
    return Raster(_grey(pixels, mode, name), "grey", name)


_CONVERTED = {"PA": "RGBA", "1": "L", "YCbCr": "RGB", "HSV": "RGB", "RGBX": "RGB"}
_CONVERTED |= {"RGBa": "RGBA", "La": "LA"}


def _grey(pixels: npt.NDArray[Any], mode: str, name: str) -> npt.NDArray[Any]:
    """One channel of full range: uint8, uint16 or float 0..1."""
    if mode in ("L", "1") or mode.startswith("I;16"):
        return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("="))
    if mode == "I":
        top = 65535 if int(pixels.max()) > 255 else 255
        return np.asarray(np.clip(pixels, 0, top), np.uint16 if top > 255 else np.uint8)
    if mode == "F":
        return np.asarray(np.clip(np.nan_to_num(pixels), 0.0, 1.0), np.float32)
    raise PictureRejected(f"{name} with samples of kind {mode} not supported", "not_supported")
