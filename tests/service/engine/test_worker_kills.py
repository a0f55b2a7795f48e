"""Real runs whose workers, database or pictures go away in the middle: every item ends exactly once,
and none that had ended is called again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.engine.children import command
from service.engine.worker import Bench, Worker
from service.store.artefacts import Artefacts
from service.store.database import Database
from service.store.jobs import Jobs
from service.store.ledger import DONE, Ledger
from tests.service.engine.worker_bench import bench_at, portraits_batch
from tests.service.store.service_rows import submit

PLAN = """\
name: kills
tools: [{id: style_transfer, name: style}, {id: identity, name: copy}]
controls: false
groups: [gender]
"""
PORTRAITS = 4
ITEMS = 2 * PORTRAITS
PATIENCE_S = 120.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    database = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    database.migrate()
    yield bench_at(tmp_path, database)
    database.close()


def until(true: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < ends, f"waited in vain: {what}"
        time.sleep(0.02)


class Process:
    """``likeness worker`` as a process of its own."""

    def __init__(self, home: Path, database: str, name: str) -> None:
        environment = {
            **os.environ, "LIKENESS_HOME": str(home), "LIKENESS_DATABASE": database,
            "LIKENESS_WORKERS": "1", "LIKENESS_BLOBS": str(home / "blobs"),
        }  # fmt: skip
        self._log = (home / f"{name}.log").open("w+")
        self.process = subprocess.Popen(
            command("worker", "--name", name, "--until-idle"),
            env=environment, stdin=subprocess.DEVNULL, stderr=self._log, stdout=self._log,
        )  # fmt: skip

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    def end(self) -> None:
        assert self.process.wait(PATIENCE_S) == 0, Path(self._log.name).read_text()
        self._log.close()


def check_whole(database: Database, run_id: str) -> None:
    """Each item ended once with its figures, and no more calls came to an end than there are items."""
    ledger = Ledger(database, run_id)
    items = ledger.items()
    assert len(items) == ITEMS and {i["state"] for i in items} == {DONE}
    assert {i["outcome"] for i in items} == {"measured"}
    answered = Counter(c["item_id"] for c in ledger.calls() if c["ended"] is not None)
    assert set(answered.values()) == {1} and len(answered) == ITEMS
    figures = Counter((m["item_id"], m["metric"], m["region"]) for m in ledger.measurements())
    assert set(figures.values()) == {1}
    assert {item_id for item_id, _, _ in figures} == {i["item_id"] for i in items}


def done_items(database: Database, run_id: str) -> int:
    return Ledger(database, run_id).count().get(DONE, 0)


@pytest.mark.slow
def test_a_run_goes_on_with_the_next_worker_after_each_kill(bench: Bench, tmp_path: Path) -> None:
    database = bench.database
    url = f"sqlite:///{tmp_path / 'service.sqlite3'}"
    run_id, jobs = submit(database, portraits_batch(bench, PORTRAITS), plan=PLAN), Jobs(database)
    ledger = Ledger(database, run_id)
    moments: list[Callable[[], bool]] = [
        lambda: (jobs.get(run_id) or {})["state"] == "running",
        lambda: len(ledger.portraits()) > 0,
        lambda: any(c["ended"] is None for c in ledger.calls()),
        lambda: done_items(database, run_id) > 2,
    ]
    for number, moment in enumerate(moments):
        one = Process(tmp_path, url, f"w{number}")
        until(moment, f"moment {number}")
        one.kill()
        assert jobs.release_all_of(f"w{number}") == 1
    Process(tmp_path, url, "last").end()
    row = jobs.get(run_id) or {}
    assert (row["state"], row["error"]) == ("done", None)
    check_whole(database, run_id)
    names = [a["name"] for a in Artefacts(database, bench.blobs).list(run_id)]
    assert {"report.html", "report.json", "measurements.csv", "review.csv"} <= set(names)
    assert list((tmp_path / "work").iterdir()) == [], "no faces are left lying about"


@pytest.mark.slow
def test_the_same_run_gives_the_same_report_whether_or_not_it_was_killed(
    bench: Bench, tmp_path: Path
) -> None:
    database = bench.database
    batch_id = portraits_batch(bench, PORTRAITS)
    calm = submit(database, batch_id, plan=PLAN)
    Worker(bench, "calm").run(until_idle=True)
    killed = submit(database, batch_id, plan=PLAN)
    one = Process(tmp_path, f"sqlite:///{tmp_path / 'service.sqlite3'}", "w1")
    until(lambda: done_items(database, killed) > 2, "some items")
    one.kill()
    Jobs(database).release_all_of("w1")
    Worker(bench, "w2").run(until_idle=True)
    artefacts = Artefacts(database, bench.blobs)
    first, second = (artefacts.read(r, "measurements.csv") for r in (calm, killed))
    assert first is not None and second is not None
    assert first.replace(calm.encode(), b"RUN") == second.replace(killed.encode(), b"RUN")


@pytest.mark.slow
def test_a_database_that_is_gone_for_a_while_costs_nothing(
    postgres_server: Any, postgres: str, tmp_path: Path
) -> None:
    database = Database(postgres)
    database.migrate()
    bench = bench_at(tmp_path, database)
    run_id = submit(database, portraits_batch(bench, PORTRAITS), plan=PLAN)
    said: list[str] = []
    one = Worker(bench, "w1", said.append)
    thread = threading.Thread(target=one.run, kwargs={"until_idle": True})
    thread.start()
    try:
        until(lambda: done_items(database, run_id) > 0, "the first item")
        postgres_server.stop()
        try:
            until(lambda: any("waiting for the store" in line for line in said), "it is noticed")
        finally:
            postgres_server.start()
        thread.join(PATIENCE_S)
    finally:
        one.stop()
        thread.join()
    row = Jobs(database).get(run_id) or {}
    assert (row["state"], row["error"], row["attempts"]) == ("done", None, 1)
    check_whole(database, run_id)
    database.close()


@pytest.mark.slow
def test_a_blob_store_that_is_gone_for_a_while_costs_nothing(bench: Bench) -> None:
    database = bench.database
    run_id = submit(database, portraits_batch(bench, PORTRAITS), plan=PLAN)
    said: list[str] = []
    one = Worker(bench, "w1", said.append)
    thread = threading.Thread(target=one.run, kwargs={"until_idle": True})
    thread.start()
    blobs = Path(bench.blobs.url)
    aside = blobs.with_name("aside")
    try:
        until(lambda: done_items(database, run_id) > 0, "the first item")
        blobs.rename(aside)
        blobs.write_text("a file where the folder was")
        until(lambda: any("waiting for the store" in line for line in said), "it is noticed")
        blobs.unlink()
        aside.rename(blobs)
        thread.join(PATIENCE_S)
    finally:
        one.stop()
        thread.join()
    row = Jobs(database).get(run_id) or {}
    assert (row["state"], row["error"], row["attempts"]) == ("done", None, 1)
    check_whole(database, run_id)


def test_the_program_starts_itself_as_it_was_started() -> None:
    asked = subprocess.run(
        command("worker", "--help"), capture_output=True, text=True, check=True, timeout=120
    )
    assert "queue of the service" in asked.stdout
    assert command()[0] == sys.executable
