"""The one canonical mask: 8-bit, one channel, white where the tool shall edit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt


class MaskKind(StrEnum):
    """What an inpainting mask covers."""

    BACKGROUND = "background"
    FACE = "face"
    LOWER_FACE = "lower_face"


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """(height, width) uint8; 255 = edit here, 0 = leave alone; same size as the picture sent."""

    values: npt.NDArray[np.uint8]
    kind: MaskKind

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.dtype != np.uint8:
            raise ValueError(f"a mask is (h, w) uint8, not {self.values.shape} {self.values.dtype}")
