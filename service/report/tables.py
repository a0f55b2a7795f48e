"""The counted tables of a report: outcomes, originals, exclusions, group summaries, controls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from domain.measurements import Decision, Outcome
from service.report.exclusions import ReasonRow, exclusions, missing_figures
from service.report.groups import MIN_PEOPLE, SMALL_SHARE, Grouping, ordered
from service.report.model import ItemRow, MeasurementRow, RunData, is_adversarial

__all__ = [
    "ALL_GROUPS", "OriginalsRow", "OutcomeRow", "ReasonRow", "exclusions", "group_summaries",
    "missing_figures", "originals", "outcome_attributes", "outcomes", "tool_order", "worst_first",
]  # fmt: skip
ALL_GROUPS = "all"


@dataclass(frozen=True)
class OutcomeRow:
    """How the items of one tool and one group ended. ``passed`` counts items whose health is a pass.

    ``impact_ratio`` is the group's pass rate over the highest group's, None with ``ratio_note``.
    """

    tool: str
    group: str
    people: int
    items: int
    counts: Mapping[Outcome, int]
    passed: int
    judged: int
    impact_ratio: float | None = None
    ratio_note: str = ""

    @property
    def pass_rate(self) -> float | None:
        """Share of all requests that passed, 0..1; a request without a picture did not pass."""
        return self.passed / self.items if self.items else None


def tool_order(data: RunData) -> list[tuple[str, bool]]:
    """(label, is a control) in the plan's order; controls last."""
    labels = [t.label for t in data.plan.tools]
    seen = {i.tool: i.control for i in data.items}
    listed = [(t, seen.get(t, False)) for t in dict.fromkeys(labels)]
    listed += [(t, c) for t, c in sorted(seen.items()) if t not in labels]
    return sorted(listed, key=lambda pair: pair[1])


def outcomes(data: RunData, groups: Grouping, attribute: str) -> list[OutcomeRow]:
    """Outcomes of every tool under test by the groups of ``attribute``, "all" first, unknown last.
    Items outside the main statistics are not in it: they stand among the exclusions."""
    table: list[OutcomeRow] = []
    counted = data.counted
    for tool, control in tool_order(data):
        if control:
            continue
        items = [i for i in counted if i.tool == tool]
        by_group: dict[str, list[ItemRow]] = defaultdict(list)
        for item in items:
            by_group[groups.of(item, attribute)].append(item)
        rows = [_outcome_row(data, tool, g, by_group[g]) for g in ordered(by_group)]
        table.append(_outcome_row(data, tool, ALL_GROUPS, items))
        table.extend(_with_ratios(rows))
    return table


def _outcome_row(data: RunData, tool: str, group: str, items: Sequence[ItemRow]) -> OutcomeRow:
    decisions = [
        i.health[data.plan.profile].decision for i in items if data.plan.profile in i.health
    ]
    return OutcomeRow(
        tool=tool,
        group=group,
        people=len({i.subject_id for i in items}),
        items=len(items),
        counts=Counter(i.outcome for i in items),
        passed=decisions.count(Decision.PASS),
        judged=len(decisions) - decisions.count(Decision.INCONCLUSIVE),
    )


def _with_ratios(rows: Sequence[OutcomeRow]) -> list[OutcomeRow]:
    total = sum(r.people for r in rows)
    usable = [r for r in rows if r.people >= MIN_PEOPLE and r.people >= SMALL_SHARE * total]
    best = max((r.pass_rate or 0.0 for r in usable), default=0.0)
    out = []
    for r in rows:
        ratio, note = None, ""
        if r.people < MIN_PEOPLE:
            note = f"fewer than {MIN_PEOPLE} people"
        elif r not in usable:
            note = "below 2 % of the people"
        elif best == 0:
            note = "no group passed"
        else:
            ratio = (r.pass_rate or 0.0) / best
        out.append(
            OutcomeRow(
                r.tool, r.group, r.people, r.items, r.counts, r.passed, r.judged, ratio, note
            )
        )
    return out


def outcome_attributes(groups: Grouping) -> list[str]:
    """The plan's groups and the intersections of each two of them."""
    single = [g for g in groups.planned if g in groups.names]
    crossed = [f"{a} × {b}" for a, b in combinations([s for s in single if "×" not in s], 2)]
    return single + crossed


@dataclass(frozen=True)
class OriginalsRow:
    """The untouched originals of one group, and the instrument's noise on their re-saved copies."""

    group: str
    people: int
    originals: int
    accepted: int
    found: int
    facts: Mapping[str, float]
    retest: Mapping[str, float] = field(default_factory=dict)


