"""How evenly error rates fall on the groups: a summary in the manner of ISO/IEC 19795-10.

Each error is a rate by group with GARBE (Gini aggregation rate, ``metrics.statistics.garbe``): 0
where every group has the same rate, 1 where all errors fall on one group. GARBE grows by chance
where errors are few (a single error gives 1), so what random group labels would give stands beside
it. Rates describe; whether a difference is shown is the verdicts' business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from domain.measurements import Decision, Outcome
from metrics.statistics import garbe
from service.report.groups import MIN_PEOPLE, Grouping, ordered
from service.report.model import ItemRow, RunData, is_adversarial
from service.report.tables import tool_order
from service.report.wording import UNKNOWN

FTA = "failure_to_acquire"
GATE = "gate_failed"
ERRORS: dict[str, tuple[str, str]] = {
    FTA: ("no face acquired", "originals that were rejected or show no face to the instrument"),
    "face_lost": ("face lost", "requests whose result shows no face any more"),
    "refused": ("refused", "requests that the tool would not do"),
    "failed": (
        "no usable result",
        "requests that ended in a failure, a blank or unreadable picture",
    ),
    GATE: ("failed the health gate", "requests with a health score that is a pass or a fail"),
}
"""Label and meaning of each error; the last one's meaning names its denominator."""
_OUTCOMES = {
    "face_lost": {Outcome.FACE_LOST},
    "refused": {Outcome.REFUSED},
    "failed": {Outcome.FAILED, Outcome.BLANK, Outcome.EDITED_UNREADABLE},
}
DEALS = 200
"""Random allotments of group labels to people behind ``chance``."""


@dataclass(frozen=True)
class GroupRate:
    """``errors`` out of ``of`` originals or requests of ``people`` people."""

    group: str
    people: int
    errors: int
    of: int

    @property
    def rate(self) -> float | None:
        """0..1; None where nothing was counted."""
        return self.errors / self.of if self.of else None


