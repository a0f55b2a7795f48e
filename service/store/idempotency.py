"""Requests that carry an Idempotency-Key, with the answers they got.

An entry is written before the work begins and holds the answer once it is done. One in flight shows
signs of life; without them for a lease it belongs to a process that died, and the next request with
the same key goes on in its place, under the same ``nonce``: what derives its id from that nonce finds
what the dead process had made already instead of making it twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import String, cast, delete, insert, select, update

from domain.errors import Conflict
from service.store.database import Database
from service.store.service_tables import idempotency as table

IN_FLIGHT, DONE = "in_flight", "done"
Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a key stands for. ``begun``: the caller shall do the work, under ``nonce``;
    ``waiting``: somebody is doing it; ``done``: it was done, for a request that hashed to
    ``request``, with this answer (``body`` None: too large to keep)."""

    state: Literal["begun", "waiting", "done"]
    nonce: str = ""
    request: str = ""
    status: int = 0
    headers: Sequence[Header] = ()
    body: bytes | None = None


class Idempotency:
    """The entries in the database; ``lasts_s`` is how long an answer is kept."""

    def __init__(self, database: Database, *, lasts_s: float, lease_s: float) -> None:
        self._database, self._lasts, self._lease = database, lasts_s, lease_s

    def begin(self, owner: str, key: str, now: float) -> Entry:
        """Take ``key`` for a new piece of work, or tell what it already stands for."""
        nonce = secrets.token_hex(16)
        row = {
            "owner": owner,
            "key": key,
            "request_sha256": "",
            "state": IN_FLIGHT,
            "status": None,
            "headers": {"nonce": nonce},
            "body": None,
            "created": now,
        }
        try:
            with self._database.begin() as link:
                link.execute(insert(table), [row])
        except Conflict:
            return self._known(owner, key, now, nonce)
        return Entry("begun", nonce)

    def _known(self, owner: str, key: str, now: float, nonce: str) -> Entry:
        with self._database.begin() as link:
            query = select(table).where(_same(owner, key)).with_for_update()
            row = link.execute(query).mappings().first()
            if row is None:  # released between the two looks
                return Entry("waiting")
            age = now - row["created"]
            if row["state"] == DONE and age < self._lasts:
                headers = [(str(n), str(v)) for n, v in row["headers"]["headers"]]
                return Entry("done", "", row["request_sha256"], row["status"], headers, row["body"])
            if row["state"] == IN_FLIGHT and age < self._lease:
                return Entry("waiting")
            if row["state"] == IN_FLIGHT:
                nonce = row["headers"]["nonce"]
            fresh = {"state": IN_FLIGHT, "status": None, "body": None, "created": now}
            link.execute(
                update(table)
                .where(_same(owner, key))
                .values(request_sha256="", headers={"nonce": nonce}, **fresh)
            )
        return Entry("begun", nonce)

    def alive(self, owner: str, key: str, now: float) -> None:
        """A sign of life of the work in flight."""
        with self._database.begin() as link:
            mine = _same(owner, key) & (table.c.state == IN_FLIGHT)
            link.execute(update(table).where(mine).values(created=now))

    def finish(
        self,
        owner: str,
        key: str,
        request: str,
        now: float,
        *,
        status: int,
        headers: Sequence[Header],
        body: bytes | None,
    ) -> None:
        """Keep the answer for whoever asks again; ``request`` is the hash of what was asked."""
        values: dict[str, Any] = {
            "request_sha256": request,
            "state": DONE,
            "status": status,
            "headers": {"headers": [list(h) for h in headers]},
            "body": body,
            "created": now,
        }
        with self._database.begin() as link:
            link.execute(update(table).where(_same(owner, key)).values(**values))

    def release(self, owner: str, key: str) -> None:
        """Forget work that failed: the key may come again, with whatever body."""
        with self._database.begin() as link:
            mine = _same(owner, key) & (table.c.state == IN_FLIGHT)
            link.execute(delete(table).where(mine))

    def forget(self, target: str) -> int:
        """Remove kept answers whose Location or body's id is ``target`` (an id of a batch or a
        run): they hold names of files that are to be deleted. Returns how many."""
        safe = target.replace("\\", "").replace("%", "").replace("_", r"\_")
        here = cast(table.c.headers, String).like(f"%/{safe}%", escape="\\")
        with self._database.begin() as link:
            return link.execute(delete(table).where(here)).rowcount

    def sweep(self, now: float) -> int:
        """Remove what is too old to be repeated. Returns how many."""
        with self._database.begin() as link:
            old = table.c.created < now - max(self._lasts, self._lease)
            return link.execute(delete(table).where(old)).rowcount


def _same(owner: str, key: str) -> Any:
    return (table.c.owner == owner) & (table.c.key == key)
