"""YUV420SP (NV21) as the agent's pretended NPU reads it: BT.601, full range, V before U.

The chroma plane is looked for where it lies in buffers whose sides are multiples of 16. On any other
size it is read from the wrong place, and the picture turns green, as real drivers do it.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
STRIDE = 16


def size_of(width: int, height: int) -> int:
    """Bytes of a frame."""
    return width * height + 2 * ((width + 1) // 2) * ((height + 1) // 2)


def pack(pixels: Pixels) -> bytes:
    """RGB as NV21; each chroma sample is the mean of its four pixels."""
    height, width = pixels.shape[:2]
    even = cv2.copyMakeBorder(pixels, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
    planes = cv2.cvtColor(even, cv2.COLOR_RGB2YCrCb)
    small = (even.shape[1] // 2, even.shape[0] // 2)
    chroma = cv2.resize(planes[..., 1:], small, interpolation=cv2.INTER_AREA)
    luma = np.ascontiguousarray(planes[:height, :width, 0])
    return luma.tobytes() + np.ascontiguousarray(chroma).tobytes()


def unpack(data: bytes, width: int, height: int) -> Pixels:
    """NV21 as RGB, with the driver's own idea of where the chroma lies."""
    flat = np.frombuffer(data, np.uint8)
    luma = flat[: width * height].reshape(height, width)
    wide, high = -(-width // STRIDE) * STRIDE, -(-height // STRIDE) * STRIDE
    plane = np.zeros(wide * high // 2, np.uint8)  # beyond the end the driver finds zeros: green
    found = flat[wide * high : wide * high + len(plane)]
    plane[: len(found)] = found
    chroma = plane.reshape(high // 2, wide // 2, 2)
    large = cv2.resize(chroma, (wide, high), interpolation=cv2.INTER_NEAREST)
    planes = np.dstack([luma, large[:height, :width]])
    return np.asarray(cv2.cvtColor(planes, cv2.COLOR_YCrCb2RGB), dtype=np.uint8)
