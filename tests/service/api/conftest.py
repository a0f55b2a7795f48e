"""A real server on loopback, with a database and a key of its own."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from service.api import batch_intake
from service.api.app import create_app
from service.api.context import Context
from service.api.protocol import server_config
from service.intake.decoding import Decoders
from service.limits import Limits
from service.settings import Server
from service.store.api_keys import SCOPES, ApiKeys
from service.store.blobs import Blobs
from service.store.database import Database

START_S = 30.0


class LiveServer:
    """uvicorn in a thread, on a port of its own, as ``likeness serve`` would run it."""

    def __init__(self, app: FastAPI) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(server_config(app, port=self.port))
        self._thread = threading.Thread(target=self._run, name="service", daemon=True)
        self._up = threading.Event()
        self._thread.start()
        assert self._up.wait(START_S), "the service did not start"

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.005)
        self._up.set()
        await serving

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(START_S)
        self._socket.close()


@dataclass
class Service:
    """``client`` speaks with the administrator's ``key``; ``with_scopes`` makes another's."""

    url: str
    key: str
    context: Context
    app: FastAPI
    client: httpx.Client
    _clients: list[httpx.Client] = field(default_factory=list)

    def with_scopes(self, *scopes: str, name: str = "") -> httpx.Client:
        """A client with a new key of these scopes."""
        keys = ApiKeys(self.context.database)
        _, token = keys.add(name or f"key {len(keys.all())}", scopes)
        return self.bearer(token)

    def bearer(self, token: str | None) -> httpx.Client:
        """A client with this token, or without any."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)
        self._clients.append(client)
        return client


Start = Callable[..., Service]


@pytest.fixture(scope="session")
def fresh_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables and nothing in them, to be copied: making one takes a while."""
    path = tmp_path_factory.mktemp("fresh") / "service.sqlite3"
    database = Database(f"sqlite:///{path}")
    database.migrate()
    with database.engine.connect() as link:
        link.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path


@pytest.fixture
def start_service(tmp_path: Path, fresh_database: Path) -> Iterator[Start]:
    """Start a service by hand: ``database=`` a URL, ``limits=``, ``hosts=``, ``open_access=``,
    ``change=`` what to do to the application before it starts, ``clock=``, ``keyed=False``."""
    with contextlib.ExitStack() as ends:
        yield lambda **how: _start(ends, tmp_path, fresh_database, **how)


def _start(ends: contextlib.ExitStack, home: Path, fresh: Path, **how: Any) -> Service:
    if "database" not in how and not (home / "service.sqlite3").exists():
        shutil.copy(fresh, home / "service.sqlite3")
    server = Server(
        home=home,
        database=how.get("database") or f"sqlite:///{home / 'service.sqlite3'}",
        blobs=how.get("blobs") or str(home / "blobs"),
        secret_file=home / "secret.key",
        hosts=how.get("hosts", ()),
        fetch_allow=how.get("fetch_allow", ()),
        tools=how.get("tools"),
    )
    database = Database(server.database)
    ends.callback(database.close)
    database.migrate()
    more = {"clock": how["clock"]} if "clock" in how else {}
    context = Context(
        database,
        Blobs(server.blobs),
        how.get("limits", Limits(min_free_bytes=0)),
        server,
        secret=b"s" * 32,
        open_access=how.get("open_access", False),
        **more,
    )
    token = ApiKeys(database).add("admin", SCOPES)[1] if how.get("keyed", True) else ""
    app = create_app(context)
    if "change" in how:
        how["change"](app)
    live = LiveServer(app)
    ends.callback(live.close)
    url = f"http://127.0.0.1:{live.port}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    client = httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)
    service = Service(url, token, context, app, client)
    ends.callback(lambda: [c.close() for c in [client, *service._clients]])
    return service


@pytest.fixture
def service(start_service: Start) -> Service:
    """A service over SQLite with an administrator's key."""
    return start_service()


_decoders: dict[Any, Decoders] = {}


@pytest.fixture
def shared_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services of several tests decode in the same processes: to start them takes a second."""

    def shared(limits: Any) -> Decoders:
        if limits not in _decoders:
            _decoders[limits] = Decoders(limits)
        lasting = copy(_decoders[limits])
        lasting.close = lambda: None  # type: ignore[method-assign]
        return lasting

    monkeypatch.setattr(batch_intake, "Decoders", shared)


@pytest.fixture(scope="session", autouse=True)
def _end_decoders() -> Iterator[None]:
    yield
    for decoders in _decoders.values():
        decoders.close()
    _decoders.clear()
