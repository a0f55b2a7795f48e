"""How two figures differ, or what a weighted sum of several comes to, from their own intervals.

The interval is the one that Zou and Donner (2008, "MOVER") recover from each figure's limits: with
Wilson's limits it is Newcombe's. It takes the figures to be independent. Two runs of the same
templates share what is peculiar to these, so for them it is too wide rather than too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from probes.results import Figure, Interval

METHOD = "MOVER"


@dataclass(frozen=True, slots=True)
class Change:
    """Second minus first. ``value`` is None exactly when ``reason`` says why; ``interval`` and ``p``
    (two-sided, that there is no change) are None too where a figure has no interval with a width."""

    value: float | None
    interval: Interval | None = None
    p: float | None = None
    reason: str = ""

    @property
    def shown(self) -> bool:
        """Whether the interval of this change alone excludes 0."""
        return self.interval is not None and self.interval.excludes(0.0)


def z_of(level: float) -> float:
    """Half-width of an interval of ``level`` in standard errors."""
    return float(stats.norm.ppf(0.5 + level / 2))


def combined(
    terms: Sequence[tuple[float, float, Interval]], level: float = 0.95
) -> tuple[float, Interval | None]:
    """Sum of weight x value over ``terms`` of (weight, value, interval), with its interval; None for
    one without width. Each interval may have a level of its own."""
    value = sum(weight * one for weight, one, _ in terms)
    down = up = 0.0
    for weight, one, interval in terms:
        z = z_of(interval.level)
        below, above = max(0.0, one - interval.low) / z, max(0.0, interval.high - one) / z
        if weight < 0:
            below, above = above, below
        down += (weight * below) ** 2
        up += (weight * above) ** 2
    if down + up == 0:
        return value, None
    z = z_of(level)
    return value, Interval(value - z * math.sqrt(down), value + z * math.sqrt(up), METHOD, level)


def change(first: Figure, second: Figure) -> Change:
    """Second minus first, of two runs (or conditions) that were asked independently."""
    for which, figure in (("first", first), ("second", second)):
        if figure.value is None:
            return Change(None, reason=f"the {which} has no figure: {figure.reason or 'not said'}")
    assert first.value is not None
    assert second.value is not None
    value = second.value - first.value
    if first.interval is None or second.interval is None:
        return Change(value)
    _, interval = combined(
        [(-1.0, first.value, first.interval), (1.0, second.value, second.interval)]
    )
    return Change(value, interval, p_of(value, interval))


def p_of(value: float, interval: Interval | None, at: float = 0.0) -> float | None:
    """Two-sided p value that agrees with ``interval``: below 1 - level exactly when that excludes
    ``at``. From the limit that faces ``at``, as on a normal scale; None without an interval."""
    if interval is None:
        return None
    facing = value - interval.low if value > at else interval.high - value
    if facing <= 0:
        return 1.0 if value == at else 0.0
    return float(2 * stats.norm.sf(abs(value - at) / facing * z_of(interval.level)))


def told(value: float | None, interval: Interval | None, digits: int = 2) -> str:
    """ "0.12 (0.04 to 0.20)"; "no figure" for None."""
    if value is None:
        return "no figure"
    said = number(value, digits)
    if interval is None:
        return f"{said} (no interval)"
    return f"{said} ({number(interval.low, digits)} to {number(interval.high, digits)})"


def number(value: float, digits: int = 2) -> str:
    """Fixed digits, no "-0.00"."""
    said = f"{value:.{digits}f}"
    return said.removeprefix("-") if float(said) == 0 else said
