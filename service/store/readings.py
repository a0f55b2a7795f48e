"""What a run in the shared database has to show so far, read in pieces: nothing here holds a whole
run in memory, and nothing writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import func, select

from service.store.database import Database
from service.store.ledger import DONE
from service.store.service_tables import batch_items, batches, events
from service.store.tables import calls, items, measurements, portraits

Row = Mapping[str, Any]
_OF_A_FIGURE = (
    items.c.item_id, items.c.portrait_id, items.c.tool, items.c.tool_id, items.c.control,
    items.c.task, items.c.perturbation, items.c.outcome, items.c.reason, items.c.health,
)  # fmt: skip
_OF_A_LIST = (
    items.c.item_id, items.c.seq, items.c.portrait_id, items.c.tool, items.c.tool_id,
    items.c.control, items.c.task, items.c.perturbation, items.c.state, items.c.outcome,
    items.c.reason, items.c.seconds, items.c.model, items.c.attempts, items.c.original,
    items.c.edited, items.c.mask,
)  # fmt: skip


class Readings:
    """One run. Any number of them can read while its worker writes."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database, self._run = database, run_id

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many items are in each state, and how many have ended with each outcome."""
        mine = items.c.run_id == self._run
        by_state = select(items.c.state, func.count()).where(mine).group_by(items.c.state)
        ended = (mine, items.c.outcome.is_not(None))
        by_outcome = select(items.c.outcome, func.count()).where(*ended).group_by(items.c.outcome)
        with self._database.read() as link:
            states = {row[0]: int(row[1]) for row in link.execute(by_state)}
            return states, {row[0]: int(row[1]) for row in link.execute(by_outcome)}

    def items(
        self,
        after: int | None,
        limit: int,
        *,
        state: str | None = None,
        outcome: str | None = None,
        tool: str | None = None,
    ) -> Sequence[Row]:
        """Items in the order planned, those after the one numbered ``after``."""
        query = select(*_OF_A_LIST).where(items.c.run_id == self._run)
        if after is not None:
            query = query.where(items.c.seq > after)
        wanted = ((items.c.state, state), (items.c.outcome, outcome), (items.c.tool, tool))
        for column, value in wanted:
            if value is not None:
                query = query.where(column == value)
        return self._database.rows(query.order_by(items.c.seq).limit(limit))

    def item(self, item_id: str) -> Row | None:
        """One item with all that is known of it."""
        mine = (items.c.run_id == self._run, items.c.item_id == item_id)
        found = self._database.rows(select(items).where(*mine))
        return found[0] if found else None

    def ended_items(
        self,
        at_least: str,
        limit: int,
        *,
        outcome: str | None = None,
        tool: str | None = None,
    ) -> Sequence[Row]:
        """Items that have ended, by id, from the id ``at_least`` on."""
        mine = (items.c.run_id == self._run, items.c.state == DONE, items.c.item_id >= at_least)
        query = select(*_OF_A_FIGURE).where(*mine)
        for column, value in ((items.c.outcome, outcome), (items.c.tool, tool)):
            if value is not None:
                query = query.where(column == value)
        return self._database.rows(query.order_by(items.c.item_id).limit(limit))

    def figures(self, item_ids: Collection[str]) -> Sequence[Row]:
        """The figures of these items, in the order that the metrics gave them."""
        if not item_ids:
            return []
        mine = (measurements.c.run_id == self._run, measurements.c.item_id.in_(item_ids))
        order = (measurements.c.item_id, measurements.c.position)
        return self._database.rows(select(measurements).where(*mine).order_by(*order))

    def calls(self, item_id: str) -> Sequence[Row]:
        """Every call of a tool for one item, the oldest first."""
        mine = (calls.c.run_id == self._run, calls.c.item_id == item_id)
        return self._database.rows(select(calls).where(*mine).order_by(calls.c.call_id))

    def portrait(self, portrait_id: str) -> Row | None:
        """What the instrument saw on one untouched portrait."""
        mine = (portraits.c.run_id == self._run, portraits.c.portrait_id == portrait_id)
        found = self._database.rows(select(portraits).where(*mine))
        return found[0] if found else None

    def people(self) -> dict[str, tuple[str, Mapping[str, str]]]:
        """The person shown and the attributes of every portrait looked at so far."""
        columns = (portraits.c.portrait_id, portraits.c.subject_id, portraits.c.attributes)
        found = self._database.rows(select(*columns).where(portraits.c.run_id == self._run))
        return {r["portrait_id"]: (r["subject_id"], r["attributes"]) for r in found}


def batch(database: Database, batch_id: str) -> Row | None:
    """The row of a batch."""
    found = database.rows(select(batches).where(batches.c.batch_id == batch_id))
    return found[0] if found else None


def accepted_items(database: Database, batch_id: str) -> Sequence[Row]:
    """The pictures of a batch that can be worked with, in their order."""
    mine = (batch_items.c.batch_id == batch_id, batch_items.c.state == "accepted")
    return database.rows(select(batch_items).where(*mine).order_by(batch_items.c.seq))


def pace(database: Database, run_id: str) -> tuple[Row, Row] | None:
    """The first and the newest report of progress since the run was last taken up by a worker. None:
    there are not two yet."""
    mine = events.c.run_id == run_id
    taken_up = select(func.max(events.c.event_id)).where(mine, events.c.kind == "running")
    since = (mine, events.c.kind == "progress", events.c.event_id > taken_up.scalar_subquery())
    ends = select(func.min(events.c.event_id), func.max(events.c.event_id)).where(*since)
    with database.read() as link:
        first, last = link.execute(ends).one()
        if first is None or first == last:
            return None
        both = select(events).where(events.c.event_id.in_((first, last)))
        found = [dict(row) for row in link.execute(both.order_by(events.c.event_id)).mappings()]
    return (found[0], found[1]) if len(found) == 2 else None


def newest_events(database: Database, run_ids: Collection[str]) -> dict[str, int]:
    """The id of the newest event of each of these runs; a run without any is left out."""
    if not run_ids:
        return {}
    query = select(events.c.run_id, func.max(events.c.event_id))
    query = query.where(events.c.run_id.in_(run_ids)).group_by(events.c.run_id)
    with database.read() as link:
        return {row[0]: int(row[1]) for row in link.execute(query)}
