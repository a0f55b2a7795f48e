"""The audit, readable from top to bottom: begin, look at the portraits, plan the items, call the
tools, measure, finish. An engine decides which of these steps run where and when.

1. ``runs.begin`` opens the ledger. 2. ``inspect`` sees each portrait. 3. ``plan_items`` writes the
work to the ledger. 4. ``calling.call_tool`` asks a tool. 5. ``measure_item`` and ``record``.
6. ``finishing.finish`` draws the verdicts and writes the report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import adapters.contract
from domain.edits import Task
from domain.masks import Mask
from domain.measurements import Outcome, PairResult
from domain.plan import AuditPlan, ToolChoice
from domain.portraits import Portrait
from preprocess.decode import open_picture
from preprocess.perturb import UPPER_FACE_ONLY
from service.calling import MASKS
from service.instrument_check import look_at, not_accepted
from service.measuring import Instrument
from service.runs import Run
from service.store.blobs import Blobs
from service.store.ledger import DONE, PLANNED
from service.tool_calls import UNCHANGED, is_unchanged

# 2. Look at the portraits --------------------------------------------------------------------


def unseen(run: Run) -> list[tuple[int, Portrait]]:
    """The portraits that the instrument has not looked at yet, with their place in the order."""
    known = {row["portrait_id"] for row in run.ledger.portraits()}
    return [(i, p) for i, p in enumerate(run.portraits) if p.portrait_id not in known]


def inspect(instrument: Instrument, seq: int, portrait: Portrait) -> dict[str, Any]:
    """One untouched portrait through the gate and the instrument: a row of the ledger."""
    return {
        "portrait_id": portrait.portrait_id,
        "seq": seq,
        "subject_id": portrait.subject_id,
        **look_at(instrument, portrait),
    }


def unreadable(seq: int, portrait: Portrait, reason: str) -> dict[str, Any]:
    """The row of a portrait that could not be looked at."""
    return {
        "portrait_id": portrait.portrait_id,
        "seq": seq,
        "subject_id": portrait.subject_id,
        **not_accepted(portrait, reason),
    }


# 3. Plan the items ---------------------------------------------------------------------------


def plan_items(run: Run) -> None:
    """Write every portrait x perturbation x task x tool to the ledger, before any work is done."""
    if run.ledger.items():
        return
    seen = {row["portrait_id"]: row for row in run.ledger.portraits()}
    rows: list[dict[str, Any]] = []
    for portrait in run.portraits:
        row = seen[portrait.portrait_id]
        for label, tool in run.tools.items():
            for perturbation, task in work_of(
                run.plan, tool, run.specs[label], label in run.controls
            ):
                rows.append(_item(run, len(rows), row, label, perturbation, task))
    run.ledger.add_items(rows)


def work_of(
    plan: AuditPlan, tool: ToolChoice, spec: adapters.contract.ToolSpec, control: bool
) -> list[tuple[str, Task]]:
    """(perturbation, task) of every item that one portrait makes for one tool, in order."""
    tasks = _tasks(plan, tool, spec, control)
    return [(p, task) for p in _perturbations(plan, tool, control) for task in tasks]


def _perturbations(plan: AuditPlan, tool: ToolChoice, control: bool) -> Sequence[str]:
    if control:
        return ["none"]
    return tool.perturbations or plan.perturbations


def _tasks(
    plan: AuditPlan, tool: ToolChoice, spec: adapters.contract.ToolSpec, control: bool
) -> Sequence[Task]:
    asked = [t for t in (tool.tasks or plan.tasks) if t in spec.tasks]
    return asked if asked and not control else spec.tasks[:1]


def _item(
    run: Run, seq: int, portrait: Mapping[str, Any], label: str, perturbation: str, task: Task
) -> dict[str, Any]:
    key = "\0".join((portrait["portrait_id"], perturbation, task, label))
    # The same portrait gets the same seed from every tool, so that tools are compared like for like
    draw = hashlib.sha256(f"{run.plan.seed}\0{portrait['portrait_id']}\0{perturbation}".encode())
    row: dict[str, Any] = {
        "item_id": hashlib.sha256(key.encode()).hexdigest()[:16],
        "seq": seq,
        "portrait_id": portrait["portrait_id"],
        "tool": label,
        "tool_id": run.tools[label].id,
        "control": int(label in run.controls),
        "task": str(task),
        "perturbation": perturbation,
        "seed": int.from_bytes(draw.digest()[:4], "big") >> 1,
        "state": PLANNED,
        "outcome": None,
        "reason": None,
    }
    if not portrait["face_found"]:
        # No tool is called, and no money spent, on what the instrument could not judge anyway
        row["state"] = DONE
        row["outcome"] = (
            Outcome.NOT_MEASURABLE if portrait["accepted"] else Outcome.ORIGINAL_UNREADABLE
        ).value
        row["reason"] = ("fta_original: " if portrait["accepted"] else "") + portrait["reason"]
    return row


# 5. Measure ----------------------------------------------------------------------------------


def measure_item(instrument: Instrument, blobs: Blobs, item: Mapping[str, Any]) -> PairResult:
    """Measure a stored pair: what was sent against what came back. ``item`` holds the keys of both
    pictures and of the mask, the task and the perturbation."""
    canonical = None
    if item["mask"]:
        values = np.ascontiguousarray(open_picture(blobs.get(item["mask"])).pixels[:, :, 0])
        canonical = Mask(values, MASKS[Task(item["task"])])
    return instrument.measure_files(
        blobs.get(item["original"]),
        blobs.get(item["edited"]),
        canonical,
        cut=item["perturbation"] in UPPER_FACE_ONLY,
    )


def record(run: Run, item_id: str, result: PairResult) -> None:
    """Write an item's outcome with all its figures, at once."""
    item = run.ledger.item(item_id)
    warnings = [*item["warnings"], *result.warnings]
    if is_unchanged({**item, "evidence": result.evidence}) and not run.specs[item["tool"]].control:
        warnings.append(UNCHANGED)
    figures = [
        {
            "item_id": item_id,
            "metric": m.metric,
            "region": m.region,
            "position": position,
            "value": m.value,
            "unit": m.unit,
            "status": m.status.value,
            "reason": m.reason,
        }
        for position, m in enumerate(result.measurements)
    ]
    row = {
        "outcome": result.outcome.value,
        "reason": result.reason,
        "warnings": warnings,
        "evidence": dict(result.evidence),
        "health": {name: asdict(h) for name, h in result.health.items()},
    }
    run.ledger.finish_item(item_id, row, figures)


def died(engine: str) -> PairResult:
    """The result of a pair whose measuring process was killed by it, twice."""
    reason = "the measuring process died on this pair"
    return PairResult(Outcome.NOT_MEASURABLE, reason, engine)
