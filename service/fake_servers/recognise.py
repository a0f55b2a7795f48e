"""Which portrait of an album a picture was cut from: by looks, since a tool is told no names.

A picture that a tool gets may be a crop, scaled, with edges repeated, noisy or tinted. It is laid over
every portrait at every scale and place, coarsely in grey; the likeliest are looked at more closely, the
last in colour, near the place that was found. Likeness is zero-mean normalised correlation (1: the same
up to brightness and contrast).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from service.fake_servers.desk import decode

WIDTHS = (32, 64, 128)
"""Widths in pixels at which portraits are compared, coarse to fine."""
MARGIN = 0.35
"""Repeated edge around a portrait, as a share of its sides: fitting may reach beyond the picture."""
SCALES = tuple(1.35 / 1.08**step for step in range(19))
"""Width of the picture over the portrait's: 1.35 down to 0.32."""
CLOSER = (tuple(1.018**step for step in range(-5, 6)), tuple(1.004**step for step in range(-3, 4)))
CANDIDATES = (16, 3)
REACH = 4
"""Pixels around the expected place that a closer look searches."""
CONTRAST = 0.6
"""The lower of two standard deviations is at least this part of the higher in the same picture."""
LIKENESS = 0.975
"""Correlation from which it is the same portrait. Measured on London faces fitted to seven kinds of
size, as JPEG, with noise of sigma 12.75 or only the upper half left: the portrait itself 0.991 and
more, another person before the same wall 0.956 at most."""
Pixels = npt.NDArray[np.uint8]
Levels = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Match:
    """The portrait most like a picture, and how like: a correlation, at most 1."""

    portrait_id: str
    score: float


@dataclass(frozen=True, slots=True)
class _Entry:
    portrait_id: str
    sheets: tuple[Levels, ...]
    """The portrait with its margin at each of ``WIDTHS``; the first is grey."""


@dataclass(frozen=True, slots=True)
class _Guess:
    """``entry`` holds the picture at ``scale``, its middle at (x, y) in shares of the sheet."""

    score: float
    entry: _Entry
    scale: float
    x: float = 0.5
    y: float = 0.5


class _Shelf:
    """Entries of one shape, looked at all at once: the correlation of a patch with every place of every
    sheet is one product of Fourier transforms."""

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self.entries = entries
        sheets = np.stack([entry.sheets[0] for entry in entries])
        self._shape = sheets.shape[1:]
        self._spectra = np.fft.rfft2(sheets)
        self._sums, self._squares = _running(sheets), _running(sheets.astype(np.float64) ** 2)

    def look(self, patches: Sequence[tuple[float, Levels | None]]) -> list[_Guess]:
        """The best scale and place for every entry."""
        best = [_Guess(-1.0, entry, 1.0) for entry in self.entries]
        for scale, patch in patches:
            if patch is None or any(p > s for p, s in zip(patch.shape, self._shape, strict=True)):
                continue
            scores = self._scores(patch)
            flat = scores.reshape(len(scores), -1)
            for i, at in enumerate(flat.argmax(axis=1)):
                if flat[i, at] > best[i].score:
                    top, left = divmod(int(at), scores.shape[2])
                    x = (left + patch.shape[1] / 2) / self._shape[1]
                    y = (top + patch.shape[0] / 2) / self._shape[0]
                    best[i] = _Guess(float(flat[i, at]), self.entries[i], scale, x, y)
        return best

    def _scores(self, patch: Levels) -> npt.NDArray[np.float64]:
        """(entries, rows, columns): zero-mean normalised correlation at every place that fits."""
        rows, columns = (s - p + 1 for s, p in zip(self._shape, patch.shape, strict=True))
        plain = patch.astype(np.float64) - float(patch.mean())
        spectrum = np.conj(np.fft.rfft2(plain, s=self._shape))
        products = np.fft.irfft2(self._spectra * spectrum, s=self._shape)[:, :rows, :columns]
        sums, squares = (_windows(r, patch.shape) for r in (self._sums, self._squares))
        spread = np.sqrt(np.maximum(squares - sums**2 / patch.size, 1e-3) * np.sum(plain**2))
        return np.asarray(products / np.maximum(spread, 1e-3))


