"""Small drawings of a probe report: a figure with its interval, and the shade of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

STEPS = (0.05, 0.15, 0.3, 0.5)
"""|delta| from which a cell takes the next shade."""


def figure_svg(figure: Mapping[str, Any] | None, reach: float = 1.0, kind: str = "") -> Markup:
    """A figure of a report on a line from -``reach`` to ``reach``; empty where it has no value.

    Shapes carry classes only, since the page's policy allows no style of their own.
    """
    if figure is None or figure["value"] is None or reach <= 0:
        return Markup("")
    value = float(figure["value"])
    interval = figure["interval"] or {"low": value, "high": value}

    def place(at: float) -> float:
        return round(80 + 74 * max(-1.0, min(1.0, at / reach)), 1)

    return Markup(
        '<svg class="iv iv-{}" viewBox="0 0 160 22" width="160" height="22" aria-hidden="true">'
        '<line class="iv-zero" x1="80" x2="80" y1="1" y2="21"/>'
        '<line class="iv-line" x1="{}" x2="{}" y1="11" y2="11"/>'
        '<circle class="iv-dot" cx="{}" cy="11" r="4.5"/></svg>'
    ).format(kind or "plain", place(interval["low"]), place(interval["high"]), place(value))


def shade(delta: float | None) -> str:
    """The class of a cell: "a1" to "a4" where arm A has the label more often, "b1" to "b4" where B
    has, "even" in between, "none" without a figure."""
    if delta is None:
        return "none"
    step = sum(abs(delta) >= s for s in STEPS)
    if step == 0:
        return "even"
    return f"{'a' if delta > 0 else 'b'}{step}"
