"""Read the picture of a request and write a result: plain 8-bit RGB, for tools that need pixels.

What comes in was encoded by this program (upright, sRGB, no metadata), so there is nothing here of
what preprocess does with a stranger's file.
"""

from __future__ import annotations

from io import BytesIO

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from domain.edits import EditRequest
from domain.pictures import RgbPixels

BLACK = 8
"""Grey level up to which a whole picture counts as black: JPEG's ringing stays below it."""


def read_rgb(data: bytes | None) -> RgbPixels:
    """(height, width, 3) uint8 RGB. Raises ValueError, in one clear line, for anything else."""
    if not data:
        raise ValueError("the request has no picture")
    bgr = cv2.imdecode(
        np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    )
    if bgr is None or bgr.size == 0:
        raise ValueError("the request's picture cannot be read")
    return np.ascontiguousarray(bgr[..., ::-1], dtype=np.uint8)


def write_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """PNG of (h, w, 3) RGB or (h, w) grey pixels; the same pixels give the same bytes."""
    return _encode(".png", pixels, [cv2.IMWRITE_PNG_COMPRESSION, 1])


def write_jpeg(pixels: RgbPixels, quality: int) -> bytes:
    """Baseline JPEG, 4:2:0, at ``quality`` 1-100."""
    return _encode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])


def mask_png(request: EditRequest) -> bytes:
    """The canonical mask as an 8-bit grey PNG, white where the tool shall edit. Raises ValueError
    when the request has none, or one that is empty: a tool would bill it and edit nothing."""
    if request.mask is None:
        raise ValueError("the request has no mask")
    if not request.mask.values.any():
        raise ValueError("the mask is empty: nothing would be edited")
    return write_png(request.mask.values)


def mask_as_alpha(request: EditRequest) -> bytes:
    """The mask as an RGBA PNG that is transparent (alpha 0) where the tool shall edit and opaque
    elsewhere, as OpenAI takes it. The colours are black: they carry nothing. Raises as ``mask_png``."""
    mask_png(request)
    assert request.mask is not None
    values = request.mask.values
    rgba = np.zeros((*values.shape, 4), dtype=np.uint8)
    rgba[..., 3] = 255 - values
    done, data = cv2.imencode(".png", rgba)
    if not done:
        raise ValueError("the mask cannot be written as PNG")
    return bytes(data.tobytes())


def media_type_of(data: bytes) -> str:
    """What a body is by its first bytes: "image/png", "image/jpeg", "image/webp", "image/avif",
    "image/gif"; "" for anything that is no picture a browser would show."""
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "image/png"
    if data[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"avis", b"mif1", b"heic"):
        return "image/avif" if data[8:12].startswith(b"avi") else "image/heif"
    return "image/gif" if data[:4] == b"GIF8" else ""


def size_note(data: bytes, request: EditRequest) -> dict[str, str]:
    """{"note": ...} when the result came back at another size than it was asked at, else {}. What
    cannot be read is the decode gate's matter, not ours."""
    try:
        with Image.open(BytesIO(data)) as opened:  # reads the header alone
            width, height = opened.size
    except Exception:
        return {}
    if not request.width or (width, height) == (request.width, request.height):
        return {}
    return {"note": f"asked for {request.width}x{request.height}, got {width}x{height}"}


def is_black(data: bytes) -> bool:
    """Whether a result is one black area: what half-precision overflow (NaN) and safety filters leave
    behind under a success status. False for what cannot be read or is beyond 64 megapixels."""
    try:
        with Image.open(BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as opened:
            if opened.width * opened.height > 64_000_000:
                return False
            brightest = opened.convert("L").getextrema()[1]
    except Exception:
        return False
    return not isinstance(brightest, tuple) and brightest <= BLACK


def face_area(request: EditRequest, pixels: RgbPixels) -> tuple[slice, slice]:
    """Rows and columns of the request's face box inside ``pixels``; the whole without a box."""
    height, width = pixels.shape[:2]
    x, y, w, h = request.face_box or (0, 0, width, height)
    rows, columns = slice(max(y, 0), min(y + h, height)), slice(max(x, 0), min(x + w, width))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        raise ValueError(
            f"the face box {request.face_box} lies outside the {width}x{height} picture"
        )
    return rows, columns


def soft_window(height: int, width: int, share: float) -> npt.NDArray[np.float32]:
    """(h, w) weights: 1 inside, falling to 0 at the border over ``share`` of each side."""
    sides = []
    for length in (height, width):
        steps = np.arange(length, dtype=np.float32) + 0.5
        ramp = max(share * length, 0.5)
        sides.append(np.clip(np.minimum(steps, length - steps) / ramp, 0, 1))
    return np.asarray(np.outer(sides[0], sides[1]), dtype=np.float32)


def _encode(kind: str, pixels: npt.NDArray[np.uint8], options: list[int]) -> bytes:
    stored = pixels[..., ::-1] if pixels.ndim == 3 else pixels
    done, data = cv2.imencode(kind, np.ascontiguousarray(stored), options)
    if not done:
        raise ValueError(f"a {pixels.shape} picture cannot be written as {kind[1:]}")
    return bytes(data.tobytes())
