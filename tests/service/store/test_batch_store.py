"""Batches in the database, and the rule that no blob is without a row."""

from __future__ import annotations

import pytest

from domain.errors import Conflict
from service.store.batches import DELETED, READY, RECEIVING, iso
from service.store.naming import delete_unnamed
from tests.service.store.worlds import DAY, START, World


def test_a_batch_is_receiving_until_it_is_made_ready(world: World) -> None:
    batch_id = world.batch(b"a", ready=False)
    row = world.batches.get(batch_id)
    assert row is not None and row["state"] == RECEIVING
    counts = world.batches.make_ready(batch_id, "N", {1: {"gender": "x"}}, [])
    assert counts == {"accepted": 1, "rejected": 0, "skipped": 0}
    row = world.batches.get(batch_id)
    assert row is not None
    assert (row["state"], row["name"], row["accepted"]) == (READY, "N", 1)
    assert world.batches.items(batch_id)[0]["attributes"] == {"gender": "x"}


def test_a_batch_expires_when_it_was_told_to(world: World) -> None:
    batch_id = world.batches.create("k1", START, 2 * DAY)
    row = world.batches.get(batch_id)
    assert row is not None
    assert (row["created"], row["expires"]) == (iso(START), iso(START + 2 * DAY))


def test_an_id_is_given_once(world: World) -> None:
    batch_id = world.batch(b"a")
    with pytest.raises(Conflict):
        world.batches.create("k1", START, None, batch_id)


def test_a_batch_taken_back_leaves_neither_row_nor_blob(world: World) -> None:
    other = world.batch(b"shared")
    batch_id = world.batch(b"own", b"shared", ready=False)
    world.batches.discard(batch_id, world.blobs)
    assert world.batches.get(batch_id) is None
    assert world.kept() == {b"shared"}
    assert world.batches.get(other) is not None


def test_pages_go_from_the_newest_to_the_oldest_of_one_owner(world: World) -> None:
    old, new = world.batch(b"a", day=0), world.batch(b"a", day=1)
    theirs = world.batch(b"a", day=2, owner="k2")
    assert [r["batch_id"] for r in world.batches.page(10)] == [theirs, new, old]
    first = world.batches.page(1, "k1")[0]
    assert first["batch_id"] == new
    rest = world.batches.page(10, "k1", (first["created"], first["batch_id"]))
    assert [r["batch_id"] for r in rest] == [old]


def test_deleted_batches_are_not_held(world: World) -> None:
    from service.store.erasure import erase

    batch_id = world.batch(b"a")
    assert world.batches.held("k1") == 1
    erase(world.database, world.blobs, batch_id, now=START, key_id="k1")
    assert world.batches.held("k1") == 0
    row = world.batches.get(batch_id)
    assert row is not None and row["state"] == DELETED


@pytest.mark.parametrize("which", ["original", "edited", "mask", "report"])
def test_a_blob_that_any_other_row_names_stays(world: World, which: str) -> None:
    batch_id = world.batch(b"own")
    elsewhere = world.batch(b"elsewhere")
    names = {"original": b"own2", "edited": b"e", "mask": b"m", "report": b"r", which: b"own"}
    world.run(elsewhere, names.pop("original"), **names)
    key = world.batches.items(batch_id)[0]["blob"]
    assert delete_unnamed(world.database, world.blobs, [key], batch_id) == {key}
    assert b"own" in world.kept()


def test_deleting_twice_is_no_fault(world: World) -> None:
    batch_id = world.batch(b"own")
    key = world.batches.items(batch_id)[0]["blob"]
    for _ in range(2):
        assert delete_unnamed(world.database, world.blobs, [key], batch_id) == set()
    assert world.kept() == set()
