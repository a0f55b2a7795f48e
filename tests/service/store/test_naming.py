"""A picture that a row names is there, whatever is deleted at the same moment; one that no row names
goes after a day. On SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import text

from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.masks import Mask
from service import calling
from service.runs import Run
from service.store import naming
from service.store.artefacts import Artefacts
from service.store.blobs import Blobs
from service.store.erasure import erase
from service.store.ledger import Ledger
from service.store.naming import delete_forgotten, delete_unnamed
from service.store.tables import items
from tests.service.scripted import Scripted
from tests.service.store.worlds import DAY, START, World

SHARED = b"the same bytes"


def aged(world: World, key: str, at: float) -> None:
    (path,) = Path(world.folder).glob(f"blobs/??/{key}")
    os.utime(path, (at, at))


def going(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Ledger]:
    """A run with one item that is about to be called with ``SHARED``."""
    run_id = world.run(world.batch(b"mine"), b"mine", over=False)
    ledger = Ledger(world.database, run_id)
    request = EditRequest(item_id="i1", task=Task.RETOUCH, picture=SHARED)
    monkeypatch.setattr(calling, "prepare", lambda *_: (request, []))
    return cast("Run", SimpleNamespace(ledger=ledger, blobs=world.blobs)), ledger


# Deleting while a row is written ----------------------------------------------------------------


@pytest.mark.parametrize("answer", [Edited(picture=b"new"), Failed("no")])
def test_what_was_sent_to_a_tool_is_there_though_its_bytes_were_deleted_during_the_call(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: EditOutcome
) -> None:
    theirs = world.batch(SHARED)
    run, ledger = going(world, monkeypatch)

    def edit(_: EditRequest) -> EditOutcome:
        erase(world.database, world.blobs, theirs, now=START, key_id="k")
        assert SHARED not in world.kept()
        return answer

    calling.call_tool(run, Scripted(edit), ledger.item("i1"), {})
    assert world.blobs.get(ledger.item("i1")["original"]) == SHARED


@pytest.mark.parametrize("named", ["edited", "mask"])
def test_so_are_an_edited_picture_and_a_mask_deleted_just_before_they_are_named(
    world: World, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    theirs = world.batch(SHARED)
    run, ledger = going(world, monkeypatch)
    asked = EditRequest(
        item_id="i1", task=Task.RETOUCH, picture=b"sent",
        mask=cast("Mask", SimpleNamespace(values=None)) if named == "mask" else None,
    )  # fmt: skip
    monkeypatch.setattr(calling, "prepare", lambda *_: (asked, []))
    monkeypatch.setattr(calling, "encode_png", lambda _: SHARED)
    end = Ledger.end_call

    def late(self: Ledger, *rest: Any) -> None:
        erase(world.database, world.blobs, theirs, now=START, key_id="k")
        assert SHARED not in world.kept()
        end(self, *rest)

    monkeypatch.setattr(Ledger, "end_call", late)
    answer = Edited(picture=SHARED if named == "edited" else b"new")
    calling.call_tool(run, Scripted(answer), ledger.item("i1"), {})
    assert world.blobs.get(ledger.item("i1")[named]) == SHARED


def test_a_runs_file_is_there_though_its_bytes_were_deleted_just_before_it_was_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = world.batch(SHARED)
    run_id = world.run(world.batch(b"mine"), b"mine")
    put, erased = Blobs.put, []

    def then_gone(self: Blobs, data: bytes) -> str:
        key = put(self, data)
        if not erased:
            erased.append(erase(world.database, world.blobs, theirs, now=START, key_id="k"))
            assert SHARED not in world.kept()
        return key

    monkeypatch.setattr(Blobs, "put", then_gone)
    files = Artefacts(world.database, world.blobs)
    files.put(run_id, "report.html", SHARED)
    assert files.read(run_id, "report.html") == SHARED


@pytest.mark.parametrize("what", ["item", "file"])
def test_a_row_that_names_bytes_waits_for_a_deletion_that_has_asked_for_the_names(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    run, ledger = going(world, monkeypatch)
    key = world.blobs.put(SHARED)
    delete = Blobs.delete

    def name() -> None:
        if what == "item":
            edited = Scripted(Edited(picture=SHARED))
            calling.call_tool(run, edited, ledger.item("i1"), {})
        else:
            Artefacts(world.database, world.blobs).put(ledger.run_id, "report.html", SHARED)

    writer = threading.Thread(target=name)

    def slow(self: Blobs, asked: str) -> bool:
        writer.start()
        writer.join(0.5)  # long enough for a row that does not wait
        return delete(self, asked)

    monkeypatch.setattr(Blobs, "delete", slow)
    assert delete_unnamed(world.database, world.blobs, [key], None) == set()
    writer.join()
    assert world.blobs.get(key) == SHARED
    assert delete_unnamed(world.database, world.blobs, [key], None) == {key}


# What no row names ------------------------------------------------------------------------------


def test_only_what_no_row_of_any_table_names_and_is_old_is_forgotten(world: World) -> None:
    world.run(world.batch(b"sent"), b"prepared")
    named = world.kept()
    lost, young = world.blobs.put(b"lost"), world.blobs.put(b"young")
    for data in (*named, b"lost"):
        aged(world, world.blobs.put(data), START)
    aged(world, young, START + DAY)
    assert len(named) == 6  # a batch's, three of an item, two files
    assert delete_forgotten(world.database, world.blobs, START + DAY) == 1
    assert world.kept() == named | {b"young"}
    assert not world.blobs.exists(lost)
    assert delete_forgotten(world.database, world.blobs, START + DAY) == 0


def test_a_store_is_gone_through_page_by_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "_PAGE", 3)
    world.batch(b"sent")
    for number in range(10):
        aged(world, world.blobs.put(b"%d" % number), START)
    assert delete_forgotten(world.database, world.blobs, START + DAY) == 10
    assert world.kept() == {b"sent"}


def test_what_is_named_while_a_page_is_looked_at_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = world.run(world.batch(b"mine"), b"mine", over=False)
    aged(world, world.blobs.put(b"late"), START)
    looked = naming._named

    def look(*args: Any) -> set[str]:
        found = looked(*args)
        if len(args) == 2:  # outside of the lock
            Artefacts(world.database, world.blobs).put(run_id, "report.html", b"late")
        return found

    monkeypatch.setattr(naming, "_named", look)
    assert delete_forgotten(world.database, world.blobs, START + DAY) == 0
    assert b"late" in world.kept()


# How the names are found ------------------------------------------------------------------------


def test_each_column_that_names_pictures_is_asked_by_an_index(world: World) -> None:
    postgres = world.database.is_postgres
    with world.database.begin() as link:
        if postgres:  # it reads a small table whole, were it let
            link.execute(text("SET LOCAL enable_seqscan = off"))
        plans = []
        for query in naming.queries(["0" * 64, "1" * 64], "b_1", ["r1"]):
            asked = query.compile(link, compile_kwargs={"literal_binds": True})
            explain = "EXPLAIN" if postgres else "EXPLAIN QUERY PLAN"
            plans.append(str(link.exec_driver_sql(f"{explain} {asked}").all()))
    names = [
        f"ix_items_{column.name}" for column in (items.c.original, items.c.edited, items.c.mask)
    ]
    for name, plan in zip(["ix_batch_items_blob", *names, "ix_artefacts_blob"], plans, strict=True):
        assert name in plan
