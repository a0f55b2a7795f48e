"""The three-part diagnosis of one pair as a PNG: original, result, difference, figures below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from domain.measurements import Measurement
from domain.pictures import RgbPixels
from preprocess.decode import encode_png
from service.report.pictures import DIFFERENCE_CEILING, Points, Trio, make_trio, retained_flags
from service.report.wording import figure, words

PANEL = 480
GAP = 24
HEAD = 64
LINE = 26
INK = (32, 36, 46)
FAINT = (104, 110, 122)
PAPER = (251, 250, 247)
KEPT = (64, 224, 208)
LOST = (255, 92, 32)
HEAT = np.array(
    [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]], dtype=np.float64
)
"""Five stops of the magma map: dark is no difference, pale is the ceiling."""


def diagnosis_png(
    original_pixels: RgbPixels,
    edited_pixels: RgbPixels | None,
    evidence: Mapping[str, Any],
    measurements: Sequence[Measurement] = (),
    title: str = "",
) -> bytes:
    """PNG of the pair: left the original with its 68 points, middle the result with displaced or lost
    points ringed, right the colour difference; below, figures by region when they are given.

    Pixels are (h, w, 3) uint8 sRGB. ``evidence`` is PairResult's; missing keys leave out their marks.
    """
    trio = make_trio(original_pixels, edited_pixels, evidence, PANEL)
    lines = _figure_lines(measurements)
    rows = -(-len(lines) // 3)
    height = HEAD + PANEL + GAP + (rows + 1) * LINE if lines else HEAD + PANEL + GAP
    canvas = np.full((height, 3 * PANEL + 4 * GAP, 3), PAPER, np.uint8)
    retained = retained_flags(evidence)
    panels = (
        (
            trio.original,
            "Original",
            "68 points" if trio.original_points is not None else "no points",
        ),
        (_or_blank(trio.edited), "Result", _result_note(trio, retained)),
        (_heat(trio), "Difference", f"colour, 0 to {DIFFERENCE_CEILING:.0f}+ (CIE76)"),
    )
    for number, (pixels, name, note) in enumerate(panels):
        x = GAP + number * (PANEL + GAP)
        canvas[HEAD : HEAD + PANEL, x : x + PANEL] = pixels
        _write(canvas, name, (x, HEAD - 14), 20, 600)
        _write(canvas, note, (x + 118, HEAD - 14), 15, 400, FAINT)
    if title:
        _write(canvas, title, (GAP, 24), 15, 400, FAINT)
    _draw_points(canvas, trio.original_points, (GAP, HEAD), None)
    _draw_points(canvas, trio.edited_points, (2 * GAP + PANEL, HEAD), retained)
    for index, line in enumerate(lines):
        column, row = divmod(index, rows)
        x = GAP + column * (PANEL + GAP)
        _write(canvas, line, (x, HEAD + PANEL + GAP + (row + 1) * LINE - 8), 15, 400)
    return encode_png(np.ascontiguousarray(canvas))


def _or_blank(pixels: RgbPixels | None) -> RgbPixels:
    return np.full((PANEL, PANEL, 3), 226, np.uint8) if pixels is None else pixels


def _result_note(trio: Trio, retained: Sequence[bool] | None) -> str:
    if trio.edited is None:
        return "no edited picture"
    if trio.edited_points is None:
        return "no face found"
    if retained is None:
        return "68 points"
    lost = retained.count(False)
    return "all 68 points kept" if lost == 0 else f"{lost} of 68 points displaced or lost (ringed)"


def heat_colours(share: npt.NDArray[np.float64]) -> RgbPixels:
    """(h, w, 3) uint8 colours of ``share`` in 0..1 along ``HEAT``."""
    stops = np.linspace(0, 1, len(HEAT))
    channels = [np.interp(share, stops, HEAT[:, c]) for c in range(3)]
    return np.ascontiguousarray(np.round(np.stack(channels, axis=-1)).astype(np.uint8))


def _heat(trio: Trio) -> RgbPixels:
    """Difference in colour, with the original's luma faintly below so that a reader sees where."""
    if trio.difference is None:
        return _or_blank(None)
    share = np.sqrt(np.clip(trio.difference.astype(np.float64) / DIFFERENCE_CEILING, 0, 1))
    luma = cv2.cvtColor(trio.original, cv2.COLOR_RGB2GRAY).astype(np.float64)[:, :, None] * 0.22
    mixed = np.clip(heat_colours(share).astype(np.float64) + luma * (1 - share[:, :, None]), 0, 255)
    return np.ascontiguousarray(mixed.astype(np.uint8))


def _draw_points(
    canvas: RgbPixels, points: Points | None, at: tuple[int, int], retained: Sequence[bool] | None
) -> None:
    if points is None:
        return
    for index, (x, y) in enumerate(points):
        if not (0 <= x < PANEL and 0 <= y < PANEL):
            continue
        lost = retained is not None and not retained[index]
        place = (float(x) + at[0], float(y) + at[1])
        colour = LOST if lost else KEPT
        _stamp(canvas, place, 0.0, 3.6, (20, 20, 20))
        _stamp(canvas, place, 0.0, 2.6, colour)
        if lost:
            _stamp(canvas, place, 6.6, 8.4, LOST)


def _stamp(
    canvas: RgbPixels,
    at: tuple[float, float],
    inner: float,
    outer: float,
    colour: tuple[int, int, int],
) -> None:
    """A smooth ring (a disc where ``inner`` is 0): OpenCV draws small circles as diamonds."""
    reach = int(outer) + 2
    left, top = round(at[0]) - reach, round(at[1]) - reach
    if left < 0 or top < 0:
        return
    patch = canvas[top : top + 2 * reach + 1, left : left + 2 * reach + 1]
    rows, columns = np.mgrid[: patch.shape[0], : patch.shape[1]]
    away = np.hypot(columns + left - at[0], rows + top - at[1])
    cover = np.clip(outer + 0.5 - away, 0, 1)
    if inner > 0:
        cover *= np.clip(away - inner + 0.5, 0, 1)
    mixed = patch + cover[:, :, None] * (np.array(colour, dtype=np.float64) - patch)
    patch[:] = np.round(mixed).astype(np.uint8)


def _figure_lines(measurements: Sequence[Measurement]) -> list[str]:
    """One line a figure; a missing one says why."""
    lines = []
    for m in sorted(measurements, key=lambda m: (m.region != "face", m.region, m.metric)):
        place = "" if m.region == "face" else f", {words(m.region)}"
        shown = (
            f"{figure(m.value)} {m.unit}" if m.value is not None else f"not measurable: {m.reason}"
        )
        lines.append(f"{words(m.metric)}{place}: {shown}"[:62])
    return lines


def _write(
    canvas: RgbPixels,
    text: str,
    at: tuple[int, int],
    size: int,
    weight: int,
    colour: tuple[int, int, int] = INK,
) -> None:
    cv2.putText(canvas, text, at, colour, cv2.FontFace("sans"), size, weight)
