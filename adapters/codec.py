"""Read the picture of a request and write a result: plain 8-bit RGB, for tools that need pixels.

What comes in was encoded by this program (upright, sRGB, no metadata), so there is nothing here of
what preprocess does with a stranger's file.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from domain.edits import EditRequest
from domain.pictures import RgbPixels


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
