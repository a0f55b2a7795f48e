"""A face found in a picture: 68 points in the scheme of the 300-W annotations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from domain.pictures import Picture

JAW = slice(0, 17)
RIGHT_BROW = slice(17, 22)
LEFT_BROW = slice(22, 27)
NOSE = slice(27, 36)
RIGHT_EYE = slice(36, 42)
LEFT_EYE = slice(42, 48)
MOUTH = slice(48, 68)
OUTER_LIPS = slice(48, 60)
STABLE = slice(27, 68)
"""Nose, eyes and mouth: the points used for registration. The jaw and brows wobble too much."""


@dataclass(frozen=True, slots=True, eq=False)
class Face:
    """One face of one picture.

    ``points`` is (68, 2) float64, x then y, in pixels of ``picture`` (pixel centres are whole
    numbers). ``box`` is the detector's (x, y, width, height). ``engine`` names who spoke
    ("mediapipe", "dlib"). ``count`` is how many faces the detector saw, of which this one was
    chosen by the rule of preprocess.faces; ``notes`` are full sentences about it.
    """

    picture: Picture
    points: npt.NDArray[np.float64]
    box: tuple[float, float, float, float]
    engine: str
    count: int = 1
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.points.shape != (68, 2):
            raise ValueError(f"68 points of x, y are needed, not {self.points.shape}")

    @property
    def eye_centres(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Centres of the eye at the image's left (36-41) and at its right (42-47), each (2,)."""
        return self.points[RIGHT_EYE].mean(axis=0), self.points[LEFT_EYE].mean(axis=0)

    @property
    def ied(self) -> float:
        """Inter-eye distance in pixels: between the two eye centres."""
        a, b = self.eye_centres
        return float(np.hypot(*(b - a)))
