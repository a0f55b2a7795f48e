"""Conditions under which a figure must be read with care: sentences about original and edit.

Each test has one threshold, set between what the London and rendered portraits show and what the
deliberately hard pictures show; docs/metrics.md lists both figures.
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import Face
from metrics.laplacian import LAPLACIAN_GAIN, pair_detail
from metrics.regions import FACE, Region, regions
from metrics.skin import bare_face, levels_at

if TYPE_CHECKING:
    from metrics.pair import FacePair

Luma = npt.NDArray[np.float32]

SOFT = 0.285
"""Laplacian variance over that at half the size; sharp portraits keep at least 0.31."""
LOW_CONTRAST = 0.30
"""Spread of the face's luma (5th to 95th percentile) over its median."""
NOISY_SIGMA = 5.0
"""White noise of the luma in 8-bit levels."""
BLOCKED = 2.2
"""Curvature across the 8 x 8 block edges over that inside the blocks."""
CLIPPED_SHARE = 0.2
CLIPPED_LEVEL = 254
PERIODIC_SHARE = 0.045
PERIODIC_FROM = 0.1
"""Share of the Laplacian's energy in one spectral peak beyond so many cycles a pixel."""
TOO_DARK = 14.0
COVERED_EYES = 0.35
"""Luma of the eye sockets over that of the cheeks."""
_PATCH = 128
_TAPER = np.outer(np.hanning(_PATCH), np.hanning(_PATCH)).astype(np.float32)
_LINES = 96
"""About as many lines of pixels at most are searched for block edges."""


def original_warnings(pair: FacePair) -> list[str]:
    """Sentences on what in the original limits the figures; empty for a plain good portrait."""
    face = regions(pair)["face"]
    if face.reason is not None:
        return []
    luma = pair.original_luma[face.window]
    found = _light(pair, luma, face)
    if _softness(pair_detail(pair).regions[FACE].original, luma, face.mask) < SOFT:
        found.append("soft original: loss of texture by the edit cannot be judged well.")
    sigma = (pair_detail(pair).noise[0] / LAPLACIAN_GAIN) ** 0.5
    if sigma >= NOISY_SIGMA:
        found.append(
            f"noisy original (noise of {sigma:.0f} levels): removing noise looks like a loss of texture."
        )
    if _has_periodic_pattern(luma):
        found.append("periodic pattern in the original: its screen is counted as texture.")
    if blockiness(pair.original) > BLOCKED:
        found.append("heavily compressed original: its detail is part block edges.")
    return found + _hidden(pair)


def edit_warnings(pair: FacePair) -> list[str]:
    """Sentences on what in the edited picture limits the figures."""
    found: list[str] = []
    if blockiness(pair.edited) > BLOCKED:
        found.append("heavily compressed edit: the change of detail is distorted by blocks.")
    face = regions(pair)["face"]
    if face.reason is None:
        share = _clipped(pair.edited_crop, face)
        if share >= CLIPPED_SHARE and share >= 2 * _clipped(pair.original_crop, face):
            found.append(f"{100 * share:.0f} % of the edited face is clipped to white.")
        sigma = (pair_detail(pair).noise[1] / LAPLACIAN_GAIN) ** 0.5
        if sigma >= NOISY_SIGMA:
            found.append(
                f"noisy edit (noise of {sigma:.0f} levels): little is known of its detail."
            )
    return found


def _light(pair: FacePair, luma: Luma, face: Region) -> list[str]:
    low, middle, high = levels_at(luma[::2], face.mask[::2], (0.05, 0.5, 0.95))
    found = []
    if middle < TOO_DARK:
        found.append(f"the original is too dark to measure well (median level {middle} of 255).")
    elif high - low < LOW_CONTRAST * middle:
        found.append("low contrast original: ratios of texture are unstable.")
    share = _clipped(pair.original_crop, face)
    if share >= CLIPPED_SHARE:
        found.append(
            f"{100 * share:.0f} % of the face is clipped to white: colour and texture are not trusted."
        )
    return found


