"""The one door to a database: SQLite in a file, or PostgreSQL.

Everything that a driver raises leaves as a LedgerError of one line; StoreUnavailable says that
nothing was written and that the same step may be tried again later.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from domain.errors import Conflict, LedgerError, StoreUnavailable
from service.store import schema
from service.store.trouble import in_one_line

__all__ = ["Conflict", "Database", "StoreUnavailable"]

CONNECT_S = 5
STATEMENT_S = 60
LOCK_S = 10.0
"""How long one waits for another's lock before StoreUnavailable says so."""
SQLITE_LOCK_S = 30.0
"""The same for SQLite, whose waiters ask again and again instead of queueing: on a busy machine one
may be passed over many times."""
_POSTGRES: dict[str, Any] = {
    "connect_timeout": CONNECT_S,
    "application_name": "likeness",
    "options": (
        f"-c statement_timeout={STATEMENT_S}s -c lock_timeout={int(LOCK_S)}s"
        " -c idle_in_transaction_session_timeout=120s"
    ),
    # A database that is gone without a word (its machine died) is noticed within half a minute
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class Database:
    """A pool of connections. Safe to use from several threads; not across a fork."""

    def __init__(self, url: str | URL, lock_s: float = SQLITE_LOCK_S) -> None:
        """``url`` is ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST/NAME``. Nothing is
        connected yet. Raises LedgerError for any other kind of URL."""
        parsed = _parse(url)
        self.is_postgres = parsed.get_backend_name() == "postgresql"
        self._secret = str(parsed.password or "")
        self.name = _name(parsed)
        self.engine: Engine = (
            _postgres(parsed) if self.is_postgres else _sqlite(parsed, self.name, lock_s)
        )

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction that writes: committed whole at the end of the block, or not at all. On
        SQLite it holds the file's one write lock from the start."""
        with (
            self._told(),
            self.engine.connect() as link,
            link.execution_options(writes=True).begin(),
        ):
            yield link

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads; on SQLite it waits for no writer."""
        with self._told(), self.engine.connect() as link:
            yield link

    def rows(self, query: Any) -> list[dict[str, Any]]:
        """All rows of a query as dicts by column."""
        with self.read() as link:
            return [dict(row) for row in link.execute(query).mappings()]

    def migrate(self) -> None:
        """Bring the tables up to this version of the program, from nothing or from any earlier
        one; whole or not at all, and safe when several processes do it at once."""
        with self._told():
            schema.bring_up(self.engine, self.name, self.is_postgres)

    def ping(self) -> None:
        """Raises StoreUnavailable where the database cannot be written now, LedgerError where its
        tables are not those of this version."""
        with self.begin() as link:
            if self.is_postgres:
                read_only = link.execute(text("SHOW transaction_read_only")).scalar_one()
                if read_only != "off":
                    raise StoreUnavailable(f"{self.name}: the ledger is read only")
            found = schema.revision(link)
        if found != schema.HEAD:
            raise LedgerError(f"{self.name}: the ledger's tables are not those of this version")

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise in_one_line(self.name, error, self._secret) from None


def _parse(url: str | URL) -> URL:
    wanted = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # its text may hold a password: not repeated
        raise LedgerError(f"the database's URL cannot be read as one (wanted: {wanted})") from None
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise LedgerError(f"no database of kind '{parsed.drivername}' is known (wanted: {wanted})")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise LedgerError(f"the database must be a file (wanted: {wanted})")
    return parsed


def _name(url: URL) -> str:
    """What to call it in messages: never with a password or a query."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    place = url.host or str(url.query.get("host", "this machine"))
    return f"PostgreSQL database '{url.database}' at {place}"


def _postgres(url: URL) -> Engine:
    try:
        return create_engine(
            url, connect_args=_POSTGRES, pool_pre_ping=True, pool_size=5, max_overflow=15,
            pool_timeout=LOCK_S, hide_parameters=True, json_serializer=_json,
        )  # fmt: skip
    except (ImportError, NoSuchModuleError):
        raise LedgerError("a PostgreSQL database needs the package psycopg[binary]") from None


def _sqlite(url: URL, name: str, lock_s: float) -> Engine:
    try:
        if not name.startswith("file:"):  # SQLite's own URLs say how a file is to be opened
            Path(name).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(f"{name}: cannot be written: {error.strerror or error}") from None
    engine = create_engine(
        url, connect_args={"timeout": lock_s}, pool_size=5, max_overflow=35,
        pool_timeout=3 * lock_s, hide_parameters=True, json_serializer=_json,
    )  # fmt: skip

    @event.listens_for(engine, "connect")
    def _durable(link: Any, _record: Any) -> None:
        # Transactions are begun below, not by the driver, which would leave out what makes tables
        link.isolation_level = None
        # WAL lets readers and the writer go on together; FULL makes a commit survive power loss
        link.execute("PRAGMA journal_mode=WAL")
        link.execute("PRAGMA synchronous=FULL")
        link.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(link: Connection) -> None:
        # A reader that turned writer would be refused at once where another wrote meanwhile;
        # one that says so first waits for its turn
        writes = link.get_execution_options().get("writes")
        link.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _json(value: Any) -> str:
    """JSON that every database takes: NaN and infinities, which JSON lacks, become null."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
