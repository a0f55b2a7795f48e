"""What a decoder hands over: stored samples with what is needed to make them upright sRGB."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt


@dataclass(slots=True)
class Raster:
    """Stored samples of the first picture of a file, not yet turned, not yet sRGB.

    ``samples`` is (h, w) for ``model`` "grey", (h, w, 3) for "rgb" and "lab", (h, w, 4) for "cmyk"
    (0 = no ink); uint8, uint16 (full range) or float32 (0..1; "lab": L*, a*, b* in their own units).
    ``alpha`` is (h, w) of the same type as the samples or uint8, None when absent. ``profile`` is
    the embedded ICC profile; ``profile_problem`` says why there is none although the file has one.
    ``code_points`` are primaries and transfer after ITU-T H.273 where the container gives them.
    """

    samples: npt.NDArray[Any]
    model: str
    format: str
    bit_depth: int = 8
    alpha: npt.NDArray[Any] | None = None
    profile: bytes | None = None
    profile_problem: str | None = None
    code_points: tuple[int, int] | None = None
    orientation: int = 1
    frames: int = 1
    adobe_rgb: bool = False
    warnings: list[str] = field(default_factory=list)
