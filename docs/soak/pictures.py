"""Portraits with bytes of their own: as many as are wanted, from the few rendered ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cv2

PORTRAITS = Path(__file__).resolve().parents[2] / "samples" / "portraits" / "images"
BLOCK = 8


@cache
def portraits(side: int) -> list[Any]:
    """The rendered portraits, ``side`` pixels high."""
    found = []
    for path in sorted(PORTRAITS.glob("*.jpg")):
        pixels = cv2.imread(str(path))
        scale = side / pixels.shape[0]
        found.append(cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA))
    return found


def picture(number: int, side: int = 320) -> bytes:
    """A portrait as JPEG that no other ``number`` has: its digits are grey blocks in a corner."""
    faces = portraits(side)
    pixels = faces[number % len(faces)].copy()
    for place, digit in enumerate(f"{number:08d}"):
        pixels[:BLOCK, place * BLOCK : (place + 1) * BLOCK] = int(digit) * 25
    return bytes(cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 92])[1])


def manifest(names: list[str]) -> str:
    """A manifest with a group to compare."""
    rows = [f"{name},{('female', 'male')[i % 2]}" for i, name in enumerate(names)]
    return "\n".join(["file,gender", *rows]) + "\n"
