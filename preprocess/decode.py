"""The one decode gate: bytes in, an upright 8-bit sRGB Picture out, or a named rejection.

Rules that hold for every entrance and every format: content decides the format; size is capped from
the header; the first (HEIF: primary) picture is used; EXIF orientation is applied once, XMP's never;
colour is converted at full depth; transparency is laid over white; PNG's gAMA and cHRM are ignored.
One decoder serves one format, so an original and its edit get the same pixels from the same bytes.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg
from PIL import Image

from domain.errors import PictureRejected
from domain.pictures import DecodeFacts, Picture, RgbPixels
from preprocess import other_formats as other
from preprocess.colour import strips, to_bytes, to_srgb
from preprocess.formats import Format, sniff
from preprocess.jpeg import decode_jpeg
from preprocess.limits import DEFAULT_LIMITS, Limits
from preprocess.png import decode_png
from preprocess.raster import Raster
from preprocess.tiff import decode_tiff

_DECODERS: dict[Format, Callable[[bytes, Limits], Raster]] = {
    Format.JPEG: decode_jpeg,
    Format.PNG: decode_png,
    Format.WEBP: other.decode_webp,
    Format.TIFF: decode_tiff,
    Format.GIF: other.decode_gif,
    Format.BMP: other.decode_bmp,
    Format.HEIC: other.decode_heic,
    Format.AVIF: other.decode_avif,
    Format.JPEG2000: other.decode_jpeg2000,
}
_GREY_TOLERANCE = 2
"""Levels: chroma that was quantised to nothing comes back as 0-2 levels between channels."""


_OPAQUE = 250
"""Alpha from which a pixel counts as opaque: white then adds 2 % at most."""


def open_picture(source: Path | bytes, limits: Limits = DEFAULT_LIMITS) -> Picture:
    """Decode a file or its bytes to an upright sRGB Picture.

    Raises PictureRejected, and nothing else, for whatever is wrong with the content or the path.
    """
    data = _read(source, limits) if isinstance(source, Path) else bytes(source)
    limits.check_bytes(len(data))
    decoder = _DECODERS[sniff(data)]
    try:
        raster = decoder(data, limits)
        return _finish(raster, data)
    except PictureRejected:
        raise
    except MemoryError as error:
        raise PictureRejected("image needs more memory than there is", "too_large") from error
    except Exception as error:  # the promise above: a hostile file must never stop a batch
        kind = type(error).__name__
        raise PictureRejected(f"damaged image ({kind}: {str(error)[:80]})", "damaged") from error


def _read(path: Path, limits: Limits) -> bytes:
    try:
        if path.is_dir():
            raise PictureRejected("a folder, not a file", "not_file")
        if path.exists() and not path.is_file():
            raise PictureRejected("not a regular file", "not_file")
        with path.open("rb") as file:
            data = file.read(limits.max_bytes + 1)
    except FileNotFoundError as error:
        raise PictureRejected("no such file", "not_found") from error
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise PictureRejected(f"cannot be read: {text}", "unreadable") from error
    return data


def _finish(raster: Raster, data: bytes) -> Picture:
    pixels, profile, colour_warnings = to_srgb(raster)
    pixels, opaque = _over_white(pixels, raster)
    had_alpha = raster.alpha is not None
    stored = (int(pixels.shape[1]), int(pixels.shape[0]))
    pixels = np.ascontiguousarray(_upright(pixels, raster.orientation))
    if opaque is not None:
        opaque = np.ascontiguousarray(_upright(opaque, raster.orientation))
    facts = DecodeFacts(
        format=raster.format,
        profile=profile,
        orientation=raster.orientation,
        bit_depth=raster.bit_depth,
        frames=raster.frames,
        had_alpha=had_alpha,
        monochrome=is_monochrome(pixels),
        stored_size=stored,
        warnings=tuple(dict.fromkeys([*raster.warnings, *colour_warnings])),
    )
    return Picture(pixels, facts, opaque, hashlib.sha256(data).hexdigest())


def _over_white(
    pixels: RgbPixels, raster: Raster
) -> tuple[RgbPixels, npt.NDArray[np.bool_] | None]:
    """Lay transparent pixels over white; where any light shines through is not opaque."""
    if raster.alpha is None:
        return pixels, None
    alpha = to_bytes(raster.alpha)
    if int(alpha.min()) == 255:
        return pixels, None
    mixed = np.empty_like(pixels)
    for rows in strips(pixels.shape):
        weight = alpha[rows][:, :, None].astype(np.uint16)
        mixed[rows] = (pixels[rows] * weight + 255 * (255 - weight) + 127) // 255
    opaque = alpha >= _OPAQUE
    share = 100.0 * (1.0 - float(opaque.mean()))
    if share == 0.0:
        return mixed, None
    raster.warnings.append(
        f"{share:.0f} % of the picture is not fully opaque: laid over white and left out of figures."
        if share >= 1
        else "A little of the picture is not fully opaque: laid over white and left out of figures."
    )
    return mixed, opaque


def _upright(array: npt.NDArray[Any], orientation: int) -> npt.NDArray[Any]:
    """Turn stored rows and columns as EXIF orientation 1-8 says (Exif 2.32, tag 274)."""
    if orientation >= 5:
        array = array.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        array = array[::-1]
    if orientation in (2, 3, 6, 7):
        array = array[:, ::-1]
    return array


def is_monochrome(pixels: RgbPixels) -> bool:
    """True when all three channels agree in every pixel to within two levels."""
    for view in (pixels[::37, ::41], pixels):  # most colour pictures are settled by the sparse look
        low, high = view.min(axis=2), view.max(axis=2)
        if int((high - low).max()) > _GREY_TOLERANCE:
            return False
    return True


def encode_png(picture: Picture | RgbPixels) -> bytes:
    """PNG of the pixels alone: no metadata, no profile (sRGB is meant), no alpha."""
    pixels = picture.pixels if isinstance(picture, Picture) else picture
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def encode_jpeg(picture: Picture | RgbPixels, quality: int = 95) -> bytes:
    """JPEG of the pixels alone, without chroma subsampling and without metadata."""
    pixels = picture.pixels if isinstance(picture, Picture) else picture
    data: bytes = simplejpeg.encode_jpeg(
        np.ascontiguousarray(pixels), quality=quality, colorspace="RGB", colorsubsampling="444"
    )
    return data
