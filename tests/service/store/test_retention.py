"""What is past its day goes, in order: faces first, figures last or never."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from sqlalchemy import select

from domain.errors import LedgerError
from service.limits import DEFAULT
from service.store.access_log import AccessLog
from service.store.blobs import Blobs
from service.store.erasure import erase, receipt_of
from service.store.idempotency import Idempotency
from service.store.jobs import Jobs
from service.store.retention import SWEEPER, Retention, sweep
from service.store.service_tables import access_log, events
from tests.service.store.worlds import DAY, START, World

NEVER = Retention(None, None, None, None, None, None, None)


def swept(world: World, day: float, keep: Retention) -> dict[str, int]:
    gone = sweep(world.database, world.blobs, START + day * DAY, retention=keep)
    return {kind: many for kind, many in gone.items() if many}


def test_the_table_of_the_limits_is_in_days_and_none_keeps() -> None:
    limits = replace(DEFAULT, keep_originals_s=7 * DAY, keep_edited_s=None)
    keep = Retention.of(limits)
    assert (keep.originals, keep.edited, keep.figures) == (7, None, None)
    assert Retention.of(DEFAULT) == Retention()


def test_nothing_goes_before_its_day_and_nothing_that_is_kept_for_ever(world: World) -> None:
    run_id = world.run(world.batch(b"one"), b"one")
    assert swept(world, 29, Retention()) == {}
    assert swept(world, 9999, NEVER) == {}
    assert len(world.shows_a_face(run_id)) == 6


def test_a_batch_past_its_day_takes_everything_made_from_it(world: World) -> None:
    batch_id = world.batch(b"one")
    run_id = world.run(batch_id, b"one", day=25)
    assert swept(world, 31, replace(NEVER, originals=30)) == {"batches": 1}
    assert world.shows_a_face(run_id) == []
    assert world.figure(run_id) == 97.5
    receipt = receipt_of(world.database, batch_id)
    assert receipt is not None
    assert (receipt["by"], receipt["reason"]) == (SWEEPER, "retention")
    assert swept(world, 31, replace(NEVER, originals=30)) == {}


def test_the_day_that_was_promised_counts_when_the_service_keeps_longer_now(world: World) -> None:
    batch_id = world.batches.create("k1", START, 5 * DAY)
    world.batches.make_ready(batch_id, "", {}, [])
    assert swept(world, 4, NEVER) == {}
    assert swept(world, 6, NEVER) == {"batches": 1}


def test_a_batch_with_a_run_that_is_not_over_waits_for_it(world: World) -> None:
    batch_id = world.batch(b"one")
    run_id = world.run(batch_id, b"one", over=False)
    assert swept(world, 31, Retention()) == {}
    Jobs(world.database).cancel(run_id)
    assert swept(world, 31, Retention())["batches"] == 1


@pytest.mark.parametrize(
    ("keep", "kind", "left"),
    [
        ({"edited": 10}, "edited", ["evidence", "face", "report.html"]),
        ({"landmarks": 10}, "landmarks", ["original", "edited", "mask", "report.html"]),
        ({"reports": 10}, "reports", ["original", "edited", "mask", "evidence", "face"]),
    ],
)
def test_each_kind_goes_by_a_day_of_its_own(
    world: World, keep: dict[str, float], kind: str, left: list[str]
) -> None:
    run_id = world.run(world.batch(b"one"), b"one")
    before = world.kept()
    assert swept(world, 11, replace(NEVER, **keep)) == {kind: 1}
    assert world.shows_a_face(run_id) == left
    gone = {"edited": {b"edited", b"mask"}, "landmarks": set(), "reports": {b"<html>a face</html>"}}
    assert before - world.kept() == gone[kind]
    assert world.figure(run_id) == 97.5
    assert swept(world, 11, replace(NEVER, **keep)) == {}


def test_a_runs_original_stays_while_its_batch_holds_it(world: World) -> None:
    world.run(world.batch(b"one"), b"one")
    swept(world, 11, replace(NEVER, edited=10))
    assert b"one" in world.kept()


def test_figures_go_only_where_an_operator_says_so(world: World) -> None:
    batch_id = world.batch(b"one")
    run_id = world.run(batch_id, b"one")
    assert swept(world, 400, replace(NEVER, figures=365)) == {"figures": 1}
    assert Jobs(world.database).get(run_id) is None
    assert world.kept() == {b"one"}
    assert world.batches.get(batch_id) is not None


def test_a_batch_whose_process_died_while_it_came_in_is_cleared(world: World) -> None:
    batch_id = world.batch(b"half", ready=False)
    assert swept(world, 1, Retention()) == {}
    assert swept(world, 3, Retention()) == {"receiving": 1}
    assert world.batches.get(batch_id) is None
    assert world.kept() == set()


def test_lines_of_the_access_log_and_events_and_kept_answers_go_by_age(world: World) -> None:
    run_id = world.run(world.batch(b"one"), b"one")
    AccessLog(world.database).add("k1", "read picture", "x")
    kept = Idempotency(world.database, lasts_s=DAY, lease_s=60)
    kept.begin("k1", "key", START)
    far = 100_000.0
    gone = swept(world, far, replace(NEVER, access_log=365, events=90))
    assert gone == {"repeats": 1, "access_log": 1, "events": 1}
    assert world.database.rows(select(access_log)) == []
    assert world.database.rows(select(events).where(events.c.run_id == run_id)) == []


def test_one_batch_that_is_stuck_does_not_keep_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, free = world.batch(b"stuck"), world.batch(b"free")
    key = world.batches.items(stuck)[0]["blob"]
    delete = Blobs.delete

    def refuse(self: Blobs, asked: str) -> bool:
        if asked == key:
            raise LedgerError("not the key of a picture")
        return delete(self, asked)

    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(Blobs, "delete", refuse)
        now = START + 31 * DAY
        gone = sweep(world.database, world.blobs, now, retention=Retention(), say=said.append)
    assert gone["batches"] == 1
    assert receipt_of(world.database, free) is not None
    assert len(said) == 1 and stuck in said[0]
    assert swept(world, 31, Retention()) == {"batches": 1}
    assert world.kept() == set()


def test_a_picture_that_a_killed_process_never_named_goes_after_a_day(world: World) -> None:
    world.batch(b"named")
    world.blobs.put(b"never named")
    (lost,) = (p for p in world.folder.glob("blobs/??/*") if p.read_bytes() == b"never named")
    os.utime(lost, (START, START))
    assert swept(world, 0.9, Retention()) == {}
    assert world.kept() == {b"named", b"never named"}
    assert swept(world, 1.1, Retention()) == {"unnamed": 1}
    assert world.kept() == {b"named"}


def test_a_picture_of_a_deleted_batch_goes_at_once_however_young_it_is(world: World) -> None:
    batch_id = world.batch(b"young")
    erase(world.database, world.blobs, batch_id, now=START, key_id="k1")
    assert world.kept() == set()


def test_a_database_that_knows_no_batch_clears_no_store(world: World) -> None:
    """Whoever starts the service with another database by mistake keeps the pictures."""
    said: list[str] = []
    assert sweep(world.database, world.blobs, START, say=said.append).get("unnamed", 0) == 0
    assert said == []
    key = world.blobs.put(b"of another database")
    os.utime(next(world.folder.glob(f"blobs/??/{key}")), (START, START))
    gone = sweep(world.database, world.blobs, START + 2 * DAY, say=said.append)
    assert gone.get("unnamed", 0) == 0 and world.kept() == {b"of another database"}
    assert len(said) == 1 and "knows no batch" in said[0]
