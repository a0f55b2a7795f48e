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
from service.report.model import InstrumentRow, ItemRow, RunData
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


@dataclass(frozen=True)
class _Count:
    """What one error counts over: (subject, group, happened) of every original or request."""

    tool: str
    error: str
    events: Sequence[tuple[str, str, bool]]


def equitability(data: RunData, groups: Grouping, attribute: str) -> list[ErrorRate]:
    """The instrument's failure to acquire, then each tool's four errors; controls are left out."""
    counts = list(_counts(data, groups, attribute))
    rng = np.random.default_rng(data.plan.seed)
    return [_rate(attribute, count, rng) for count in counts]


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


def _counts(data: RunData, groups: Grouping, attribute: str) -> list[_Count]:
    def of(row: ItemRow | InstrumentRow, happened: bool) -> tuple[str, str, bool]:
        return row.subject_id, groups.of(row, attribute), happened

    profile = data.plan.profile
    originals = [of(r, not (r.accepted and r.face_found)) for r in data.instrument]
    found = [_Count("", FTA, originals)]
    for tool, control in tool_order(data):
        if control:
            continue
        items = [i for i in data.items if i.tool == tool]
        for error, outcomes in _OUTCOMES.items():
            found.append(_Count(tool, error, [of(i, i.outcome in outcomes) for i in items]))
        judged = [
            (i, i.health[profile].decision)
            for i in items
            if profile in i.health and i.health[profile].decision is not Decision.INCONCLUSIVE
        ]
        found.append(_Count(tool, GATE, [of(i, d is Decision.FAIL) for i, d in judged]))
    return found


def _rate(attribute: str, count: _Count, rng: np.random.Generator) -> ErrorRate:
    people = {(subject, group) for subject, group, _ in count.events}
    sizes = Counter(group for _, group in people)
    kept = [g for g in ordered(sizes) if sizes[g] >= MIN_PEOPLE and g != UNKNOWN]
    out = {g: sizes[g] for g in ordered(sizes) if g not in kept}
    rates = []
    for group in kept:
        happened = [h for _, g, h in count.events if g == group]
        rates.append(GroupRate(group, sizes[group], sum(happened), len(happened)))
    if len(kept) < 2:
        reason = f"fewer than two groups with {MIN_PEOPLE} people or more"
        return ErrorRate(attribute, count.tool, count.error, tuple(rates), out, reason=reason)
    by_rate = sorted(rates, key=lambda r: r.rate or 0.0)
    low, high = by_rate[0], by_rate[-1]
    gap = (high.rate or 0.0) - (low.rate or 0.0)
    return ErrorRate(
        attribute, count.tool, count.error, tuple(rates), out,
        garbe([r.rate or 0.0 for r in rates]), _by_chance(count, kept, rng),
        gap, high.group if gap else "", low.group if gap else "",
    )  # fmt: skip


def _by_chance(count: _Count, kept: Sequence[str], rng: np.random.Generator) -> float:
    """The 95th percentile of GARBE when group labels are dealt to people at random.

    A person keeps all own requests together. People with the same counts are alike, so each such
    class is dealt over the groups' free places at once (multivariate hypergeometric).
    """
    per: dict[tuple[str, str], list[int]] = {}
    for subject, group, happened in count.events:
        if group in kept:
            cell = per.setdefault((subject, group), [0, 0])
            cell[0] += happened
            cell[1] += 1
    classes = Counter((errors, of) for errors, of in per.values())
    if not any(errors for errors, _ in classes):
        return 0.0
    places = Counter(group for _, group in per)
    sizes = np.array([places[g] for g in kept], dtype=np.int64)
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
