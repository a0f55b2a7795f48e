"""The parts of a card: figures and results as plain data, and what a figure depends on.

A figure of one run is held against one of another only where both were asked alike. What "alike" covers
is the ``design`` of each result: settings, sampling, words of the condition, versions of its data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import stdev
from typing import Any

from domain.errors import LikenessError
from probes.analysis.rates import newcombe, wilson
from probes.calls import PLAIN, Status
from probes.comparing import declined
from probes.mitigation import condition_of
from probes.results import Composite, Figure, GateLine, Interval, ProbeResult, TestResult

REFUSAL_TESTS = ("refusal_difference", "refusals", "declined_difference")
"""Ids by which probes ask whether one arm is declined more often."""
SAMPLING = ("temperature", "top_p", "max_tokens", "seed")
"""Parameters that decide what is drawn: where a server did not take one, that is part of the design."""


def figure_entry(figure: Figure) -> dict[str, Any]:
    """A figure as plain data; None and a reason where it is no finite number."""
    value, reason = _finite(figure.value), figure.reason
    if value is None and not reason:
        reason = "not a finite number" if figure.value is not None else "not said"
    interval = figure.interval
    low, high = (
        (None, None) if interval is None else (_finite(interval.low), _finite(interval.high))
    )
    whole = value is not None and low is not None and high is not None
    return {
        "id": figure.id,
        "title": figure.title,
        "value": value,
        "low": low if whole else None,
        "high": high if whole else None,
        "method": interval.method if interval is not None and whole else None,
        "level": interval.level if interval is not None and whole else None,
        "n": figure.n,
        "units": figure.units,
        "unit": figure.unit,
        "sd": _finite(figure.sd),
        "reason": reason,
        "note": figure.note,
    }


def figure_of(entry: Mapping[str, Any]) -> Figure:
    """The figure that ``figure_entry`` wrote."""
    interval = None
    if entry.get("low") is not None:
        interval = Interval(entry["low"], entry["high"], entry["method"], entry["level"])
    return Figure(
        entry["id"], entry["title"], entry["value"], interval, entry["n"], entry["units"],
        entry["unit"], entry["sd"], entry["reason"], entry["note"],
    )  # fmt: skip


def result_entry(
    result: ProbeResult, plan: Mapping[str, Any], dropped: Sequence[str]
) -> dict[str, Any]:
    """One probe in one language under one condition."""
    index = figure_entry(result.index)
    index["sd"] = index["sd"] if index["sd"] is not None else _spread(result.by_repeat)
    return {
        "probe": result.probe,
        "title": result.title,
        "question": result.question,
        "language": result.language,
        "condition": result.condition,
        "axis": result.axis,
        "index_means": list(result.index_means),
        "usable": result.usable,
        "why_not": result.why_not,
        "index": index,
        "by_repeat": [_finite(v) for v in result.by_repeat],
        "arms": {t.arm: _arm(t.counts, t.total) for t in result.tallies},
        "declined": figure_entry(declined_rate(result)),
        "declined_difference": figure_entry(declined_difference(result)),
        "tests": [_test(t) for t in result.tests],
        "notices": list(result.notices),
        "design": design(result, plan, dropped),
    }


def design(result: ProbeResult, plan: Mapping[str, Any], dropped: Sequence[str]) -> dict[str, Any]:
    """What the figures of ``result`` depend on beside the model."""
    chosen: Mapping[str, Any] = next(
        (p for p in plan.get("probes", ()) if result.probe in (p.get("name"), p.get("id"))), {}
    )
    return {
        "seed": plan.get("seed"),
        "repeats": plan.get("repeats"),
        "settings": plain(chosen.get("settings") or {}),
        "sampling": plain({k: v for k, v in (plan.get("sampling") or {}).items() if v is not None}),
        "not_taken": sorted(set(dropped) & set(SAMPLING)),
        "condition": _condition(result, plan),
        "arms": list(result.arms),
        "axis": result.axis,
        "versions": {str(k): str(v) for k, v in sorted(result.versions.items())},
    }


def declined_rate(result: ProbeResult) -> Figure:
    """Share of all calls that the model refused or a filter stopped, with Wilson's interval."""
    x, n = declined(result.tallies)
    if n == 0:
        return Figure("declined", "Declined", None, units="calls", reason="no calls")
    return Figure("declined", "Declined", x / n, wilson(x, n), n, "calls")


