"""Writes a run's files: report.html, report.json, measurements.csv, review.csv, junit.xml and
manifest.json."""

from __future__ import annotations

import hashlib
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
from service.report.calls import calls_json
from service.report.csv_files import (
    CSV_HEAD,
    decimal,
    measurements_csv,
    neutral,
    review_csv,
)
from service.report.equitability import equitability_json
from service.report.exclusions import ReasonRow, cleaning_json, exclusions
from service.report.groups import Grouping, grouping
from service.report.html import render
from service.report.junit import of_audit, to_xml
from service.report.model import ItemRow, RunData, controls_ok
from service.report.probe_reading import KEPT_PROBES
from service.report.tables import (
    OutcomeRow,
    group_summaries,
    missing_figures,
    originals,
    outcome_attributes,
    outcomes,
    tool_order,
)
from service.report.wording import ENGINES, LIMITS, tool_line

__all__ = [
    "CSV_HEAD", "decimal", "manifest_json", "measurements_csv", "neutral", "report_json",
    "to_json", "write_all", "write_atomically",
]  # fmt: skip
JSON_SCHEMA = "likeness-report/1"


def write_all(
    data: RunData, out: Path, specs: Mapping[str, MetricSpec] | None = None
) -> dict[str, Path]:
    """Write the files into ``out`` (made when absent) and return their paths by file name. Reviews
    that came back are copied beside them, so that a later resume still knows of them.

    Each file appears whole or not at all. ``specs`` default to every metric known. Raises
    LikenessError naming the file that could not be written and why.
    """
    known = all_specs() if specs is None else specs
    groups = grouping(data)
    made: dict[str, bytes] = {
        "measurements.csv": measurements_csv(data, groups).encode(),
        "report.json": to_json(report_json(data, groups, known)),
        "report.html": render(data, groups, known).encode(),
        "review.csv": review_csv(data.cleaning).encode(),
        "junit.xml": to_xml(of_audit(data)),
    }
    if data.cleaning.reviews_text:
        made["reviews.csv"] = data.cleaning.reviews_text.encode()
    if data.probes:
        made[KEPT_PROBES] = to_json(data.probes)
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
        "calls": calls_json(data),
        "equitability": equitability_json(data, groups),
        "instrument": {a: [asdict(r) for r in originals(data, groups, a)] for a in planned},
        "groups": group_summaries(data, groups),
        "exclusions": {a: [_reason(r) for r in exclusions(data, groups, a)] for a in planned},
        "cleaning": cleaning_json(data, groups),
        "missing_figures": [
            {"metric": m, "reason": r, "count": n} for m, r, n in missing_figures(data)
        ],
        "items": [_item(data, i) for i in sorted(data.items, key=lambda i: i.item_id)],
        "metrics": {k: asdict(s) for k, s in sorted(specs.items())},
        "limits": list(LIMITS),
        "probes": data.probes,
        "versions": dict(data.versions),
        "inputs": dict(data.inputs),
    }


def _tools(data: RunData) -> list[dict[str, Any]]:
    found = []
    for label, control in tool_order(data):
        items = [i for i in data.items if i.tool == label]
        verdicts = [v for v in (*data.paired, *data.verdicts) if v.tool == label]
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
        "level": row.level or None,
        "kind": row.kind,
        "reason": row.reason,
        "total": row.total,
        "by_group": dict(row.by_group),
    }


def _item(data: RunData, item: ItemRow) -> dict[str, Any]:
    standing = data.cleaning.of(item.item_id)
    return {
        "standing": str(standing.place),
        "standing_rule": standing.rule or None,
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
