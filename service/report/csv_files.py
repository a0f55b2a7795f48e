"""The tables of a run as CSV: every figure, and the list of what people should look at."""

from __future__ import annotations

import csv
import io
import re

from service.report.groups import NO_GROUPS, Grouping
from service.report.model import Cleaning, ItemRow, MeasurementRow, RunData

CSV_HEAD: tuple[tuple[str, str], ...] = (
    ("item_id", "identifier of the item in the ledger"),
    ("portrait_id", "file name of the portrait in the manifest"),
    ("subject_id", "the person shown: the unit of every statistic"),
    ("pair_base", "portrait_id of the base picture, for a counterfactual partner of it"),
    ("varied_attribute", "the attribute in which a partner differs from its base"),
    ("tool", "label of the tool in the plan"),
    ("tool_id", "identifier of the adapter"),
    ("control", "1 for the instrument's own controls, else 0"),
    ("task", "what the tool was asked to do"),
    ("perturbation", "what was done to the portrait before it was sent"),
    ("seed", "the plan's seed"),
    ("outcome", "how the item ended"),
    (
        "standing",
        "main, or why not: excluded_1 (no answer), excluded_2 (cannot be judged), excluded_3 "
        "(reviewed out), conflict, adversarial; docs/cleaning.md",
    ),
    ("metric", "identifier of the metric; empty for an item without figures"),
    ("region", "part of the face; 'face' for the whole"),
    ("status", "measured, not_measurable, or the item's outcome where it has no figures"),
    ("value", "the figure, six significant digits; empty when not measured, never 0 instead"),
    ("unit", "unit of the figure"),
    ("reason", "why there is no figure"),
)
"""Columns of measurements.csv with their meaning. The people's attributes follow, the plan's first
(columns about the file, such as its source, stay in the manifest of portraits); one whose name is
taken already is called attribute_NAME. Cells that a spreadsheet would run as a formula start with
an apostrophe."""

REVIEW_HEAD = ("item_id", "rule", "look_at", "original", "edited")
"""Columns of review.csv; reviews come back as item_id, reviewer, decision, reason."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def neutral(cell: object) -> str:
    """A cell that no spreadsheet takes for a formula: a leading = + - @ tab or newline is quoted. A
    carriage return becomes a newline, since the csv module writes it without quotes, and what follows
    would begin a row of its own for readers that end rows there."""
    text = str(cell).replace("\r\n", "\n").replace("\r", "\n")
    return "'" + text if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def decimal(value: float | None) -> str:
    """Six significant digits; "" for None; never "-0"."""
    if value is None:
        return ""
    return f"{value + 0.0:.6g}" if value else "0"


def measurements_csv(data: RunData, groups: Grouping) -> str:
    """One row an item x metric x region, and one row for each item without figures.

    Sorted by item, metric and region, so that two runs with the same figures agree byte for byte.
    """
    names = list(dict.fromkeys([*groups.planned, *_declared(data)]))
    taken = {name for name, _ in CSV_HEAD}
    head = [name for name, _ in CSV_HEAD] + [f"attribute_{n}" if n in taken else n for n in names]
    figures: dict[str, list[MeasurementRow]] = {}
    for m in data.measurements:
        figures.setdefault(m.item_id, []).append(m)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(neutral(h) for h in head)
    for item in sorted(data.items, key=lambda i: i.item_id):
        tail = [neutral(groups.of(item, n)) for n in names]
        rows = sorted(figures.get(item.item_id, ()), key=lambda m: (m.metric, m.region))
        shown: list[MeasurementRow | None] = [*rows] or [None]
        writer.writerows([*_cells(data, item, m), *tail] for m in shown)
    return buffer.getvalue()


def review_csv(cleaning: Cleaning) -> str:
    """The list for review, by item id: no attribute, no name, pictures named by their hash."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(REVIEW_HEAD)
    for r in cleaning.review:
        cells = (r.item_id, r.rule, r.look_at, r.original, r.edited)
        writer.writerow([neutral(c) for c in cells])
    return buffer.getvalue()


def _declared(data: RunData) -> list[str]:
    return sorted({name for item in data.items for name in item.attributes} - NO_GROUPS)


def _cells(data: RunData, item: ItemRow, m: MeasurementRow | None) -> list[str]:
    who = [item.item_id, item.portrait_id, item.subject_id, item.pair_base, item.varied_attribute]
    first = [*who, item.tool, item.tool_id]
    second = [item.task, item.perturbation, data.plan.seed, item.outcome]
    second.append(data.cleaning.of(item.item_id).place)
    cells = [neutral(c) for c in (*first, int(item.control), *second)]
    if m is None:
        return [*cells, "", "", str(item.outcome), "", "", neutral(item.reason or "")]
    named = [neutral(m.metric), neutral(m.region), neutral(m.status)]
    return [*cells, *named, decimal(m.value), neutral(m.unit), neutral(m.reason or "")]
