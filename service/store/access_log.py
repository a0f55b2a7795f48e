"""Who read and deleted what: one row an act, never changed, removed only by age."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, insert, select

from service.store.database import Database
from service.store.service_tables import access_log as table


class AccessLog:
    """The acts in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, key_id: str | None, action: str, target: str, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Enter one act. ``target`` is an id, never a name or a picture."""
        row = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "key_id": key_id,
            "action": action,
            "target": target,
            "detail": dict(detail or {}) or None,
        }
        with self._database.begin() as link:
            link.execute(insert(table), [row])

    def page(
        self, limit: int, *, before: int | None = None, target: str | None = None
    ) -> list[dict[str, Any]]:
        """The latest acts first; ``before`` is the ``entry_id`` to go on from."""
        query = select(table).order_by(table.c.entry_id.desc()).limit(limit)
        if before is not None:
            query = query.where(table.c.entry_id < before)
        if target is not None:
            query = query.where(table.c.target == target)
        return self._database.rows(query)

    def sweep(self, before: str) -> int:
        """Remove acts older than ``before`` (ISO 8601). Returns how many."""
        with self._database.begin() as link:
            return link.execute(delete(table).where(table.c.at < before)).rowcount
