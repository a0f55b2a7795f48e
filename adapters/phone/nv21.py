"""YUV420SP (NV21), the format phone SDKs work in, and what going through it alone costs a picture.

BT.601, full range (JFIF), as Android's camera gives it: a plane of luma, then V and U in turns, one
pair for each 2x2 pixels. Source: Android ImageFormat.NV21; JFIF 1.02 for the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from domain.pictures import RgbPixels

_TO_YUV = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32
)
_TO_RGB = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]], np.float32)


def to_nv21(pixels: RgbPixels) -> bytes:
    """(h, w, 3) RGB as h*w*3/2 bytes; chroma is the mean over 2x2 pixels. Raises ValueError for odd
    sides, which the format has no place for."""
    height, width = pixels.shape[:2]
    if height % 2 or width % 2:
        raise ValueError(f"{width}x{height} has an odd side: NV21 needs even ones")
    yuv = pixels.astype(np.float32) @ _TO_YUV.T
    small = yuv.reshape(height // 2, 2, width // 2, 2, 3).mean(axis=(1, 3))
    return _bytes(yuv[..., 0]) + _bytes(small[..., [2, 1]] + 128)


def from_nv21(data: bytes, width: int, height: int) -> RgbPixels:
    """(h, w, 3) RGB; each pixel has the chroma of its 2x2 block. Raises ValueError when the bytes
    are no frame of that size."""
    if width % 2 or height % 2 or len(data) != width * height * 3 // 2:
        raise ValueError(f"{len(data)} bytes are no {width}x{height} NV21 frame")
    flat = np.frombuffer(data, np.uint8)
    luma = flat[: width * height].reshape(height, width).astype(np.float32)
    pairs = flat[width * height :].reshape(height // 2, width // 2, 2).astype(np.float32) - 128
    chroma = pairs.repeat(2, axis=0).repeat(2, axis=1)
    rgb = np.stack([luma, chroma[..., 1], chroma[..., 0]], axis=-1) @ _TO_RGB.T
    return np.ascontiguousarray(np.clip(np.rint(rgb), 0, 255), dtype=np.uint8)


def round_trip_error(pixels: RgbPixels) -> dict[str, float]:
    """What NV21 and back does to this very picture with no tool in between: the mean absolute
    change of red, green, blue, luma and chroma (the mean of Cb and Cr), in levels of 255. A tool that
    works in NV21 cannot do better."""
    height, width = pixels.shape[:2]
    back = from_nv21(to_nv21(pixels), width, height).astype(np.float32)
    change = back - pixels
    yuv = np.abs(change @ _TO_YUV.T).mean(axis=(0, 1))
    found = dict(zip(("red", "green", "blue"), np.abs(change).mean(axis=(0, 1)), strict=True))
    found |= {"luma": yuv[0], "chroma": (yuv[1] + yuv[2]) / 2}
    return {name: round(float(value), 3) for name, value in found.items()}


def _bytes(values: npt.NDArray[Any]) -> bytes:
    return bytes(np.clip(np.rint(values), 0, 255).astype(np.uint8).tobytes())
