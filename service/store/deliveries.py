"""Messages to the addresses that runs were asked to tell, each until it has arrived or is given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import func, select, update

from service.store.database import Database
from service.store.jobs import database_time
from service.store.service_tables import deliveries, jobs

Row = Mapping[str, Any]
PENDING, DONE, FAILED = "pending", "done", "failed"


def message(run_id: str, url: str, event: str, body: str) -> dict[str, Any]:
    """A message as a row that ``Jobs`` enters together with the change that it tells of."""
    return {
        "delivery_id": f"msg_{uuid4().hex}", "run_id": run_id, "url": url, "event": event,
        "body": body, "state": PENDING, "attempts": 0, "next_at": 0.0, "last_status": None,
    }  # fmt: skip


class Deliveries:
    """The messages. ``clock`` (epoch seconds) stands in for the database's own in tests."""

    def __init__(self, database: Database, clock: Callable[[], float] | None = None) -> None:
        self._database, self._clock = database, clock

    def claim(self, seconds: float) -> Row | None:
        """The message that is due the longest, with its try counted and nobody else given it for
        ``seconds``; with ``owner``, the key that the run belongs to. None: nothing is due."""
        due = (deliveries.c.state == PENDING, deliveries.c.next_at <= self._now())
        first = select(deliveries.c.delivery_id).where(*due).order_by(deliveries.c.next_at).limit(1)
        chosen = first.with_for_update(skip_locked=True).scalar_subquery()
        taken = update(deliveries).where(deliveries.c.delivery_id == chosen)
        taken = taken.values(
            attempts=deliveries.c.attempts + 1, next_at=self._now() + seconds
        ).returning(*deliveries.c)
        with self._database.begin() as link:
            row = link.execute(taken).mappings().first()
            if row is None:
                return None
            whose = select(jobs.c.owner).where(jobs.c.run_id == row["run_id"])
            return {**row, "owner": link.execute(whose).scalar_one()}

    def settle(self, delivery_id: str, state: str, status: int | None) -> None:
        """It has arrived (DONE) or is given up (FAILED)."""
        self._set(delivery_id, state=state, last_status=status)

    def again(self, delivery_id: str, status: int | None, seconds: float) -> None:
        """It did not arrive: try again in ``seconds``."""
        self._set(delivery_id, last_status=status, next_at=self._now() + seconds)

    def of_run(self, run_id: str) -> Sequence[Row]:
        """All messages about a run."""
        return self._database.rows(select(deliveries).where(deliveries.c.run_id == run_id))

    def counts(self) -> dict[str, int]:
        """How many messages are in each state."""
        query = select(deliveries.c.state, func.count().label("many"))
        rows = self._database.rows(query.group_by(deliveries.c.state))
        return dict.fromkeys((PENDING, DONE, FAILED), 0) | {r["state"]: r["many"] for r in rows}

    def _set(self, delivery_id: str, **values: Any) -> None:
        mine = (deliveries.c.delivery_id == delivery_id, deliveries.c.state == PENDING)
        with self._database.begin() as link:
            link.execute(update(deliveries).where(*mine).values(**values))

    def _now(self) -> Any:
        return self._clock() if self._clock else database_time(self._database)