def declined_difference(result: ProbeResult) -> Figure:
    """Share declined in the first arm less that in the second, in [-1, 1].

    As the probe's own question about refusals has it, whose interval knows what was drawn (names,
    templates); else over calls, with Newcombe's interval.
    """
    name, title = "declined_difference", "Declined, difference of the arms"
    for test in result.tests:
        whole = test.effect.value is not None and test.effect.interval is not None
        if test.id in REFUSAL_TESTS and test.groups == result.arms[:2] and whole:
            return replace(test.effect, id=name, title=f"Declined, {' less '.join(test.groups)}")
    arms = {t.arm: t for t in result.tallies}
    pair = [arms[a] for a in result.arms[:2] if a in arms]
    if len(pair) < 2:
        return Figure(name, title, None, units="calls", reason="there are no two arms")
    (xa, na), (xb, nb) = (declined([t]) for t in pair)
    if na == 0 or nb == 0:
        return Figure(name, title, None, units="calls", reason="an arm has no calls")
    title = f"Declined, {pair[0].arm} less {pair[1].arm}"
    return Figure(name, title, xa / na - xb / nb, newcombe(xa, na, xb, nb), min(na, nb), "calls")


def composite_entry(composite: Composite) -> dict[str, Any]:
    """A composite with its parts."""
    return {
        "language": composite.language,
        "condition": composite.condition,
        "mean": figure_entry(composite.mean),
        "rms": figure_entry(composite.rms),
        "direction": composite.direction,
        "means": list(composite.means),
        "parts": [
            {
                "probe": p.probe,
                "sign": p.sign,
                "weight": p.weight,
                "value": _finite(p.value),
                "reason": p.reason,
            }
            for p in composite.parts
        ],
    }


def gate_entry(line: GateLine) -> dict[str, Any]:
    """One limit with what came of it."""
    return {
        "id": line.id,
        "state": line.state,
        "value": _finite(line.value),
        "limit": _finite(line.limit),
        "sentence": line.sentence,
    }


def _test(test: TestResult) -> dict[str, Any]:
    return {
        "id": test.id,
        "question": test.question,
        "groups": list(test.groups),
        "verdict": str(test.verdict),
        "effect": figure_entry(test.effect),
        "p_value": _finite(test.p_value),
        "p_adjusted": _finite(test.p_adjusted),
        "method": test.method,
        "correction": test.correction,
        "family": test.family,
        "margin": _finite(test.margin),
        "sentence": test.sentence,
    }


def _arm(counts: Mapping[Status, int], total: int) -> dict[str, Any]:
    return {
        "calls": total,
        "counts": {str(s): counts.get(s, 0) for s in Status},
        "rates": {str(s): counts.get(s, 0) / total if total else None for s in Status},
    }


def _condition(result: ProbeResult, plan: Mapping[str, Any]) -> str:
    """Sha256 of the words and parameters of the condition; its name where it cannot be made."""
    if result.condition == PLAIN:
        return PLAIN
    for choice in plan.get("conditions", ()):
        name = choice if isinstance(choice, str) else choice.get("id")
        if name == result.condition:
            try:
                return condition_of(choice, result.language).digest
            except LikenessError:
                break
    return result.condition


def _spread(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None and math.isfinite(v)]
    return stdev(known) if len(known) > 1 else None


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def plain(value: object) -> Any:
    """What JSON can hold, with other things as text."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [
            plain(v)
            for v in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)
        ]
    if isinstance(value, float):
        return _finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