@dataclass(frozen=True)
class ErrorRate:
    """One error of one tool ("" for the instrument's own, on originals) over the groups.

    ``groups`` are those with at least five people of known group; ``left_out`` maps the others to
    their people. ``garbe`` is 0..1 and ``gap`` the largest difference of two rates, from ``lowest``
    to ``highest``; ``chance`` is the GARBE that 95 % of random allotments of the labels stay within.
    All None, with ``reason``, where fewer than two groups are left.
    """

    attribute: str
    tool: str
    error: str
    groups: tuple[GroupRate, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    garbe: float | None = None
    chance: float | None = None
    gap: float | None = None
    highest: str = ""
    lowest: str = ""
    reason: str | None = None

    @property
    def errors(self) -> int:
        """In all groups that take part."""
        return sum(g.errors for g in self.groups)

    @property
    def beyond_chance(self) -> bool:
        """More uneven than 95 % of random allotments."""
        return self.garbe is not None and self.chance is not None and self.garbe > self.chance


_Cells = dict[tuple[str, str], list[int]]
"""(subject, group) to [errors, originals or requests]: people are the unit, repeats stay together."""


def equitability(data: RunData, groups: Grouping, attribute: str) -> list[ErrorRate]:
    """The instrument's failure to acquire, then each tool's four errors; controls are left out.
    Counts the items of the main statistics; originals of the adversarial set are not in it."""
    rng = np.random.default_rng(data.plan.seed)
    found = [_rate(attribute, "", FTA, _originals(data, groups, attribute), rng)]
    counted = data.counted
    for tool, control in tool_order(data):
        if not control:
            items = [i for i in counted if i.tool == tool]
            cells = _requests(items, groups, attribute, data.plan.profile)
            found += [_rate(attribute, tool, error, cells[error], rng) for error in cells]
    return found


def equitability_json(data: RunData, groups: Grouping) -> dict[str, list[dict[str, Any]]]:
    """Every planned attribute's rows for report.json; rates are null where nothing was counted."""
    return {a: [_entry(r) for r in equitability(data, groups, a)] for a in planned(groups)}


def equitability_tables(
    data: RunData, groups: Grouping
) -> list[tuple[str, list[ErrorRate], list[str]]]:
    """(attribute, rows with an error in some group, "error: tools" that nobody met) for the page."""
    tables = []
    for attribute in planned(groups):
        rows = equitability(data, groups, attribute)
        unmet = {e: [r.tool for r in rows if r.error == e and not r.errors] for e in ERRORS}
        texts = [f"{ERRORS[e][0]} ({', '.join(t) or 'originals'})" for e, t in unmet.items() if t]
        tables.append((attribute, [r for r in rows if r.errors], texts))
    return tables


def planned(groups: Grouping) -> list[str]:
    """The attributes that the plan groups by and the portraits declare."""
    return [a for a in groups.planned if a in groups.names]


def _entry(row: ErrorRate) -> dict[str, Any]:
    entry = asdict(row)
    entry["groups"] = [asdict(g) | {"rate": g.rate} for g in row.groups]
    entry["beyond_chance"] = row.beyond_chance if row.chance is not None else None
    return entry


# Counting ------------------------------------------------------------------------------------


def _originals(data: RunData, groups: Grouping, attribute: str) -> _Cells:
    cells: _Cells = {}
    for row in data.instrument:
        if not is_adversarial(row.attributes):
            cell = cells.setdefault((row.subject_id, groups.of(row, attribute)), [0, 0])
            cell[0] += not (row.accepted and row.face_found)
            cell[1] += 1
    return cells


def _requests(
    items: Sequence[ItemRow], groups: Grouping, attribute: str, profile: str
) -> dict[str, _Cells]:
    found: dict[str, _Cells] = {error: {} for error in ERRORS if error != FTA}
    for item in items:
        who = (item.subject_id, groups.of(item, attribute))
        for error, outcomes in _OUTCOMES.items():
            cell = found[error].setdefault(who, [0, 0])
            cell[0] += item.outcome in outcomes
            cell[1] += 1
        health = item.health.get(profile)
        if health is not None and health.decision is not Decision.INCONCLUSIVE:
            cell = found[GATE].setdefault(who, [0, 0])
            cell[0] += health.decision is Decision.FAIL
            cell[1] += 1
    return found


def _rate(
    attribute: str, tool: str, error: str, cells: _Cells, rng: np.random.Generator
) -> ErrorRate:
    people, errors, of = Counter[str](), Counter[str](), Counter[str]()
    for (_, group), (failed, asked) in cells.items():
        people[group] += 1
        errors[group] += failed
        of[group] += asked
    kept = [g for g in ordered(people) if people[g] >= MIN_PEOPLE and g != UNKNOWN]
    out = {g: people[g] for g in ordered(people) if g not in kept}
    rates = tuple(GroupRate(g, people[g], errors[g], of[g]) for g in kept)
    if len(kept) < 2:
        reason = f"fewer than two groups with {MIN_PEOPLE} people or more"
        return ErrorRate(attribute, tool, error, rates, out, reason=reason)
    low, high = (f(rates, key=lambda r: r.rate or 0.0) for f in (min, max))
    gap = (high.rate or 0.0) - (low.rate or 0.0)
    return ErrorRate(
        attribute, tool, error, rates, out,
        garbe([r.rate or 0.0 for r in rates]), _by_chance(cells, rates, rng),
        gap, high.group if gap else "", low.group if gap else "",
    )  # fmt: skip


def _by_chance(cells: _Cells, rates: Sequence[GroupRate], rng: np.random.Generator) -> float:
    """The 95th percentile of GARBE when group labels are dealt to people at random.

    A person keeps all own requests together. People with the same counts are alike, so each such
    class is dealt over the groups' free places at once (multivariate hypergeometric).
    """
    kept = {r.group for r in rates}
    classes = Counter((failed, of) for (_, g), (failed, of) in cells.items() if g in kept)
    if not any(failed for failed, _ in classes):
        return 0.0
    sizes = np.array([r.people for r in rates], dtype=np.int64)
    return float(np.quantile([_dealt(classes, sizes, rng) for _ in range(DEALS)], 0.95))


def _dealt(
    classes: Mapping[tuple[int, int], int], sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> float:
    free = sizes.copy()
    errors, of = np.zeros(len(sizes)), np.zeros(len(sizes))
    for (failed, asked), people in classes.items():
        dealt = rng.multivariate_hypergeometric(free, people)
        free -= dealt
        errors += failed * dealt
        of += asked * dealt
    return garbe((errors / np.maximum(of, 1)).tolist())
