"""Several threads call one tool: nothing is called twice, nothing forgotten, nothing different."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import adapters.contract
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused
from service import calling, runs
from service.engine.lane import Lane
from service.pacing import Pacing
from service.store.ledger import DONE, EDITED, PLANNED
from tests.service.scripted import Scripted, Time, begin, picture, write_plan


class Watch:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.lines: list[str] = []

    def stage(self, name: str, total: int) -> None:
        pass

    def step(self, name: str) -> None:
        self.steps.append(name)

    def say(self, text: str) -> None:
        self.lines.append(text)


@contextmanager
def a_run(
    folder: Path, tool: Scripted, monkeypatch: pytest.MonkeyPatch, count: int = 6, more: str = ""
) -> Iterator[runs.Run]:
    class Module:
        SPEC = tool.spec

        @staticmethod
        def build(settings: Any) -> Scripted:
            return tool

    monkeypatch.setattr(adapters.contract, "discover", lambda: {"scripted": (tool.spec, Module)})
    folder.mkdir(exist_ok=True)
    run = begin(write_plan(folder, f"[{{id: scripted, name: tool{more}}}]", count))
    tool.closed = 0  # once it was made only to be asked for its spec
    yield run
    run.ledger.close()


def work(
    run: runs.Run,
    stop: threading.Event | None = None,
    pacing: Pacing | None = None,
    todo: Sequence[Any] | None = None,
) -> tuple[list[str], Watch, Lane]:
    watch, ready = Watch(), []
    items = run.ledger.items() if todo is None else todo
    lane = Lane(run, "tool", items, stop or threading.Event(), watch, pacing)
    with ThreadPoolExecutor(lane.width) as threads:
        jobs = [threads.submit(lane.work, ready.append) for _ in range(lane.width)]
    for job in jobs:
        job.result()
    return ready, watch, lane


def by_name(request: EditRequest) -> EditOutcome:
    """The answer hangs on the portrait alone."""
    number = int(request.original_name[1:-4])
    if number % 3 == 1:
        return Refused("input", "blocked", "no")
    return Edited(picture(100 + number), {"request_id": f"r{number}"})


def test_as_many_calls_are_under_way_as_the_plan_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(3, timeout=30)

    def meet(request: EditRequest) -> EditOutcome:
        together.wait()  # would break if fewer than three were here at once
        return Edited(b"x")

    tool = Scripted(meet, remote=True)
    with a_run(tmp_path, tool, monkeypatch, more=", concurrency: 3") as run:
        ready, _, lane = work(run)
        assert lane.width == 3 and len(ready) == 6
        assert len({c["item_id"] for c in run.ledger.calls()}) == tool.calls == 6


def test_outcomes_do_not_hang_on_how_many_threads_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    for threads in (1, 4):
        tool = Scripted(by_name, remote=True)
        folder = tmp_path / str(threads)
        with a_run(folder, tool, monkeypatch, more=f", concurrency: {threads}") as run:
            work(run)
            names = ("item_id", "portrait_id", "state", "outcome", "reason", "edited", "meta")
            kept.append([{n: i[n] for n in names} for i in run.ledger.items()])
    assert kept[0] == kept[1]
    assert [i["state"] for i in kept[0]] == [EDITED, DONE, EDITED] * 2


def test_the_tool_is_made_once_and_closed_once_by_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Scripted(by_name, remote=True, concurrency=4)
    with a_run(tmp_path, tool, monkeypatch) as run:
        _, watch, lane = work(run)
    assert lane.width == 4 and tool.closed == 1
    assert watch.steps.count("edited") == 6 and watch.steps.count("measured") == 2


def test_after_a_wrong_key_nothing_more_is_sent_and_every_item_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Failed("HTTP 401: wrong key", meta={"stop": True, "http_status": 401})
    tool = Scripted(Edited(b"x"), wrong, remote=True)
    with a_run(tmp_path, tool, monkeypatch) as run:
        ready, watch, _ = work(run)
        items = run.ledger.items()
        assert tool.calls == 2 and len(run.ledger.calls()) == 2 and len(ready) == 1
    assert [i["outcome"] for i in items] == [None, *["failed"] * 5]
    assert items[1]["reason"] == "HTTP 401: wrong key"
    assert {i["reason"] for i in items[2:]} == {"not sent: HTTP 401: wrong key"}
    assert watch.steps.count("edited") == 6


def test_warm_up_calls_come_first_are_thrown_away_and_stay_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(request: EditRequest) -> EditOutcome:
        asked.append(request.original_name)
        return Failed("waking up") if len(asked) == 1 else Edited(picture(len(asked)))

    tool = Scripted(answer, remote=True)
    with a_run(tmp_path, tool, monkeypatch, count=2, more=", warm_up: 3") as run:
        ready, watch, _ = work(run)
        calls = run.ledger.calls()
        items = run.ledger.items()
    assert asked == ["p0.png"] * 4 + ["p1.png"] and len(ready) == 2
    assert [c["kind"] for c in calls] == ["warm_up"] * 3 + ["item"] * 2
    assert calls[0]["reason"] == "waking up"
    assert watch.lines == ["tool: warm-up 1 of 3 failed: waking up"]
    assert [i["attempts"] for i in items] == [1, 1]
    assert {i["state"] for i in items} == {EDITED}


def test_a_tool_with_nothing_left_to_do_is_neither_made_nor_warmed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Scripted(Edited(b"x"), remote=True)
    with a_run(tmp_path, tool, monkeypatch, more=", warm_up: 3") as run:
        lane = Lane(run, "tool", [], threading.Event(), Watch())
        assert lane.width == 0
        lane.work(lambda _item: None)
    assert tool.calls == 0


def test_stopping_ends_a_wait_and_leaves_the_item_to_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()

    def busy(request: EditRequest) -> EditOutcome:
        stop.set()
        return Failed("busy", retryable=True, retry_after=50.0, meta={"http_status": 429})

    tool = Scripted(busy, Edited(b"x"), remote=True)
    with a_run(tmp_path, tool, monkeypatch) as run:
        ready, watch, _ = work(run, stop)
        first, *others = run.ledger.items()
        assert ready == [] and watch.steps == [] and tool.calls == 1 and tool.closed == 1
        assert (first["state"], first["outcome"]) == ("calling", None)
        assert {i["state"] for i in others} == {PLANNED}
        ready, _, _ = work(run)
        assert len(ready) == 6, "a wait cut short is no death: the item is called again"
        assert run.ledger.item(first["item_id"])["attempts"] == 2


def test_a_named_wait_holds_all_threads_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time()
    begun: list[float] = []

    def answer(request: EditRequest) -> EditOutcome:
        begun.append(time.now)
        if len(begun) == 1:
            return Failed("slow down", retryable=True, retry_after=40.0)
        return Edited(b"x")

    tool = Scripted(answer, remote=True)
    pacing = Pacing(wait=time.wait, clock=time.clock, chance=lambda: 0.0)
    with a_run(tmp_path, tool, monkeypatch) as run:
        ready, _, _ = work(run, pacing=pacing)
    assert len(ready) == 6 and begun[0] == 1000.0 and min(begun[1:]) >= 1040.0


def test_a_tool_that_cannot_be_made_fails_its_items_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Scripted(Edited(b"x"), remote=True, concurrency=3)
    with a_run(tmp_path, tool, monkeypatch) as run:
        monkeypatch.setattr(calling, "build_tool", lambda *_: 1 / 0)
        ready, watch, _ = work(run)
        items = run.ledger.items()
    assert ready == [] and watch.lines == ["tool: ZeroDivisionError: division by zero"]
    assert {i["outcome"] for i in items} == {"failed"}
    assert "could not be started: ZeroDivisionError" in items[5]["reason"]
