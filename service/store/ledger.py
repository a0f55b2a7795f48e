"""The ledger of one run: the truth from which a killed run goes on.

An item moves planned -> calling -> edited -> done. Each step is committed before the next begins:
``calling`` is written before the tool is called (the call may cost money), ``edited`` together
with the stored result, ``done`` together with its figures. What a kill interrupts is found in the
state it was left in: ``edited`` is measured again without calling the tool, ``calling`` is called
again and its interrupted call stays on record as possibly billed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, insert, select, update
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from domain.errors import LedgerError
from domain.measurements import Outcome
from service.store.tables import ITEM, calls, items, measurements, metadata, portraits, runs

PLANNED, CALLING, EDITED, DONE = "planned", "calling", "edited", "done"
Row = Mapping[str, Any]


def now() -> str:
    """The time as ISO 8601 with its zone, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """One run in one database. Safe to use from several threads of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = _open(path)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    # -- the run -----------------------------------------------------------------------------

    def run(self) -> Row | None:
        """The run's row, None in a fresh ledger."""
        rows = self._rows(select(runs))
        return rows[0] if rows else None

    def begin(self, row: Row) -> None:
        """Enter the run."""
        self._write(insert(runs), [row])

    def set_run(self, **values: Any) -> None:
        """Change columns of the run's row."""
        self._write(update(runs).values(**values))

    # -- portraits ---------------------------------------------------------------------------

    def portraits(self) -> list[Row]:
        """Every portrait looked at, in the manifest's order."""
        return self._rows(select(portraits).order_by(portraits.c.seq))

    def add_portraits(self, rows: Sequence[Row]) -> None:
        """Enter what the instrument saw."""
        self._write(insert(portraits), rows)

    # -- items -------------------------------------------------------------------------------

    def add_items(self, rows: Sequence[Row]) -> None:
        """Enter all items at once, or none."""
        self._write(insert(items), rows)

    def items(self, *states: str) -> list[Row]:
        """Items in their order; only those in one of ``states`` when any is given."""
        query = select(items).order_by(items.c.seq)
        return self._rows(query.where(items.c.state.in_(states)) if states else query)

    def item(self, item_id: str) -> Row:
        """One item by its id."""
        return self._rows(select(items).where(items.c.item_id == item_id))[0]

    def count(self) -> dict[str, int]:
        """How many items are in each state."""
        query = select(items.c.state, func.count()).group_by(items.c.state)
        with self._engine.connect() as link:
            return {row[0]: row[1] for row in link.execute(query)}

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
        try:
            with self._engine.begin() as link:
                again = update(items).where(items.c.state == DONE, failed)
                count = link.execute(again.values(state=PLANNED, **blank)).rowcount
                if count:
                    link.execute(update(runs).values(finished=None))
                return count
        except DatabaseError as error:
            raise _trouble(self.path, error) from None

    def begin_call(self, item_id: str, attempt: int, kind: str = ITEM) -> int:
        """Record the intent before the tool is called. Returns the call's number. A warm-up, whose
        result is thrown away, leaves its item as it is."""
        moved = update(items).where(items.c.item_id == item_id)
        row = {"item_id": item_id, "attempt": attempt, "started": now(), "kind": kind}
        try:
            with self._engine.begin() as link:
                if kind == ITEM:
                    link.execute(moved.values(state=CALLING, attempts=attempt))
                made = link.execute(insert(calls).values(**row))
                key = made.inserted_primary_key
                return int(key[0]) if key else 0
        except DatabaseError as error:
            raise _trouble(self.path, error) from None

    def end_call(self, call_id: int, item_id: str, call: Row, item: Row) -> None:
        """The call's result and what the item became (nothing: as it was), in one transaction."""
        ended = update(calls).where(calls.c.call_id == call_id).values(ended=now(), **call)
        steps: list[tuple[Any, Sequence[Row] | None]] = [(ended, None)]
        if item:
            changed = update(items).where(items.c.item_id == item_id).values(**item)
            steps.append((changed, None))
        self._write_all(steps)

    def finish_item(self, item_id: str, item: Row, figures: Sequence[Row]) -> None:
        """The item's outcome with all its figures, in one transaction."""
        steps: list[tuple[Any, Sequence[Row] | None]] = [
            (update(items).where(items.c.item_id == item_id).values(state=DONE, **item), None)
        ]
        if figures:
            steps.append((insert(measurements), figures))
        self._write_all(steps)

    def measurements(self) -> list[Row]:
        """Every figure, in the items' order and then as the metrics gave them."""
        order = (items.c.seq, measurements.c.position)
        query = select(measurements).join(items).order_by(*order)
        return self._rows(query)

    def calls(self) -> list[Row]:
        """Every call of a tool; one without ``ended`` was cut off and may have been billed."""
        return self._rows(select(calls).order_by(calls.c.call_id))

    def cut_off(self, item_id: str) -> int:
        """How often the process died while it called a tool for this item's result."""
        mine = (calls.c.item_id == item_id, calls.c.kind == ITEM, calls.c.ended.is_(None))
        return len(self._rows(select(calls.c.call_id).where(*mine)))

    # -- plumbing ----------------------------------------------------------------------------

    def _rows(self, query: Any) -> list[Row]:
        try:
            with self._engine.connect() as link:
                return [dict(row) for row in link.execute(query).mappings()]
        except DatabaseError as error:
            raise _trouble(self.path, error) from None

    def _write(self, statement: Any, rows: Sequence[Row] | None = None) -> None:
        self._write_all([(statement, rows)])

    def _write_all(self, steps: Iterable[tuple[Any, Sequence[Row] | None]]) -> None:
        try:
            with self._engine.begin() as link:
                for statement, rows in steps:
                    if rows is None:
                        link.execute(statement)
                    elif rows:
                        link.execute(statement, list(rows))
        except DatabaseError as error:
            raise _trouble(self.path, error) from None


def _open(path: Path) -> Engine:
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 60})

    @event.listens_for(engine, "connect")
    def _durable(link: Any, _record: Any) -> None:
        # WAL lets readers and the writer go on together; FULL makes a commit survive power loss
        link.execute("PRAGMA journal_mode=WAL")
        link.execute("PRAGMA synchronous=FULL")
        link.execute("PRAGMA foreign_keys=ON")

    try:
        with engine.begin() as link:
            # Not create_all: it asks first and creates then, and a reader that opens a ledger at
            # the moment a run makes it would trip over the tables that came in between
            for table in metadata.sorted_tables:
                link.execute(CreateTable(table, if_not_exists=True))
                for index in table.indexes:
                    link.execute(CreateIndex(index, if_not_exists=True))
        with engine.begin() as link:
            _add_columns(link)
    except (DatabaseError, OperationalError) as error:
        raise _trouble(path, error) from None
    return engine


def _add_columns(link: Connection) -> None:
    """Bring the ledger of an earlier version up to this one's columns."""
    for table in metadata.sorted_tables:
        there = {row[1] for row in link.exec_driver_sql(f"PRAGMA table_info({table.name})")}
        for column in table.columns:
            if column.name in there:
                continue
            ddl = CreateColumn(column).compile(dialect=link.dialect)
            try:
                link.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {ddl}")
            except OperationalError as error:
                if "duplicate column" not in str(error.orig):  # another reader was quicker
                    raise


def _trouble(path: Path, error: DatabaseError) -> LedgerError:
    cause = str(getattr(error, "orig", error)).splitlines()[0]
    hint = " (is the disk full?)" if "full" in cause or "disk I/O" in cause else ""
    return LedgerError(f"{path}: the ledger cannot be used: {cause}{hint}")
