"""Many runs in one database: each sees itself alone, whatever the others do at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from domain.errors import Conflict
from service.store.database import Database
from service.store.ledger import CALLING, DONE, EDITED, PLANNED, Ledger

ITEMS = 12


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = (
        f"sqlite:///{tmp_path}/service.sqlite3"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres")
    )
    with closing(Database(url)) as opened:
        opened.migrate()
        yield opened


def begun(database: Database, run_id: str, plan: str = "p") -> Ledger:
    """A run with one portrait and its items; all runs have the same ids in them."""
    ledger = Ledger(database, run_id)
    ledger.begin({
        "plan_sha256": plan, "plan_text": plan, "started": "2026", "seconds": 0.0,
        "versions": {}, "inputs": {},
    })  # fmt: skip
    ledger.add_portraits([{
        "portrait_id": "a.jpg", "seq": 0, "subject_id": run_id, "attributes": {}, "accepted": 1,
        "face_found": 1, "reason": None, "facts": {}, "face": None, "warnings": [], "sha256": "",
    }])  # fmt: skip
    ledger.add_items([
        {
            "item_id": f"i{seq}", "seq": seq, "portrait_id": "a.jpg", "tool": "t",
            "tool_id": "identity", "control": 0, "task": "restyle", "perturbation": "none",
            "seed": 1, "state": PLANNED, "outcome": None, "reason": None,
        }
        for seq in range(ITEMS)
    ])  # fmt: skip
    return ledger


def figure(item_id: str, value: float) -> dict[str, Any]:
    return {
        "item_id": item_id, "metric": "flrr", "region": "face", "position": 0, "value": value,
        "unit": "%", "status": "measured", "reason": None,
    }  # fmt: skip


def do_item(ledger: Ledger, item_id: str, value: float, outcome: str = "measured") -> None:
    call = ledger.begin_call(item_id, 1)
    ledger.end_call(call, item_id, {"result": "edited"}, {"state": EDITED, "edited": "bb"})
    ledger.finish_item(item_id, {"outcome": outcome}, [figure(item_id, value)])


def do_all(ledger: Ledger, value: float) -> None:
    for seq in range(ITEMS):
        do_item(ledger, f"i{seq}", value)


def test_a_run_sees_and_changes_nothing_of_another(database: Database) -> None:
    first, second = begun(database, "r_1", "one"), begun(database, "r_2", "two")
    do_item(first, "i0", 1.5, outcome="failed")
    first.begin_call("i1", 1)
    first.set_run(finished="today")
    untouched = second.run()
    assert untouched is not None and untouched["plan_text"] == "two"
    assert untouched["finished"] is None
    assert second.count() == {PLANNED: ITEMS}
    assert second.calls() == second.measurements() == second.items(DONE, CALLING) == []
    assert [p["subject_id"] for p in second.portraits()] == ["r_2"]
    assert (first.cut_off("i1"), second.cut_off("i1")) == (1, 0)
    assert second.plan_failed_again() == 0
    assert first.item("i0")["state"] == DONE
    assert first.plan_failed_again() == 1
    assert first.run() == {**(first.run() or {}), "finished": None}
    assert Ledger(database, "r_3").run() is None


def test_a_run_is_begun_once(database: Database) -> None:
    begun(database, "r_1")
    with pytest.raises(Conflict):
        begun(database, "r_1")
    assert len(Ledger(database, "r_1").items()) == ITEMS


def test_closing_a_run_leaves_the_database_to_the_others(database: Database) -> None:
    first, second = begun(database, "r_1"), begun(database, "r_2")
    first.close()
    do_all(second, 2.0)
    assert second.count() == {DONE: ITEMS}


def test_an_outcome_that_is_recorded_twice_counts_once(database: Database) -> None:
    ledger = begun(database, "r_1")
    do_item(ledger, "i0", 1.0)
    ledger.finish_item("i0", {"outcome": "measured"}, [figure("i0", 1.0)])
    assert [m["value"] for m in ledger.measurements()] == [1.0]
    twice = [figure("i1", 1.0), figure("i1", 2.0)]
    with pytest.raises(Conflict):
        ledger.finish_item("i1", {"outcome": "measured"}, twice)
    assert ledger.item("i1")["state"] == PLANNED


def test_runs_that_write_at_the_same_time_lose_nothing_to_each_other(database: Database) -> None:
    ledgers = [begun(database, f"r_{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(do_all, ledgers, range(4)))
    for number, ledger in enumerate(ledgers):
        assert ledger.count() == {DONE: ITEMS}
        assert {m["value"] for m in ledger.measurements()} == {float(number)}
        assert len(ledger.measurements()) == len(ledger.calls()) == ITEMS
        assert [i["seq"] for i in ledger.items()] == list(range(ITEMS))
    assert len({c["call_id"] for ledger in ledgers for c in ledger.calls()}) == 4 * ITEMS


def work(url: str, run_id: str, value: float) -> None:
    with closing(Database(url)) as database:
        do_all(Ledger(database, run_id), value)


def test_runs_of_several_processes_lose_nothing_to_each_other(database: Database) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    ledgers = [begun(database, f"r_{number}") for number in range(3)]
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=work, args=(url, ledger.run_id, number))
        for number, ledger in enumerate(ledgers)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    for number, ledger in enumerate(ledgers):
        assert ledger.count() == {DONE: ITEMS}
        assert {m["value"] for m in ledger.measurements()} == {float(number)}
