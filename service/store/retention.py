"""How long each kind of thing is kept, and the sweeper that ends it.

Nothing made from a picture outlives the picture: when a batch's originals go, everything made from
them goes too, with a receipt. Edited pictures, landmarks and reports may go earlier. Figures stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import and_, delete, exists, or_, select

from domain.errors import LedgerError, StoreUnavailable
from service.limits import DEFAULT, Limits
from service.store import erasure
from service.store.access_log import AccessLog
from service.store.batches import DELETED, READY, Batches, iso
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.idempotency import Idempotency
from service.store.jobs import OVER
from service.store.naming import delete_forgotten, delete_unnamed
from service.store.service_tables import (
    artefacts,
    batches,
    deletions,
    deliveries,
    events,
    jobs,
)
from service.store.tables import calls, items, measurements, portraits, probe_calls, runs

SWEEPER = "retention"
"""Who a receipt names when nobody asked."""
Days = float | None
"""None: kept until somebody deletes it."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """Days by kind. ``originals`` count from the day a batch was sent, all others from the day a run
    ended or a line was written. ``stale`` is after how long a batch that is still being received
    belongs to a process that died, ``unnamed`` the same of a stored picture that no row names."""

    originals: Days = 30
    edited: Days = 30
    landmarks: Days = 30
    reports: Days = 30
    figures: Days = None
    events: Days = 90
    access_log: Days = 365
    stale: float = 2
    unnamed: float = 1

    @classmethod
    def of(cls, limits: Limits) -> Retention:
        """What the service's limits say."""
        return cls(
            originals=_days(limits.keep_originals_s),
            edited=_days(limits.keep_edited_s),
            landmarks=_days(limits.keep_landmarks_s),
            reports=_days(limits.keep_reports_s),
            figures=_days(limits.keep_figures_s),
            events=_days(limits.keep_events_s),
            access_log=_days(limits.keep_access_log_s),
            stale=limits.stale_batch_s / _DAY,
            unnamed=limits.unnamed_blob_s / _DAY,
        )


def _days(seconds: float | None) -> Days:
    return None if seconds is None else seconds / _DAY


def sweep(
    database: Database,
    blobs: Blobs,
    now: float,
    *,
    retention: Retention | None = None,
    limits: Limits = DEFAULT,
    sign: erasure.Sign = dict,
    say: Callable[[str], object] = lambda _text: None,
) -> dict[str, int]:
    """Delete what is past its time at ``now`` (epoch seconds). Returns how many of each kind went.
    May run in several processes at once, and be killed at any point: the next one goes on.

    A receipt made without ``sign`` is signed when it is first read. What could not be deleted is
    told to ``say`` and tried again next time. Raises StoreUnavailable when the database is gone."""
    keep = retention or Retention.of(limits)
    sweeper = _Sweeper(database, blobs, now, sign, say)
    sweeper.unfinished(keep)
    sweeper.batches(keep)
    sweeper.pictures(keep)
    sweeper.landmarks(keep)
    sweeper.reports(keep)
    sweeper.figures(keep)
    sweeper.records(keep, limits)
    sweeper.forgotten(keep)
    return dict(sweeper.gone)


