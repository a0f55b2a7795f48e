"""Runs: an audit plan over a batch, begun, followed, cancelled and resumed."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from service import presets
from service.api.conditional import has_already, not_modified
from service.api.context import Context, ContextOf, context_of
from service.api.idempotent import once_id
from service.api.own_runs import Reader, RunId, RunToChange, RunToRead, Submitter
from service.api.paging import Cursors, CursorText, PageSize, cut, link_next
from service.api.problem_kinds import kind
from service.api.problems import Problem, problems
from service.api.run_request import RunRequest, checked, enqueue, plan_in
from service.api.run_status import Run, State, status_of, tag_of
from service.api.security import Caller, in_thread
from service.api.tools import offers
from service.api.waiting import PreferText, ending_of, until, wait_in
from service.store.jobs import (
    CANCELLED,
    DONE,
    OVER,
    PROBES,
    QUEUED,
    RUNNING,
    Jobs,
    Row,
    new_run_id,
)
from service.store.readings import batch
from service.webhooks import message_of

router = APIRouter(tags=["runs"])
kind(
    "cannot-cancel",
    409,
    "Run already ended",
    "A run that is done or has failed cannot be cancelled; there is nothing left to stop.",
)
kind(
    "cannot-resume",
    409,
    "Run cannot be resumed",
    "Only a run that failed or was cancelled goes on where it stood, and only while its batch is there.",
)


class RunPage(BaseModel):
    """Runs, the newest first."""

    items: list[Run]
    next: str | None


class Preset(BaseModel):
    """A ready-made plan."""

    name: str = Field(examples=["self-test"])
    plan: str = Field(description="The plan's text, as YAML.")


class Presets(BaseModel):
    """Ready-made plans by name."""

    items: list[Preset]


_STARTED = {
    "headers": {
        "Location": {"description": "The run.", "schema": {"type": "string"}},
        "Retry-After": {"description": "Seconds until it is worth asking.", "schema": {"type": "integer"}},
        "Preference-Applied": {"description": "What of `Prefer` was heeded.", "schema": {"type": "string"}},
    }
}  # fmt: skip


@router.post(
    "/runs",
    summary="Begin a run over a batch",
    status_code=202,
    response_model=Run,
    responses={
        202: _STARTED | {"description": "The run waits for a worker, or is under way."},
        200: _STARTED | {"description": "The run ended within the time of `Prefer: wait`.", "model": Run},
        **problems(400, 401, 403, 404, 409, 410, 413, 415, 422, 503),
    },
)  # fmt: skip
async def create_run(
    request: Request,
    response: Response,
    body: RunRequest,
    caller: Submitter,
    context: ContextOf,
    prefer: PreferText = None,
) -> Run:
    """The plan is checked first, and its mistakes are told with their lines. What it needs of the
    batch is checked as well, so that a run that cannot work is not begun."""
    run_id = once_id(request, "r_") or new_run_id()
    job = await in_thread(partial(_submit, context, caller, run_id, body))
    response.headers["Location"] = f"/v1/runs/{job['run_id']}"
    run = await _followed(request, response, job["run_id"], prefer)
    response.status_code = 200 if run.state in OVER else 202
    return run


def _submit(context: Context, caller: Caller, run_id: str, body: RunRequest) -> Row:
    text = plan_in(body, context.limits.max_plan_bytes)
    loaded = checked(context, caller, body, text, offers(context.server.tools))
    name = body.name or loaded.plan.name
    return enqueue(context, caller, run_id, body.batch_id, name, text, body.webhook_url)


async def _followed(request: Request, response: Response, run_id: str, prefer: str | None) -> Run:
    """The run's status, after waiting for its end as long as ``Prefer`` asks."""
    context = context_of(request)
    seconds = wait_in(prefer)
    if seconds is not None:
        response.headers["Preference-Applied"] = f"wait={seconds}"
    jobs = Jobs(context.database)
    job = await until(
        partial(jobs.get, run_id),
        lambda row: row is None or row["state"] in OVER,
        seconds,
        ending_of(request),
    )
    if job is None:
        raise Problem(404, "not-found", f"there is no run {run_id}")
    run = await in_thread(partial(status_of, context, job))
    if run.state not in OVER:
        response.headers["Retry-After"] = str(context.limits.poll_after_s)
    return run


