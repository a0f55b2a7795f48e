"""One question answered for two groups, before the corrections and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from domain.verdicts import GroupEstimate
from metrics.statistics.columns import Column
from metrics.statistics.comparing import Contrast, Side
from metrics.statistics.effects import (
    EXACT_PAIRS,
    cliffs_delta,
    impact_ratio,
    shift_of,
    walsh_shift,
)
from metrics.statistics.equivalence import tost_rates
from metrics.statistics.facts import facts
from metrics.statistics.intervals import newcombe, wilson
from metrics.statistics.samples import Block

PAIRED = "paired within subjects"

Details = dict[str, float | str | None]


@dataclass(slots=True)
class Finding:
    """Numbers of one comparison. NaN = could not be had, with ``reason``."""

    tool: str
    task: str
    attribute: str
    column: Column
    groups: tuple[str, str]
    reason: str | None = None
    effect: float = math.nan
    interval: tuple[float, float] = (math.nan, math.nan)
    p: float = math.nan
    p_equivalence: float = math.nan
    p_adjusted: float = math.nan
    n: dict[str, int] = field(default_factory=dict)
    spread: tuple[float, float] = (math.nan, math.nan)
    """Variances of the groups' subject means."""
    estimates: tuple[GroupEstimate, ...] = ()
    details: Details = field(default_factory=dict)


def unanswered(
    block: Block, column: Column, groups: tuple[str, str], reason: str, sizes: Mapping[str, int]
) -> Finding:
    """A question that the rows cannot answer, and why."""
    return Finding(block.tool, block.task, block.attribute, column, groups, reason, n=dict(sizes))


def finding(
    block: Block, contrast: Contrast, index: int, groups: tuple[str, str], alpha: float
) -> Finding:
    """Column ``index`` of a contrast, with effect sizes, equivalence and bounds for what is missing."""
    column = block.columns[index]
    first, second = contrast.first, contrast.second
    counts = {g: int(s.summary.n[index]) for g, s in zip(groups, (first, second), strict=True)}
    out = Finding(block.tool, block.task, block.attribute, column, groups, n=counts)
    out.reason = _obstacle(block, index, groups, counts)
    if min(counts.values()) == 0:
        return out
    out.effect = float(contrast.effect[index])
    out.spread = (float(contrast.spread[0][index]), float(contrast.spread[1][index]))
    if column.is_rate:
        _rates(out, contrast, index, alpha)
    else:
        _figures(out, contrast, index)
    _details(out, contrast, index)
    if out.reason is None:
        out.p = float(contrast.p[index])
        out.details["p_conservative"] = float(contrast.conservative[index])
    else:
        out.p_equivalence = math.nan
    return out


def _obstacle(
    block: Block, index: int, groups: tuple[str, str], counts: Mapping[str, int]
) -> str | None:
    for group in groups:
        if counts[group] == 0:
            return f"no figure was measured in group '{group}'"
    for group in groups:
        if counts[group] == 1:
            return f"group '{group}' has one subject only"
    if not block.spread[index]:
        return "all values are equal: there is no spread to judge from"
    return None


def _rates(out: Finding, contrast: Contrast, index: int, alpha: float) -> None:
    rates, worth, estimates = [], [], []
    for group, side in zip(out.groups, (contrast.first, contrast.second), strict=True):
        rate, n = side.summary.mean[index], side.items[index]
        effective = float(side.effective[index])
        effective = effective if math.isfinite(effective) else 1.0
        low, high = wilson(np.array([rate]), np.array([effective]))
        rates.append(float(rate))
        worth.append(effective)
        estimates.append(
            GroupEstimate(group, out.n[group], int(n), float(rate), float(low[0]), float(high[0]))
        )
    out.estimates = tuple(estimates)
    (ra, rb), (na, nb) = rates, worth
    if contrast.paired is None:
        out.interval = newcombe(ra, na, rb, nb)
        margin = out.column.margin
        out.p_equivalence = tost_rates(ra, na, rb, nb, margin) if margin else math.nan
    else:
        _paired_bounds(out, contrast, index)
    harm = out.column.event_is_harm
    favourable = (1 - ra, 1 - rb) if harm else (ra, rb)
    ratio = impact_ratio(favourable[0], na, favourable[1], nb)
    out.details |= {
        "impact_ratio": _number(ratio.value), "impact_ratio_low": ratio.low, "impact_ratio_high": ratio.high,
        "favourable_event": f"not {out.column.event_text}" if harm else out.column.event_text,
        "risk_difference": out.effect,
    }  # fmt: skip


