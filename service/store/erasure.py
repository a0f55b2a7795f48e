"""Deletes a batch with everything that shows a face of it, and writes down what was deleted.

First the batch is marked deleted, so that nothing new is made from it; then its bytes go; then the
rows that named them are blanked and the receipt is entered, in one transaction. A process killed in
between leaves a deleted batch without a receipt: the next request or sweep ends what it began.
Figures stay: measurements, outcomes and reasons, with the names and attributes as declared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import String, Table, and_, cast, delete, func, insert, null, or_, select, update

from domain.errors import Conflict, LedgerError
from service.store.batches import DELETED, RECEIVING, iso
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.idempotency import Idempotency
from service.store.jobs import OVER
from service.store.naming import delete_unnamed
from service.store.service_tables import artefacts, batch_items, batches, deletions, jobs
from service.store.tables import items, measurements, portraits

SCHEMA = "likeness-receipt/1"
FIGURES_ONLY = ("application/json", "text/csv", "application/xml", "application/vnd.apache.parquet")
"""Kinds of files that hold figures and no picture; a file of any other kind goes with the pictures."""
REQUEST, RETENTION = "request", "retention"
Receipt = dict[str, Any]
Sign = Callable[[Receipt], Receipt]


class BatchBusy(LedgerError):
    """Runs on the batch wait or are under way; ``runs`` are their ids. None: it is being received."""

    def __init__(self, batch_id: str, runs: Sequence[str]) -> None:
        what = f"runs on it are not over: {', '.join(runs[:5])}" if runs else "it still comes in"
        super().__init__(f"batch {batch_id}: {what}")
        self.runs = list(runs)


@dataclass(frozen=True, slots=True)
class Stored:
    """A receipt with the owner of the batch that it is about."""

    owner: str
    receipt: Receipt


@dataclass(slots=True)
class Found:
    """What there is to delete: blobs by kind with their sizes where known, and rows of landmarks."""

    runs: list[str]
    blobs: dict[str, set[str]] = field(default_factory=dict)
    portraits: int = 0
    evidence: int = 0
    figures: int = 0

    @property
    def keys(self) -> set[str]:
        """Every blob."""
        return set().union(*self.blobs.values())


class Receipts:
    """Receipts in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, receipt_id: str) -> Stored | None:
        """One receipt, None where there is none."""
        query = select(deletions.c.receipt, batches.c.owner).join_from(
            deletions, batches, deletions.c.batch_id == batches.c.batch_id
        )
        found = self._database.rows(query.where(deletions.c.receipt_id == receipt_id))
        return Stored(found[0]["owner"], dict(found[0]["receipt"])) if found else None


def receipt_of(database: Database, batch_id: str) -> Receipt | None:
    """The stored receipt of a deleted batch, None where there is none."""
    query = select(deletions.c.receipt).where(deletions.c.batch_id == batch_id)
    found = database.rows(query)
    return dict(found[0]["receipt"]) if found else None


def receipt_id_of(batch_id: str) -> str:
    """One batch has one receipt, whoever deletes it how often."""
    return f"d_{hashlib.sha256(batch_id.encode()).hexdigest()[:24]}"


def erase(
    database: Database,
    blobs: Blobs,
    batch_id: str,
    *,
    now: float,
    key_id: str,
    reason: str = REQUEST,
    sign: Sign = dict,
) -> Receipt:
    """Delete the batch and return the receipt, the same one however often it is asked for. Raises
    BatchBusy, and StoreUnavailable when a part of it could not be deleted yet."""
    stored = receipt_of(database, batch_id)
    if stored is not None:
        return stored
    _mark(database, batch_id)
    found = find(database, batch_id)
    kept = delete_unnamed(database, blobs, found.keys, batch_id, found.runs)
    receipt = sign(_receipt(batch_id, found, kept, now=now, key_id=key_id, reason=reason))
    try:
        _blank(database, batch_id, found.runs, receipt)
    except Conflict:  # somebody else deleted it at the same time
        stored = receipt_of(database, batch_id)
        if stored is None:
            raise
        return stored
    # answers kept for repeated requests list the names of the files
    Idempotency(database, lasts_s=0, lease_s=0).forget(batch_id)
    return receipt


def _mark(database: Database, batch_id: str) -> None:
    mine = batches.c.batch_id == batch_id
    with database.begin() as link:
        found = link.execute(select(batches.c.state).where(mine).with_for_update()).scalar()
        if found == RECEIVING:
            raise BatchBusy(batch_id, [])
        open_jobs = and_(jobs.c.batch_id == batch_id, jobs.c.state.not_in(OVER))
        busy = [r[0] for r in link.execute(select(jobs.c.run_id).where(open_jobs))]
        if busy:
            raise BatchBusy(batch_id, busy)
        link.execute(update(batches).where(mine).values(state=DELETED))


