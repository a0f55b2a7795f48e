"""Which pictures the rows of a database name, and the deletion of those that none names.

Deletions take one lock alone, in the transaction that asks for the names; whoever names a blob takes
it shared, in the transaction that writes the row. A deletion is therefore over before the row is
there, or sees it. Bytes are stored after their row (uploads), or before it and once more after it
(runs, whose row follows the tool's answer): a deletion that came in between took nothing for good.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, TextClause, select, text

from service.store.blobs import Blobs
from service.store.database import Database
from service.store.service_tables import artefacts, batch_items
from service.store.tables import items

BLOBS_LOCK = 7_311_905
"""The advisory lock between whoever names a blob in a row and whoever deletes unnamed ones."""
_CHUNK = 100
"""Blobs deleted in one transaction, which holds that lock."""
_PAGE = 500
"""Blobs of a store whose names are asked for at once."""
_LOCK = "SELECT pg_advisory_xact_lock{}({})"


def naming(is_postgres: bool) -> list[TextClause]:
    """Statements that begin a transaction which names blobs: until its end nobody deletes any.
    SQLite has one writer at a time anyway."""
    return [text(_LOCK.format("_shared", BLOBS_LOCK))] if is_postgres else []


def lock_blobs(link: Connection, is_postgres: bool, *, alone: bool) -> None:
    """Until the end of the transaction: nobody deletes blobs (``alone``: nor names any)."""
    alone_now = [text(_LOCK.format("", BLOBS_LOCK))] if is_postgres else []
    for statement in alone_now if alone else naming(is_postgres):
        link.execute(statement)


def delete_unnamed(
    database: Database,
    blobs: Blobs,
    keys: Collection[str],
    batch_id: str | None,
    runs: Collection[str] = (),
) -> set[str]:
    """Delete those of ``keys`` that no row outside the batch and ``runs`` names. Returns the ones
    that stay. Deleting what is gone already is no fault: a killed deletion is begun again."""
    kept: set[str] = set()
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), _CHUNK):
        chunk = ordered[start : start + _CHUNK]
        with database.begin() as link:
            lock_blobs(link, database.is_postgres, alone=True)
            named = _named(link, chunk, batch_id, runs)
            for key in chunk:
                if key not in named:
                    blobs.delete(key)
        kept |= named
    return kept


def delete_forgotten(database: Database, blobs: Blobs, before: float) -> int:
    """Delete blobs that were stored before that time (epoch seconds) and that no row names: of a
    process that died before it wrote the row. Returns how many there were. The lock is taken only
    where there is something to delete."""
    gone = 0
    old = blobs.older(before)
    while page := list(islice(old, _PAGE)):
        with database.read() as link:
            unnamed = set(page) - _named(link, page)
        if unnamed:
            gone += len(unnamed) - len(delete_unnamed(database, blobs, unnamed, None))
    return gone


def queries(
    keys: Sequence[str], batch_id: str | None = None, runs: Collection[str] = ()
) -> Iterator[Any]:
    """What asks each column that names blobs which of ``keys`` it names, outside the batch and
    ``runs``."""
    sent = select(batch_items.c.blob).where(batch_items.c.blob.in_(keys))
    yield sent if batch_id is None else sent.where(batch_items.c.batch_id != batch_id)
    for column in (items.c.original, items.c.edited, items.c.mask, artefacts.c.blob):
        named = select(column).where(column.in_(keys))
        yield named.where(column.table.c.run_id.not_in(runs)) if runs else named


def _named(
    link: Connection,
    keys: Sequence[str],
    batch_id: str | None = None,
    runs: Collection[str] = (),
) -> set[str]:
    return {row[0] for query in queries(keys, batch_id, runs) for row in link.execute(query)}
