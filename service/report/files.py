"""Writes a run's four files: report.html, report.json, measurements.csv and manifest.json."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from domain.measurements import Outcome
from metrics.contract import MetricSpec
from metrics.contract import specs as all_specs
from service.report.groups import NO_GROUPS, Grouping, grouping
from service.report.html import render
from service.report.model import ItemRow, MeasurementRow, RunData, controls_ok
from service.report.tables import (
    OutcomeRow,
    ReasonRow,
    exclusions,
    group_summaries,
    missing_figures,
    originals,
    outcome_attributes,
    outcomes,
    tool_order,
)
from service.report.wording import ENGINES, LIMITS, tool_line

JSON_SCHEMA = "likeness-report/1"
CSV_HEAD: tuple[tuple[str, str], ...] = (
    ("item_id", "identifier of the item in the ledger"),
    ("portrait_id", "file name of the portrait in the manifest"),
    ("subject_id", "the person shown: the unit of every statistic"),
    ("tool", "label of the tool in the plan"),
    ("tool_id", "identifier of the adapter"),
    ("control", "1 for the instrument's own controls, else 0"),
    ("task", "what the tool was asked to do"),
    ("perturbation", "what was done to the portrait before it was sent"),
    ("seed", "the plan's seed"),
    ("outcome", "how the item ended"),
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

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_all(
    data: RunData, out: Path, specs: Mapping[str, MetricSpec] | None = None
) -> dict[str, Path]:
    """Write the four files into ``out`` (made when absent) and return their paths by file name.

    Each file appears whole or not at all. ``specs`` default to every metric known. Raises
    LikenessError naming the file that could not be written and why.
    """
    known = all_specs() if specs is None else specs
    groups = grouping(data)
    made: dict[str, bytes] = {
        "measurements.csv": measurements_csv(data, groups).encode(),
        "report.json": to_json(report_json(data, groups, known)),
        "report.html": render(data, groups, known).encode(),
    }
    made["manifest.json"] = to_json(manifest_json(data, made))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LikenessError(f"cannot make folder {out}: {error.strerror or error}") from error
    return {name: write_atomically(out / name, content) for name, content in made.items()}


def write_atomically(path: Path, content: bytes) -> Path:
    """Write to a neighbour, flush to disk, rename. Raises LikenessError; leaves no half file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise LikenessError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def to_json(value: object) -> bytes:
    """Indented, sorted by key, ASCII (so that no direction marks hide in it), newline at the end.

    A figure that is not finite becomes null: JSON has no word for it.
    """
    return (json.dumps(_finite(value), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value


def neutral(cell: object) -> str:
    """A cell that no spreadsheet takes for a formula: a leading = + - @ tab or newline is quoted."""
    text = str(cell)
    return "'" + text if text.startswith(_FORMULA) else text


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


def _declared(data: RunData) -> list[str]:
    return sorted({name for item in data.items for name in item.attributes} - NO_GROUPS)


def _cells(data: RunData, item: ItemRow, m: MeasurementRow | None) -> list[str]:
    first = [item.item_id, item.portrait_id, item.subject_id, item.tool, item.tool_id]
    second = [item.task, item.perturbation, data.plan.seed, item.outcome]
    cells = [neutral(c) for c in (*first, int(item.control), *second)]
    if m is None:
        return [*cells, "", "", str(item.outcome), "", "", neutral(item.reason or "")]
    named = [neutral(m.metric), neutral(m.region), neutral(m.status)]
    return [*cells, *named, decimal(m.value), neutral(m.unit), neutral(m.reason or "")]


def report_json(data: RunData, groups: Grouping, specs: Mapping[str, MetricSpec]) -> dict[str, Any]:
    """The whole report for machines. Missing figures are null with a reason, never 0."""
    planned = [a for a in groups.planned if a in groups.names]
    return {
        "schema": JSON_SCHEMA,
        "run": {
            "id": data.run_id,
            "name": data.plan.name,
            "purpose": data.plan.purpose,
            "started": data.started,
            "finished": data.finished,
            "seconds": round(data.seconds, 3),
            "seed": data.plan.seed,
            "engine": data.plan.engine,
            "engine_note": ENGINES.get(data.plan.engine, data.plan.engine),
            "profile": data.plan.profile,
            "min_score": data.plan.min_score,
            "alpha": data.plan.alpha,
        },
        "controls_ok": controls_ok(data.controls),
        "controls": [asdict(c) for c in data.controls],
        "tools": _tools(data),
        "verdicts": [asdict(v) for v in data.verdicts],
        "paired": [asdict(v) for v in data.paired],
        "outcomes": {
            a: [_outcome(r) for r in outcomes(data, groups, a)] for a in outcome_attributes(groups)
        },
        "instrument": {a: [asdict(r) for r in originals(data, groups, a)] for a in planned},
        "groups": group_summaries(data, groups),
        "exclusions": {a: [_reason(r) for r in exclusions(data, groups, a)] for a in planned},
        "missing_figures": [
            {"metric": m, "reason": r, "count": n} for m, r, n in missing_figures(data)
        ],
        "items": [_item(i) for i in sorted(data.items, key=lambda i: i.item_id)],
        "metrics": {k: asdict(s) for k, s in sorted(specs.items())},
        "limits": list(LIMITS),
        "versions": dict(data.versions),
        "inputs": dict(data.inputs),
    }


def _tools(data: RunData) -> list[dict[str, Any]]:
    found = []
    for label, control in tool_order(data):
        items = [i for i in data.items if i.tool == label]
        verdicts = [v for v in data.verdicts if v.tool == label]
        entry: dict[str, Any] = {
            "label": label,
            "id": items[0].tool_id if items else None,
            "control": control,
            "models": sorted({i.model for i in items if i.model}),
            "items": len(items),
            "outcomes": {str(o): sum(i.outcome is o for i in items) for o in Outcome},
        }
        if not control:
            entry["summary"] = tool_line(verdicts, data.plan.groups)
        found.append(entry)
    return found


def _outcome(row: OutcomeRow) -> dict[str, Any]:
    entry = asdict(row)
    entry["counts"] = {str(o): row.counts.get(o, 0) for o in Outcome}
    entry["rates"] = {
        str(o): row.counts.get(o, 0) / row.items if row.items else None for o in Outcome
    }
    entry["pass_rate"] = row.pass_rate
    return entry


def _reason(row: ReasonRow) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "reason": row.reason,
        "total": row.total,
        "by_group": dict(row.by_group),
    }


def _item(item: ItemRow) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "portrait_id": item.portrait_id,
        "subject_id": item.subject_id,
        "attributes": dict(item.attributes),
        "tool": item.tool,
        "task": item.task,
        "perturbation": item.perturbation,
        "outcome": str(item.outcome),
        "reason": item.reason,
        "model": item.model,
        "attempts": item.attempts,
        "seconds": item.seconds,
        "health": {k: asdict(h) for k, h in item.health.items()},
        "warnings": list(item.warnings),
    }


def manifest_json(data: RunData, made: Mapping[str, bytes]) -> dict[str, Any]:
    """What went in and what came out, each with its sha256, so that a run can be checked later."""
    return {
        "schema": "likeness-manifest/1",
        "run_id": data.run_id,
        "started": data.started,
        "finished": data.finished,
        "seed": data.plan.seed,
        "plan": data.plan.model_dump(mode="json"),
        "plan_text_sha256": hashlib.sha256(data.plan_text.encode()).hexdigest(),
        "plan_text": data.plan_text,
        "inputs": {name: {"sha256": sha} for name, sha in data.inputs.items()},
        "originals": {r.portrait_id: r.sha256 for r in data.instrument if r.sha256},
        "outputs": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in made.items()
        },
        "models": {t["label"]: t["models"] for t in _tools(data)},
        "columns": dict(CSV_HEAD),
        "versions": dict(data.versions),
    }
