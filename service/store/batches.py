"""Batches of pictures: what was sent, what became of each file, and what its manifest says of it.

A batch is ``receiving`` until every accepted picture is stored whole, then ``ready``, at last
``deleted``: its rows stay with the figures made from it, its pictures do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from service.store.blobs import Blobs
from service.store.database import Database
from service.store.jobs import OVER
from service.store.naming import delete_unnamed, lock_blobs
from service.store.service_tables import batch_items, batches, jobs

Row = Mapping[str, Any]
RECEIVING, READY, DELETED = "receiving", "ready", "deleted"
ACCEPTED, REJECTED, SKIPPED = "accepted", "rejected", "skipped"
"""States of an item. A skipped one was never meant as a picture (a text file in a zip)."""


def iso(seconds: float) -> str:
    """Epoch seconds as ISO 8601 in UTC, to the second: such texts sort as the times do."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def new_batch_id() -> str:
    """An id that no other batch has: "b_" and 24 hex digits."""
    return f"b_{uuid4().hex[:24]}"


class Batches:
    """All batches of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- receiving -----------------------------------------------------------------------------

    def create(
        self, owner: str, now: float, keep_s: float | None, batch_id: str | None = None
    ) -> str:
        """Begin to receive a batch. It expires after ``keep_s`` seconds, None: never. Raises Conflict
        for a ``batch_id`` that is there."""
        batch_id = batch_id or new_batch_id()
        expires = None if keep_s is None else iso(now + keep_s)
        row = {
            "batch_id": batch_id, "created": iso(now), "owner": owner, "name": "",
            "state": RECEIVING, "accepted": 0, "rejected": 0, "expires": expires,
        }  # fmt: skip
        with self._database.begin() as link:
            link.execute(insert(batches).values(**row))
        return batch_id

    def add_item(self, row: Row) -> None:
        """Enter one file. A picture is entered before its bytes are stored: no blob is without a
        row, and none that a row names is deleted under it."""
        with self._database.begin() as link:
            if row.get("blob"):
                lock_blobs(link, self._database.is_postgres, alone=False)
            link.execute(insert(batch_items).values(**row))

    def make_ready(
        self,
        batch_id: str,
        name: str,
        attributes: Mapping[int, Mapping[str, str]],
        faults: Sequence[Row],
    ) -> dict[str, int]:
        """Give the batch its name, each item (by ``seq``) its attributes, enter rows of the
        manifest that fit no picture, and let runs use the batch; all in one transaction. Returns the
        items by state."""
        with self._database.begin() as link:
            for seq, row in attributes.items():
                mine = and_(batch_items.c.batch_id == batch_id, batch_items.c.seq == seq)
                link.execute(update(batch_items).where(mine).values(attributes=dict(row)))
            if faults:
                link.execute(insert(batch_items), [dict(f) for f in faults])
            counts = _counts(link, batch_id)
            ready = {
                "name": name,
                "state": READY,
                ACCEPTED: counts[ACCEPTED],
                REJECTED: counts[REJECTED],
            }
            link.execute(update(batches).where(batches.c.batch_id == batch_id).values(**ready))
        return counts

    def discard(self, batch_id: str, blobs: Blobs) -> None:
        """Take back a batch that was not received whole: its bytes, then its rows."""
        mine = batch_items.c.batch_id == batch_id
        found = self._database.rows(select(batch_items.c.blob).where(mine).distinct())
        delete_unnamed(self._database, blobs, [r["blob"] for r in found if r["blob"]], batch_id)
        with self._database.begin() as link:
            link.execute(delete(batch_items).where(mine))
            link.execute(delete(batches).where(batches.c.batch_id == batch_id))

    def stale(self, before: float) -> list[str]:
        """Batches still receiving that were begun before then: their process has died."""
        old = and_(batches.c.state == RECEIVING, batches.c.created < iso(before))
        return [r["batch_id"] for r in self._database.rows(select(batches.c.batch_id).where(old))]

    # -- reading -------------------------------------------------------------------------------

    def open_runs(self, batch_id: str) -> list[str]:
        """Runs on the batch that wait or are under way."""
        mine = and_(jobs.c.batch_id == batch_id, jobs.c.state.not_in(OVER))
        return [r["run_id"] for r in self._database.rows(select(jobs.c.run_id).where(mine))]

    def held(self, owner: str) -> int:
        """How many batches of ``owner`` hold pictures."""
        mine = and_(batches.c.owner == owner, batches.c.state != DELETED)
        with self._database.read() as link:
            return int(link.execute(select(func.count()).where(mine)).scalar_one())

    def get(self, batch_id: str) -> dict[str, Any] | None:
        """The batch's row with ``skipped`` counted, None where there is none."""
        with self._database.read() as link:
            query = select(batches).where(batches.c.batch_id == batch_id)
            found = link.execute(query).mappings().first()
            if found is None:
                return None
            return {**found, SKIPPED: _counts(link, batch_id)[SKIPPED]}

    def page(
        self, limit: int, owner: str | None = None, after: Sequence[Any] | None = None
    ) -> list[dict[str, Any]]:
        """The newest batches first, ``owner``'s alone unless None; ``after`` is the (created,
        batch_id) of the last one seen."""
        skipped = (
            select(func.count())
            .where(batch_items.c.batch_id == batches.c.batch_id, batch_items.c.state == SKIPPED)
            .scalar_subquery()
        )
        query = select(batches, skipped.label(SKIPPED)).order_by(
            batches.c.created.desc(), batches.c.batch_id.desc()
        )
        if owner is not None:
            query = query.where(batches.c.owner == owner)
        if after is not None:
            created, batch_id = after
            same = and_(batches.c.created == created, batches.c.batch_id < batch_id)
            query = query.where(or_(batches.c.created < created, same))
        return self._database.rows(query.limit(limit))

    def items(
        self, batch_id: str, limit: int | None = None, after: int = 0, state: str | None = None
    ) -> list[dict[str, Any]]:
        """Files in the order in which they came, behind number ``after``."""
        query = select(batch_items).order_by(batch_items.c.seq)
        query = query.where(batch_items.c.batch_id == batch_id, batch_items.c.seq > after)
        if state is not None:
            query = query.where(batch_items.c.state == state)
        return self._database.rows(query if limit is None else query.limit(limit))

    def item(self, batch_id: str, seq: int) -> dict[str, Any] | None:
        """One file, None where there is none."""
        mine = and_(batch_items.c.batch_id == batch_id, batch_items.c.seq == seq)
        found = self._database.rows(select(batch_items).where(mine))
        return found[0] if found else None


def _counts(link: Connection, batch_id: str) -> dict[str, int]:
    query = select(batch_items.c.state, func.count()).group_by(batch_items.c.state)
    found = {r[0]: int(r[1]) for r in link.execute(query.where(batch_items.c.batch_id == batch_id))}
    return {state: found.get(state, 0) for state in (ACCEPTED, REJECTED, SKIPPED)}
