"""``POST /v1/gate``: one edited picture, one decision, at once.

The answer is that of ``likeness gate --json``, from the same function. Pass, fail and inconclusive are
all 200: the decision is the content. What the command line calls "could not run" is a problem.
Nothing is stored: pictures live in memory, or in a temporary file without a name, until the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, File, Form, Request, Response, UploadFile
from pydantic import BaseModel, Field, WithJsonSchema
from starlette.requests import ClientDisconnect

from service import settings
from service.api.context import Context, ContextOf
from service.api.problem_kinds import kind
from service.api.problems import Busy, Problem, problems
from service.api.security import Caller, needs
from service.engine.gate_pool import GateAnswer, GatePool, Pair, PoolFull, Room, Ticket
from service.engine.local import Machine
from service.gate import ExitCode

kind(
    "unreadable-picture",
    422,
    "Picture unreadable",
    "'part' says which of the files it is, the detail what is wrong with it. The pair was not judged:"
    " likeness gate ends with exit code 2 here.",
)
kind(
    "pair-not-measured",
    422,
    "Pair not measured",
    "The pair took longer than the service allows, or ended the process that measured it, twice."
    " Sending it again will most likely do the same; other pairs are not affected.",
)


class Figure(BaseModel):
    """One figure, or the reason why there is none."""

    value: float | None
    unit: str
    status: Literal["measured", "not_measurable"]
    reason: str | None = None


class HealthOf(BaseModel):
    """A profile's score with its decision; 0 to 100, null where a part is missing."""

    score: float | None
    decision: Literal["pass", "fail", "inconclusive"]
    profile: str
    min_score: float
    reasons: list[str]


class GateDecision(BaseModel):
    """`health.decision` decides. The same as `likeness gate --json` prints."""

    outcome: str = Field(description="measured, face_lost, blank or not_measurable.")
    reason: str | None
    engine: str
    metrics: dict[str, Figure]
    regions: dict[str, dict[str, Figure]]
    health: HealthOf
    profiles: dict[str, HealthOf]
    warnings: list[str]
    second_engine: dict[str, Any] | None = Field(
        default=None, description="What the other engine found, where it was asked."
    )


_SAID = "no face in the edit: no face found"
_HEALTH = {
    "score": 0.0, "decision": "fail", "profile": "document", "min_score": 85.0, "reasons": [_SAID],
}  # fmt: skip
EXAMPLE: dict[str, Any] = {
    "outcome": "face_lost",
    "reason": _SAID,
    "engine": "mediapipe",
    "metrics": {
        "flrr": {"value": 0.0, "unit": "%", "status": "measured", "reason": "face_lost"},
    },
    "regions": {},
    "health": _HEALTH,
    "profiles": {"document": _HEALTH},
    "warnings": [],
}
"""Without a null in it: the framework leaves those out of its description."""


class Gate:
    """The pool of one application, made at its first pair."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: GatePool | None = None
        self._closed = False

    def pool(self, context: Context) -> GatePool:
        """The pool; its processes start with the first call. Raises PoolFull once it is closed."""
        with self._lock:
            if self._closed:
                raise PoolFull(1)
            if self._pool is None:
                limits, chosen = context.limits, settings.load()
                workers = limits.gate_processes or chosen.workers
                room = Room(
                    Machine.this(chosen.models, workers).workers,
                    limits.gate_waiting,
                    limits.gate_waiting_bytes,
                    limits.gate_timeout_s,
                )
                self._pool = GatePool(chosen.models, room, limits.pictures())
            return self._pool

    def close(self) -> None:
        """End its processes."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None:
            pool.close()


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.gate = Gate()
    try:
        yield
    finally:
        await asyncio.to_thread(app.state.gate.close)


router = APIRouter(tags=["gate"], lifespan=_lifespan)


@router.post(
    "/gate",
    summary="Decide on one edited picture",
    response_model=GateDecision,
    responses={
        200: {
            "description": "Pass, fail or inconclusive: `health.decision` says which.",
            "content": {"application/json": {"example": EXAMPLE}},
        },
        **problems(401, 403, 413, 422),
    },
)
async def decide_on_pair(
    request: Request,
    context: ContextOf,
    _caller: Annotated[Caller, Depends(needs("submit"))],
    original: Annotated[UploadFile, File(description="The picture as it was sent to the tool.")],
    edited: Annotated[UploadFile, File(description="What the tool returned.")],
    *,
    mask: Annotated[
        UploadFile | None,
        WithJsonSchema({"type": "string", "format": "binary"}),  # a form has no null to send
        File(description="Black and white, the original's size; white where the tool was to edit."),
    ] = None,
    profile: Annotated[
        Literal["document", "even"], Form(description="The health profile that decides.")
    ] = "document",
    min_score: Annotated[
        float, Form(ge=0, le=100, allow_inf_nan=False, description="Least health to pass.")
    ] = 85.0,
    engine: Annotated[
        Literal["mediapipe", "dlib"], Form(description="Which landmark engine speaks.")
    ] = "mediapipe",
) -> Response:
    """Measures the pair and answers as `likeness gate --json` does; nothing is stored."""
    most = context.limits.max_file_bytes
    pair = Pair(
        await _bytes(original, "original", most),
        await _bytes(edited, "edited", most),
        None if mask is None else await _bytes(mask, "mask", most),
        engine,
        profile,
        min_score,
    )
    gate: Gate = request.app.state.gate
    try:
        pool = gate.pool(context)
        ticket = pool.submit(pair)
    except PoolFull as full:
        raise Busy("all measuring processes are busy", full.retry_after) from None
    del pair
    answer = await _answer(request, pool, ticket)
    if answer.code is ExitCode.COULD_NOT_RUN:
        raise _problem(answer, engine, context)
    return Response(answer.body, media_type="application/json")


async def _bytes(upload: UploadFile, part: str, most: int) -> bytes:
    if (upload.size or 0) > most:
        raise Problem(413, "too-large", f"{part}: larger than {most} bytes", limit=most, part=part)
    return await upload.read()


async def _answer(request: Request, pool: GatePool, ticket: Ticket) -> GateAnswer:
    """The pair's answer; when the client goes away first, its place is given up."""
    answer = asyncio.wrap_future(ticket.future)
    gone = asyncio.create_task(_gone(request))
    first: set[asyncio.Future[Any]] = {answer, gone}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise ClientDisconnect
    except asyncio.CancelledError:
        if not ticket.future.cancelled():
            raise  # this request was cancelled, not the pair
        raise _closing() from None
    finally:
        gone.cancel()
        pool.abandon(ticket)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _problem(answer: GateAnswer, engine: str, context: Context) -> Problem:
    if answer.cause == "unreadable":
        said = f"{answer.part}: {answer.reason}"
        return Problem(422, "unreadable-picture", said, part=answer.part)
    if answer.cause == "not_ready":  # the reason names files of this machine
        retry = {"Retry-After": str(context.limits.store_retry_s)}
        said = f"the engine {engine} is not ready here"
        return Problem(503, "not-ready", said, headers=retry, missing=["models"])
    if answer.cause == "closing":
        return _closing()
    return Problem(422, "pair-not-measured", answer.reason, cause=answer.cause)


def _closing() -> Busy:
    return Busy("the service is shutting down", 5)
