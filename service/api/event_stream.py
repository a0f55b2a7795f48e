"""The events of a run as a stream that any number of watchers may follow, from where each left off.

All watchers of a process share one question to the database ("which runs have something new?"); a
watcher then reads its own events, a page at a time, and reads no further before that page has gone
out. So its memory is bounded however slow it is, and the database sees watchers only when something
happens.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool

from domain.errors import LedgerError
from service.store.jobs import OVER

Row = Mapping[str, Any]
HEARTBEAT_S = 15.0
"""The longest silence: proxies close what is silent for longer."""
PAGE = 200
RETRY_MS = 2000
"""How long a browser waits before it connects again."""
LOOK_S = 1.0
"""How often a stream on which nothing happens asks whether the service is ending."""


class Newest:
    """Tells watchers when their run has something new. One for a process; belongs to its loop."""

    def __init__(
        self, ask: Callable[[Collection[str]], Mapping[str, int]], every_s: float = 0.5
    ) -> None:
        """``ask`` gives the newest event's id of each of some runs; it is called in a thread."""
        self._ask, self._every = ask, every_s
        self._watched: Counter[str] = Counter()
        self._known: dict[str, int] = {}
        self._news = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None

    async def beyond(self, run_id: str, last_id: int, timeout_s: float) -> bool:
        """Wait for an event of the run with an id above ``last_id``. False: none came in time."""
        self._watched[run_id] += 1
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._keep_asking())
        try:
            async with asyncio.timeout(timeout_s):
                while self._known.get(run_id, 0) <= last_id:
                    await self._news.wait()
            return True
        except TimeoutError:
            return False
        finally:
            self._watched[run_id] -= 1
            if not self._watched[run_id]:
                del self._watched[run_id]
                self._known.pop(run_id, None)

    async def _keep_asking(self) -> None:
        """Until nobody watches any more."""
        while self._watched:
            try:
                found = await run_in_threadpool(self._ask, list(self._watched))
            except LedgerError:  # gone for the moment: its watchers keep their place
                found = {}
            if any(self._known.get(run, 0) < newest for run, newest in found.items()):
                self._known |= {run: new for run, new in found.items() if run in self._watched}
                news, self._news = self._news, asyncio.Event()
                news.set()
            await asyncio.sleep(self._every)


class Source(Protocol):
    """What a stream reads. Called in threads."""

    def state(self) -> str:
        """The run's state, "" when it is there no more."""

    def after(self, last_id: int, limit: int) -> Sequence[Row]:
        """Events above ``last_id``, oldest first."""


@dataclass(frozen=True, slots=True)
class Watching:
    """How one stream is followed. ``longest_s`` ends it, and so does ``ending``, which says that the
    service is being stopped: the watcher connects again."""

    heartbeat_s: float = HEARTBEAT_S
    longest_s: float = 3600.0
    page: int = PAGE
    clock: Callable[[], float] = time.monotonic
    ending: Callable[[], bool] = lambda: False


async def stream(
    run_id: str, source: Source, newest: Newest, last_id: int, how: Watching
) -> AsyncIterator[bytes]:
    """The run's events above ``last_id`` in the format of server-sent events, with a comment when
    nothing happens for long. Ends when the run has ended and all is told."""
    ends_at = how.clock() + how.longest_s
    yield f"retry: {RETRY_MS}\n\n".encode()
    while how.clock() < ends_at and not how.ending():
        try:
            over, rows = await run_in_threadpool(_read, source, last_id, how.page)
        except LedgerError:
            yield b": the store cannot be reached at the moment\n\n"
            await asyncio.sleep(min(2.0, how.heartbeat_s))
            continue
        for row in rows:
            yield one_event(row)
            last_id = row["event_id"]
        if len(rows) == how.page:
            continue
        if over:
            return
        if not await _news(newest, run_id, last_id, how):
            yield b": nothing new\n\n"


async def _news(newest: Newest, run_id: str, last_id: int, how: Watching) -> bool:
    """Wait for news until the next heartbeat is due, or until the service ends."""
    left = how.heartbeat_s
    while left > 0 and not how.ending():
        if await newest.beyond(run_id, last_id, min(LOOK_S, left)):
            return True
        left -= LOOK_S
    return False


def _read(source: Source, last_id: int, limit: int) -> tuple[bool, Sequence[Row]]:
    """The state is read before the events: the last event is entered together with it."""
    over = source.state() in (*OVER, "")
    return over, source.after(last_id, limit)


def one_event(row: Row) -> bytes:
    """An event on the wire. Its data is JSON in ASCII, so that no text in it can end a line."""
    data = json.dumps({"at": row["at"], "run_id": row["run_id"], **(row["data"] or {})})
    return f"id: {row['event_id']}\nevent: {row['kind']}\ndata: {data}\n\n".encode()
