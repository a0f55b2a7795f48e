"""The ledger keeps every step, in order, and never half of one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from domain.errors import LedgerError
from service.store.ledger import CALLING, DONE, EDITED, PLANNED, Ledger


def portrait(name: str = "a.jpg") -> dict[str, Any]:
    return {
        "portrait_id": name,
        "seq": 0,
        "subject_id": "s",
        "attributes": {"gender": "female"},
        "accepted": 1,
        "face_found": 1,
        "reason": None,
        "facts": {},
        "face": None,
        "warnings": [],
        "sha256": "",
    }


def item(item_id: str, seq: int = 0) -> dict[str, Any]:
    return {
        "item_id": item_id,
        "seq": seq,
        "portrait_id": "a.jpg",
        "tool": "t",
        "tool_id": "identity",
        "control": 0,
        "task": "restyle",
        "perturbation": "none",
        "seed": 1,
        "state": PLANNED,
        "outcome": None,
        "reason": None,
    }


def figure(item_id: str, metric: str, value: float | None) -> dict[str, Any]:
    return {
        "item_id": item_id,
        "metric": metric,
        "region": "face",
        "position": 0,
        "value": value,
        "unit": "%",
        "status": "measured" if value is not None else "not_measurable",
        "reason": None if value is not None else "why",
    }


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    opened = Ledger.at(tmp_path / "run" / "ledger.sqlite3")
    opened.add_portraits([portrait()])
    yield opened
    opened.close()


def test_an_item_moves_through_its_states_and_keeps_its_figures(ledger: Ledger) -> None:
    ledger.add_items([item("i1"), item("i2", 1)])
    call = ledger.begin_call("i1", 1)
    assert ledger.item("i1")["state"] == CALLING
    ledger.end_call(call, "i1", {"result": "edited"}, {"state": EDITED, "edited": "abc"})
    assert [i["item_id"] for i in ledger.items(EDITED)] == ["i1"]
    ledger.finish_item("i1", {"outcome": "measured"}, [figure("i1", "flrr", 0.1 + 0.2)])
    assert ledger.count() == {DONE: 1, PLANNED: 1}
    assert ledger.measurements()[0]["value"] == 0.1 + 0.2


def test_a_call_that_never_ended_stays_on_record(ledger: Ledger, tmp_path: Path) -> None:
    ledger.add_items([item("i1")])
    ledger.begin_call("i1", 1)
    ledger.close()
    again = Ledger.at(tmp_path / "run" / "ledger.sqlite3")
    [call] = again.calls()
    assert call["ended"] is None and call["attempt"] == 1
    again.close()


def test_a_failed_transaction_leaves_nothing_of_itself(ledger: Ledger) -> None:
    ledger.add_items([item("i1")])
    twice = [figure("i1", "flrr", 1.0), figure("i1", "flrr", 2.0)]
    with pytest.raises(LedgerError):
        ledger.finish_item("i1", {"outcome": "measured"}, twice)
    assert ledger.item("i1")["state"] == PLANNED
    assert ledger.measurements() == []


def test_a_missing_figure_comes_back_missing(ledger: Ledger) -> None:
    ledger.add_items([item("i1")])
    ledger.finish_item("i1", {"outcome": "not_measurable"}, [figure("i1", "csi", None)])
    [row] = ledger.measurements()
    assert row["value"] is None and row["reason"] == "why"


def test_a_file_that_is_no_ledger_is_refused_in_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "ledger.sqlite3"
    bad.write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(LedgerError, match="the ledger cannot be used") as caught:
        Ledger.at(bad)
    assert "\n" not in str(caught.value)


def test_many_may_open_a_fresh_ledger_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: Ledger.at(tmp_path / "ledger.sqlite3"), range(16)))
    assert all(ledger.run() is None for ledger in opened)
    for ledger in opened:
        ledger.close()