@router.get(
    "/runs",
    summary="Runs, the newest first",
    response_model=RunPage,
    responses=problems(400, 401, 403, 422, 503),
)
def list_runs(
    request: Request,
    response: Response,
    caller: Reader,
    context: ContextOf,
    *,
    state: Annotated[State | None, Query(description="Only in this state.")] = None,
    cursor: CursorText = None,
    limit: PageSize = 100,
) -> RunPage:
    """Those of the caller's key; all of them for an administrator."""
    owner = None if caller.is_admin else caller.key_id
    cursors = Cursors(context.secret, "runs", owner, state)
    before = cursors.read(cursor)
    rows = Jobs(context.database).list(
        owner, (before[0], before[1]) if before else None, limit + 1, state
    )
    page, more = cut(rows, limit, cursors, lambda row: (row["created"], row["run_id"]))
    link_next(request, response, more)
    return RunPage(items=[status_of(context, row) for row in page], next=more)


@router.get(
    "/runs/{run_id}",
    summary="A run and how far it is",
    response_model=Run,
    responses={
        200: _STARTED,
        304: {"description": "Nothing has changed since the answer with this ETag."},
        **problems(401, 403, 404, 422, 503),
    },
)
async def get_run(
    request: Request,
    response: Response,
    run_id: RunId,
    _job: RunToRead,
    context: ContextOf,
    prefer: PreferText = None,
) -> Any:
    """`Retry-After` is there until the run has ended."""
    run = await _followed(request, response, run_id, prefer)
    tag = tag_of(run)
    kept = {n: response.headers[n] for n in ("Retry-After", "Preference-Applied") if n in response.headers}  # fmt: skip
    if has_already(request, tag):
        return not_modified(tag, kept)
    response.headers["ETag"] = tag
    return run


@router.post(
    "/runs/{run_id}/cancel",
    summary="Let a run end",
    status_code=202,
    response_model=Run,
    responses={
        202: {"description": "It stops as soon as the calls under way have ended."},
        200: {"description": "It is cancelled.", "model": Run},
        **problems(401, 403, 404, 409, 422, 503),
    },
)
def cancel_run(response: Response, run_id: RunId, job: RunToChange, context: ContextOf) -> Run:
    """What was measured stays. Cancelling a cancelled run changes nothing."""
    jobs = Jobs(context.database)
    told = message_of(job, CANCELLED)
    state = job["state"] if job["state"] in OVER else jobs.cancel(run_id, told)
    if state in (DONE, "failed"):
        raise Problem(
            409, "cannot-cancel", f"the run is {state}; there is nothing to cancel", state=state
        )
    response.status_code = 200 if state == CANCELLED else 202
    return _answered(context, response, run_id)


@router.post(
    "/runs/{run_id}/resume",
    summary="Let a run go on where it stood",
    status_code=202,
    response_model=Run,
    responses={
        202: {"description": "It waits for a worker, or is under way already."},
        **problems(401, 403, 404, 409, 422, 503),
    },
)
def resume_run(response: Response, run_id: RunId, job: RunToChange, context: ContextOf) -> Run:
    """For one that failed or was cancelled: no item that has ended is sent to its tool again.
    Resuming a run that is on its way changes nothing."""
    _check_resumable(context, job)
    jobs = Jobs(context.database)
    if not jobs.requeue(run_id):
        now = jobs.get(run_id)  # somebody else was quicker, or it was on its way all the time
        if now is None or now["state"] not in (QUEUED, RUNNING):
            raise Problem(409, "cannot-resume", "the run has ended meanwhile")
    return _answered(context, response, run_id)


def _check_resumable(context: Context, job: Row) -> None:
    if job["state"] == DONE:
        raise Problem(409, "cannot-resume", "the run is done; nothing is left to do", state=DONE)
    if job["state"] == RUNNING and job["cancel_requested"]:
        retry = {"Retry-After": str(context.limits.poll_after_s)}
        said = "the run is being cancelled; resume it when it has stopped"
        raise Problem(409, "cannot-resume", said, headers=retry, state=RUNNING)
    if job["kind"] == PROBES:
        return
    found = batch(context.database, job["batch_id"])
    if found is None or found["state"] == "deleted":
        raise Problem(409, "cannot-resume", "its batch was deleted", state=job["state"])


def _answered(context: Context, response: Response, run_id: str) -> Run:
    job = Jobs(context.database).get(run_id)
    if job is None:
        raise Problem(404, "not-found", f"there is no run {run_id}")
    if job["state"] not in OVER:
        response.headers["Retry-After"] = str(context.limits.poll_after_s)
    return status_of(context, job)


@router.get(
    "/presets",
    summary="Ready-made plans",
    response_model=Presets,
    responses=problems(401, 403),
)
def list_presets(_caller: Reader) -> Presets:
    """Each can be run as it is, or changed and sent as a plan."""
    return Presets(items=[Preset(name=n, plan=text) for n, text in presets.PRESETS.items()])
