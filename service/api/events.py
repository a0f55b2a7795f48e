"""The events of a run, as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.api.context import Context, ContextOf
from service.api.event_stream import Newest, Row, Watching, stream
from service.api.own_runs import RunId, RunToRead
from service.api.problems import Busy, Problem, problems
from service.api.security import in_thread
from service.api.waiting import ending_of
from service.store.events import Events
from service.store.jobs import OVER, Jobs
from service.store.readings import newest_events

router = APIRouter(tags=["runs"])
MEDIA_TYPE = "text/event-stream"
LARGEST_ID = 2**63 - 1
_EXAMPLE = (
    "id: 41\nevent: progress\n"
    'data: {"at": "2026-03-01T12:00:00.000+00:00", "measured": {"done": 12, "total": 48}}\n\n'
)


class Watchers:
    """The streams of one application: how many there are, and the question they share."""

    def __init__(self, context: Context) -> None:
        self.newest = Newest(partial(newest_events, context.database), context.limits.stream_poll_s)
        self.count = 0


class _Source:
    """The events and the state of one run, from the database."""

    def __init__(self, context: Context, run_id: str) -> None:
        self._run = run_id
        self._jobs, self._events = Jobs(context.database), Events(context.database)

    def state(self) -> str:
        job = self._jobs.get(self._run)
        return str(job["state"]) if job else ""

    def after(self, last_id: int, limit: int) -> Sequence[Row]:
        return self._events.after(self._run, last_id, limit)


@router.get(
    "/runs/{run_id}/events",
    summary="Follow a run",
    response_class=Response,
    responses={
        200: {
            "description": "Server-sent events: `queued`, `running`, `progress`, `note`, and at the end"
            " `done`, `failed` or `cancelled`. The stream ends after that.",
            # no type: OpenAPI 3.1 does not say whether it were the stream's or one event's
            "content": {MEDIA_TYPE: {"schema": {}, "example": _EXAMPLE}},
        },
        204: {"description": "The run has ended and all of it was told: do not connect again."},
        **problems(401, 403, 404, 422, 503),
    },
)
async def follow_run(
    request: Request,
    run_id: RunId,
    _job: RunToRead,
    context: ContextOf,
    *,
    last_event_id: Annotated[
        int | None,
        Query(ge=0, le=LARGEST_ID, description="Go on after this event; the header comes first."),
    ] = None,
    seen: Annotated[
        str | None,
        Header(alias="Last-Event-ID", description="As browsers send it when they reconnect."),
    ] = None,
) -> Response:
    """Every event has an id that grows; a watcher that reconnects with the last id it saw misses
    none and gets none twice."""
    last = _id_in(seen) if seen is not None else last_event_id or 0
    source = _Source(context, run_id)
    if last and await in_thread(partial(_all_told, source, last)):
        return Response(status_code=204)
    watchers = _watchers(request, context)
    if watchers.count >= context.limits.max_streams:
        raise Busy("too many streams at a time", context.limits.busy_retry_s)
    how = Watching(longest_s=context.limits.max_stream_s, ending=ending_of(request))
    return _Counted(watchers, stream(run_id, source, watchers.newest, last, how))


def _id_in(text: str) -> int:
    """Browsers send back the id as they got it; what was never one of ours is refused."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_ID):
        raise Problem(
            422, "invalid", "1 mistake in what was sent",
            errors=[{"parameter": "Last-Event-ID", "in": "header", "detail": "not an event's id",
                     "code": "event_id"}],
        )  # fmt: skip
    return int(text)


def _all_told(source: _Source, last_id: int) -> bool:
    return source.state() in OVER and not source.after(last_id, 1)


def _watchers(request: Request, context: Context) -> Watchers:
    state: Any = request.app.state
    if not hasattr(state, "watchers"):
        state.watchers = Watchers(context)
    found: Watchers = state.watchers
    return found


class _Counted(StreamingResponse):
    """A stream that is counted from its first byte to its last, however it ends."""

    def __init__(self, watchers: Watchers, content: AsyncIterator[bytes]) -> None:
        # a proxy that gathers what it passes on would hold events back
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        super().__init__(content, media_type=MEDIA_TYPE, headers=headers)
        self._watchers = watchers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._watchers.count += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._watchers.count -= 1
