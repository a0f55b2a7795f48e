"""Events of a run: all of them, once each, in order, whatever happens to connections."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

import httpx
import pytest

from domain.errors import StoreUnavailable
from service.api.event_stream import Newest, Watching, one_event, stream
from service.limits import Limits
from service.store.database import Database
from service.store.events import Events
from service.store.jobs import Jobs
from service.store.readings import newest_events
from tests.service.api.conftest import Service, Start
from tests.service.api.seeded import a_run, finish_run, lease

Told = list[tuple[int, str, dict[str, Any]]]


def parsed(text: str) -> Told:
    """(id, kind, data) of every whole event in a stream."""
    found: Told = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(
            line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")
        )
        if "id" in fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def follow(client: httpx.Client, run_id: str, **headers: str) -> Told:
    answer = client.get(f"/v1/runs/{run_id}/events", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    return parsed(answer.text)


def a_finished_run(service: Service, steps: int = 3) -> str:
    run_id = a_run(service.context)
    held = lease(service.context)
    for step in range(steps):
        Jobs(service.context.database).progress(held, {"measured": {"done": step, "total": steps}})
    finish_run(service.context, held, {})
    return run_id


def test_a_finished_run_tells_all_its_events_and_ends(service: Service) -> None:
    told = follow(service.client, a_finished_run(service))
    assert [kind for _, kind, _ in told] == ["queued", "running", *["progress"] * 3, "done"]
    ids = [i for i, _, _ in told]
    assert ids == sorted(set(ids))
    assert told[2][2]["measured"] == {"done": 0, "total": 3}


def test_a_watcher_that_comes_back_misses_none_and_gets_none_twice(service: Service) -> None:
    run_id = a_finished_run(service, 7)
    whole = follow(service.client, run_id)
    for cut_at in range(len(whole) - 1):
        rest = follow(service.client, run_id, **{"Last-Event-ID": str(whole[cut_at][0])})
        assert whole[: cut_at + 1] + rest == whole
    last = whole[3][0]
    answer = service.client.get(f"/v1/runs/{run_id}/events?last_event_id={last}")
    assert parsed(answer.text) == whole[4:]


def test_the_header_of_a_browser_that_reconnects_goes_before_the_address(service: Service) -> None:
    run_id = a_finished_run(service)
    whole = follow(service.client, run_id)
    answer = service.client.get(
        f"/v1/runs/{run_id}/events?last_event_id={whole[0][0]}",
        headers={"Last-Event-ID": str(whole[2][0])},
    )
    assert parsed(answer.text) == whole[3:]


def test_a_browser_that_was_told_everything_is_not_to_come_back(service: Service) -> None:
    run_id = a_finished_run(service)
    last = follow(service.client, run_id)[-1][0]
    answer = service.client.get(f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": str(last)})
    assert answer.status_code == 204


@pytest.mark.parametrize("sent", ["x", "-1", "1.5", "9" * 30, "1\t2"])
def test_an_id_that_was_never_ours_is_refused(service: Service, sent: str) -> None:
    run_id = a_run(service.context)
    answer = service.client.get(f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": sent})
    assert answer.status_code == 422


def test_many_watchers_see_the_same_as_it_happens(start_service: Start) -> None:
    service = start_service(limits=Limits(min_free_bytes=0, stream_poll_s=0.02))
    run_id = a_run(service.context)
    told: list[Told] = []
    begun = threading.Barrier(9)

    def watch() -> None:
        with (
            httpx.Client(
                base_url=service.url, headers=service.client.headers, timeout=60
            ) as client,
            client.stream("GET", f"/v1/runs/{run_id}/events") as answer,
        ):
            pieces = answer.iter_text()
            text = next(pieces)
            begun.wait(30)
            told.append(parsed(text + "".join(pieces)))

    watchers = [threading.Thread(target=watch) for _ in range(8)]
    for thread in watchers:
        thread.start()
    begun.wait(30)
    held = lease(service.context)
    for step in range(20):
        Jobs(service.context.database).progress(held, {"measured": {"done": step, "total": 20}})
    finish_run(service.context, held, {})
    for thread in watchers:
        thread.join(60)
    assert len(told) == 8
    assert all(one == told[0] for one in told)
    assert [kind for _, kind, _ in told[0]] == ["queued", "running", *["progress"] * 20, "done"]


def test_a_run_that_was_cancelled_and_resumed_is_told_to_its_real_end(service: Service) -> None:
    run_id = a_run(service.context)
    service.client.post(f"/v1/runs/{run_id}/cancel")
    assert [k for _, k, _ in follow(service.client, run_id)] == ["queued", "cancelled"]
    service.client.post(f"/v1/runs/{run_id}/resume")
    finish_run(service.context, lease(service.context), {})
    kinds = [k for _, k, _ in follow(service.client, run_id)]
    assert kinds == ["queued", "cancelled", "queued", "running", "done"]


def test_streams_have_a_limit_and_make_room_when_they_end(start_service: Start) -> None:
    service = start_service(limits=Limits(min_free_bytes=0, max_streams=1, stream_poll_s=0.02))
    run_id = a_run(service.context)
    with service.client.stream("GET", f"/v1/runs/{run_id}/events") as first:
        pieces = first.iter_text()
        next(pieces)
        with service.bearer(service.key) as second:
            refused = second.get(f"/v1/runs/{run_id}/events")
            assert refused.status_code == 503
            assert "retry-after" in refused.headers
        finish_run(service.context, lease(service.context), {})
        assert parsed("".join(pieces))[-1][1] == "done"
    assert follow(service.client, run_id)[-1][1] == "done"


def test_no_text_of_a_stranger_can_end_a_line() -> None:
    hostile = "a\n\nevent: done\ndata: x\r\u2028\u202e"
    wire = one_event(
        {"event_id": 1, "kind": "failed", "at": "t", "run_id": "r", "data": {"error": hostile}}
    )
    assert wire.isascii()
    assert wire.count(b"\n") == 4
    assert parsed(wire.decode())[0][2]["error"] == hostile


# The stream itself, without a server -------------------------------------------------------------


class Script:
    """A run whose events are appended by hand."""

    def __init__(self, count: int, over: bool) -> None:
        self.rows = [
            {"event_id": n, "kind": "progress", "at": "t", "run_id": "r", "data": {}}
            for n in range(1, count + 1)
        ]
        self.over, self.largest, self.reads, self.gone = over, 0, 0, 0

    def state(self) -> str:
        if self.gone:
            self.gone -= 1
            raise StoreUnavailable("gone")
        return "done" if self.over else "running"

    def after(self, last_id: int, limit: int) -> Sequence[Mapping[str, Any]]:
        found = [row for row in self.rows if int(str(row["event_id"])) > last_id][:limit]
        self.reads += 1
        self.largest = max(self.largest, len(found))
        return found

    def newest(self, _runs: Collection[str]) -> dict[str, int]:
        return {"r": len(self.rows)}


def streamed(script: Script, last_id: int = 0, **how: Any) -> AsyncIterator[bytes]:
    newest = Newest(script.newest, 0.001)
    return stream("r", script, newest, last_id, Watching(**{"heartbeat_s": 0.01, **how}))


async def everything(pieces: AsyncIterator[bytes]) -> str:
    return "".join([piece.decode() async for piece in pieces])


def test_a_long_history_is_read_in_pages_and_none_before_the_last_went_out() -> None:
    script = Script(1000, over=True)

    async def slowly() -> tuple[int, Told]:
        pieces = streamed(script, page=50)
        first = [await anext(pieces) for _ in range(11)]
        reads_by_then = script.reads
        return reads_by_then, parsed(b"".join(first).decode() + await everything(pieces))

    reads, told = asyncio.run(slowly())
    assert reads == 1
    assert script.largest == 50
    assert [i for i, _, _ in told] == list(range(1, 1001))


def test_silence_is_filled_with_comments() -> None:
    script = Script(1, over=False)

    async def listen() -> list[bytes]:
        pieces = streamed(script)
        return [await anext(pieces) for _ in range(4)]

    retry, event, *comments = asyncio.run(listen())
    assert retry.startswith(b"retry: ")
    assert event.startswith(b"id: 1\n")
    assert all(c.startswith(b": ") and c.endswith(b"\n\n") for c in comments)


def test_a_database_that_is_gone_for_a_while_breaks_no_stream() -> None:
    script = Script(3, over=True)
    script.gone = 2
    text = asyncio.run(everything(streamed(script)))
    assert ": the store cannot be reached" in text
    assert [i for i, _, _ in parsed(text)] == [1, 2, 3]


def test_a_stream_ends_after_its_longest_time_and_goes_on_where_it_was() -> None:
    script = Script(2, over=False)
    time = iter(range(100))
    pieces = streamed(script, longest_s=2.5, clock=lambda: float(next(time)))
    first = parsed(asyncio.run(everything(pieces)))
    script.rows.append({"event_id": 3, "kind": "done", "at": "t", "run_id": "r", "data": {}})
    script.over = True
    rest = parsed(asyncio.run(everything(streamed(script, last_id=first[-1][0]))))
    assert [i for i, _, _ in first + rest] == [1, 2, 3]


def test_a_stream_ends_when_the_service_does_and_goes_on_at_the_next() -> None:
    script, ending = Script(2, over=False), iter([False, False, False, True, True])
    pieces = streamed(script, heartbeat_s=1000.0, ending=lambda: next(ending))
    script.newest = lambda _runs: {}  # type: ignore[method-assign]
    assert [i for i, _, _ in parsed(asyncio.run(everything(pieces)))] == [1, 2]


def test_watchers_share_one_question_and_nobody_asks_when_all_are_gone() -> None:
    asked: list[int] = []

    def ask(runs: Collection[str]) -> dict[str, int]:
        asked.append(len(runs))
        return dict.fromkeys(runs, len(asked) // 5)

    async def watch() -> int:
        newest = Newest(ask, 0.001)
        waits = [newest.beyond(f"r{n % 3}", 0, 10.0) for n in range(60)]
        assert all(await asyncio.gather(*waits))
        by_then = len(asked)
        await asyncio.sleep(0.05)
        assert len(asked) <= by_then + 1
        return by_then

    assert asyncio.run(watch()) < 60
    assert max(asked) == 3


def test_newest_events_are_told_on_postgresql_too(postgres: str) -> None:
    database = Database(postgres)
    database.migrate()
    try:
        assert newest_events(database, ["r_1"]) == {}
        assert newest_events(database, []) == {}
        assert Events(database).after("r_1") == []
    finally:
        database.close()
