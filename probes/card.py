"""The baseline card: what one run found, small enough to keep for every release of a model.

It is JSON of the schema ``likeness-probe-card/1``, with a sha256 over its own content. That tells a
card that was edited from one that was not; it does not tell who wrote it (the signed manifest does).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from domain.errors import LikenessError
from probes.card_compare import compare_cards
from probes.card_entries import composite_entry, gate_entry, plain, result_entry
from probes.card_run import Run

SCHEMA = "likeness-probe-card/1"
_KIND = "likeness-probe-card/"
_LARGEST = 64 * 1024 * 1024
_NEEDED = ("model", "run", "design", "results", "composites", "thresholds", "gate", "versions")


def card_of(run: Run, baseline: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The card of ``run``, ready for JSON. With ``baseline`` (an earlier card) it carries what
    ``card_compare.compare_cards`` found against it. Figures that are missing are null with a reason."""
    dropped = sorted(run.stats.dropped)
    # the seed of the run: a plan without one has a default
    plan = {**run.plan, "seed": run.seed}
    card = {
        "schema": SCHEMA,
        "run": {
            "id": run.run_id,
            "name": run.name,
            "purpose": run.purpose,
            "started": run.started,
            "finished": run.finished,
            "date": (run.finished or run.started)[:10],
            "calls": run.stats.asked,
            "stopped_by": run.stats.stopped_by,
        },
        "model": {
            "asked": run.model,
            "returned": {str(k): v for k, v in sorted(run.stats.models.items())},
            "fingerprints": {str(k): v for k, v in sorted(run.stats.fingerprints.items())},
            "host": host_of(run.endpoint),
            "abilities": plain(run.abilities),
        },
        "design": {
            "plan_sha256": hashlib.sha256(run.plan_text.encode()).hexdigest(),
            "seed": run.seed,
            "alpha": run.alpha,
            "repeats": plain(run.plan.get("repeats")),
            "sampling": plain(run.plan.get("sampling") or {}),
            "parameters_not_taken": dropped,
        },
        "results": [result_entry(r, plan, dropped) for r in run.results],
        "composites": [composite_entry(c) for c in run.composites],
        "thresholds": plain({k: v for k, v in _gate(run.plan).items() if k != "baseline"}),
        "gate": [gate_entry(g) for g in run.gate],
        "notices": list(run.notices),
        "versions": {str(k): str(v) for k, v in sorted(run.versions.items())},
    }
    if baseline is not None:
        card["compared"] = _compared(baseline, card)
    return sealed(card)


def sealed(card: Mapping[str, Any]) -> dict[str, Any]:
    """``card`` as JSON gives it back, with the sha256 of its content as ``sha256``."""
    whole: dict[str, Any] = json.loads(json.dumps(card, allow_nan=False))
    whole.pop("sha256", None)
    return {**whole, "sha256": content_sha256(whole)}


def content_sha256(card: Mapping[str, Any]) -> str:
    """Sha256 of the card without its own ``sha256``, in an order and spacing that never changes."""
    kept = {key: value for key, value in card.items() if key != "sha256"}
    told = json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(told.encode()).hexdigest()


def read_card(path: Path) -> dict[str, Any]:
    """The card in ``path``. LikenessError with one line when it cannot be read, is no card, is of
    another version, lacks a part, or was changed after it was written."""
    card = _json(path)
    schema = card.get("schema")
    if schema != SCHEMA:
        if isinstance(schema, str) and schema.startswith(_KIND):
            raise LikenessError(f"{path}: a card of schema {schema}; this version reads {SCHEMA}")
        other = f" (its schema is {schema})" if isinstance(schema, str) else ""
        raise LikenessError(f"{path}: not a baseline card{other}")
    lacking = [name for name in _NEEDED if name not in card]
    if lacking:
        raise LikenessError(f"{path}: the card lacks '{lacking[0]}'")
    if card.get("sha256") != content_sha256(card):
        raise LikenessError(
            f"{path}: the card was changed after it was written (its sha256 does not match);"
            " take it from the run again"
        )
    return card


def host_of(endpoint: str) -> str:
    """Host and port of an address; the text itself where it is none ("local")."""
    address = endpoint.split(maxsplit=1)[0] if endpoint.split() else ""
    try:
        parts = urlsplit(address)
        if parts.hostname:
            return parts.hostname + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return ""
    return address


def _gate(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    found = plan.get("gate") or {}
    return found if isinstance(found, Mapping) else {}


def _compared(baseline: Mapping[str, Any], card: Mapping[str, Any]) -> dict[str, Any]:
    found = compare_cards(baseline, card)
    return {
        "with": {
            "sha256": baseline["sha256"],
            "date": baseline["run"]["date"],
            "model": baseline["model"]["asked"],
        },
        "decision": str(found.decision),
        "notices": list(found.notices),
        "lines": [
            {"state": line.state, "sentence": line.sentence}
            for line in found.lines
            if line.state != "no_change_shown"
        ],
    }


def _json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise LikenessError(f"{path}: too large for a card")
        found = json.loads(path.read_text("utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise LikenessError(f"{path}: not JSON") from None
    if not isinstance(found, dict):
        raise LikenessError(f"{path}: not a baseline card")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def alarms(card: Mapping[str, Any]) -> Sequence[str]:
    """Sentences of what must not go by unseen: limits that failed, alarms against the baseline (each
    once, though a limit on directions says the same)."""
    failed = [g["sentence"] for g in card["gate"] if g["state"] == "fail"]
    lines = card.get("compared", {}).get("lines", ())
    against = [line["sentence"] for line in lines if line["state"] == "alarm"]
    return [*failed, *(said for said in against if not any(f.endswith(said) for f in failed))]
