"""Brings a database's tables up to this version of the program.

A fresh database is made from ``tables`` and ``service_tables`` at once; an older one goes through
the steps in ``migrations/versions``. alembic is loaded only where there is something to do.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

import service.store.service_tables  # enters its tables in the metadata
from domain.errors import LedgerError
from service.store.tables import metadata

HEAD = "0005"
"""The revision that ``tables`` and ``service_tables`` describe."""
BEFORE = "base"
FIRST_TABLES = {"runs", "portraits", "items", "calls", "measurements"}
MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x11CE_4E55  # of PostgreSQL's advisory locks, one number for everybody who migrates
_VERSION = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
_one_at_a_time = threading.Lock()  # alembic keeps what it is at in globals of its modules

assert service.store.service_tables.batches.metadata is metadata


def bring_up(engine: Engine, name: str, is_postgres: bool) -> None:
    """Create or migrate the tables, in one transaction under a lock. Raises LedgerError for a
    database of a later version."""
    with engine.connect() as link:
        if revision(link) == HEAD:
            return
    with engine.connect() as link, link.execution_options(writes=True).begin():
        if is_postgres:
            link.execute(text("SET LOCAL statement_timeout = 0"))
            link.execute(text("SET LOCAL lock_timeout = 0"))
            link.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        found = revision(link)  # another may have been quicker
        if found is None:
            found = _recognised(link) or HEAD
            if found == HEAD:
                metadata.create_all(link)
            if found != BEFORE:
                _stamp(link, found)
        if found != HEAD:
            _upgrade(link, name, found)


def revision(link: Connection) -> str | None:
    """The revision that the database says it is at; None where it says nothing."""
    if not inspect(link).has_table("alembic_version"):
        return None
    found = link.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _recognised(link: Connection) -> str | None:
    """The revision of a ledger from before revisions were written down, told by its columns;
    None for a fresh database, ``BEFORE`` for a ledger that was cut off while it was made."""
    there = set(inspect(link).get_table_names()) & FIRST_TABLES
    if there != FIRST_TABLES:
        return BEFORE if there else None
    columns = {column["name"] for column in inspect(link).get_columns("calls")}
    return "0002" if columns >= {"kind", "seconds", "model", "request_id", "meta"} else "0001"


def _stamp(link: Connection, at: str) -> None:
    link.execute(text(_VERSION))
    link.execute(text("INSERT INTO alembic_version (version_num) VALUES (:at)"), {"at": at})


def _upgrade(link: Connection, name: str, found: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = link
    with _one_at_a_time:
        try:
            ScriptDirectory.from_config(config).get_revision(found)
        except CommandError:
            raise LedgerError(
                f"{name}: was written by a later version of this program (its tables: {found})"
            ) from None
        command.upgrade(config, HEAD)
