"""Which picture sizes a tool takes natively; pictures are fitted to it, never blanket-resized."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SizeRule:
    """The sizes a tool accepts, in pixels.

    ``sizes`` lists exact (width, height) pairs when the tool knows only those. Otherwise any size
    goes whose sides are multiples of ``multiple`` and lie within ``min_side``..``max_side``.
    ``aspect`` is width / height when the tool takes one only (3/4 for an upright 3:4 frame).
    """

    sizes: tuple[tuple[int, int], ...] = ()
    multiple: int = 1
    min_side: int = 1
    max_side: int = 8192
    aspect: float | None = None
