"""Runs that wait for a worker, are under way or have ended: who works on which, and until when.

A worker holds a job by a lease that it renews. One that died lets it run out, and the next worker
takes the job over. Every lease has a name of its own (``lease_owner``): a worker whose job was taken
over finds another name there and must stop writing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    Connection,
    Float,
    Select,
    and_,
    cast,
    extract,
    func,
    insert,
    or_,
    select,
    update,
)

from domain.errors import LikenessError
from service.store import events
from service.store.database import Database
from service.store.events import instant
from service.store.service_tables import deliveries, jobs

Row = Mapping[str, Any]
AUDIT, PROBES = "audit", "probes"
"""Kinds of run: a plan over a batch of pictures, or questions to a language model."""
QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OVER = (DONE, FAILED, CANCELLED)


class LeaseLost(LikenessError):
    """Another worker has this job by now: whoever had it must stop writing."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A job that a worker holds. ``owner`` is the lease's own name; ``row`` the job as leased."""

    run_id: str
    owner: str
    row: Row


def new_run_id() -> str:
    """An id that no other run has: "r_" and 24 hex digits."""
    return f"r_{uuid4().hex[:24]}"


def database_time(database: Database) -> Any:
    """Seconds since 1970, for a statement. On PostgreSQL they are the database's own, so that the
    clocks of workers do not matter; SQLite has one machine only."""
    if database.is_postgres:
        return cast(extract("epoch", func.clock_timestamp()), Float)
    return time.time()