def _hidden(pair: FacePair) -> list[str]:
    detail = pair_detail(pair).regions
    eyes, cheeks = detail["eye_sockets"], detail["cheeks"]
    found = []
    if (
        eyes.reason is None
        and cheeks.reason is None
        and eyes.original_luma < COVERED_EYES * cheeks.original_luma
    ):
        found.append("eyes not visible: they are covered, figures of the eyes mean little.")
    if bare_face(pair).covered:
        found.append("lower face covered: what covers it is left out of the skin figures.")
    return found


def _clipped(crop: npt.NDArray[np.uint8], face: Region) -> float:
    """Share of the face's pixels with a channel at white."""
    window, mask = crop[face.window][::2], face.mask[::2]  # every other row is as good
    if cv2.norm(window, cv2.NORM_INF) < CLIPPED_LEVEL:
        return 0.0
    below = cv2.inRange(window, (0, 0, 0), (CLIPPED_LEVEL - 1,) * 3)
    return 1.0 - cv2.countNonZero(cv2.bitwise_and(below, mask)) / max(cv2.countNonZero(mask), 1)


def _softness(fine: float, luma: Luma, mask: npt.NDArray[np.uint8]) -> float:
    """Laplacian variance over that of the same picture at half the size: low when enlarged."""
    half = (max(luma.shape[1] // 2, 1), max(luma.shape[0] // 2, 1))
    small = cv2.resize(luma, half, interpolation=cv2.INTER_AREA)
    small_mask = cv2.resize(mask, half, interpolation=cv2.INTER_NEAREST)
    coarse = cv2.meanStdDev(cv2.Laplacian(small, cv2.CV_32F), mask=small_mask)[1].item() ** 2
    return float(fine / coarse) if coarse > 0 else 1.0


def _has_periodic_pattern(luma: Luma) -> bool:
    """True when one frequency (a printing screen) holds a large share of the fine detail."""
    height, width = luma.shape
    if min(height, width) < _PATCH:
        return False
    top, left = (height - _PATCH) // 2, (width - _PATCH) // 2
    patch = np.ascontiguousarray(luma[top : top + _PATCH, left : left + _PATCH])
    spectrum = np.fft.rfft2(cv2.Laplacian(patch, cv2.CV_32F) * _TAPER)
    energy = np.square(spectrum.real) + np.square(spectrum.imag)
    total = float(energy.sum())
    row, column = divmod(int(energy.argmax()), energy.shape[1])
    frequency = hypot(min(row, _PATCH - row) / _PATCH, column / _PATCH)
    around = energy[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2].sum()
    return bool(total > 0 and frequency >= PERIODIC_FROM and around > PERIODIC_SHARE * total)


def blockiness(face: Face) -> float:
    """How far the 8 x 8 grid of a compressor shows in the picture's own pixels around the face.

    1 for none; the weaker of both directions, so that a single edge does not count.
    """
    low = np.maximum(np.floor(face.points.min(axis=0)).astype(int), 0)
    high = np.ceil(face.points.max(axis=0)).astype(int) + 1
    pixels = face.picture.pixels[low[1] : high[1], low[0] : high[0]]
    if min(pixels.shape[:2]) < 32:
        return 1.0
    luma = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    # every other line has as much to say; of very large faces fewer still
    rows, columns = (max(2, side // _LINES) for side in luma.shape)
    down = cv2.transpose(np.ascontiguousarray(luma[:, ::columns]))
    return min(_grid_strength(luma[::rows]), _grid_strength(down))


def _grid_strength(lines: npt.NDArray[np.uint8]) -> float:
    """Strength of a grid of 8 along (n, length) lines of luma."""
    lines = np.ascontiguousarray(lines)
    step = cv2.absdiff(lines[:, 1:], lines[:, :-1]).astype(np.int16)
    curvature = np.abs(2 * step[:, 1:-1] - step[:, :-2] - step[:, 2:])
    along = cv2.reduce(curvature, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32F).ravel()
    phases = along[: len(along) // 8 * 8].reshape(-1, 8).sum(axis=0)
    ordered = sorted(phases.tolist())
    usual = (ordered[3] + ordered[4]) / 2
    return ordered[-1] / usual if usual > 0 else 1.0