class _Sweeper:
    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        now: float,
        sign: erasure.Sign,
        say: Callable[[str], object],
    ) -> None:
        self._database, self._blobs, self._now = database, blobs, now
        self._sign, self._say = sign, say
        self.gone: Counter[str] = Counter()

    def unfinished(self, keep: Retention) -> None:
        """Batches whose process died while they came in or while they were deleted."""
        everything = Batches(self._database)
        for batch_id in everything.stale(self._now - keep.stale * _DAY):
            self._try("receiving", batch_id, partial(everything.discard, batch_id, self._blobs))
        receipt = exists().where(deletions.c.batch_id == batches.c.batch_id)
        half = select(batches.c.batch_id).where(batches.c.state == DELETED, ~receipt)
        for row in self._database.rows(half):
            self._try("batches", row["batch_id"], partial(self._erase, row["batch_id"]))

    def batches(self, keep: Retention) -> None:
        """Batches past their day, unless a run on them is not over. What was promised when a batch
        was sent and what the service keeps now both count: the earlier one ends it."""
        past = batches.c.expires <= iso(self._now)
        if keep.originals is not None:
            past = or_(past, batches.c.created <= iso(self._now - keep.originals * _DAY))
        busy = exists().where(jobs.c.batch_id == batches.c.batch_id, jobs.c.state.not_in(OVER))
        old = select(batches.c.batch_id).where(batches.c.state == READY, past, ~busy)
        for row in self._database.rows(old):
            self._try("batches", row["batch_id"], partial(self._erase, row["batch_id"]))

    def pictures(self, keep: Retention) -> None:
        """What tools made, and what was sent to them."""
        columns = (items.c.original, items.c.edited, items.c.mask)
        some = or_(*(c.is_not(None) for c in columns))
        for run_id in self._ended(keep.edited, items, some):
            found = self._database.rows(select(*columns).where(items.c.run_id == run_id))
            keys = {value for row in found for value in row.values() if value}
            blank = erasure.blank_pictures([run_id])
            self._try("edited", run_id, partial(self._drop, keys, run_id, blank))

    def landmarks(self, keep: Retention) -> None:
        """Where the points of faces lie."""
        of_portraits = self._ended(keep.landmarks, portraits, erasure.has(portraits.c.face))
        of_items = self._ended(keep.landmarks, items, erasure.has(items.c.evidence))
        for run_id in sorted({*of_portraits, *of_items}):
            blank = erasure.blank_landmarks([run_id])
            self._try("landmarks", run_id, partial(self._write, blank))

    def reports(self, keep: Retention) -> None:
        """Files of runs that show faces."""
        for run_id in self._ended(keep.reports, artefacts, erasure.shows_pictures()):
            mine = and_(artefacts.c.run_id == run_id, erasure.shows_pictures())
            keys = {r["blob"] for r in self._database.rows(select(artefacts.c.blob).where(mine))}
            gone = [erasure.drop_reports([run_id])]
            self._try("reports", run_id, partial(self._drop, keys, run_id, gone))

    def figures(self, keep: Retention) -> None:
        """Whole runs, once nothing that shows a face is left of them."""
        for run_id in self._ended(keep.figures, jobs, jobs.c.run_id.is_not(None)):
            mine = select(artefacts.c.blob).where(artefacts.c.run_id == run_id)
            pictures = select(items.c.original, items.c.edited, items.c.mask)
            rows = [
                *self._database.rows(mine),
                *self._database.rows(pictures.where(items.c.run_id == run_id)),
            ]
            keys = {value for row in rows for value in row.values() if value}
            tables = (
                measurements, calls, items, portraits, probe_calls, runs, artefacts, events,
                deliveries, jobs,
            )  # fmt: skip
            steps = [delete(t).where(t.c.run_id == run_id) for t in tables]
            self._try("figures", run_id, partial(self._drop, keys, run_id, steps))

    def records(self, keep: Retention, limits: Limits) -> None:
        """Lines about what happened, and answers kept for repeated requests."""
        kept = Idempotency(
            self._database, lasts_s=limits.idempotency_s, lease_s=limits.idempotency_lease_s
        )
        self.gone["repeats"] += kept.sweep(self._now)
        self.gone["remains"] += self._blobs.tidy(self._now - keep.stale * _DAY)
        if keep.access_log is not None:
            before = iso(self._now - keep.access_log * _DAY)
            self.gone["access_log"] += AccessLog(self._database).sweep(before)
        for run_id in self._ended(keep.events, events, events.c.event_id.is_not(None)):
            lines = [delete(t).where(t.c.run_id == run_id) for t in (events, deliveries)]
            self._try("events", run_id, partial(self._write, lines))

    def forgotten(self, keep: Retention) -> None:
        """Pictures that a killed process stored and never named in a row. A database that knows no
        batch is more likely the wrong one for this store than the right one after a loss."""
        before = self._now - keep.unnamed * _DAY
        if self._database.rows(select(batches.c.batch_id).limit(1)):
            self.gone["unnamed"] += delete_forgotten(self._database, self._blobs, before)
        elif next(self._blobs.older(before), None):
            self._say(f"{self._blobs.name}: left alone: the database knows no batch, so none of it")

    # -- how -----------------------------------------------------------------------------------

    def _ended(self, days: Days, table: Any, condition: Any) -> list[str]:
        """Runs that ended that long ago and have rows of ``table`` that fulfil ``condition``."""
        if days is None:
            return []
        old = and_(
            jobs.c.state.in_(OVER), jobs.c.finished <= iso(self._now - days * _DAY), condition
        )
        query = select(jobs.c.run_id).where(old).distinct()
        if table is not jobs:
            query = query.join(table, table.c.run_id == jobs.c.run_id)
        return sorted(row["run_id"] for row in self._database.rows(query))

    def _erase(self, batch_id: str) -> None:
        erasure.erase(
            self._database, self._blobs, batch_id, now=self._now, key_id=SWEEPER,
            reason=erasure.RETENTION, sign=self._sign,
        )  # fmt: skip

    def _drop(self, keys: Iterable[str], run_id: str, steps: Iterable[Any]) -> None:
        delete_unnamed(self._database, self._blobs, set(keys), None, [run_id])
        self._write(steps)

    def _write(self, steps: Iterable[Any]) -> None:
        with self._database.begin() as link:
            for step in steps:
                link.execute(step)

    def _try(self, kind: str, what: str, step: Callable[[], object]) -> None:
        try:
            step()
        except StoreUnavailable:
            raise
        except LedgerError as error:  # one that is stuck must not keep all others
            self._say(f"{kind} {what}: not deleted yet: {error}")
        else:
            self.gone[kind] += 1