class Jobs:
    """The queue. ``clock`` (epoch seconds) stands in for the database's own in tests."""

    def __init__(self, database: Database, clock: Callable[[], float] | None = None) -> None:
        self._database, self._clock = database, clock

    # -- for those who ask ---------------------------------------------------------------------

    def submit(
        self,
        run_id: str,
        batch_id: str | None,
        owner: str,
        name: str,
        plan_text: str,
        webhook_url: str | None = None,
    ) -> Row:
        """Put a run into the queue. ``owner`` is the id of the key that asked for it. Without a batch
        it is one of text probes."""
        row: dict[str, Any] = {
            "run_id": run_id, "kind": PROBES if batch_id is None else AUDIT, "batch_id": batch_id, "owner": owner, "name": name,
            "created": instant(), "state": QUEUED, "plan_text": plan_text, "attempts": 0,
            "cancel_requested": 0, "stages": {}, "webhook_url": webhook_url,
        }  # fmt: skip
        with self._database.begin() as link:
            link.execute(insert(jobs).values(**row))
            link.execute(events.entry(run_id, QUEUED, {}))
            return _read(link, run_id) or {}

    def get(self, run_id: str) -> Row | None:
        """The job's row, None where there is none."""
        with self._database.read() as link:
            return _read(link, run_id)

    def cancel(self, run_id: str, delivery: Row | None = None) -> str | None:
        """Ask for the run's end. Returns the state it has then: one that nobody works on is
        cancelled at once (and ``delivery`` entered in the webhook table), one under way as soon as
        its worker has heard of it. None: no such run."""
        mine = jobs.c.run_id == run_id
        idle = or_(jobs.c.state == QUEUED, self._abandoned())
        with self._database.begin() as link:
            ended = update(jobs).where(mine, idle).values(**_ending(CANCELLED))
            if link.execute(ended.values(cancel_requested=1)).rowcount:
                link.execute(events.entry(run_id, CANCELLED, {}))
                if delivery:
                    link.execute(insert(deliveries).values(**delivery))
            else:
                under_way = update(jobs).where(mine, jobs.c.state == RUNNING)
                link.execute(under_way.values(cancel_requested=1))
            row = _read(link, run_id)
            return row["state"] if row else None

    def requeue(self, run_id: str, states: Sequence[str] = (FAILED, CANCELLED)) -> bool:
        """Let a run that ended in one of ``states`` go on where it stood. False: it is in none."""
        back: dict[str, Any] = {
            "state": QUEUED, "attempts": 0, "cancel_requested": 0, "error": None,
            "finished": None, "lease_owner": None, "lease_until": None,
        }  # fmt: skip
        ended = and_(jobs.c.run_id == run_id, jobs.c.state.in_(states))
        with self._database.begin() as link:
            found = link.execute(update(jobs).where(ended).values(**back)).rowcount
            if found:
                link.execute(events.entry(run_id, QUEUED, {"again": True}))
            return bool(found)

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state; a state without one is 0."""
        query = select(jobs.c.state, func.count()).group_by(jobs.c.state)
        with self._database.read() as link:
            found = {row[0]: int(row[1]) for row in link.execute(query)}
        return {state: found.get(state, 0) for state in (QUEUED, RUNNING, *OVER)}

    # -- for workers ---------------------------------------------------------------------------

    def lease(self, worker: str, seconds: float, take_over: bool = True) -> Lease | None:
        """The oldest job that waits or, with ``take_over``, whose worker is gone, for ``seconds``.
        None: there is none.

        One statement that skips rows which others are taking: no two workers get the same job.
        """
        waits = jobs.c.state == QUEUED
        free = or_(waits, self._abandoned()) if take_over else waits
        order = (jobs.c.created, jobs.c.run_id)
        first = select(jobs.c.run_id).where(free).order_by(*order).limit(1)
        chosen = first.with_for_update(skip_locked=True).scalar_subquery()
        owner = f"{worker}#{uuid4().hex[:12]}"
        taken = update(jobs).where(jobs.c.run_id == chosen)
        taken = taken.values(
            state=RUNNING,
            lease_owner=owner,
            lease_until=self._now() + seconds,
            attempts=jobs.c.attempts + 1,
            started=func.coalesce(jobs.c.started, instant()),
        )
        with self._database.begin() as link:
            run_id = link.execute(taken.returning(jobs.c.run_id)).scalar()
            if run_id is None:
                return None
            row = _read(link, run_id) or {}
            link.execute(events.entry(run_id, RUNNING, {"attempt": row["attempts"]}))
            return Lease(run_id, owner, row)

    def heartbeat(self, lease: Lease, seconds: float, progressed: bool = False) -> bool:
        """Hold the job for ``seconds`` from now. ``progressed``: items have ended since the last
        time, so its earlier deaths no longer count. True: the run is to be cancelled. Raises
        LeaseLost."""
        values: dict[str, Any] = {"lease_until": self._now() + seconds}
        if progressed:
            values["attempts"] = 1
        held = update(jobs).where(_held(lease)).values(**values)
        with self._database.begin() as link:
            asked = link.execute(held.returning(jobs.c.cancel_requested)).scalar()
        if asked is None:
            raise _lost(lease)
        return bool(asked)

    def progress(self, lease: Lease, stages: Mapping[str, Any]) -> None:
        """Show how far the run is, to those who ask and those who watch. Raises LeaseLost."""
        shown = update(jobs).where(_held(lease)).values(stages=dict(stages))
        self._if_held(lease, shown, events.entry(lease.run_id, "progress", stages))

    def finish(self, lease: Lease, delivery: Row | None = None) -> None:
        """The run is done. ``delivery`` is a row of the webhook table. Raises LeaseLost."""
        self._end(lease, DONE, {}, delivery)

    def fail(self, lease: Lease, reason: str, delivery: Row | None = None) -> None:
        """The run cannot go on: ``reason``, one line. Raises LeaseLost."""
        self._end(lease, FAILED, {"error": reason}, delivery)

    def stopped(self, lease: Lease, delivery: Row | None = None) -> None:
        """The run has ended because it was cancelled. Raises LeaseLost."""
        self._end(lease, CANCELLED, {}, delivery)

    def release(self, lease: Lease) -> None:
        """Give the job back to the queue: this worker is being stopped, and no death is counted."""
        back = update(jobs).where(_held(lease), jobs.c.state == RUNNING)
        left = func.max if not self._database.is_postgres else func.greatest
        with self._database.begin() as link:
            link.execute(
                back.values(
                    state=QUEUED, lease_owner=None, lease_until=None,
                    attempts=left(jobs.c.attempts - 1, 0),
                )
            )  # fmt: skip

    def release_all_of(self, worker: str) -> int:
        """Let the jobs of a worker that is known to be dead be taken over at once."""
        his = jobs.c.lease_owner.startswith(f"{worker}#", autoescape=True)
        ended = update(jobs).where(jobs.c.state == RUNNING, his).values(lease_until=0.0)
        with self._database.begin() as link:
            return link.execute(ended).rowcount

    def workers(self) -> dict[str, float]:
        """The workers that hold a job, with the seconds that their leases still run."""
        query = select(jobs.c.lease_owner, jobs.c.lease_until - self._now())
        with self._database.read() as link:
            rows = link.execute(query.where(jobs.c.state == RUNNING)).all()
        return {str(owner).partition("#")[0]: float(left) for owner, left in rows if owner}

    # -- plumbing ------------------------------------------------------------------------------

    def _now(self) -> Any:
        return self._clock() if self._clock else database_time(self._database)

    def _abandoned(self) -> Any:
        return and_(jobs.c.state == RUNNING, jobs.c.lease_until < self._now())

    def _end(
        self, lease: Lease, state: str, values: Mapping[str, Any], delivery: Row | None
    ) -> None:
        ended = update(jobs).where(_held(lease)).values(**_ending(state), **values)
        told = [insert(deliveries).values(**delivery)] if delivery else []
        self._if_held(lease, ended, events.entry(lease.run_id, state, values), *told)

    def _if_held(self, lease: Lease, change: Any, *more: Any) -> None:
        with self._database.begin() as link:
            if not link.execute(change).rowcount:
                raise _lost(lease)
            for statement in more:
                link.execute(statement)

    def list(
        self,
        owner: str | None = None,
        before: tuple[str, str] | None = None,
        limit: int = 50,
        state: str | None = None,
    ) -> Sequence[Row]:
        """Jobs, the newest first; of one ``owner``, or of all with None; only those in ``state``, if
        one is given. ``before`` is the (created, run_id) of the last job of the page before."""
        query: Select[Any] = select(jobs)
        if owner is not None:
            query = query.where(jobs.c.owner == owner)
        if state is not None:
            query = query.where(jobs.c.state == state)
        if before is not None:
            created, run_id = before
            same = and_(jobs.c.created == created, jobs.c.run_id < run_id)
            query = query.where(or_(jobs.c.created < created, same))
        query = query.order_by(jobs.c.created.desc(), jobs.c.run_id.desc()).limit(limit)
        return self._database.rows(query)


def held(link: Connection, lease: Lease) -> bool:
    """Whether the lease still stands, and that it does until this transaction ends."""
    query = select(jobs.c.run_id).where(_held(lease)).with_for_update(read=True)
    return link.execute(query).first() is not None


def _held(lease: Lease) -> Any:
    mine = (jobs.c.run_id == lease.run_id, jobs.c.lease_owner == lease.owner)
    return and_(*mine, jobs.c.state == RUNNING)


def _ending(state: str) -> dict[str, Any]:
    return {"state": state, "finished": instant(), "lease_owner": None, "lease_until": None}


def _read(link: Connection, run_id: str) -> Row | None:
    found = link.execute(select(jobs).where(jobs.c.run_id == run_id)).mappings().first()
    return dict(found) if found else None


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"run {lease.run_id}: another worker has taken it over")
