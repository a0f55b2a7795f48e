"""The figures of a run so far, joined with the facts of their items: the rows of measurements.csv,
read piece by piece while the run goes on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.measurements import FACE_REGION, Status
from domain.plan import AuditPlan
from service.report.csv_files import CSV_HEAD
from service.report.groups import NO_GROUPS, group_of
from service.store.readings import Readings
from service.tabular import Column

FIRST_ITEMS, ITEMS_AT_ONCE = 8, 200
"""A piece is a few items at first, since most readers want one page, and twice as many each time."""
HEALTH_UNIT = "points"
_KINDS = {"value": "float", "seed": "int", "control": "bool"}
_ATTRIBUTE = "attribute:"

Key = tuple[str, str, str]
"""(item, metric, region): what the rows are ordered by, and what a cursor names."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows; None asks for all. An item that ended without figures has one row without metric
    and region, and is left out by neither: an absent figure is an answer to "how did it do" too."""

    tool: str | None = None
    metric: str | None = None
    region: str | None = None
    outcome: str | None = None

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Whether a row's metric and region are asked for."""
        if row["metric"] is None:
            return True
        return self.metric in (None, row["metric"]) and self.region in (None, row["region"])


@dataclass(frozen=True, slots=True)
class Place:
    """What only a finished run, or the manifest, knows of an item."""

    pair_base: str = ""
    varied_attribute: str = ""
    standing: str | None = None


@dataclass(frozen=True)
class RunFigures:
    """``places`` are those of the items of a finished run; ``partners`` of the portraits, by
    (pair_base, varied_attribute), for one that goes on."""

    readings: Readings
    plan: AuditPlan
    places: Mapping[str, Place] = field(default_factory=dict)
    partners: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def columns(self) -> list[Column]:
        """Those of measurements.csv: the fixed ones, then the attributes, the plan's first."""
        taken = {name for name, _ in CSV_HEAD}
        fixed = [Column(name, _KINDS.get(name, "text")) for name, _ in CSV_HEAD]
        return fixed + [
            Column(_ATTRIBUTE + n, heading=f"attribute_{n}" if n in taken else n)
            for n in self._names(self.readings.people())
        ]

    def rows(self, wanted: Wanted, after: Key | None = None) -> Iterator[dict[str, Any]]:
        """Rows by item, metric and region, those after ``after``. Missing figures are None with their
        reason, never 0."""
        people = self.readings.people()
        names = self._names(people)
        start, many = after[0] if after else "", min(FIRST_ITEMS, ITEMS_AT_ONCE)
        while True:
            # one item is read twice where two pieces meet: ids from `start` on, itself included
            found = self.readings.ended_items(start, many, outcome=wanted.outcome, tool=wanted.tool)
            figures: dict[str, list[Mapping[str, Any]]] = {}
            for m in self.readings.figures([i["item_id"] for i in found]):
                figures.setdefault(m["item_id"], []).append(m)
            for item in found:
                facts = self._facts(item, people, names)
                for row in _figures_of(item, figures.get(item["item_id"], ())):
                    whole = facts | row
                    if wanted.takes(whole) and (after is None or key_of(whole) > after):
                        after = key_of(whole)
                        yield whole
            if len(found) < many:
                return
            start, many = found[-1]["item_id"], min(ITEMS_AT_ONCE, 2 * many)

    def _names(self, people: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[str]:
        planned = [*self.plan.groups, *(c.attribute for c in self.plan.claims)]
        declared = sorted({n for _, known in people.values() for n in known} - NO_GROUPS)
        return list(dict.fromkeys([*planned, *declared]))

    def _facts(
        self,
        item: Mapping[str, Any],
        people: Mapping[str, tuple[str, Mapping[str, str]]],
        names: Sequence[str],
    ) -> dict[str, Any]:
        portrait = item["portrait_id"]
        subject, declared = people.get(portrait, ("", {}))
        known = {k: str(v) for k, v in declared.items() if str(v).strip()}
        base, varied = self.partners.get(portrait, ("", ""))
        place = self.places.get(item["item_id"], Place(base, varied if base else ""))
        facts = {name: item[name] for name in ("tool", "tool_id", "task", "perturbation")}
        return {
            "item_id": item["item_id"],
            "portrait_id": portrait,
            "subject_id": subject,
            "pair_base": place.pair_base or None,
            "varied_attribute": place.varied_attribute or None,
            **facts,
            "control": bool(item["control"]),
            "seed": self.plan.seed,
            "outcome": item["outcome"],
            "standing": place.standing,
        } | {_ATTRIBUTE + n: group_of(known, n) for n in names}


def key_of(row: Mapping[str, Any]) -> Key:
    """Where a row stands in the order."""
    return row["item_id"], row["metric"] or "", row["region"] or ""


def attributes_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The declared and measured attributes of a row by their own names."""
    return {n.removeprefix(_ATTRIBUTE): v for n, v in row.items() if n.startswith(_ATTRIBUTE)}


def _figures_of(
    item: Mapping[str, Any], figures: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The figures of one item with its health scores among them, or one row that says why none."""
    names = ("metric", "region", "status", "value", "unit", "reason")
    rows = [{name: m[name] for name in names} for m in figures]
    for profile, h in (item["health"] or {}).items():
        missing = h["score"] is None
        rows.append(
            {
                "metric": f"health_{profile}",
                "region": FACE_REGION,
                "status": (Status.NOT_MEASURABLE if missing else Status.MEASURED).value,
                "value": h["score"],
                "unit": HEALTH_UNIT,
                "reason": h["reasons"][0] if missing and h["reasons"] else None,
            }
        )
    if not rows:
        nothing = dict.fromkeys(names)
        return [nothing | {"status": item["outcome"], "reason": item["reason"]}]
    return sorted(rows, key=lambda r: (r["metric"], r["region"]))


def places_in(measurements_csv: bytes) -> dict[str, Place]:
    """The place of every item, from the measurements.csv that its finished run wrote."""
    rows = csv.DictReader(io.StringIO(measurements_csv.decode(), newline=""))
    return {
        r["item_id"]: Place(_plain(r["pair_base"]), _plain(r["varied_attribute"]), r["standing"])
        for r in rows
    }


def _plain(cell: str) -> str:
    """A cell without the apostrophe that kept it from being a formula."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@", "\t", "\n") else cell
