"""A deletion takes everything that shows a face, leaves the figures, and says what it did."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from domain.errors import StoreUnavailable
from service.store import erasure
from service.store.artefacts import Artefacts
from service.store.batches import READY
from service.store.blobs import Blobs
from service.store.erasure import BatchBusy, Receipts, erase, receipt_id_of
from tests.service.store.worlds import REPORT, START, World


def hashes(*contents: bytes) -> list[str]:
    return sorted(hashlib.sha256(c).hexdigest() for c in contents)


def delete(world: World, batch_id: str) -> dict[str, Any]:
    return erase(world.database, world.blobs, batch_id, now=START, key_id="k1")


def test_pictures_landmarks_and_reports_go_and_figures_stay(world: World) -> None:
    batch_id = world.batch(b"one", b"two")
    run_id = world.run(batch_id, b"one perturbed")
    receipt = delete(world, batch_id)
    assert world.kept() == {b'{"figures": 1}'}
    assert world.shows_a_face(run_id) == []
    assert world.figure(run_id) == 97.5
    deleted = receipt["deleted"]
    assert deleted["originals"] == {"count": 2, "sha256": hashes(b"one", b"two")}
    assert deleted["prepared"]["sha256"] == hashes(b"one perturbed")
    assert deleted["edited"]["sha256"] == hashes(b"edited")
    assert deleted["masks"]["sha256"] == hashes(b"mask")
    assert deleted["reports"]["sha256"] == hashes(REPORT)
    assert (deleted["landmarks"], deleted["evidence"]) == ({"count": 1}, {"count": 1})
    assert receipt["kept"]["figures"]["count"] == 1
    assert receipt["runs"] == [run_id]
    assert (receipt["by"], receipt["reason"], receipt["batch_id"]) == ("k1", "request", batch_id)


def test_names_stay_with_figures_and_go_where_there_are_none(world: World) -> None:
    with_run, without = world.batch(b"one"), world.batch(b"two")
    world.run(with_run, b"one")
    delete(world, with_run)
    delete(world, without)
    kept, gone = world.batches.items(with_run)[0], world.batches.items(without)[0]
    assert (kept["name"], kept["attributes"], kept["blob"]) == ("1.png", {"gender": "x"}, None)
    assert (gone["name"], gone["attributes"], gone["blob"]) == ("", None, None)


def test_what_another_batch_holds_stays_and_the_receipt_says_so(world: World) -> None:
    batch_id, other = world.batch(b"mine", b"shared"), world.batch(b"shared")
    receipt = delete(world, batch_id)
    assert receipt["deleted"]["originals"]["sha256"] == hashes(b"mine")
    assert receipt["kept"]["shared"]["sha256"] == hashes(b"shared")
    assert world.kept() == {b"shared"}
    assert delete(world, other)["deleted"]["originals"]["sha256"] == hashes(b"shared")
    assert world.kept() == set()


def test_a_run_of_another_batch_keeps_what_it_made(world: World) -> None:
    batch_id, other = world.batch(b"one"), world.batch(b"two")
    world.run(batch_id, b"one", edited=b"e1")
    run_id = world.run(other, b"two", edited=b"e2", report=b"<html>r2")
    delete(world, batch_id)
    assert world.kept() >= {b"two", b"e2", b"<html>r2", b"mask"}
    assert len(world.shows_a_face(run_id)) == 6


def test_deleting_again_gives_the_same_receipt(world: World) -> None:
    batch_id = world.batch(b"one")
    first = delete(world, batch_id)
    again = erase(world.database, world.blobs, batch_id, now=START + 99, key_id="k2")
    assert again == first
    stored = Receipts(world.database).get(receipt_id_of(batch_id))
    assert stored is not None
    assert (stored.owner, stored.receipt) == ("k1", first)


@pytest.mark.parametrize("over", [False])
def test_a_run_that_is_not_over_is_a_reason_to_refuse(world: World, over: bool) -> None:
    batch_id = world.batch(b"one")
    run_id = world.run(batch_id, b"one", over=over)
    with pytest.raises(BatchBusy) as caught:
        delete(world, batch_id)
    assert caught.value.runs == [run_id]
    row = world.batches.get(batch_id)
    assert row is not None and row["state"] == READY
    assert b"one" in world.kept()


def test_a_batch_that_still_comes_in_is_not_deleted_under_its_sender(world: World) -> None:
    with pytest.raises(BatchBusy, match="still comes in"):
        delete(world, world.batch(b"one", ready=False))


def test_a_deletion_that_was_cut_off_is_ended_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = world.batch(b"one", b"two")
    run_id = world.run(batch_id, b"one")
    gone: list[str] = []
    delete_blob = Blobs.delete

    def cut_off(self: Blobs, key: str) -> bool:
        if len(gone) == 2:
            raise StoreUnavailable("the blob store is gone")
        gone.append(key)
        return delete_blob(self, key)

    with monkeypatch.context() as patch:
        patch.setattr(Blobs, "delete", cut_off)
        with pytest.raises(StoreUnavailable):
            delete(world, batch_id)
    assert erasure.receipt_of(world.database, batch_id) is None
    row = world.batches.get(batch_id)
    assert row is not None and row["state"] == "deleted"
    receipt = delete(world, batch_id)
    assert receipt["deleted"]["originals"]["count"] == 2
    assert world.shows_a_face(run_id) == []
    assert world.kept() == {b'{"figures": 1}'}


def test_files_of_an_unknown_kind_count_as_pictures(world: World) -> None:
    batch_id = world.batch(b"one")
    run_id = world.run(batch_id, b"one")
    files = Artefacts(world.database, world.blobs)
    for name in ("crops.zip", "page.pdf", "junit.xml", "figures.parquet", "figures.csv"):
        files.put(run_id, name, name.encode())
    delete(world, batch_id)
    left = [row["name"] for row in files.list(run_id)]
    assert left == ["figures.csv", "figures.parquet", "junit.xml", "report.json"]


def test_two_that_delete_at_once_agree_on_one_receipt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = world.batch(b"one")
    blank = erasure._blank
    others: list[dict[str, Any]] = []

    def overtaken(*args: Any) -> None:
        monkeypatch.setattr(erasure, "_blank", blank)
        others.append(erase(world.database, world.blobs, batch_id, now=START + 5, key_id="k2"))
        blank(*args)

    monkeypatch.setattr(erasure, "_blank", overtaken)
    assert delete(world, batch_id) == others[0]
