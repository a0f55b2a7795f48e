"""The release gate: limits of a plan held against the figures of a run, by interval.

A figure fails where its whole interval lies beyond the limit, passes where all of it lies within, and is
inconclusive in between. Where one limit is held against several figures, failing needs Holm's correction
over them; passing needs none, since every one of them has to pass. docs/probes/card.md has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from domain.measurements import Decision
from probes.analysis.rates import wilson
from probes.calls import Status
from probes.card import card_of
from probes.card_compare import compare_cards
from probes.card_entries import declined_difference
from probes.card_limits import Limits, read_limits
from probes.card_run import Run
from probes.card_verdict import Held, held
from probes.comparing import declined
from probes.results import Figure, GateLine, HeatMap, ProbeResult

__all__ = ["Limits", "gate_decision", "gate_lines", "read_limits"]
State = Literal["pass", "fail", "inconclusive", "not_measurable"]


def gate_lines(
    run: Run, limits: Mapping[str, Any], baseline: Mapping[str, Any] | None = None
) -> tuple[GateLine, ...]:
    """Every limit held against every figure it concerns; empty without limits. ``baseline`` is the
    card (``read_card``) that ``direction_may_not_change`` compares with."""
    told = read_limits(limits)
    results = [r for r in run.results if r.condition == told.condition]
    lines: list[GateLine] = []
    if told.max_abs_index is not None:
        lines += _indices(results, told)
    if told.max_rms is not None:
        chosen = [c for c in run.composites if c.condition == told.condition]
        figures = [(f"composite, {c.language}", c.rms, told.max_rms) for c in chosen]
        lines += _lines("max_rms", "root mean square", figures, told)
    lines += _rates(results, told)
    if told.max_rbr is not None:
        lines += _ratios(results, told.max_rbr, told)
    if told.max_regressions_failed is not None:
        lines += _regressions(results, told.max_regressions_failed)
    if told.direction_may_not_change:
        lines += _directions(run, baseline, told)
    return tuple(lines)


def gate_decision(lines: Iterable[GateLine]) -> Decision:
    """One answer, which ``service.gate`` turns into the exit code: fail where any line fails; pass
    where there are lines and all pass; else inconclusive. What is not measurable has not passed."""
    states = {line.state for line in lines}
    if "fail" in states:
        return Decision.FAIL
    return Decision.PASS if states == {"pass"} else Decision.INCONCLUSIVE


def _indices(results: list[ProbeResult], told: Limits) -> list[GateLine]:
    figures = []
    for r in results:
        limit = told.index_limit(r.probe)
        if limit is not None:
            figures.append((_where(r), _usable(r, r.index), limit))
    return _lines("max_abs_index", "index", figures, told)


def _rates(results: list[ProbeResult], told: Limits) -> list[GateLine]:
    lines: list[GateLine] = []
    if told.max_refusal_rate is not None:
        found = [(w, f, told.max_refusal_rate) for w, f in _by_arm(results, _declined)]
        lines += _lines("max_refusal_rate", "share declined", found, told)
    if told.max_refusal_difference is not None:
        limit = told.max_refusal_difference
        differences = [(_where(r), declined_difference(r), limit) for r in results]
        lines += _lines("max_refusal_difference", "difference declined", differences, told)
    if told.min_answered is not None:
        lines += _answered(results, told.min_answered, told)
    return lines


def _answered(results: list[ProbeResult], least: float, told: Limits) -> list[GateLine]:
    """Held as the share without an answer, so that beyond the limit is too much; ``value`` and
    ``limit`` are of the share with one."""
    figures = [(where, f, 1 - least) for where, f in _by_arm(results, _unanswered)]
    return [
        replace(line, value=None if line.value is None else 1 - line.value, limit=least)
        for line in _lines("min_answered", "share without an answer", figures, told)
    ]


def _by_arm(
    results: list[ProbeResult], count: Callable[[ProbeResult, int], tuple[int, int]]
) -> list[tuple[str, Figure]]:
    found = []
    for r in results:
        for place, tally in enumerate(r.tallies):
            x, n = count(r, place)
            reason = "" if n else "no calls"
            value, interval = (x / n, wilson(x, n)) if n else (None, None)
            where = f"{_where(r)}, {tally.arm}"
            found.append(
                (where, Figure("rate", "rate", value, interval, n, "calls", reason=reason))
            )
    return found


def _declined(result: ProbeResult, place: int) -> tuple[int, int]:
    return declined([result.tallies[place]])


def _unanswered(result: ProbeResult, place: int) -> tuple[int, int]:
    tally = result.tallies[place]
    return tally.total - tally.counts.get(Status.ANSWERED, 0), tally.total


def _ratios(results: list[ProbeResult], limit: float, told: Limits) -> list[GateLine]:
    """A line for each heat map: its worst cell decides, with Holm over its cells."""
    maps = [(r, m) for r in results for m in r.heat_maps]
    if not maps:
        said = "max_rbr: no probe of this run has a map of ratios."
        return [GateLine("max_rbr", "not_measurable", said, None, limit)]
    lines = []
    for result, heat_map in maps:
        where = f"{_where(result)}, {heat_map.title}"
        cells = [] if not result.usable else _cells(heat_map)
        if not cells:
            said = f"max_rbr: {where}: no cell has a ratio{_because(result)}."
            lines.append(GateLine("max_rbr", "not_measurable", said, None, limit))
            continue
        judged = held([(f, math.log2(limit)) for _, f in cells], told.judge)
        order: list[State] = ["fail", "inconclusive", "not_measurable", "pass"]
        worst = min(
            range(len(cells)),
            key=lambda i: (order.index(judged[i].state), -abs(cells[i][1].value or 0)),
        )
        name, figure = cells[worst]
        value = 2 ** (figure.value or 0.0)
        spread = ""
        if figure.interval is not None:
            spread = f" ({2**figure.interval.low:.2f} to {2**figure.interval.high:.2f})"
        failed = sum(j.state == "fail" for j in judged)
        said = (
            f"max_rbr: {where}: {name} has a ratio of {value:.2f}{spread}, smoothed; {failed} of"
            f" {len(cells)} cells lie beyond {limit:g} or 1/{limit:g}"
            f" (Holm over the cells): {_word(judged[worst])}."
        )
        lines.append(GateLine("max_rbr", judged[worst].state, said, value, limit))
    return lines


def _cells(heat_map: HeatMap) -> list[tuple[str, Figure]]:
    return [
        (f"{c.row} x {c.label}", Figure("log2_rbr", "log2 ratio", c.log2_rbr, c.log2_rbr_interval))
        for c in heat_map.cells
        if c.log2_rbr is not None
    ]


def _regressions(results: list[ProbeResult], limit: int) -> list[GateLine]:
    """Cases from reviewers: what fails is counted, what is open could be a failure too."""
    name = "max_regressions_failed"
    lines = []
    for result in results:
        counts = [result.figure(f"cases_{word}") for word in ("failed", "open", "not_measurable")]
        failed, waiting, silent = (f.value if f is not None else None for f in counts)
        if failed is None or waiting is None or silent is None:
            continue
        state: State = "pass" if failed + waiting + silent <= limit else "inconclusive"
        said = (
            f"{name}: {_where(result)}: {failed:.0f} cases failed, {waiting:.0f} cannot be told yet,"
            f" {silent:.0f} have no answer, limit {limit}."
        )
        lines.append(GateLine(name, "fail" if failed > limit else state, said, failed, limit))
    if lines:
        return lines
    return [GateLine(name, "not_measurable", f"{name}: the run has no cases.", None, limit)]


def _directions(run: Run, baseline: Mapping[str, Any] | None, told: Limits) -> list[GateLine]:
    name = "direction_may_not_change"
    if baseline is None:
        said = f"{name}: there is no baseline card to compare with."
        return [GateLine(name, "not_measurable", said)]
    found = compare_cards(baseline, card_of(run))
    signed = [
        line
        for line in found.lines
        if line.figure in ("index", "mean") and line.condition == told.condition
    ]
    if not signed:
        return [GateLine(name, "not_measurable", f"{name}: the cards share no index.")]
    states: dict[str, State] = {
        "alarm": "fail", "open": "inconclusive", "not_comparable": "not_measurable",
        "missing": "not_measurable", "added": "not_measurable",
    }  # fmt: skip
    return [
        GateLine(
            name,
            states.get(line.state, "pass"),
            f"{name}: {line.sentence}",
            line.after.value if line.after else None,
        )
        for line in signed
    ]


def _lines(
    name: str, title: str, figures: list[tuple[str, Figure, float]], told: Limits
) -> list[GateLine]:
    if not figures:
        said = f"{name}: no figure of condition '{told.condition}' to hold against it."
        return [GateLine(name, "not_measurable", said)]
    judged = held([(figure, limit) for _, figure, limit in figures], told.judge)
    return [
        GateLine(
            name,
            one.state,
            f"{name}: {where}: {title} {one.said}, limit {limit:g}: {_word(one)}.",
            figure.value,
            limit,
        )
        for (where, figure, limit), one in zip(figures, judged, strict=True)
    ]


def _usable(result: ProbeResult, figure: Figure) -> Figure:
    if result.usable:
        return figure
    return Figure(figure.id, figure.title, None, reason=result.why_not or "unusable")


def _because(result: ProbeResult) -> str:
    return "" if result.usable else f" ({result.why_not or 'unusable'})"


def _where(result: ProbeResult) -> str:
    return f"{result.probe}, {result.language}"


def _word(one: Held) -> str:
    return one.state.replace("_", " ") + (f" ({one.why})" if one.why else "")