def _running(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Sums over everything above and to the left, with a row and a column of zeros in front."""
    sums = values.astype(np.float64).cumsum(axis=1).cumsum(axis=2)
    return np.pad(sums, ((0, 0), (1, 0), (1, 0)))


def _windows(running: npt.NDArray[np.float64], shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """The sum within every window of ``shape``."""
    h, w = shape
    return np.asarray(
        running[:, h:, w:] - running[:, :-h, w:] - running[:, h:, :-w] + running[:, :-h, :-w]
    )


class Album:
    """Portraits to recognise. ``nearest`` is safe in threads."""

    def __init__(self, portraits: Iterable[tuple[str, Pixels]]) -> None:
        """``portraits`` are ids with (height, width, 3) pixels in OpenCV's channel order."""
        shapes: dict[tuple[int, ...], list[_Entry]] = {}
        for name, pixels in portraits:
            entry = _entry(name, pixels)
            shapes.setdefault(entry.sheets[0].shape, []).append(entry)
        self._shelves = [_Shelf(entries) for entries in shapes.values()]

    def __len__(self) -> int:
        return sum(len(shelf.entries) for shelf in self._shelves)

    def nearest(self, picture: bytes) -> Match | None:
        """The most similar portrait, however little; None for no picture or an empty album."""
        try:
            pixels = _reduced(decode(picture))
        except ValueError:
            return None
        if not self._shelves:
            return None
        patches = [(s, _scaled(pixels, s * WIDTHS[0], grey=True)) for s in SCALES]
        guesses = [guess for shelf in self._shelves for guess in shelf.look(patches)]
        for level, keep in enumerate(CANDIDATES, start=1):
            guesses.sort(key=lambda guess: -guess.score)
            guesses = [_closer_look(pixels, guess, level) for guess in guesses[:keep]]
        best = max(guesses, key=lambda guess: guess.score)
        return Match(best.entry.portrait_id, best.score)

    def recognise(self, picture: bytes) -> str | None:
        """The id of the portrait that ``picture`` was made from; None for a stranger's."""
        match = self.nearest(picture)
        return match.portrait_id if match is not None and match.score >= LIKENESS else None


def _reduced(pixels: Pixels) -> Pixels:
    """At most twice as wide as it will ever be looked at, so that each look costs little."""
    width = round(2 * SCALES[0] * WIDTHS[-1])
    if pixels.shape[1] <= width:
        return pixels
    size = width, max(1, round(width * pixels.shape[0] / pixels.shape[1]))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _entry(name: str, pixels: Pixels) -> _Entry:
    small = _reduced(pixels)
    rows, columns = (round(MARGIN * side) for side in small.shape[:2])
    sheet = cv2.copyMakeBorder(small, rows, rows, columns, columns, cv2.BORDER_REPLICATE)
    whole = 1 + 2 * MARGIN
    sheets = [_scaled(sheet, width * whole, grey=width == WIDTHS[0]) for width in WIDTHS]
    return _Entry(name, tuple(s for s in sheets if s is not None))


def _scaled(pixels: Pixels, width: float, *, grey: bool = False) -> Levels | None:
    """``pixels`` at about that width, a little blurred so that part of a pixel's shift matters less;
    None where nothing comparable would be left."""
    size = round(width), round(width * pixels.shape[0] / pixels.shape[1])
    if min(size) < 6:
        return None
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    if grey:
        small = cv2.cvtColor(small, cv2.COLOR_BGR2GRAY)
    return np.asarray(cv2.GaussianBlur(small, (0, 0), 0.8), dtype=np.float32)


def _closer_look(pixels: Pixels, guess: _Guess, level: int) -> _Guess:
    sheet, found = guess.entry.sheets[level], []
    for step in CLOSER[level - 1]:
        scale = guess.scale * step
        patch = _scaled(pixels, scale * WIDTHS[level])
        if patch is None:
            continue
        height, width = sheet.shape[:2]
        left = max(0, round(guess.x * width - patch.shape[1] / 2) - REACH)
        top = max(0, round(guess.y * height - patch.shape[0] / 2) - REACH)
        window = sheet[
            top : top + patch.shape[0] + 2 * REACH, left : left + patch.shape[1] + 2 * REACH
        ]
        near = _place(guess.entry, window, patch, scale)
        if not _same_contrast(window, near, patch):
            continue
        x = (left + near.x * window.shape[1]) / width
        y = (top + near.y * window.shape[0]) / height
        found.append(_Guess(near.score, guess.entry, scale, x, y))
    return max(found, key=lambda one: one.score, default=_Guess(-1.0, guess.entry, guess.scale))


def _same_contrast(window: Levels, near: _Guess, patch: Levels) -> bool:
    """False where correlation alone deceives: any smooth ramp correlates with a corner of a wall."""
    left = round(near.x * window.shape[1] - patch.shape[1] / 2)
    top = round(near.y * window.shape[0] - patch.shape[0] / 2)
    there = window[top : top + patch.shape[0], left : left + patch.shape[1]]
    spreads = [float(one.std(axis=(0, 1)).mean()) for one in (patch, there)]
    return min(spreads) > max(1.0, CONTRAST * max(spreads))


def _place(entry: _Entry, sheet: Levels, patch: Levels | None, scale: float) -> _Guess:
    """The best place of ``patch`` on ``sheet``; a score of -1 where it does not fit."""
    if patch is None or patch.shape[0] > sheet.shape[0] or patch.shape[1] > sheet.shape[1]:
        return _Guess(-1.0, entry, scale)
    scores = cv2.matchTemplate(sheet, patch, cv2.TM_CCOEFF_NORMED)
    scores[~np.isfinite(scores)] = -1.0
    _, score, _, (left, top) = cv2.minMaxLoc(scores)
    x = (left + patch.shape[1] / 2) / sheet.shape[1]
    y = (top + patch.shape[0] / 2) / sheet.shape[0]
    return _Guess(float(score), entry, scale, x, y)
