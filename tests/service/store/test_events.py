"""Events and files of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.store.artefacts import Artefacts
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.events import Events
from tests.service.store.service_rows import submit


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    opened.migrate()
    yield opened
    opened.close()


def test_a_watcher_who_was_away_gets_what_he_missed_once_and_in_order(database: Database) -> None:
    events, run_id, other = Events(database), submit(database), submit(database)
    for number in range(4):
        events.append(run_id, "note", {"number": number})
        events.append(other, "note", {"number": 100})
    first = events.after(run_id, limit=3)
    rest = events.after(run_id, first[-1]["event_id"])
    assert [e["data"].get("number") for e in [*first, *rest]] == [None, 0, 1, 2, 3]
    assert events.after(run_id, rest[-1]["event_id"]) == []
    ids = [e["event_id"] for e in [*first, *rest]]
    assert ids == sorted(set(ids))


def test_a_file_is_found_by_name_with_its_type_and_size(database: Database, tmp_path: Path) -> None:
    artefacts, run_id = Artefacts(database, Blobs(str(tmp_path / "blobs"))), submit(database)
    artefacts.put(run_id, "report.html", b"<p>one</p>")
    artefacts.put(run_id, "report.json", b"{}")
    row = artefacts.get(run_id, "report.html")
    assert row is not None
    assert (row["media_type"], row["bytes"]) == ("text/html; charset=utf-8", 10)
    assert artefacts.read(run_id, "report.json") == b"{}"
    assert [r["name"] for r in artefacts.list(run_id)] == ["report.html", "report.json"]


def test_a_file_put_again_replaces_the_first(database: Database, tmp_path: Path) -> None:
    artefacts, run_id = Artefacts(database, Blobs(str(tmp_path / "blobs"))), submit(database)
    artefacts.put(run_id, "report.json", b"{}")
    artefacts.put(run_id, "report.json", b"[1]")
    assert artefacts.read(run_id, "report.json") == b"[1]"
    assert len(artefacts.list(run_id)) == 1


def test_a_file_that_is_not_there_is_none(database: Database, tmp_path: Path) -> None:
    artefacts = Artefacts(database, Blobs(str(tmp_path / "blobs")))
    assert artefacts.get("r_none", "report.html") is None
    assert artefacts.read("r_none", "report.html") is None
