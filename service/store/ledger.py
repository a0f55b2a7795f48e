"""The ledger of one run: the truth from which a killed run goes on.

An item moves planned -> calling -> edited -> done. Each step is committed before the next begins:
``calling`` is written before the tool is called (the call may cost money), ``edited`` together
with the stored result, ``done`` together with its figures. What a kill interrupts is found in the
state it was left in: ``edited`` is measured again without calling the tool, ``calling`` is called
again and its interrupted call stays on record as possibly billed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from sqlalchemy import URL, ColumnElement, Table, delete, func, insert, select, update

from domain.measurements import Outcome
from service.store.database import Database
from service.store.naming import naming
from service.store.tables import ITEM, calls, items, measurements, portraits, runs

PLANNED, CALLING, EDITED, DONE = "planned", "calling", "edited", "done"
Row = Mapping[str, Any]
Step = tuple[Any, Sequence[Row] | None]
FILE_LOCK_S = 60.0
"""How long a run waits for another process that holds the lock of its own file."""


def now() -> str:
    """The time as ISO 8601 with its zone, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """One run in a database that may hold many. Safe to use from several threads of one process.
    Every step can be tried again after StoreUnavailable."""

    def __init__(self, database: Database, run_id: str) -> None:
        """``database`` has its tables and stays open when the ledger is closed."""
        self.database = database
        self.run_id = run_id
        self._own = False

    @classmethod
    def at(cls, path: Path) -> Self:
        """The ledger of the one run in a file of its own, which is made where it is missing and
        brought up to this version where it is older. Raises LedgerError."""
        database = Database(URL.create("sqlite", database=str(path)), FILE_LOCK_S)
        try:
            database.migrate()
            ledger = cls(database, _only_run(database))
        except BaseException:
            database.close()
            raise
        ledger._own = True
        return ledger

    def close(self) -> None:
        """Let go of a file of its own."""
        if self._own:
            self.database.close()

    # -- the run -----------------------------------------------------------------------------

    def run(self) -> Row | None:
        """The run's row, None in a fresh ledger."""
        rows = self._rows(select(runs).where(*self._mine(runs)))
        return rows[0] if rows else None

    def begin(self, row: Row) -> None:
        """Enter the run, under this ledger's id."""
        self._write((insert(runs), [row]))

    def set_run(self, **values: Any) -> None:
        """Change columns of the run's row."""
        self._write((update(runs).where(*self._mine(runs)).values(**values), None))

    # -- portraits ---------------------------------------------------------------------------

    def portraits(self) -> list[Row]:
        """Every portrait looked at, in the manifest's order."""
        mine = select(portraits).where(*self._mine(portraits))
        return self._rows(mine.order_by(portraits.c.seq))

    def add_portraits(self, rows: Sequence[Row]) -> None:
        """Enter what the instrument saw."""
        self._write((insert(portraits), rows))

    # -- items -------------------------------------------------------------------------------

    def add_items(self, rows: Sequence[Row]) -> None:
        """Enter all items at once, or none."""
        self._write((insert(items), rows))

    def items(self, *states: str) -> list[Row]:
        """Items in their order; only those in one of ``states`` when any is given."""
        query = select(items).where(*self._mine(items)).order_by(items.c.seq)
        return self._rows(query.where(items.c.state.in_(states)) if states else query)

    def item(self, item_id: str) -> Row:
        """One item by its id."""
        return self._rows(select(items).where(*self._item(item_id)))[0]

    def count(self) -> dict[str, int]:
        """How many items are in each state."""
        query = select(items.c.state, func.count().label("many")).where(*self._mine(items))
        return {row["state"]: row["many"] for row in self._rows(query.group_by(items.c.state))}

    def plan_failed_again(self) -> int:
        """Put every item that its tool failed back to be called, and the run back to unfinished.
        Their calls and the count of attempts stay. Returns how many there were."""
        failed = items.c.outcome == Outcome.FAILED.value
        blank: dict[str, Any] = {
            "outcome": None,
            "reason": None,
            "seconds": None,
            "meta": {},
            "warnings": [],
        }
        with self.database.begin() as link:
            again = update(items).where(*self._mine(items, items.c.state == DONE, failed))
            count = link.execute(again.values(state=PLANNED, **blank)).rowcount
            if count:
                link.execute(update(runs).where(*self._mine(runs)).values(finished=None))
            return count

    def begin_call(self, item_id: str, attempt: int, kind: str = ITEM) -> int:
        """Record the intent before the tool is called. Returns the call's number. A warm-up, whose
        result is thrown away, leaves its item as it is."""
        row = {"item_id": item_id, "attempt": attempt, "started": now(), "kind": kind}
        with self.database.begin() as link:
            if kind == ITEM:
                moved = update(items).where(*self._item(item_id))
                link.execute(moved.values(state=CALLING, attempts=attempt))
            made = link.execute(insert(calls).values(**row, run_id=self.run_id))
            key = made.inserted_primary_key
            return int(key[0]) if key else 0

    def end_call(self, call_id: int, item_id: str, call: Row, item: Row) -> None:
        """The call's result and what the item became (nothing: as it was), in one transaction.
        Pictures that it names are to be put once more afterwards (see ``naming``)."""
        mine = self._mine(calls, calls.c.call_id == call_id)
        steps: list[Step] = [(update(calls).where(*mine).values(ended=now(), **call), None)]
        if item:
            steps = [*((lock, None) for lock in naming(self.database.is_postgres)), *steps]
            steps.append((update(items).where(*self._item(item_id)).values(**item), None))
        self._write(*steps)

    def finish_item(self, item_id: str, item: Row, figures: Sequence[Row]) -> None:
        """The item's outcome with all its figures, in one transaction. Said twice (the answer to
        the first was lost with the connection), the second stands."""
        old = self._mine(measurements, measurements.c.item_id == item_id)
        done = update(items).where(*self._item(item_id)).values(state=DONE, **item)
        self._write(
            (done, None), (delete(measurements).where(*old), None), (insert(measurements), figures)
        )

    def measurements(self) -> list[Row]:
        """Every figure, in the items' order and then as the metrics gave them."""
        order = (items.c.seq, measurements.c.position)
        query = select(measurements).join(items).where(*self._mine(items)).order_by(*order)
        return self._rows(query)

    def calls(self) -> list[Row]:
        """Every call of a tool; one without ``ended`` was cut off and may have been billed."""
        return self._rows(select(calls).where(*self._mine(calls)).order_by(calls.c.call_id))

    def cut_off(self, item_id: str) -> int:
        """How often the process died while it called a tool for this item's result."""
        open_ones = (calls.c.item_id == item_id, calls.c.kind == ITEM, calls.c.ended.is_(None))
        return len(self._rows(select(calls.c.call_id).where(*self._mine(calls, *open_ones))))

    # -- plumbing ----------------------------------------------------------------------------

    def _mine(self, table: Table, *more: ColumnElement[bool]) -> tuple[ColumnElement[bool], ...]:
        return (table.c.run_id == self.run_id, *more)

    def _item(self, item_id: str) -> tuple[ColumnElement[bool], ...]:
        return self._mine(items, items.c.item_id == item_id)

    def _rows(self, query: Any) -> list[Row]:
        return [*self.database.rows(query)]

    def _write(self, *steps: Step) -> None:
        """All of the steps in one transaction. Rows are entered as this run's."""
        with self.database.begin() as link:
            for statement, rows in steps:
                if rows is None:
                    link.execute(statement)
                elif rows:
                    link.execute(statement, [{**row, "run_id": self.run_id} for row in rows])


def _only_run(database: Database) -> str:
    """The run of a file that holds one; a new id where none has been begun. A run that was cut off
    so early that it has portraits alone goes on under their id."""
    for table in (runs, portraits):
        if found := database.rows(select(table.c.run_id).limit(1)):
            return str(found[0]["run_id"])
    return uuid4().hex
