"""A finding in plain words: the harm, the groups, the size and how sure. No verdict on a tool."""

from __future__ import annotations

import math

from domain.measurements import FACE_REGION
from domain.verdicts import GroupEstimate, Verdict, VerdictKind
from metrics.statistics.columns import Column
from metrics.statistics.facts import OUTCOME_WORDS, badness, facts, is_known


def sentence(verdict: Verdict, column: Column) -> str:
    """One or two sentences for a person who will act on it."""
    head = f"{_where(verdict)}{_harm(column)}"
    if verdict.effect is None or len(verdict.estimates) < 2:
        return f"{head} by {verdict.attribute}: cannot be settled; {verdict.reason}."
    digits = _digits(verdict, 100.0 if column.is_rate else 1.0)
    sizes = ", ".join(_group(e, column, digits) for e in verdict.estimates)
    return f"{head}: {sizes}; {_gap(verdict, column, digits)}. {_tail(verdict, column)}"


def _digits(verdict: Verdict, scale: float) -> int:
    """Decimals that the interval's width makes worth reading, the same for the whole sentence."""
    if verdict.interval is None or verdict.effect is None:
        return 2
    half = scale * (verdict.interval[1] - verdict.interval[0]) / 2 or abs(scale * verdict.effect)
    return min(max(math.ceil(-math.log10(half / 3)), 0), 6) if half > 0 else 1


def worse_group(estimates: tuple[GroupEstimate, ...], column: Column) -> str | None:
    """The group that is harmed more by its estimate; None where they agree."""
    if len(estimates) != 2 or any(e.estimate is None for e in estimates):
        return None
    bad = []
    for e in estimates:
        value = e.estimate if e.estimate is not None else 0.0
        if not column.is_rate and not is_known(column.metric):
            return None  # which way is harm is not declared: no group is named as the harmed one
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


def _group(estimate: GroupEstimate, column: Column, digits: int) -> str:
    if estimate.estimate is None:
        return f"{estimate.group} without a figure"
    scale = 100.0 if column.is_rate else 1.0
    size = number(scale * estimate.estimate, digits)
    unit = f" {facts(column.metric).unit}".rstrip()
    value = f"{size} % of {estimate.group}" if column.is_rate else f"{estimate.group} {size}{unit}"
    if estimate.low is None or estimate.high is None:
        return f"{value} (n {estimate.n})"
    low, high = (number(scale * v, digits) for v in (estimate.low, estimate.high))
    return f"{value} (95 % {low} to {high}, n {estimate.n})"


def _gap(verdict: Verdict, column: Column, digits: int) -> str:
    scale = 100.0 if column.is_rate else 1.0
    unit = " percentage points" if column.is_rate else f" {facts(column.metric).unit}".rstrip()
    size = number(scale * (verdict.effect or 0.0), digits)
    text = f"{verdict.groups[0]} minus {verdict.groups[1]} {size}{unit}"
    if verdict.interval is None:
        return text
    low, high = (number(scale * v, digits) for v in verdict.interval)
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
        return f"{100 * verdict.margin:g} percentage points"
    return f"{verdict.margin:g} {facts(column.metric).unit}".rstrip()


def number(value: float, digits: int = 2) -> str:
    """A figure with a real minus sign, and without a minus before a zero."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) != 0 else text.lstrip("-")


def p_text(p: float | None) -> str:
    """A p-value for a sentence."""
    if p is None:
        return "not available"
    return "below 0.001" if p < 0.001 else f"{p:.3f}"
