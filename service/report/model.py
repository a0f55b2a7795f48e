"""What a report is made from: one run, flat and complete, read from the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.measurements import Health, Outcome
from domain.plan import AuditPlan
from domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One portrait x perturbation x task x tool, however it ended.

    ``tool`` is the label in the plan. ``original`` and ``edited`` are keys for
    ``RunData.load_picture``; None where there is no such picture. ``evidence`` is PairResult's.
    """

    item_id: str
    portrait_id: str
    subject_id: str
    attributes: Mapping[str, str]
    tool: str
    tool_id: str
    control: bool
    task: str
    perturbation: str
    outcome: Outcome
    reason: str | None
    seconds: float | None = None
    model: str = ""
    attempts: int = 0
    health: Mapping[str, Health] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    original: str | None = None
    edited: str | None = None


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One figure of one item; ``value`` is None exactly when ``status`` is not "measured"."""

    item_id: str
    metric: str
    region: str
    value: float | None
    unit: str
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class InstrumentRow:
    """What the instrument saw on one untouched portrait.

    ``attributes`` also holds the computed "measured_ita_group". ``facts`` are figures of the
    original (ied, luminance, detail energy), None with the reason in ``reason`` where no face was
    found or the file was rejected.
    """

    portrait_id: str
    subject_id: str
    attributes: Mapping[str, str]
    accepted: bool
    face_found: bool
    reason: str | None
    facts: Mapping[str, float | None] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ControlFinding:
    """What one control had to show, and what the instrument found. ``ok`` is None where the
    portraits were too few to show anything."""

    control: str
    expected: str
    found: str
    ok: bool | None


def controls_ok(controls: Sequence[ControlFinding]) -> bool | None:
    """False when a control came out otherwise than planted, None when none was run or one could
    not show anything, True when all came out as planted."""
    states = {c.ok for c in controls}
    if False in states:
        return False
    return None if None in states or not states else True


@dataclass(frozen=True)
class RunData:
    """The whole run. ``inputs`` maps each file (plan, manifest, portraits) to its sha256."""

    run_id: str
    plan: AuditPlan
    plan_text: str
    started: str
    finished: str
    items: Sequence[ItemRow]
    measurements: Sequence[MeasurementRow]
    instrument: Sequence[InstrumentRow]
    verdicts: Sequence[Verdict]
    controls: Sequence[ControlFinding]
    versions: Mapping[str, str]
    inputs: Mapping[str, str]
    seconds: float
    load_picture: Callable[[str], bytes]
    paired: Sequence[Verdict] = ()
    """Counterfactual pairs: the same face with one attribute changed."""
