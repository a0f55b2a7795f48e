"""The JSON answer about one pair, the same for the command line and the service."""

from __future__ import annotations

from typing import Any

from domain.measurements import FACE_REGION, Health, Measurement, PairResult
from service.gate import decide


def of_figure(m: Measurement) -> dict[str, Any]:
    """``{value, unit, status}``, with ``reason`` where there is one."""
    answer: dict[str, Any] = {"value": m.value, "unit": m.unit, "status": m.status.value}
    if m.reason:
        answer["reason"] = m.reason
    return answer


def of_health(h: Health) -> dict[str, Any]:
    """``{score, decision, profile, min_score, reasons}``."""
    return {
        "score": h.score,
        "decision": h.decision.value,
        "profile": h.profile,
        "min_score": h.threshold,
        "reasons": list(h.reasons),
    }


def of_pair(result: PairResult) -> dict[str, Any]:
    """``{outcome, reason, engine, metrics, regions, health, profiles, warnings}``."""
    figures = {m.metric: of_figure(m) for m in result.measurements if m.region == FACE_REGION}
    regions: dict[str, dict[str, Any]] = {}
    for m in result.measurements:
        if m.region != FACE_REGION:
            regions.setdefault(m.region, {})[m.metric] = of_figure(m)
    answer: dict[str, Any] = {
        "outcome": result.outcome.value,
        "reason": result.reason,
        "engine": result.engine,
        "metrics": figures,
        "regions": regions,
        "health": of_health(decide(result)),
        "profiles": {name: of_health(h) for name, h in result.health.items()},
        "warnings": list(result.warnings),
    }
    if "second_engine" in result.evidence:
        answer["second_engine"] = result.evidence["second_engine"]
    return answer