def find(database: Database, batch_id: str) -> Found:
    """Everything made from the batch that shows or describes a face."""
    mine = jobs.c.batch_id == batch_id
    with database.read() as link:
        found = Found([r[0] for r in link.execute(select(jobs.c.run_id).where(mine))])

        def keys(column: Any, *where: Any) -> set[str]:
            return {r[0] for r in link.execute(select(column).where(column.is_not(None), *where))}

        of_runs = items.c.run_id.in_(found.runs)
        found.blobs["originals"] = keys(batch_items.c.blob, batch_items.c.batch_id == batch_id)
        found.blobs["prepared"] = keys(items.c.original, of_runs) - found.blobs["originals"]
        found.blobs["edited"] = keys(items.c.edited, of_runs) - found.blobs["originals"]
        found.blobs["masks"] = keys(items.c.mask, of_runs)
        found.blobs["reports"] = keys(
            artefacts.c.blob, artefacts.c.run_id.in_(found.runs), shows_pictures()
        )

        def count(table: Table, *where: Any) -> int:
            query = select(func.count()).select_from(table)
            return int(link.execute(query.where(*where)).scalar_one())

        found.portraits = count(
            portraits, portraits.c.run_id.in_(found.runs), has(portraits.c.face)
        )
        found.evidence = count(items, of_runs, has(items.c.evidence))
        found.figures = count(measurements, measurements.c.run_id.in_(found.runs))
    return found


def has(column: Any) -> Any:
    """The condition for a JSON column that says something."""
    return and_(column.is_not(None), cast(column, String).not_in(("null", "{}", "[]")))


def shows_pictures() -> Any:
    """The condition for files that may hold pictures: whatever is not known to be figures alone."""
    return ~or_(*(artefacts.c.media_type.like(f"{kind}%") for kind in FIGURES_ONLY))


def _receipt(
    batch_id: str, found: Found, kept: set[str], *, now: float, key_id: str, reason: str
) -> Receipt:
    gone = {kind: sorted(keys - kept) for kind, keys in found.blobs.items()}
    deleted: dict[str, Any] = {
        kind: {"count": len(keys), "sha256": keys} for kind, keys in gone.items()
    }
    deleted["landmarks"] = {"count": found.portraits}
    deleted["evidence"] = {"count": found.evidence}
    return {
        "schema": SCHEMA,
        "receipt_id": receipt_id_of(batch_id),
        "batch_id": batch_id,
        "runs": sorted(found.runs),
        "at": iso(now),
        "by": key_id,
        "reason": reason,
        "deleted": deleted,
        "kept": {
            "figures": {"count": found.figures, "why": "figures show nobody"},
            "shared": {
                "count": len(kept & found.keys),
                "sha256": sorted(kept & found.keys),
                "why": "another batch holds the same bytes; they go with it",
            },
        },
    }


def _blank(
    database: Database, batch_id: str, runs: Sequence[str], receipt: Mapping[str, Any]
) -> None:
    row = {
        "receipt_id": receipt["receipt_id"], "batch_id": batch_id, "at": receipt["at"],
        "key_id": receipt["by"], "receipt": dict(receipt),
    }  # fmt: skip
    with database.begin() as link:
        link.execute(insert(deletions).values(**row))
        blank: dict[str, Any] = {"blob": None}
        if not runs:  # no figure needs to be told which picture it is of
            blank |= {"name": "", "attributes": null()}
        link.execute(update(batch_items).where(batch_items.c.batch_id == batch_id).values(**blank))
        for statement in [*blank_pictures(runs), *blank_landmarks(runs), drop_reports(runs)]:
            link.execute(statement)


def blank_pictures(runs: Sequence[str]) -> list[Any]:
    """Statements after which no item of ``runs`` names a picture."""
    nothing: dict[str, Any] = {"original": None, "edited": None, "mask": None}
    return [update(items).where(items.c.run_id.in_(runs)).values(**nothing)]


def blank_landmarks(runs: Sequence[str]) -> list[Any]:
    """Statements after which nothing of ``runs`` tells where a face's points lie."""
    return [
        update(portraits).where(portraits.c.run_id.in_(runs)).values(face=null()),
        update(items).where(items.c.run_id.in_(runs)).values(evidence={}),
    ]


def drop_reports(runs: Sequence[str]) -> Any:
    """The statement that takes files with pictures from the runs' lists."""
    return delete(artefacts).where(artefacts.c.run_id.in_(runs), shows_pictures())
