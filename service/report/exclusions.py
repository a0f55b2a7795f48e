"""What is not in the main statistics, and why: by cleaning level, rule and group; nothing is dropped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from domain.measurements import Outcome
from service.report.groups import Grouping
from service.report.model import Place, RunData
from service.report.wording import OUTCOME_LABELS

LEVELS: dict[Place, str] = {
    Place.NO_ANSWER: "level 1, mechanical",
    Place.NOT_JUDGED: "level 2, instrument",
    Place.CONFLICT: "level 2, conflict",
    Place.REVIEWED_OUT: "level 3, human",
    Place.ADVERSARIAL: "adversarial set",
    Place.MAIN: "none",
}
"""The words for each place, in the order of the rules."""
LEAVES: dict[Place, str] = {
    Place.NO_ANSWER: "Gives no figure, so it leaves every figure and every rate of a figure. It stays in the rates of outcomes, in the pass rate, and as a missing item in worst-case bounds.",
    Place.NOT_JUDGED: "Leaves and stays in the same statistics as level 1.",
    Place.CONFLICT: "Leaves every statistic of this report; it is a set of its own, counted here, its pictures and figures kept.",
    Place.REVIEWED_OUT: "Leaves every statistic of this report; its pictures and figures are kept.",
    Place.ADVERSARIAL: "In no statistic of this report; run, measured, counted here and sent to the review list.",
    Place.MAIN: "In every statistic of this report.",
}
"""Which statistics an item of each place leaves."""
NOTHING = "nothing excluded"
SET_ASIDE = tuple(p for p in LEVELS if p is not Place.MAIN)


@dataclass(frozen=True)
class ReasonRow:
    """One rule, reason or warning with its count in every group. ``level`` is the cleaning level in
    words for a rule of the cleaning, "" for what is only told beside it."""

    kind: str
    reason: str
    total: int
    by_group: Mapping[str, int]
    level: str = ""


def exclusions(data: RunData, groups: Grouping, attribute: str) -> list[ReasonRow]:
    """The cleaning's rules first, then why items have no figures, and what was warned of, counted
    by group; most frequent first."""
    counted: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in data.instrument:
        group = groups.of(row, attribute)
        if not row.accepted or not row.face_found:
            kind = "original, no face found" if row.accepted else "original rejected"
            counted[kind, row.reason or "no reason given"][group] += 1
        for text in row.warnings:
            counted["warning, original", text][group] += 1
    for item in data.items:
        group = groups.of(item, attribute)
        if item.outcome is not Outcome.MEASURED:
            reason = item.reason or "no reason given"
            counted[f"item, {OUTCOME_LABELS[item.outcome]}", reason][group] += 1
        for text in item.warnings:
            counted["warning, item", text][group] += 1
    rows = [ReasonRow(k, r, sum(c.values()), c) for (k, r), c in counted.items()]
    rows.sort(key=lambda r: (r.kind.startswith("warning"), -r.total, r.kind, r.reason))
    return [*standing_rows(data, groups, attribute), *rows]


def standing_rows(data: RunData, groups: Grouping, attribute: str) -> list[ReasonRow]:
    """Every rule of the cleaning with the items it set aside, by group; a level that set nothing
    aside has a row of 0. Items of the instrument's controls have rows of their own."""
    found: dict[tuple[Place, bool, str], Counter[str]] = defaultdict(Counter)
    for item in data.items:
        standing = data.cleaning.of(item.item_id)
        if standing.place is not Place.MAIN:
            key = standing.place, item.control, standing.rule
            found[key][groups.of(item, attribute)] += 1
    rows = []
    for place in SET_ASIDE:
        mine = [(key, counts) for key, counts in found.items() if key[0] is place]
        if all(control for (_, control, _), _ in mine):
            rows.append(ReasonRow("item", NOTHING, 0, {}, LEVELS[place]))
        mine.sort(key=lambda m: (m[0][1], -m[1].total(), m[0][2]))
        for (_, control, rule), counts in mine:
            kind = "item of a control" if control else "item"
            rows.append(ReasonRow(kind, rule, counts.total(), counts, LEVELS[place]))
    return rows


def cleaning_json(data: RunData, groups: Grouping) -> dict[str, object]:
    """The cleaning for machines. ``items`` adds up to the number of items of the run."""
    cleaning = data.cleaning
    places = Counter(cleaning.of(i.item_id).place for i in data.items)
    planned = [a for a in groups.planned if a in groups.names]
    return {
        "items": {str(p): places.get(p, 0) for p in Place},
        "leaves": {str(p): LEAVES[p] for p in Place},
        "by_group": {
            a: [
                {
                    "level": r.level,
                    "kind": r.kind,
                    "rule": r.reason,
                    "total": r.total,
                    "by_group": dict(r.by_group),
                }
                for r in standing_rows(data, groups, a)
            ]
            for a in planned
        },
        "review": {
            "listed": len(cleaning.review),
            "by_rule": dict(Counter(rule for r in cleaning.review for rule in r.rule.split("; "))),
        },
        "reviews": [
            {
                "item_id": r.item_id,
                "reviewer": r.reviewer,
                "decision": "keep" if r.keep else "exclude",
                "reason": r.reason,
                "standing": str(cleaning.of(r.item_id).place),
            }
            for r in cleaning.reviews
        ],
    }


def missing_figures(data: RunData) -> list[tuple[str, str, int]]:
    """(metric, reason, count) of figures that could not be measured; most frequent first."""
    counted = Counter(
        (m.metric, m.reason or "no reason given") for m in data.measurements if m.value is None
    )
    return sorted(
        ((m, r, n) for (m, r), n in counted.items()), key=lambda row: (-row[2], row[0], row[1])
    )