def _figures(out: Finding, contrast: Contrast, index: int) -> None:
    sides = (contrast.first, contrast.second)
    out.estimates = tuple(
        _estimate(g, s, index, out.column.metric) for g, s in zip(out.groups, sides, strict=True)
    )
    _paired_bounds(out, contrast, index)
    if contrast.paired is not None:
        d = contrast.paired[:, index]
        d = d[np.isfinite(d)]
        out.details["hodges_lehmann"] = _number(walsh_shift(d))
        out.details["cliffs_delta"] = float((d > 0).mean() - (d < 0).mean()) if len(d) else None
        return
    n, m = (len(s.values(index)) for s in sides)
    large = n * m > EXACT_PAIRS
    a, b = (s.few_values(index) if large else s.values(index) for s in sides)
    shift = shift_of(a, b, n, m)
    out.details |= {
        "hodges_lehmann": shift.value, "hodges_lehmann_low": shift.low,
        "hodges_lehmann_high": shift.high, "cliffs_delta": cliffs_delta(a, b),
    }  # fmt: skip


def _paired_bounds(out: Finding, contrast: Contrast, index: int) -> None:
    out.interval = (float(contrast.interval[0][index]), float(contrast.interval[1][index]))
    margin = out.column.margin
    if margin:
        out.p_equivalence = float(contrast.equivalence(np.full(len(contrast.p), margin))[index])


def _estimate(group: str, side: Side, index: int, metric: str) -> GroupEstimate:
    """The interval is cut at the ends of what the metric can be: no retention above 100 %."""
    known = facts(metric)
    low = max(float(side.low[index]), -math.inf if known.low is None else known.low)
    high = min(float(side.high[index]), math.inf if known.high is None else known.high)
    return GroupEstimate(
        group, int(side.summary.n[index]), int(side.items[index]),
        _number(side.summary.mean[index]), _number(low), _number(high),
    )  # fmt: skip


def _details(out: Finding, contrast: Contrast, index: int) -> None:
    sides = (contrast.first, contrast.second)
    effects = [float(s.design_effect[index]) for s in sides]
    usable = [e for e in effects if math.isfinite(e)]
    missing = [float(s.missing[index]) for s in sides]
    out.details |= {
        "method": contrast.method[index],
        "design": PAIRED if contrast.paired is not None else "between subjects",
        "design_effect": sum(usable) / len(usable) if usable else None,
        "missing_first": missing[0], "missing_second": missing[1],
        "left_out_subjects": float(contrast.left_out),
    }  # fmt: skip
    if sum(missing) > 0:
        low, high = _worst_case(out.column, sides, index)
        out.details |= {"worst_case_low": _number(low), "worst_case_high": _number(high)}


def _worst_case(column: Column, sides: tuple[Side, Side], index: int) -> tuple[float, float]:
    """The difference if every missing item had been as bad, or as good, as the scale allows.

    Scale: 0..1 for rates, the metric's range for figures, where it is open the range observed.
    """
    seen = np.concatenate([s.means[:, index] for s in sides])
    known = facts(column.metric)
    bottom = 0.0 if column.is_rate else known.low
    top = 1.0 if column.is_rate else known.high
    bottom = float(np.nanmin(seen)) if bottom is None else bottom
    top = float(np.nanmax(seen)) if top is None else top
    ends = []
    for side in sides:
        there, lost = float(side.items[index]), float(side.missing[index])
        mean = float(side.summary.mean[index])
        ends.append(tuple((mean * there + lost * end) / (there + lost) for end in (bottom, top)))
    return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
