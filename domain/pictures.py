"""A picture after the decode gate: upright, sRGB, three channels, eight bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

RgbPixels: TypeAlias = npt.NDArray[np.uint8]
"""(height, width, 3) uint8, channel order R, G, B, sRGB, C-contiguous."""


@dataclass(frozen=True, slots=True)
class DecodeFacts:
    """What the gate saw in the file and did to it; kept so that a figure can be traced.

    ``format`` is the true content format ("JPEG"), whatever the name says. ``profile`` names the
    embedded ICC profile that was applied, or says why none was ("none", "unreadable: ...").
    ``orientation`` is the EXIF value (1-8) that was applied once. ``bit_depth`` is bits a channel
    in the file. ``monochrome`` is true when all three channels agree, so that skin colour is not
    measurable. ``warnings`` are full sentences.
    """

    format: str
    profile: str = "none"
    orientation: int = 1
    bit_depth: int = 8
    frames: int = 1
    had_alpha: bool = False
    monochrome: bool = False
    stored_size: tuple[int, int] | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Upright sRGB pixels with their provenance.

    ``opaque`` is a (height, width) bool array, or None when every pixel is opaque: transparent
    pixels were composited over white and must not enter skin or texture figures. ``sha256`` is
    of the bytes the picture was decoded from ("" for a picture made in memory).
    """

    pixels: RgbPixels
    facts: DecodeFacts = field(default_factory=lambda: DecodeFacts(format="memory"))
    opaque: npt.NDArray[np.bool_] | None = None
    sha256: str = ""

    def __post_init__(self) -> None:
        p = self.pixels
        if p.ndim != 3 or p.shape[2] != 3 or p.dtype != np.uint8:
            raise ValueError(f"a picture is (h, w, 3) uint8, not {p.shape} {p.dtype}")
        if p.shape[0] < 1 or p.shape[1] < 1:
            raise ValueError("a picture has at least one pixel")
        if not p.flags.c_contiguous:  # dlib and mediapipe misread sliced or flipped views
            object.__setattr__(self, "pixels", np.ascontiguousarray(p))

    @property
    def width(self) -> int:
        """Pixels across."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Pixels down."""
        return int(self.pixels.shape[0])
