"""What is told of a run: its state, how far it is, when it may be done, and where everything lies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from service.api.conditional import weak_tag
from service.api.context import Context
from service.store.jobs import AUDIT, DONE, OVER, PROBES, QUEUED, Row
from service.store.readings import Readings, pace

State = Literal["queued", "running", "done", "failed", "cancelled"]
_PARTS = {
    AUDIT: ("events", "items", "measurements", "report", "verdicts", "files", "cancel", "resume"),
    PROBES: ("events", "report", "files", "cancel", "resume"),
}
_PACED = {AUDIT: "measured", PROBES: "calls"}
"""The stage by whose pace the end is guessed."""
_BEFORE = {AUDIT: "the portraits are looked at first", PROBES: "the model is tried first"}
EXAMPLE_ID = "r_5f0c2d9e8b7a4c1d3e6f9a0b"


class Step(BaseModel):
    """One stage of a run."""

    done: int
    total: int


class Run(BaseModel):
    """A run and how far it is."""

    run_id: str = Field(examples=[EXAMPLE_ID])
    kind: Literal["audit", "probes"] = Field(
        description="An audit of pictures, or text probes of a language model."
    )
    batch_id: str | None = Field(
        description="The pictures; null for text probes.", examples=["b_0a1b2c3d4e5f60718293a4b5"]
    )
    name: str
    state: State
    created: str
    started: str | None
    finished: str | None
    attempts: int = Field(description="Workers that took the run up since items last ended.")
    cancel_requested: bool
    error: str | None = Field(description="Why a failed run could not go on.")
    items: dict[str, int] = Field(
        description="Items by state; all that the run will have, once it has planned them."
    )
    outcomes: dict[str, int] = Field(description="Items that have ended, by how they ended.")
    progress: dict[str, Step]
    eta_s: float | None = Field(
        description="Seconds until the last item is measured or the last call answered, a guess."
    )
    eta_reason: str | None = Field(description="Why there is no guess.")
    links: dict[str, str]


def status_of(context: Context, job: Row) -> Run:
    """Read what is known of a job now."""
    states, outcomes = Readings(context.database, job["run_id"]).counts()
    seconds, reason = _eta(context, job)
    same = (
        "run_id", "kind", "batch_id", "name", "state", "created", "started", "finished", "attempts", "error"
    )  # fmt: skip
    return Run(
        **{name: job[name] for name in same},
        cancel_requested=bool(job["cancel_requested"]),
        items=states,
        outcomes=outcomes,
        progress=_steps(job["stages"]),
        eta_s=seconds,
        eta_reason=reason,
        links=links_of(job["run_id"], job["kind"]),
    )


def links_of(run_id: str, kind: str = AUDIT) -> dict[str, str]:
    """Where the parts of a run of that kind lie."""
    here = f"/v1/runs/{run_id}"
    return {"self": here} | {part: f"{here}/{part}" for part in _PARTS[kind]}


def tag_of(run: Run) -> str:
    """Changes with everything but the guess of when it will be done, which changes by itself."""
    return weak_tag(run.model_dump_json(exclude={"eta_s", "eta_reason"}))


def _steps(stages: Any) -> dict[str, Step]:
    found = {}
    for name, stage in (stages if isinstance(stages, Mapping) else {}).items():
        if isinstance(stage, Mapping) and "total" in stage:
            found[str(name)] = Step(done=int(stage.get("done", 0)), total=int(stage["total"]))
    return found


def _eta(context: Context, job: Row) -> tuple[float | None, str | None]:
    """By the pace since a worker took the run up: what came before says nothing of this worker."""
    if job["state"] in OVER:
        return (0.0, None) if job["state"] == DONE else (None, f"the run is {job['state']}")
    if job["state"] == QUEUED:
        return None, "the run waits for a worker"
    paced = _PACED[job["kind"]]
    now = _steps(job["stages"]).get(paced)
    if now is None:
        return None, _BEFORE[job["kind"]]
    if now.done >= now.total:
        return None, "nothing is left to wait for but the report"
    both = pace(context.database, job["run_id"])
    first = _steps(both[0]["data"]).get(paced, Step(done=0, total=0)) if both else None
    last = _steps(both[1]["data"]).get(paced) if both else None
    if both is None or first is None or last is None or last.done <= first.done:
        return None, "too little is measured to tell" if job[
            "kind"
        ] == AUDIT else "too few calls are answered to tell"
    took = _seconds(both[0]["at"], both[1]["at"])
    per_item = took / (last.done - first.done)
    seconds = per_item * (last.total - last.done)
    return (round(seconds, 1), None) if math.isfinite(seconds) else (None, "cannot be told")


def _seconds(begun: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
