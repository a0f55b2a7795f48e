"""A finding in plain words: the harm, the groups, the size and how sure. No verdict on a tool."""

from __future__ import annotations

import math

from domain.measurements import FACE_REGION
from domain.verdicts import GroupEstimate, Verdict, VerdictKind
from metrics.statistics.columns import Column
from metrics.statistics.facts import OUTCOME_WORDS, badness, facts


def sentence(verdict: Verdict, column: Column) -> str:
    """One or two sentences for a person who will act on it."""
    head = f"{_where(verdict)}{_harm(column)}"
    if verdict.effect is None or len(verdict.estimates) < 2:
        return f"{head} by {verdict.attribute}: cannot be settled; {verdict.reason}."
    sizes = ", ".join(_group(e, column) for e in verdict.estimates)
    gap = _gap(verdict, column)
    tail = _tail(verdict, column)
    return f"{head}: {sizes}; {gap}. {tail}"


def worse_group(estimates: tuple[GroupEstimate, ...], column: Column) -> str | None:
    """The group that is harmed more by its estimate; None where they agree."""
    if len(estimates) != 2 or any(e.estimate is None for e in estimates):
        return None
    bad = []
    for e in estimates:
        value = e.estimate if e.estimate is not None else 0.0
        if column.is_rate:
            bad.append(value if column.event_is_harm else -value)
        else:
            bad.append(badness(column.metric, value))
    if bad[0] == bad[1]:
        return None
    return estimates[0].group if bad[0] > bad[1] else estimates[1].group


def _where(verdict: Verdict) -> str:
    parts = [p for p in (verdict.tool, verdict.task) if p]
    return ", ".join(parts) + ": " if parts else ""


def _harm(column: Column) -> str:
    if column.outcome is not None:
        return OUTCOME_WORDS.get(column.outcome, column.outcome)
    known = facts(column.metric)
    name = known.name.split(" (", maxsplit=1)[0]
    place = "" if column.region == FACE_REGION else f", {column.region.replace('_', ' ')}"
    if column.event is not None:
        unit = f" {known.unit}" if known.unit else ""
        return f"{name}{place} {column.event} {column.threshold:g}{unit}"
    return f"{known.harm} ({name}{place})" if known.harm != known.name else name + place


def _group(estimate: GroupEstimate, column: Column) -> str:
    if estimate.estimate is None:
        return f"{estimate.group} without a figure"
    if column.is_rate:
        value = f"{100 * estimate.estimate:.0f} % of {estimate.group}"
        scale = 100.0
    else:
        value = f"{estimate.group} {with_unit(estimate.estimate, column)}"
        scale = 1.0
    if estimate.low is None or estimate.high is None:
        return f"{value} (n {estimate.n})"
    low, high = (
        number(estimate.low * scale, column.is_rate),
        number(estimate.high * scale, column.is_rate),
    )
    return f"{value} (95 % {low} to {high}, n {estimate.n})"


def _gap(verdict: Verdict, column: Column) -> str:
    if verdict.effect is None:
        return "no difference can be given"
    scale = 100.0 if column.is_rate else 1.0
    size = (
        f"{number(100 * verdict.effect, True)} percentage points"
        if column.is_rate
        else with_unit(verdict.effect, column)
    )
    text = f"{verdict.groups[0]} minus {verdict.groups[1]} {size}"
    if verdict.interval is None:
        return text
    low, high = (number(scale * v, column.is_rate) for v in verdict.interval)
    return f"{text} (95 % {low} to {high})"


def _tail(verdict: Verdict, column: Column) -> str:
    worse = worse_group(verdict.estimates, column)
    if verdict.verdict is VerdictKind.DISPARITY:
        harmed = f"Harmed more: {worse}" if worse else "The groups differ"
        return f"{harmed}; adjusted p {p_text(verdict.p_adjusted)}."
    margin = _margin(verdict, column)
    if verdict.verdict is VerdictKind.EQUIVALENT:
        return f"Shown to lie within the margin of {margin}."
    why = f"Not settled: {verdict.reason}" if verdict.reason else "Not settled"
    if verdict.needed_n is not None:
        return f"{why}; about {verdict.needed_n:,} subjects a group would settle a difference of {margin}."
    return f"{why}."


def _margin(verdict: Verdict, column: Column) -> str:
    if verdict.margin is None:
        return "no margin"
    if column.is_rate:
        return f"{number(100 * verdict.margin, True)} percentage points"
    return with_unit(verdict.margin, column)


def with_unit(value: float, column: Column) -> str:
    """A figure with the metric's unit."""
    unit = facts(column.metric).unit
    return f"{number(value)} {unit}" if unit else number(value)


def number(value: float, whole: bool = False) -> str:
    """As many digits as a reader can use; a real minus sign."""
    size = abs(value)
    if not math.isfinite(value):
        return "unknown"
    if whole and size >= 1:
        digits = 0
    else:
        digits = 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 4
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) != 0 else text.lstrip("-")


def p_text(p: float | None) -> str:
    """A p-value for a sentence."""
    if p is None:
        return "not available"
    return "below 0.001" if p < 0.001 else f"{p:.3f}"
