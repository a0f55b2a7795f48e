"""What a worker does with a run, whatever comes in between. The steps of the audit themselves are
played here; test_worker_kills has real ones."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.errors import LikenessError, StoreUnavailable
from service.engine import leases, worker
from service.engine.worker import Bench, Worker
from service.limits import Limits
from service.store.artefacts import Artefacts
from service.store.batches import Batches
from service.store.database import Database
from service.store.deliveries import Deliveries
from service.store.events import Events
from service.store.jobs import Jobs
from tests.service.engine.worker_bench import Played, Steps, bench_at
from tests.service.store.service_rows import make_batch, submit

PICTURE = b"not looked at in these tests"
GROUPS = ({"gender": "female", "subject_id": "s1"}, {"gender": "male", "subject_id": "s2"})


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played()
    monkeypatch.setattr(worker, "run_steps", found.run_steps)
    monkeypatch.setattr(worker.finishing, "finish", found.finish)
    monkeypatch.setattr(leases, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(leases, "LONGEST_BEAT", 0.01)
    return found


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    database = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    database.migrate()
    yield bench_at(tmp_path, database)
    database.close()


def batch(bench: Bench) -> str:
    pictures = [(f"{n}.png", PICTURE + bytes([n]), dict(row)) for n, row in enumerate(GROUPS)]
    return make_batch(bench.database, bench.blobs, *pictures)


def work(bench: Bench) -> list[str]:
    said: list[str] = []
    Worker(bench, "w1", said.append).run(until_idle=True)
    return said


def state(bench: Bench, run_id: str) -> tuple[str, str | None]:
    row = Jobs(bench.database).get(run_id)
    assert row is not None
    return row["state"], row["error"]


def later(error: Exception) -> Steps:
    def step(*_: Any) -> None:
        raise error

    return step


def take_over(jobs: Jobs) -> None:
    """As the next worker would: a beat in between may renew the lease, so it is tried again."""
    jobs.release_all_of("w1")
    while jobs.lease("w2", 1000) is None:
        jobs.release_all_of("w1")


def wait_for_stop(run: Any, machine: Any, watch: Any, stop: threading.Event) -> None:
    assert stop.wait(60)


def test_a_run_ends_with_its_files_its_progress_and_its_message(
    bench: Bench, played: Played
) -> None:
    run_id = submit(bench.database, batch(bench), webhook="https://example.com/")
    work(bench)
    assert state(bench, run_id) == ("done", None)
    assert Artefacts(bench.database, bench.blobs).read(run_id, "report.json") == b"{}"
    assert [d["event"] for d in Deliveries(bench.database).of_run(run_id)] == ["run.finished"]
    row = Jobs(bench.database).get(run_id) or {}
    assert row["stages"]["edited"]["done"] == row["stages"]["edited"]["total"] == 1
    kinds = [e["kind"] for e in Events(bench.database).after(run_id)]
    assert kinds[0] == "queued" and kinds[-1] == "done" and "note" in kinds
    assert played.runs[0].ledger.run_id == run_id
    assert [p.attributes for p in played.runs[0].portraits] == [
        {"gender": "female"}, {"gender": "male"},
    ]  # fmt: skip


def test_the_folder_with_the_faces_is_gone_when_the_run_has_ended(
    bench: Bench, played: Played
) -> None:
    seen: list[int] = []

    def look(run: Any, *_: Any) -> None:
        seen.append(run.loaded.path.parent.stat().st_mode & 0o777)
        assert run.portraits[0].path.read_bytes().startswith(PICTURE)

    played.steps = [look]
    submit(bench.database, batch(bench))
    work(bench)
    assert seen == [0o700]
    assert list(bench.work.iterdir()) == []


def test_a_plan_that_does_not_fit_its_batch_fails_in_a_line_without_paths(
    bench: Bench, played: Played
) -> None:
    text = "name: x\ntools: [{id: identity}]\ngroups: [shoe_size]\n"
    run_id = submit(bench.database, batch(bench), plan=text)
    work(bench)
    ended, reason = state(bench, run_id)
    assert ended == "failed" and reason is not None
    assert reason.startswith("plan.yaml: groups: no portrait declares 'shoe_size'")
    assert str(bench.work) not in reason


def test_a_store_that_is_gone_is_waited_for_and_no_reason_to_fail(
    bench: Bench, played: Played
) -> None:
    gone = StoreUnavailable("the database: connection refused")
    played.steps = [later(gone), later(gone), later(gone)]
    run_id = submit(bench.database, batch(bench))
    said = work(bench)
    assert state(bench, run_id) == ("done", None)
    assert (Jobs(bench.database).get(run_id) or {})["attempts"] == 1
    assert sum("waiting for the store" in line for line in said) == 3


def test_a_full_disk_is_waited_for(bench: Bench, played: Played) -> None:
    def full() -> Any:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise LikenessError("cannot write report.html") from error

    whole = played.finish
    answers = [full, full]
    played.finish = lambda run, say: answers.pop()() if answers else whole(run, say)  # type: ignore[method-assign]
    worker.finishing.finish = played.finish  # type: ignore[assignment]
    run_id = submit(bench.database, batch(bench))
    work(bench)
    assert state(bench, run_id) == ("done", None)


def test_a_disk_that_is_full_amid_the_work_is_waited_for(bench: Bench, played: Played) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    played.steps = [later(full), later(full)]
    run_id = submit(bench.database, batch(bench))
    said = work(bench)
    assert state(bench, run_id) == ("done", None)
    assert sum("No space left on device" in line for line in said) == 2


def test_a_worker_that_lost_its_run_leaves_it_alone(bench: Bench, played: Played) -> None:
    run_id, jobs = submit(bench.database, batch(bench)), Jobs(bench.database)

    def taken_over(run: Any, machine: Any, watch: Any, stop: threading.Event) -> None:
        take_over(jobs)
        assert stop.wait(60), "the heart finds out by itself"

    played.steps = [taken_over]
    said = work(bench)
    row = jobs.get(run_id) or {}
    assert row["state"] == "running" and row["lease_owner"].startswith("w2#")
    assert said[-1] == f"run {run_id}: taken over by another worker"


def test_what_is_written_late_by_a_worker_that_lost_its_run_is_refused(
    bench: Bench, played: Played
) -> None:
    run_id, jobs = submit(bench.database, batch(bench)), Jobs(bench.database)

    def write_late(run: Any, *_: Any) -> None:
        take_over(jobs)
        run.ledger.set_run(seconds=1e6)

    played.steps = [write_late]
    work(bench)
    assert state(bench, run_id)[0] == "running"
    assert played.runs[0].ledger.run()["seconds"] == 0


def test_a_cancelled_run_stops_soon_and_goes_on_when_resumed(bench: Bench, played: Played) -> None:
    run_id, jobs = submit(bench.database, batch(bench)), Jobs(bench.database)

    def cancelled(run: Any, machine: Any, watch: Any, stop: threading.Event) -> None:
        assert jobs.cancel(run_id) == "running"
        wait_for_stop(run, machine, watch, stop)

    played.steps = [cancelled]
    work(bench)
    assert state(bench, run_id)[0] == "cancelled"
    assert Artefacts(bench.database, bench.blobs).list(run_id) == []
    assert jobs.requeue(run_id)
    work(bench)
    assert state(bench, run_id) == ("done", None)


def test_a_worker_told_to_end_gives_its_run_back(bench: Bench, played: Played) -> None:
    run_id, one = submit(bench.database, batch(bench)), Worker(bench, "w1")

    def told(run: Any, machine: Any, watch: Any, stop: threading.Event) -> None:
        one.stop()
        wait_for_stop(run, machine, watch, stop)

    played.steps = [told]
    one.run()
    row = Jobs(bench.database).get(run_id) or {}
    assert (row["state"], row["attempts"]) == ("queued", 0)


def test_a_run_that_kills_its_workers_is_given_up_with_the_reason(
    bench: Bench, played: Played
) -> None:
    run_id, jobs = submit(bench.database, batch(bench)), Jobs(bench.database)
    for _ in range(Limits().job_attempts):
        assert jobs.lease("w0", 1000) is not None
        jobs.release_all_of("w0")
    work(bench)
    deaths = Limits().job_attempts
    assert state(bench, run_id) == (
        "failed", f"{deaths} workers died on this run without getting on",
    )  # fmt: skip
    assert played.runs == []


def test_a_batch_that_was_deleted_meanwhile_fails_the_run(bench: Bench, played: Played) -> None:
    batch_id = batch(bench)
    run_id = submit(bench.database, batch_id)
    with bench.database.begin() as link:
        link.exec_driver_sql("UPDATE batches SET state = 'deleted'")
    assert (Batches(bench.database).get(batch_id) or {})["state"] == "deleted"
    work(bench)
    assert state(bench, run_id) == ("failed", f"batch {batch_id} is deleted")


def test_a_fault_of_the_program_ends_its_run_and_not_the_worker(
    bench: Bench, played: Played
) -> None:
    batch_id = batch(bench)
    first = submit(bench.database, batch_id)
    played.steps = [later(ZeroDivisionError("division by zero"))]
    second = submit(bench.database, batch_id)
    work(bench)
    states = {state(bench, first)[0], state(bench, second)[0]}
    assert states == {"failed", "done"}
    reasons = {state(bench, first)[1], state(bench, second)[1]}
    assert "a fault of the program (ZeroDivisionError: division by zero)" in reasons


def test_what_the_operator_set_stays_out_of_the_record(tmp_path: Path, played: Played) -> None:
    file = tmp_path / "tools.yaml"
    file.write_text(
        "tools: [{name: ours, id: reencode, settings: {quality: 61}}]\n", encoding="utf-8"
    )
    database = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    database.migrate()
    bench = bench_at(tmp_path, database, file)
    text = "name: x\ntools: [{id: ours}]\ncontrols: false\n"
    run_id = submit(database, batch(bench), plan=text)
    work(bench)
    assert state(bench, run_id) == ("done", None)
    (run,) = played.runs
    assert run.tools["ours"].settings == {"quality": 61} and run.tools["ours"].id == "reencode"
    assert "61" not in run.plan.model_dump_json() and run.ledger.run()["plan_text"] == text
    database.close()


def test_after_an_absence_of_the_database_those_who_hold_runs_come_first(
    bench: Bench, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(bench.database, batch(bench))
    lease = Jobs(bench.database).lease("w0", -1)  # it ran out while nobody could renew it
    assert lease is not None
    real, now, asked = Jobs.lease, [0.0], []

    def flaky(self: Jobs, name: str, seconds: float, take_over: bool) -> Any:
        asked.append(take_over)
        if len(asked) == 1:
            raise StoreUnavailable("the database is gone")
        found = real(self, name, seconds, take_over)
        now[0] += 6.0
        return found

    monkeypatch.setattr(Jobs, "lease", flaky)
    one = Worker(bench, "w1", poll_s=0, clock=lambda: now[0])
    played.steps = [lambda *_: one.stop()]
    one.run()
    assert asked == [True, False, False, True]
