"""What the results of a probe run come to together: composite indices, before and after, the limits of
the plan, costs, and the card that is kept for the next run to be compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from probes import card, costs
from probes.analysis.composite import composites
from probes.card_gate import gate_lines
from probes.comparing import before_after
from probes.mitigation import UNALIGNED
from service.probe_plans import LoadedProbePlan
from service.probe_questions import Answer
from service.report.files import to_json
from service.report.probe_card import card_html
from service.report.probe_model import ProbeRun


def complete(run: ProbeRun, loaded: LoadedProbePlan, answers: Sequence[Answer]) -> ProbeRun:
    """``run`` with all that follows from its results. A composite index takes the probes that are
    made for one; what a model can be made to say stands in none."""
    planned = _planned(loaded)
    labels = {label for some in planned.values() for label in some}
    inside = [r for r in run.results if r.probe in labels and r.condition != UNALIGNED]
    readings = [replace(a.reading, call=a.question.asked) for a in answers]
    run = replace(
        run,
        composites=composites(inside, loaded.plan.composite.weights, planned),
        before_after=before_after(run.results, readings, run.seed),
        costs=costs.cost_lines(run.results, loaded.plan.costs),
    )
    return replace(run, gate=gate_lines(run, loaded.plan.gate.limits, baseline_of(loaded)))


def _planned(loaded: LoadedProbePlan) -> dict[str, list[str]]:
    """By language, the probes that a composite index is of: one that could not be run is missed."""
    found: dict[str, list[str]] = {}
    for part in loaded.parts:
        for language in part.languages if part.spec.in_composite else ():
            found.setdefault(language, []).append(part.label)
    return found


def cards(run: ProbeRun, loaded: LoadedProbePlan) -> dict[str, bytes]:
    """The run's card, for machines and for people."""
    made = card.card_of(run, baseline_of(loaded))
    return {"card.json": to_json(made), "card.html": card_html(made).encode()}


def baseline_of(loaded: LoadedProbePlan) -> Mapping[str, Any] | None:
    """The card that the plan names. Raises LikenessError in one line for what is none."""
    return None if loaded.baseline is None else card.read_card(loaded.baseline)


def condition_notices(loaded: LoadedProbePlan) -> tuple[str, ...]:
    """What a report must say of the conditions, each sentence once."""
    languages = {language for part in loaded.parts for language in part.languages}
    said = [c.notice for language in sorted(languages) for c in loaded.conditions(language)]
    return tuple(dict.fromkeys(notice for notice in said if notice))
