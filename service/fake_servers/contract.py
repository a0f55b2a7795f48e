"""What a fake server is, which there are, and how one is started on loopback.

Adding a maker is one file in this package with ``NAME``, ``DOES``, ``BEHAVIOURS`` and ``app``. A fake
speaks the maker's protocol and refuses what the maker refuses, so that a wrong client fails here.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import pkgutil
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self, cast

import uvicorn
from starlette.types import ASGIApp

from domain.errors import LikenessError, did_you_mean
from service.fake_servers.desk import Desk, RefusalRule, Seen
from service.fake_servers.wire import Recorder

KEY = "fake-key-0123456789"
START_S = 20.0


class FakeModule(Protocol):
    """One maker. ``BEHAVIOURS`` names what it can play beside ``desk.COMMON``, a phrase each."""

    NAME: str
    DOES: str
    BEHAVIOURS: Mapping[str, str]

    def app(self, desk: Desk) -> ASGIApp:
        """The server. It asks ``desk.turn(picture)`` once for each call that starts work."""
        ...


def providers() -> dict[str, FakeModule]:
    """Every fake server by name."""
    package = importlib.import_module("service.fake_servers")
    found = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        module = importlib.import_module(f"service.fake_servers.{info.name}")
        if hasattr(module, "NAME") and hasattr(module, "app"):
            found[module.NAME] = cast(FakeModule, module)
    return found


def provider(name: str) -> FakeModule:
    """The fake server ``name``. Raises LikenessError, with the near miss, for an unknown one."""
    with contextlib.suppress(ModuleNotFoundError):  # alone, whatever state the others are in
        module = importlib.import_module(f"service.fake_servers.{name}")
        if getattr(module, "NAME", "") == name:
            return cast(FakeModule, module)
    known = providers()
    if name not in known:
        hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
        raise LikenessError(f"no fake server '{name}'{hint}")
    return known[name]


class FakeServer:
    """A running fake server; a context manager. ``close`` may come twice."""

    def __init__(self, module: FakeModule, desk: Desk, port: int) -> None:
        """Bind ``port`` (0: any free one) of 127.0.0.1 and answer from a thread."""
        self.name, self.desk = module.NAME, desk
        try:
            self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        except OSError as error:
            raise LikenessError(f"port {port} of 127.0.0.1 cannot be used: {error}") from None
        # Connections inherit it: without, each small answer waits 40 ms for the caller's acknowledgement
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        desk.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._ready = threading.Event()
        self._server: uvicorn.Server | None = None
        self._app, self._closed, self._fault = module.app(desk), False, ""
        self._thread = threading.Thread(target=self._run, name=f"fake-{self.name}", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_S) or self._fault:
            self.close()
            raise LikenessError(f"the fake server '{self.name}' did not start: {self._fault}")

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``, without a slash at the end."""
        return self.desk.url

    @property
    def key(self) -> str:
        """The key that clients must present."""
        return self.desk.key

    @property
    def seen(self) -> list[Seen]:
        """Every request so far, oldest first."""
        return self.desk.seen

    def next(self, *names: str) -> None:
        """Play these behaviours, one for each call to come that starts work."""
        self.desk.queue(*names)

    def close(self) -> None:
        """End the server, its thread and its connections."""
        if self._closed:
            return
        self._closed = True
        if self._server is not None:
            self._loop.call_soon_threadsafe(self._end, self._server)
        self._thread.join(START_S)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()

    def _end(self, server: uvicorn.Server) -> None:
        self._closing.set()
        server.should_exit = True

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except Exception as error:
            self._fault = f"{type(error).__name__}: {error}"
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        config = uvicorn.Config(
            Recorder(self._app, self.desk, self._closing),
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            http="h11",
            server_header=False,
            date_header=False,  # the recorder dates answers, right or wrong
            timeout_graceful_shutdown=2,
        )
        self._server = _Server(config, self._ready)
        await self._server.serve(sockets=[self._socket])


class _Server(uvicorn.Server):
    """Tells when it listens; leaves the process's signals alone."""

    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()


def start(
    name: str,
    *,
    key: str = KEY,
    port: int = 0,
    refuse: RefusalRule | None = None,
    slow_s: float = 1.0,
    keep: int | None = None,
) -> FakeServer:
    """Start the fake server ``name`` on 127.0.0.1. ``refuse`` says which pictures it turns down,
    ``keep`` how many requests it remembers (None: all).
    Raises LikenessError for an unknown name or a port that is taken."""
    module = provider(name)
    desk = Desk(key, module.BEHAVIOURS, refuse=refuse, slow_s=slow_s, keep=keep)
    return FakeServer(module, desk, port)
