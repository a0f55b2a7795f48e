"""What happened to a run, in order, so that a watcher who was away can catch up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Insert, insert, select

from service.store.database import Database
from service.store.service_tables import events

Row = Mapping[str, Any]


def instant() -> str:
    """The time as ISO 8601 with its zone, to the millisecond: lists are ordered by it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def entry(run_id: str, kind: str, data: Mapping[str, Any]) -> Insert:
    """The statement that enters one event, for a transaction that changes something else too."""
    return insert(events).values(run_id=run_id, at=instant(), kind=kind, data=dict(data))


class Events:
    """Events of all runs. Their ids grow, and within a run they are never out of order."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, run_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Enter one event. ``data`` is plain JSON data."""
        with self._database.begin() as link:
            link.execute(entry(run_id, kind, data))

    def after(self, run_id: str, last_id: int = 0, limit: int = 500) -> Sequence[Row]:
        """The run's events with an id above ``last_id``, oldest first, at most ``limit``. A row has
        ``event_id``, ``run_id``, ``at``, ``kind`` and ``data``."""
        mine = (events.c.run_id == run_id, events.c.event_id > last_id)
        query = select(events).where(*mine).order_by(events.c.event_id).limit(limit)
        return self._database.rows(query)
