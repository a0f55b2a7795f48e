"""A portrait in the frame that a phone SDK takes, for the tests of the phone tool."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2

from adapters.codec import write_png
from domain.edits import EditRequest, Task
from preprocess.decode import open_picture

SIZE = (384, 512)
_PORTRAIT = Path(__file__).resolve().parents[2] / "samples/portraits/images/id01_beard_stubble.jpg"


@lru_cache
def portrait(width: int = SIZE[0], height: int = SIZE[1]) -> bytes:
    """A bearded face, sharp down to the last pixel."""
    pixels = open_picture(_PORTRAIT).pixels
    return write_png(cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA))


def request(data: bytes | None = None, **changes: Any) -> EditRequest:
    """Ask for a retouch of the portrait, or of ``data``."""
    asked = EditRequest(
        "a", Task.RETOUCH, data or portrait(), width=SIZE[0], height=SIZE[1],
        face_box=(90, 110, 204, 300),
    )  # fmt: skip
    return dataclasses.replace(asked, **changes)
