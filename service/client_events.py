"""Follows a run: by its stream of events as long as there is one, else by asking again and again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from service.client_answers import OVER, Run
from service.client_wire import ServerProblem, ServerWire
from service.engine.progress import Progress

SILENCE = httpx.Timeout(60.0, connect=10.0)
"""The server says something every 15 seconds; a connection silent for longer is dead."""
LOOK_S = 2.0
"""Seconds between two questions where there is no stream."""
BROKEN_STREAMS = 3
"""Streams in a row that ended without an event, before a run is asked after instead."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a run."""

    id: int
    kind: str
    data: Mapping[str, Any]


def events_in(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a stream (the format of server-sent events). One whose data cannot be read, or
    that has no id, is left out; so is one that the stream's end cut off."""
    number, kind, data = "", "message", list[str]()
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "id":
                    number = value
                case "event":
                    kind = value
                case "data":
                    data.append(value)
            continue
        event = _event(number, kind, "\n".join(data)) if data else None
        kind, data = "message", []
        if event is not None:
            yield event


def _event(number: str, kind: str, data: str) -> Event | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    if not isinstance(found, dict) or not (number.isascii() and number.isdigit()):
        return None
    return Event(int(number), kind, found)


class Told:
    """Turns counts, which arrive in any order and more than once, into steps of a ``Progress``."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stages: dict[str, tuple[int, int]] = {}

    def counts(self, stages: Mapping[str, Any]) -> None:
        """``{name: {"done": 3, "total": 12}}``. Other members are left aside."""
        for name, stage in stages.items():
            if isinstance(stage, Mapping) and {"done", "total"} <= set(stage):
                self._stage(name, int(stage["done"]), int(stage["total"]))

    def _stage(self, name: str, done: int, total: int) -> None:
        known = self._stages.get(name)
        # fewer than before: another worker took the run up, and counts what is left to it
        if known is None or known[1] != total or known[0] > done:
            self._progress.stage(name, total)
            known = (0, total)
        for _ in range(done - known[0]):
            self._progress.step(name)
        self._stages[name] = (done, total)

    def event(self, event: Event) -> None:
        """Pass on what an event tells."""
        if event.kind == "note":
            self._progress.say(str(event.data.get("text", "")))
        else:
            self.counts(event.data)


class Follower:
    """Follows one run to its end."""

    def __init__(
        self,
        wire: ServerWire,
        run_id: str,
        look: Callable[[], Run],
        progress: Progress,
        sleep: Callable[[float], object],
    ) -> None:
        """``look`` asks for the run's state; it may raise what ``ServerWire.ask`` raises."""
        self._wire, self._path, self._look = wire, f"/v1/runs/{run_id}/events", look
        self._told, self._sleep = Told(progress), sleep
        self.last_id = 0

    def to_the_end(self) -> Run:
        """The run as it ended. Raises Unreachable when the server stays away."""
        fruitless = 0
        while True:
            if fruitless < BROKEN_STREAMS:
                fruitless = 0 if self._listen() else fruitless + 1
            # a stream's end does not say that the run has ended: it may have gone on since
            run = self._look()
            if run.over:
                self._told.counts(run.progress)
                return run
            if fruitless:
                self._told.counts(run.progress)
                self._sleep(LOOK_S)

    def _listen(self) -> bool:
        """Pass events on until the stream ends. Returns whether there was any."""
        before = self.last_id
        headers = {"Accept": "text/event-stream"}
        if self.last_id:
            headers["Last-Event-ID"] = str(self.last_id)
        try:
            with self._wire.stream(self._path, headers=headers, timeout=SILENCE) as answer:
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    for event in events_in(answer.iter_lines()):
                        self.last_id = max(self.last_id, event.id)
                        self._told.event(event)
                        if event.kind in OVER:
                            break
        except httpx.TransportError:
            pass  # cut off: the next stream goes on behind the last event seen
        except ServerProblem as problem:
            if problem.status not in (406, 429, 502, 503, 504):
                raise
        return self.last_id > before
