"""What a database said, as one clear line without a password: LedgerError, or StoreUnavailable
where the same step may succeed later."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from domain.errors import Conflict, LedgerError, StoreUnavailable

_SQLITE_LATER = (
    "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY",
    "SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_PROTOCOL",
)  # fmt: skip
_POSTGRES_LATER = ("08", "25006", "28", "3D000", "40", "53", "55", "57", "58")
"""Starts of SQLSTATE: connection, read only, not let in, no such database, serialisation and
deadlock, out of resources, locked, ended by an operator, system error."""
_HINTS = {
    "full": "is the disk full?",
    "disk I/O": "is the disk full?",
    "no space left": "the database's disk is full",
    "No space left": "the database's disk is full",
    "locked": "another process holds it",
}


def in_one_line(
    where: str, error: SQLAlchemyError | sqlite3.Error, secret: str = ""
) -> LedgerError:
    """``error`` as our own. ``where`` names the database; ``secret`` is a password that must not
    be seen, whatever the driver says."""
    orig = getattr(error, "orig", None) or error
    lines = str(orig).strip().splitlines() or [type(orig).__name__]
    cause = lines[0].strip()
    if isinstance(error, PoolTimeout):
        cause = "all its connections are in use"
    if secret:
        cause = cause.replace(secret, "***")
    hint = next((f" ({said})" for word, said in _HINTS.items() if word in cause), "")
    return _kind(error, orig)(f"{where}: the ledger cannot be used: {cause}{hint}")


def _kind(error: Exception, orig: object) -> type[LedgerError]:
    if isinstance(error, IntegrityError):
        return Conflict
    if isinstance(error, PoolTimeout):
        return StoreUnavailable
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return StoreUnavailable
    if isinstance(orig, sqlite3.Error):
        later = str(getattr(orig, "sqlite_errorname", "")).startswith(_SQLITE_LATER)
        return StoreUnavailable if later else LedgerError
    # psycopg: a failure to connect has no SQLSTATE at all
    state = getattr(orig, "sqlstate", None)
    if state is None:
        gone = type(orig).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
        return StoreUnavailable if gone else LedgerError
    return StoreUnavailable if str(state).startswith(_POSTGRES_LATER) else LedgerError
