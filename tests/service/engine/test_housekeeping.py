"""Webhooks are sent and old things deleted beside the runs, whatever goes wrong in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.errors import StoreUnavailable
from service.engine import housekeeping
from service.engine.housekeeping import Housekeeper
from service.limits import Limits
from service.store.blobs import Blobs
from service.store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    opened.migrate()
    yield opened
    opened.close()


def keep(database: Database, tmp_path: Path, said: list[str]) -> Housekeeper:
    return Housekeeper(
        database, Blobs(str(tmp_path / "blobs")), Limits(), b"s" * 32, say=said.append
    )


def test_both_are_done_at_the_start_and_at_every_turn_although_one_failed(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "LOOK_S", 0.001)
    monkeypatch.setattr(housekeeping, "SWEEP_S", 0.001)
    turns = {"tell": 0, "sweep": 0}
    enough = {"tell": threading.Event(), "sweep": threading.Event()}
    faults: dict[str, list[Exception]] = {
        "tell": [StoreUnavailable("the database is gone")],
        "sweep": [ValueError("a face: secret")],
    }

    def turn(name: str) -> None:
        turns[name] += 1
        if faults[name]:
            raise faults[name].pop()
        if turns[name] >= 3:
            enough[name].set()

    def sweep(*_: Any, **__: Any) -> dict[str, int]:
        turn("sweep")
        return {"batches": 2, "events": 0}

    monkeypatch.setattr(housekeeping.webhooks, "send_due", lambda *_, **__: turn("tell"))
    monkeypatch.setattr(housekeeping.retention, "sweep", sweep)
    said: list[str] = []
    keeper = keep(database, tmp_path, said)
    assert enough["tell"].wait(60) and enough["sweep"].wait(60)
    keeper.close()
    assert "tell: tried again in 0.001 s: the database is gone" in said
    assert "sweep: a fault of the program (ValueError)" in said
    assert "past their time and deleted: 2 batches" in said
    assert not any("secret" in line for line in said)


def test_with_nothing_to_do_nothing_is_said(database: Database, tmp_path: Path) -> None:
    said: list[str] = []
    keep(database, tmp_path, said).close(60)
    assert said == []
