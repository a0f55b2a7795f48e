"""Which runs a caller may see: those of the batches and runs that their own key made."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path

from service.api.context import ContextOf
from service.api.problem_kinds import kind
from service.api.problems import Problem
from service.api.security import Caller, needs
from service.store.jobs import AUDIT, DONE, OVER, Jobs, Row

kind(
    "run-not-finished",
    409,
    "Run not finished",
    "What was asked for exists once the run is done; 'state' tells where it is. Ask again after"
    " Retry-After, or follow /events.",
)
kind(
    "run-ended",
    409,
    "Run ended without a report",
    "The run failed or was cancelled, so there is no report; /resume lets it go on where it stood.",
)

Reader = Annotated[Caller, Depends(needs("read"))]
Submitter = Annotated[Caller, Depends(needs("submit"))]
RunId = Annotated[
    str,
    Path(
        pattern=r"^r_[0-9a-f]{24}$",
        description="Id of the run.",
        examples=["r_5f0c2d9e8b7a4c1d3e6f9a0b"],
    ),
]


def _run_to_read(run_id: RunId, context: ContextOf, caller: Reader) -> dict[str, Any]:
    return _own(run_id, context, caller)


def _run_to_change(run_id: RunId, context: ContextOf, caller: Submitter) -> dict[str, Any]:
    return _own(run_id, context, caller)


def _own(run_id: str, context: ContextOf, caller: Caller) -> dict[str, Any]:
    """The job's row. 404 both for a run that is not there and for one of another key: whoever asks
    must not learn which it is."""
    job = Jobs(context.database).get(run_id)
    if job is None or not caller.owns(job["owner"]):
        raise Problem(404, "not-found", f"there is no run {run_id}")
    return dict(job)


def _audit_to_read(job: Annotated[dict[str, Any], Depends(_run_to_read)]) -> dict[str, Any]:
    """A run of text probes has no pictures, and so no items, measurements or verdicts by group."""
    if job["kind"] != AUDIT:
        said = f"run {job['run_id']} is one of text probes: what it found is in its /report"
        raise Problem(404, "not-found", said)
    return job


RunToRead = Annotated[dict[str, Any], Depends(_run_to_read)]
AuditToRead = Annotated[dict[str, Any], Depends(_audit_to_read)]
RunToChange = Annotated[dict[str, Any], Depends(_run_to_change)]


def need_done(job: Row, retry_s: int) -> None:
    """Answer 409 unless the run is done, with what the caller can do about it."""
    state = job["state"]
    if state == DONE:
        return
    if state in OVER:
        raise Problem(409, "run-ended", f"the run is {state} and has no report", state=state)
    raise Problem(
        409, "run-not-finished", f"the run is {state}; its report is written when it is done",
        headers={"Retry-After": str(retry_s)}, state=state,
    )  # fmt: skip
