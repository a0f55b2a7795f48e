"""Keeps the calls of a probe run with their replies, in a run's own file or in a shared database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from probes.asking.journal import reply_from_json, reply_json
from probes.calls import Call, Reply
from service import secrets
from service.store.database import Database
from service.store.ledger import now
from service.store.tables import probe_calls

_ASKED_AT_ONCE = 500
"""Keys in one query: SQLite takes a bounded number of values."""
_REPLACED = ("call", "reply", "at")


class ProbeCalls:
    """A journal of replies. Everything entered is durable when ``keep`` returns, and holds no key
    that this process has read. Safe to use from several threads."""

    def __init__(self, database: Database, run_id: str) -> None:
        """``database`` has its tables."""
        self._database, self._run_id = database, run_id

    def known(self, keys: Iterable[str]) -> Mapping[str, Reply]:
        """The replies that are there, by the calls' keys."""
        wanted = sorted(set(keys))
        found: dict[str, Reply] = {}
        for start in range(0, len(wanted), _ASKED_AT_ONCE):
            some = wanted[start : start + _ASKED_AT_ONCE]
            query = select(probe_calls.c.call_key, probe_calls.c.reply).where(
                probe_calls.c.run_id == self._run_id, probe_calls.c.call_key.in_(some)
            )
            for row in self._database.rows(query):
                found[row["call_key"]] = reply_from_json(row["reply"])
        return found

    def keep(self, entries: Sequence[tuple[str, Call, Reply]]) -> None:
        """Enter calls with their replies, in one transaction. Said twice, the second stands. Raises
        StoreUnavailable when nothing was written."""
        if not entries:
            return
        made = postgresql.insert if self._database.is_postgres else sqlite.insert
        rows = [self._row(*entry) for entry in entries]
        statement: Any = made(probe_calls)
        statement = statement.on_conflict_do_update(
            index_elements=[probe_calls.c.run_id, probe_calls.c.call_key],
            set_={name: statement.excluded[name] for name in _REPLACED},
        )
        with self._database.begin() as link:
            link.execute(statement, rows)

    def count(self) -> int:
        """How many replies are there."""
        query = select(func.count().label("many")).where(probe_calls.c.run_id == self._run_id)
        return int(self._database.rows(query)[0]["many"])

    def _row(self, key: str, call: Call, reply: Reply) -> dict[str, Any]:
        return {
            "run_id": self._run_id,
            "call_key": key,
            "probe": call.probe,
            "language": call.language,
            "item": call.item,
            "arm": call.arm,
            "condition": call.condition,
            "stage": call.stage,
            "repeat": call.repeat,
            "call": secrets.hide_keys(json.dumps(asdict(call), separators=(",", ":"))),
            "reply": secrets.hide_keys(reply_json(reply)),
            "at": now(),
        }
