"""What a probe report is made from: one run of a probe plan, flat and complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probes.calls import Status
from probes.results import BeforeAfter, Composite, CostLine, GateLine, ProbeResult


@dataclass(frozen=True, slots=True)
class CallStats:
    """What asking came to. ``asked`` counts calls, ``attempts`` requests; ``remembered`` replies
    that were there already; ``dropped`` the parameters that were wished for and not sent, with the
    calls concerned; ``models`` and ``fingerprints`` the strings that replies named. ``cost`` is by
    currency, empty where no price is known."""

    asked: int = 0
    remembered: int = 0
    attempts: int = 0
    statuses: Mapping[Status, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, int] = field(default_factory=dict)
    fingerprints: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    latency_median_s: float | None = None
    cost: Mapping[str, float] = field(default_factory=dict)
    stopped_by: str = ""


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """The whole run. ``endpoint`` is told without key and without what stands in an address beside
    host and path. ``abilities`` are what the endpoint was found to take."""

    run_id: str
    name: str
    purpose: str
    started: str
    finished: str
    seconds: float
    seed: int
    alpha: float
    plan_text: str
    plan: Mapping[str, Any]
    endpoint: str
    model: str
    abilities: Mapping[str, Any]
    results: tuple[ProbeResult, ...]
    composites: tuple[Composite, ...] = ()
    before_after: tuple[BeforeAfter, ...] = ()
    gate: tuple[GateLine, ...] = ()
    costs: tuple[CostLine, ...] = ()
    stats: CallStats = CallStats()
    notices: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