def originals(data: RunData, groups: Grouping, attribute: str) -> list[OriginalsRow]:
    """Detection, median facts and re-test noise by group; "all" first. The adversarial set is not
    in it."""
    retest = _retest_items(data)
    figures = _retest_figures(data, retest)
    by_group: dict[str, set[str]] = defaultdict(set)
    plain = [r for r in data.instrument if not is_adversarial(r.attributes)]
    for row in plain:
        by_group[groups.of(row, attribute)].add(row.portrait_id)
    everyone = {r.portrait_id for r in plain}
    listed = [(ALL_GROUPS, everyone), *((g, by_group[g]) for g in ordered(by_group))]
    return [_originals_row(data, group, portraits, retest, figures) for group, portraits in listed]


def _originals_row(
    data: RunData,
    group: str,
    portraits: set[str],
    retest: Mapping[str, str],
    figures: Mapping[str, Mapping[str, float]],
) -> OriginalsRow:
    rows = [r for r in data.instrument if r.portrait_id in portraits]
    names = sorted({k for r in rows for k in r.facts} - UNSHOWN_FACTS)
    facts = {n: [v for r in rows if (v := r.facts.get(n)) is not None] for n in names}
    items = [item for item, portrait in retest.items() if portrait in portraits]
    noise = {m: [v[i] for i in items if i in v] for m, v in figures.items()}
    return OriginalsRow(
        group=group,
        people=len({r.subject_id for r in rows}),
        originals=len(rows),
        accepted=sum(r.accepted for r in rows),
        found=sum(r.face_found for r in rows),
        facts={n: float(np.median(v)) for n, v in facts.items() if v},
        retest={m: float(np.mean(np.abs(v))) for m, v in noise.items() if v},
    )


RETEST_METRICS = ("nme", "flrr", "detail_change", "delta_e00")
UNSHOWN_FACTS = frozenset(("faces",))


def _retest_items(data: RunData) -> dict[str, str]:
    """Items of the re-encoding control (a benign copy): item id to portrait id."""

    def benign(item: ItemRow) -> bool:
        name = "".join(c for c in f"{item.tool_id} {item.tool}".lower() if c.isalnum())
        return item.control and any(w in name for w in ("reencode", "resave", "recompress"))

    return {i.item_id: i.portrait_id for i in data.counted if benign(i)}


def _retest_figures(data: RunData, retest: Mapping[str, str]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for m in data.measurements:
        wanted = m.item_id in retest and m.region == "face" and m.metric in RETEST_METRICS
        if wanted and m.value is not None:
            found.setdefault(m.metric, {})[m.item_id] = m.value
    return {m: found[m] for m in RETEST_METRICS if m in found}


def group_summaries(data: RunData, groups: Grouping) -> list[dict[str, object]]:
    """Five-number summaries of every tool x task x perturbation x metric x region x group.

    ``n`` counts pictures, ``people`` subjects; quartiles by linear interpolation. Of items in the
    main statistics only.
    """
    items = {i.item_id: i for i in data.counted}
    planned = [a for a in groups.planned if a in groups.names]
    cells: dict[tuple[str, ...], list[tuple[str, float]]] = defaultdict(list)
    for m in data.measurements:
        if m.value is None or m.item_id not in items:
            continue
        item = items[m.item_id]
        head = (item.tool, item.task, item.perturbation, m.metric, m.region, m.unit)
        for attribute in planned:
            key = (*head, attribute, groups.of(item, attribute))
            cells[key].append((item.subject_id, m.value))
    return [_summary(key, cells[key]) for key in sorted(cells)]


def _summary(key: tuple[str, ...], pairs: Sequence[tuple[str, float]]) -> dict[str, object]:
    names = ("tool", "task", "perturbation", "metric", "region", "unit", "attribute", "group")
    values = np.array([v for _, v in pairs], dtype=np.float64)
    low, q1, middle, q3, high = (float(q) for q in np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))
    return {
        **dict(zip(names, key, strict=True)),
        "n": len(pairs),
        "people": len({s for s, _ in pairs}),
        "mean": float(values.mean()),
        "min": low,
        "q1": q1,
        "median": middle,
        "q3": q3,
        "max": high,
    }


def worst_first(data: RunData) -> list[ItemRow]:
    """Items of tools under test, then controls, from the worst: face lost, then the lowest health."""
    flrr = {m.item_id: m.value for m in data.measurements if _is_flrr(m)}

    def badness(item: ItemRow) -> tuple[float, float, str]:
        health = item.health.get(data.plan.profile)
        score = health.score if health and health.score is not None else 101.0
        lost = 0.0 if item.outcome is Outcome.FACE_LOST else 1.0
        kept = flrr.get(item.item_id)
        return (lost, score + (kept if kept is not None else 100.0) / 1000, item.item_id)

    return sorted(data.items, key=badness)


def _is_flrr(m: MeasurementRow) -> bool:
    return m.metric == "flrr" and m.region == "face"
