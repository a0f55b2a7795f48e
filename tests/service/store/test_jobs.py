"""Who works on which run, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import LikenessError
from service.store.database import Database
from service.store.deliveries import Deliveries, message
from service.store.events import Events
from service.store.jobs import Jobs, Lease, LeaseLost, held
from tests.service.store.service_rows import make_batch, submit

LONG = 1000.0


class Clock:
    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "postgres":
        opened = Database(request.getfixturevalue("postgres"))
    else:
        opened = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    opened.migrate()
    yield opened
    opened.close()


def leased(jobs: Jobs, worker: str = "w1", seconds: float = LONG) -> Lease:
    lease = jobs.lease(worker, seconds)
    assert lease is not None
    return lease


def test_a_run_waits_is_worked_on_and_is_done(database: Database) -> None:
    jobs, run_id = Jobs(database), submit(database)
    assert jobs.counts()["queued"] == 1
    lease = leased(jobs)
    assert lease.run_id == run_id and lease.row["state"] == "running" and lease.row["started"]
    jobs.progress(lease, {"edited": {"done": 1, "total": 2}})
    jobs.finish(lease)
    row = jobs.get(run_id)
    assert row is not None and row["state"] == "done" and row["finished"]
    assert row["stages"] == {"edited": {"done": 1, "total": 2}}
    kinds = [e["kind"] for e in Events(database).after(run_id)]
    assert kinds == ["queued", "running", "progress", "done"]
    assert jobs.lease("w2", LONG) is None


def test_the_oldest_run_is_taken_first(database: Database) -> None:
    jobs = Jobs(database)
    runs = [submit(database) for _ in range(3)]
    rows = sorted((jobs.get(r) or {} for r in runs), key=lambda r: (r["created"], r["run_id"]))
    assert [leased(jobs).run_id for _ in runs] == [r["run_id"] for r in rows]


def test_workers_that_ask_at_once_never_get_the_same_run(database: Database) -> None:
    jobs = Jobs(database)
    runs = {submit(database) for _ in range(12)}
    got: list[str] = []
    start = threading.Barrier(6)

    def work(name: str) -> None:
        start.wait()
        while (lease := jobs.lease(name, LONG)) is not None:
            got.append(lease.run_id)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(runs)


def test_a_run_whose_worker_fell_silent_is_taken_over_and_counts_the_death(
    database: Database,
) -> None:
    clock = Clock()
    jobs = Jobs(database, clock)
    submit(database)
    first = leased(jobs, seconds=30)
    clock.now += 29
    assert jobs.lease("w2", 30) is None
    clock.now += 2
    second = leased(jobs, "w2", 30)
    assert second.run_id == first.run_id and second.row["attempts"] == 2
    for late in (
        lambda: jobs.heartbeat(first, 30),
        lambda: jobs.progress(first, {}),
        lambda: jobs.finish(first),
        lambda: jobs.fail(first, "reason"),
        lambda: jobs.stopped(first),
    ):
        with pytest.raises(LeaseLost, match="another worker has taken it over"):
            late()
    assert (jobs.get(first.run_id) or {})["state"] == "running"


def test_a_beat_after_the_lease_ran_out_holds_it_while_nobody_else_came(
    database: Database,
) -> None:
    clock = Clock()
    jobs = Jobs(database, clock)
    submit(database)
    lease = leased(jobs, seconds=30)
    clock.now += 300  # the database was gone for so long
    assert jobs.heartbeat(lease, 30) is False
    assert jobs.lease("w2", 30) is None


def test_one_worker_of_the_same_name_does_not_pass_for_its_predecessor(database: Database) -> None:
    clock = Clock()
    jobs = Jobs(database, clock)
    submit(database)
    first = leased(jobs, "w1", 30)
    clock.now += 31
    leased(jobs, "w1", 30)
    with pytest.raises(LeaseLost):
        jobs.heartbeat(first, 30)


def test_progress_forgives_the_deaths_of_earlier_workers(database: Database) -> None:
    clock = Clock()
    jobs = Jobs(database, clock)
    submit(database)
    for _ in range(3):
        lease = leased(jobs, seconds=30)
        clock.now += 31
    lease = leased(jobs, seconds=30)
    assert lease.row["attempts"] == 4
    jobs.heartbeat(lease, 30, progressed=True)
    assert (jobs.get(lease.run_id) or {})["attempts"] == 1


def test_what_is_given_back_is_free_at_once_and_counts_no_death(database: Database) -> None:
    jobs = Jobs(database)
    submit(database)
    lease = leased(jobs)
    jobs.release(lease)
    again = leased(jobs, "w2")
    assert again.row["attempts"] == 1
    with pytest.raises(LeaseLost):
        jobs.heartbeat(lease, LONG)


def test_the_runs_of_a_worker_known_to_be_dead_are_free_at_once(database: Database) -> None:
    jobs = Jobs(database)
    submit(database)
    submit(database)
    mine, other = leased(jobs, "host-10"), leased(jobs, "host-1")
    assert set(jobs.workers()) == {"host-10", "host-1"}
    assert jobs.release_all_of("host-1") == 1
    assert leased(jobs, "w2").run_id == other.run_id
    assert jobs.heartbeat(mine, LONG) is False


def test_a_waiting_run_is_cancelled_at_once_and_can_be_resumed(database: Database) -> None:
    jobs, run_id = Jobs(database), submit(database)
    assert jobs.cancel(run_id) == "cancelled"
    assert jobs.lease("w1", LONG) is None
    assert jobs.requeue(run_id) is True
    row = leased(jobs).row
    assert row["run_id"] == run_id and row["cancel_requested"] == 0 and row["finished"] is None
    assert jobs.requeue(run_id) is False, "a run under way has nothing to resume"


def test_a_run_under_way_hears_of_its_cancellation_at_the_next_beat(database: Database) -> None:
    jobs, run_id = Jobs(database), submit(database)
    lease = leased(jobs)
    assert jobs.heartbeat(lease, LONG) is False
    assert jobs.cancel(run_id) == "running"
    assert jobs.heartbeat(lease, LONG) is True
    jobs.stopped(lease)
    assert (jobs.get(run_id) or {})["state"] == "cancelled"


def test_a_run_whose_worker_is_gone_is_cancelled_at_once(database: Database) -> None:
    clock = Clock()
    jobs, run_id = Jobs(database, clock), submit(database)
    lease = leased(jobs, seconds=30)
    clock.now += 31
    assert jobs.cancel(run_id) == "cancelled"
    with pytest.raises(LeaseLost):
        jobs.heartbeat(lease, 30)


def test_a_run_that_is_not_there_cannot_be_cancelled(database: Database) -> None:
    assert Jobs(database).cancel("r_none") is None
    assert Jobs(database).get("r_none") is None


def test_the_end_and_the_message_about_it_are_written_together(database: Database) -> None:
    jobs, run_id = Jobs(database), submit(database)
    lease = leased(jobs)
    jobs.fail(lease, "the reason", message(run_id, "https://example.com/", "run.failed", "{}"))
    assert (jobs.get(run_id) or {})["error"] == "the reason"
    assert [d["event"] for d in Deliveries(database).of_run(run_id)] == ["run.failed"]
    with pytest.raises(LeaseLost):
        jobs.fail(lease, "again", message(run_id, "https://example.com/", "run.failed", "{}"))
    assert len(Deliveries(database).of_run(run_id)) == 1


def test_a_list_goes_from_the_newest_to_the_oldest_in_pages_without_gaps(
    database: Database,
) -> None:
    jobs, batch_id = Jobs(database), make_batch(database)
    runs = {submit(database, batch_id) for _ in range(5)}
    submit(database, batch_id, owner="k_two")
    seen: list[str] = []
    before = None
    while page := jobs.list("k_one", before, limit=2):
        seen += [row["run_id"] for row in page]
        before = (page[-1]["created"], page[-1]["run_id"])
    assert set(seen) == runs and len(seen) == 5
    assert len(jobs.list(None)) == 6


def test_a_lease_is_checked_inside_the_transaction_that_writes(database: Database) -> None:
    clock = Clock()
    jobs = Jobs(database, clock)
    submit(database)
    first = leased(jobs, seconds=30)
    with database.begin() as link:
        assert held(link, first)
    clock.now += 31
    leased(jobs, "w2", 30)
    with database.begin() as link:
        assert not held(link, first)


def test_nobody_takes_a_run_over_while_its_worker_is_writing(postgres: str) -> None:
    database = Database(postgres)
    database.migrate()
    clock = Clock()
    jobs = Jobs(database, clock)
    submit(database)
    first = leased(jobs, seconds=30)
    with database.begin() as link:
        assert held(link, first)
        clock.now += 31
        assert jobs.lease("w2", 30) is None, "the row is skipped until this is committed"
    assert jobs.lease("w2", 30) is not None
    database.close()


def test_on_postgresql_the_databases_clock_decides(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(postgres)
    database.migrate()
    jobs = Jobs(database)
    submit(database)
    monkeypatch.setattr("service.store.jobs.time.time", lambda: 4e9)  # a worker a century ahead
    leased(jobs, seconds=600)
    assert jobs.lease("w2", 600) is None
    left = next(iter(jobs.workers().values()))
    assert 0 < left <= 600
    database.close()


def test_a_job_needs_its_batch(database: Database) -> None:
    with pytest.raises(LikenessError):
        submit(database, "b_" + "0" * 24)
