"""A lease that beats, a ledger that writes only under it, and patience with stores that are gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from domain.errors import Conflict, StoreUnavailable
from service.engine import leases
from service.engine.leases import Heart, HeldDatabase, Patience, PatientBlobs, PatientLedger, pauses
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.jobs import Jobs, Lease, LeaseLost
from service.store.ledger import Ledger
from service.store.tables import portraits
from tests.service.store.service_rows import submit

GONE = StoreUnavailable("the database: connection refused")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "postgres":
        opened = Database(request.getfixturevalue("postgres"))
    else:
        opened = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(leases, "LONGEST_BEAT", 0.005)


def lease_of(database: Database) -> tuple[Jobs, Lease]:
    jobs = Jobs(database)
    submit(database)
    lease = jobs.lease("w1", 1000)
    assert lease is not None
    return jobs, lease


def row(portrait_id: str) -> dict[str, Any]:
    return {
        "portrait_id": portrait_id, "seq": 0, "subject_id": "s", "attributes": {}, "accepted": 1,
        "face_found": 1, "reason": None, "facts": {}, "face": None, "warnings": [], "sha256": "",
    }  # fmt: skip


def test_a_ledger_writes_while_its_lease_stands_and_not_a_row_after(database: Database) -> None:
    jobs, lease = lease_of(database)
    ledger = Ledger(HeldDatabase(database, lease), lease.run_id)
    ledger.add_portraits([row("a")])
    jobs.release_all_of("w1")
    assert jobs.lease("w2", 1000) is not None
    with pytest.raises(LeaseLost):
        ledger.add_portraits([row("b")])
    assert [p["portrait_id"] for p in ledger.portraits()] == ["a"]


def test_a_run_that_was_cancelled_takes_no_late_row_either(database: Database) -> None:
    jobs, lease = lease_of(database)
    ledger = Ledger(HeldDatabase(database, lease), lease.run_id)
    jobs.stopped(lease)
    with pytest.raises(LeaseLost):
        ledger.add_portraits([row("a")])
    assert ledger.portraits() == []


def test_the_heart_hears_that_the_run_is_cancelled(database: Database) -> None:
    jobs, lease = lease_of(database)
    heart = Heart(jobs, lease, 1000)
    jobs.cancel(lease.run_id)
    assert heart.stop.wait(30) and heart.cancelled and not heart.lost
    assert heart.fresh_stop().is_set(), "another try must not begin"
    heart.close()


def test_the_heart_hears_that_the_run_is_somebody_elses(database: Database) -> None:
    jobs, lease = lease_of(database)
    heart = Heart(jobs, lease, 1000)
    jobs.release_all_of("w1")
    while jobs.lease("w2", 1000) is None:  # a beat in between may renew the lease
        jobs.release_all_of("w1")
    assert heart.stop.wait(30) and heart.lost
    heart.close()


class Silent(Jobs):
    """A queue whose database is gone for the first beats."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.beats = 0
        self.heard = threading.Event()

    def heartbeat(self, lease: Lease, seconds: float, progressed: bool = False) -> bool:
        self.beats += 1
        if self.beats <= 3:
            raise GONE
        self.heard.set()
        return super().heartbeat(lease, seconds, progressed)


def test_a_database_that_is_gone_stops_no_heart(database: Database) -> None:
    _, lease = lease_of(database)
    silent = Silent(database)
    heart = Heart(silent, lease, 1000)
    heart.progressed()
    assert silent.heard.wait(30)
    heart.close()
    assert not heart.stop.is_set() and not heart.lost


def test_pauses_grow_to_a_limit() -> None:
    wait = pauses()
    found = [next(wait) for _ in range(20)]
    assert found[0] == leases.FIRST_PAUSE and found[-1] == leases.LONGEST_PAUSE
    assert found == sorted(found)


class Flaky:
    """Fails as it is told to, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def patient(over: threading.Event | None = None) -> tuple[Patience, list[str]]:
    said: list[str] = []
    return Patience(over or threading.Event(), said.append), said


def test_a_step_is_tried_until_its_store_is_back() -> None:
    patience, said = patient()
    step = Flaky(GONE, GONE)
    assert patience.of(step) == "answer" and step.calls == 3
    assert said == ["waiting for the store: the database: connection refused"] * 2


def test_a_worker_that_is_told_to_end_waits_no_longer() -> None:
    over = threading.Event()
    over.set()
    with pytest.raises(StoreUnavailable):
        patient(over)[0].of(Flaky(GONE))


def test_what_got_through_although_its_answer_was_lost_is_not_entered_twice() -> None:
    patience, _ = patient()
    assert patience.once(Flaky(GONE, Conflict("it is there")), "there") == "there"
    with pytest.raises(Conflict):
        patience.once(Flaky(Conflict("another's")), "there")


def test_a_patient_ledger_and_blob_store_outlast_an_absence(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience, said = patient()
    left = {"begin": 2, "put": 2, "get": 1}

    def gone_first(name: str, real: Any) -> Any:
        def step(*arguments: Any) -> Any:
            if left[name]:
                left[name] -= 1
                raise GONE
            return real(*arguments)

        return step

    monkeypatch.setattr(Blobs, "put", gone_first("put", Blobs.put))
    monkeypatch.setattr(Blobs, "get", gone_first("get", Blobs.get))
    blobs = PatientBlobs(str(tmp_path / "blobs"), patience)
    assert blobs.get(blobs.put(b"bytes")) == b"bytes"
    _, lease = lease_of(database)
    ledger = PatientLedger(HeldDatabase(database, lease), lease.run_id, patience)
    monkeypatch.setattr(HeldDatabase, "begin", gone_first("begin", HeldDatabase.begin))
    ledger.add_portraits([row("a")])
    assert [p["portrait_id"] for p in ledger.portraits()] == ["a"]
    assert len(said) == 5


def test_a_row_written_before_the_connection_broke_stands_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience, _ = patient()
    _, lease = lease_of(database)
    ledger = PatientLedger(HeldDatabase(database, lease), lease.run_id, patience)
    real, broken = Ledger._write, [True]

    def write(self: Ledger, *steps: Any) -> None:
        real(self, *steps)
        if broken:
            broken.clear()
            raise GONE  # committed, but the answer was lost

    monkeypatch.setattr(Ledger, "_write", write)
    ledger.add_portraits([row("a")])
    assert [p["portrait_id"] for p in ledger.portraits()] == ["a"]
    with pytest.raises(Conflict), database.begin() as link:
        link.execute(insert(portraits), [row("a") | {"run_id": lease.run_id}])
