"""What a landmark engine hands over, and the rule that picks one face out of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from domain.pictures import RgbPixels

TIE_AREA = 0.9
"""Faces of at least this share of the largest one's area count as equally large."""
TIE_DISTANCE = 0.02
"""Centres this close (in picture widths) to the picture's centre count as equally central."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One face as an engine sees it.

    ``points`` is (68, 2) float64 in pixels of the picture searched (pixel centres are whole
    numbers), ``box`` is (x, y, width, height) in the same pixels.
    """

    points: npt.NDArray[np.float64]
    box: tuple[float, float, float, float]

    @property
    def area(self) -> float:
        """Area of the box in square pixels."""
        return self.box[2] * self.box[3]

    @property
    def centre(self) -> tuple[float, float]:
        """Centre of the box (x, y) in pixels."""
        x, y, w, h = self.box
        return x + w / 2, y + h / 2

    def moved(self, scale: float, dx: float, dy: float) -> Candidate:
        """The same face in a picture where this one's is a part, ``scale`` times as large."""
        x, y, w, h = self.box
        offset = np.array([dx, dy]) + (scale - 1) / 2  # pixel centres, not corners, are whole
        return Candidate(
            self.points * scale + offset,
            (x * scale + dx, y * scale + dy, w * scale, h * scale),
        )


class Engine(Protocol):
    """A landmark model: every face it sees in upright contiguous RGB pixels."""

    name: str

    def detect(self, pixels: RgbPixels) -> list[Candidate]:
        """Every face in contiguous (h, w, 3) uint8 RGB. Raises ModelMissing."""
        ...

    def look_again(self, pixels: RgbPixels) -> list[Candidate]:
        """More patient, for a picture in which ``detect`` saw nobody: large, cut or shaded faces."""
        ...

    def steady(self, pixels: RgbPixels, found: Candidate) -> Candidate:
        """The same face with points less subject to chance, from several looks at it."""
        ...

    def look_around(self, pixels: RgbPixels, known: Sequence[Candidate]) -> list[Candidate]:
        """Smaller faces beside those known already."""
        ...

    def close(self) -> None:
        """Free the models."""
        ...


def choose(
    faces: Sequence[Candidate],
    width: int,
    height: int,
    places: Sequence[tuple[float, float]] = (),
) -> Candidate:
    """The face to measure; the same faces give the same choice in whatever order they come.

    Without ``places``: the largest; where several are about as large (``TIE_AREA``), the one nearest
    to the picture's centre; where those are about as near (``TIE_DISTANCE``), the leftmost, then
    the topmost. With ``places`` (in fractions of width and height): the nearest to any of them.
    """
    if places:
        return min(
            faces, key=lambda c: (min(_distance(c, p, width, height) for p in places), *c.centre)
        )
    largest = max(c.area for c in faces)
    big = [c for c in faces if c.area >= TIE_AREA * largest]
    nearest = min(_distance(c, (0.5, 0.5), width, height) for c in big)
    central = [c for c in big if _distance(c, (0.5, 0.5), width, height) <= nearest + TIE_DISTANCE]
    return min(central, key=lambda c: c.centre)


def apart(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(68,) distances, in IED of ``other``, after the best similarity of points 27-67."""
    a, b = (p[:, 0] + 1j * p[:, 1] for p in (one, other))
    a, b = a - a[27:].mean(), b - b[27:].mean()
    a = a * (np.vdot(a[27:], b[27:]) / max(np.vdot(a[27:], a[27:]).real, 1e-9))
    ied = abs(b[36:42].mean() - b[42:48].mean())
    return np.asarray(np.abs(a - b) / max(ied, 1e-9))


def merge(faces: Sequence[Candidate], more: Sequence[Candidate]) -> list[Candidate]:
    """``faces`` and those of ``more`` that are not one of them seen again."""
    out = list(faces)
    for new in sorted(more, key=lambda c: -c.area):
        if not any(_overlap(new, old) > 0.3 for old in out):
            out.append(new)
    return out


def _distance(c: Candidate, place: tuple[float, float], width: int, height: int) -> float:
    """Distance of the face's centre from a place, in picture widths."""
    x, y = c.centre
    return float(np.hypot(x - place[0] * width, y - place[1] * height)) / width


def _overlap(a: Candidate, b: Candidate) -> float:
    """Shared area over the area of the smaller box, so that a part of a face is not a new face."""
    ax, ay, aw, ah = a.box
    bx, by, bw, bh = b.box
    w = min(ax + aw, bx + bw) - max(ax, bx)
    h = min(ay + ah, by + bh) - max(ay, by)
    return max(w, 0.0) * max(h, 0.0) / max(min(a.area, b.area), 1e-9)
