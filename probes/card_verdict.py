"""Figures held against limits of their size: beyond, within, or not told by the interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from probes.analysis.multiplicity import holm
from probes.card_change import told, z_of
from probes.results import Figure

State = Literal["pass", "fail", "inconclusive", "not_measurable"]
SIDE = 0.025
"""Of a two-sided 95 % interval, the share on the side of the limit."""


@dataclass(frozen=True, slots=True)
class Held:
    """What came of one figure. ``said`` is the figure with its interval, ``why`` a word where the
    state needs one."""

    state: State
    said: str
    why: str = ""


def held(
    figures: Sequence[tuple[Figure, float]], judge: Literal["interval", "point"]
) -> list[Held]:
    """Each figure against its limit, which is of its magnitude: |value| <= limit is within.

    By interval: fail where all of it is beyond on one side, and still is after Holm over ``figures``;
    pass where all of it is within; else inconclusive. By point: the value alone.
    """
    ps = [_p_within(figure, limit) for figure, limit in figures]
    adjusted = holm(ps)
    return [
        _one(figure, limit, judge, p, q)
        for (figure, limit), p, q in zip(figures, ps, adjusted, strict=True)
    ]


def _one(
    figure: Figure,
    limit: float,
    judge: Literal["interval", "point"],
    p: float | None,
    adjusted: float | None,
) -> Held:
    said = told(figure.value, figure.interval)
    if figure.value is None:
        return Held("not_measurable", said, figure.reason)
    if judge == "point":
        return Held(
            "pass" if abs(figure.value) <= limit else "fail", said, "judged by the value alone"
        )
    if figure.interval is None or p is None or adjusted is None:
        return Held("inconclusive", said, "there is no interval to judge by")
    low, high = figure.interval.low, figure.interval.high
    if -limit <= low and high <= limit:
        return Held("pass", said)
    if low <= limit and high >= -limit:
        return Held("inconclusive", said, "the interval reaches over the limit")
    after_all = adjusted <= SIDE
    why = "" if after_all else "beyond by itself, not after Holm over all figures"
    return Held("fail" if after_all else "inconclusive", said, why)


def _p_within(figure: Figure, limit: float) -> float | None:
    """One-sided p value of "its true size is within the limit", which agrees with the interval."""
    if figure.value is None or figure.interval is None:
        return None
    interval = figure.interval
    beyond = abs(figure.value) - limit
    if beyond <= 0:
        return 1.0
    facing = figure.value - interval.low if figure.value > 0 else interval.high - figure.value
    if facing <= 0:
        return 0.0
    return float(stats.norm.sf(beyond / facing * z_of(interval.level)))
