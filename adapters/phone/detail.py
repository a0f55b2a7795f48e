"""Whether a picture was scaled down and up again on its way through a tool, by the picture alone.

A copy of half the size holds nothing above half the Nyquist frequency. What stands there afterwards is
made up by the interpolation, a sharpener or a grain filter, and does not agree with the original. So
the check asks how much of the result's finest detail agrees with the detail that was sent: the
coherence of the two spectra above 0.3 cycles a pixel (0.6 of Nyquist), in blocks, where the tool has
no reason to smooth: outside the face. Figures behind the threshold: docs/tools/mobile.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from domain.pictures import RgbPixels

BLOCK = 32
CUT_OFF = 0.3
"""Cycles a pixel; Nyquist is 0.5 and a half-size copy ends at 0.25."""
LEAST = 0.25
"""Coherence below which a picture counts as scaled down inside."""
_FEWEST = 12
"""Blocks with fine detail needed for a judgement."""
_NOISE = 4 / 12
"""Variance in the band, as a share of an 8-bit rounding error's (1/12), that counts as detail."""
_CLEAREST = 0.3
"""Share of blocks looked at when there is too little beside the face: smoothing keeps edges, lashes
and hair, scaling keeps nothing."""
_FARTHEST = 4.0
"""Pixels by which a result may be moved as a whole."""


@dataclass(frozen=True, slots=True)
class Detail:
    """``kept`` is 0 (nothing above the cut-off agrees) to 1, None when there was too little fine
    detail in the picture that was sent; ``where`` it was looked for."""

    kept: float | None
    where: str = ""

    @property
    def lost(self) -> bool:
        """Whether the result looks like a scaled-up small picture."""
        return self.kept is not None and self.kept < LEAST


def fine_detail(
    sent: RgbPixels, got: RgbPixels, face_box: tuple[int, int, int, int] | None
) -> Detail:
    """Compare two pictures of one size. ``face_box`` is (x, y, width, height)."""
    before, after = _luma(sent), _aligned(_luma(sent), _luma(got))
    x, y = _spectra(before), _spectra(after)
    if not len(x):
        return Detail(None)
    power_x, power_y = (np.abs(x) ** 2).sum(axis=1), (np.abs(y) ** 2).sum(axis=1)
    both = np.maximum((x.conj() * y).real.sum(axis=1), 0)
    agree = both**2 / np.maximum(power_x * power_y, 1e-12)
    detailed = power_x > _NOISE * x.shape[1] / BLOCK**2
    beside = detailed & _outside(before.shape, face_box)
    if beside.sum() >= _FEWEST:
        return Detail(_mean(agree, power_x, beside), "beside the face")
    if detailed.sum() < _FEWEST:
        return Detail(None)
    gain = np.where(detailed, both / np.maximum(power_x, 1e-12), -1.0)
    clearest = gain >= np.quantile(gain[detailed], 1 - _CLEAREST)
    return Detail(_mean(agree, power_x, clearest & detailed), "at the clearest edges")


def _mean(
    agree: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], chosen: npt.NDArray[np.bool_]
) -> float:
    return round(float((agree * weight)[chosen].sum() / weight[chosen].sum()), 3)


def _luma(pixels: RgbPixels) -> npt.NDArray[np.float32]:
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), dtype=np.float32)


def _aligned(
    before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """``after`` moved back by whole pixels where the tool moved the whole picture."""
    (dx, dy), _ = cv2.phaseCorrelate(before, after)
    if not (abs(dx) <= _FARTHEST and abs(dy) <= _FARTHEST):
        return after
    return np.roll(after, (-round(dy), -round(dx)), axis=(0, 1))


def _spectra(luma: npt.NDArray[np.float32]) -> npt.NDArray[np.complex128]:
    """(blocks, frequencies above the cut-off), scaled so that the squares add up to variance."""
    rows, columns = luma.shape[0] // BLOCK, luma.shape[1] // BLOCK
    cut = luma[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK)
    tiles = cut.swapaxes(1, 2).reshape(-1, BLOCK, BLOCK)
    window = np.outer(np.hanning(BLOCK), np.hanning(BLOCK))
    tiles = (tiles - tiles.mean(axis=(1, 2), keepdims=True)) * window
    spectrum = np.fft.fft2(tiles) / np.sqrt((window**2).sum() * BLOCK**2)
    steps = np.abs(np.fft.fftfreq(BLOCK))
    return np.asarray(spectrum[:, np.maximum.outer(steps, steps) > CUT_OFF], dtype=np.complex128)


def _outside(
    shape: tuple[int, ...], face_box: tuple[int, int, int, int] | None
) -> npt.NDArray[np.bool_]:
    """Which blocks do not touch the face box."""
    y, x = np.mgrid[: shape[0] // BLOCK, : shape[1] // BLOCK] * BLOCK
    if face_box is None:
        return np.ones(x.size, dtype=np.bool_)
    left, top, width, height = face_box
    beside = (x + BLOCK <= left) | (x >= left + width) | (y + BLOCK <= top) | (y >= top + height)
    return np.asarray(beside.ravel(), dtype=np.bool_)
