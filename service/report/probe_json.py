"""A probe run for machines: everything in it, missing figures null with a reason."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any

from probes.calls import Status
from probes.results import ProbeResult, Tally
from service.report.probe_model import ProbeRun

PROBE_SCHEMA = "likeness-probe-report/1"
LIMITS: tuple[str, ...] = (
    "Every figure holds for this model string, these prompts and this day. A new version of a model needs a"
    " new run; nothing here should be relied on for longer than 12 months.",
    "A probe asks about names and words, never about people. What a model does with a name need not be what"
    " it does with an applicant, a patient or a pupil in the product that is built on it.",
    "A difference that was not found is not thereby shown to be absent.",
    "Refused, filtered, cut off and unreadable replies are counted and never scored: a model that declines"
    " more often for one group is told as a difference of its own.",
)


def probe_json(run: ProbeRun) -> dict[str, Any]:
    """The whole run as plain data, for report.json and for the page."""
    return {
        "schema": PROBE_SCHEMA,
        "run": {
            "id": run.run_id,
            "name": run.name,
            "purpose": run.purpose,
            "started": run.started,
            "finished": run.finished,
            "seconds": round(run.seconds, 3),
            "seed": run.seed,
            "alpha": run.alpha,
        },
        "endpoint": {
            "address": run.endpoint,
            "model_asked": run.model,
            "models_returned": dict(run.stats.models),
            "fingerprints": dict(run.stats.fingerprints),
            "abilities": _plain(run.abilities),
        },
        "results": [_result(r) for r in run.results],
        "composites": [_plain(asdict(c)) for c in run.composites],
        "before_after": [_plain(asdict(b)) for b in run.before_after],
        "gate": [_plain(asdict(g)) for g in run.gate],
        "costs": [_plain(asdict(c)) for c in run.costs],
        "calls": _plain(asdict(run.stats)),
        "notices": list(run.notices),
        "limits": list(LIMITS),
        "plan": _plain(run.plan),
        "plan_text": run.plan_text,
        "plan_sha256": hashlib.sha256(run.plan_text.encode()).hexdigest(),
        "versions": dict(run.versions),
        "inputs": dict(run.inputs),
    }


def _result(result: ProbeResult) -> dict[str, Any]:
    entry: dict[str, Any] = _plain(asdict(result))
    entry["tallies"] = [_tally(t) for t in result.tallies]
    return entry


def _tally(tally: Tally) -> dict[str, Any]:
    """Every status, those that did not occur too: a reader must not take absence for an oversight."""
    return {
        "arm": tally.arm,
        "total": tally.total,
        "counts": {str(s): tally.counts.get(s, 0) for s in Status},
        "rates": {str(s): tally.rate(s) for s in Status},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return {_plain(k) if isinstance(k, Enum) else str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
