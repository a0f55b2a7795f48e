"""The pretended language model of ``likeness fake-server chat``, on loopback, with less around it.

A bench asks it some 600,000 times. uvicorn takes longer for each request than the model behind it,
so that the application is called here straight from the socket; it is the same application, and what
goes over the wire is HTTP/1.1 all the same.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import sys
import threading
from collections import Counter
from types import TracebackType
from typing import Any, Self

from starlette.types import ASGIApp, Message

from service.fake_servers import chat
from service.fake_servers.chat_personality import Personality
from service.fake_servers.desk import CURRENT, Desk, Seen

if importlib.util.find_spec("sniffio") is None:
    # httpcore looks for it on the disk twice a request, which takes a fifth of all the time
    sys.modules["sniffio"] = None  # type: ignore[assignment]
Played = Counter[tuple[str, str]]
"""How often each behaviour ("ok" for none) was played to each conversation."""


class ChatServer:
    """A running server; a context manager. ``played`` is what it did since ``becomes`` was called."""

    def __init__(self) -> None:
        self._desk = Desk("", chat.BEHAVIOURS, keep=1)
        self.played: Played = Counter()
        self.app: ASGIApp = chat.with_personality(self._desk, Personality())
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def becomes(self, who: Personality) -> None:
        """Answer as ``who`` from now on, and begin a new record."""
        self.app, self.played = chat.with_personality(self._desk, who), Counter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self), sock=self._socket)
        )
        self._loop.run_forever()
        listening.close()
        waiting = asyncio.all_tasks(self._loop)
        for task in waiting:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))


class _Connection(asyncio.Protocol):
    """One kept-alive connection; requests come one after another."""

    def __init__(self, server: ChatServer) -> None:
        self._server, self._buffer = server, b""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = [(k.lower(), v.strip()) for k, _, v in (line.partition(":") for line in lines)]
        length = int(dict(headers).get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        method, path, _ = first.split(" ")
        seen = Seen(method, path, headers=dict(headers), body=rest[:length])
        self._task = asyncio.get_running_loop().create_task(self._answer(seen))

    async def _answer(self, seen: Seen) -> None:
        scope: dict[str, Any] = {
            "type": "http", "method": seen.method, "path": seen.path, "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in seen.headers.items()],
            "likeness.seen": seen,
        }  # fmt: skip
        status, headers, body = 500, [], b""

        async def receive() -> Message:
            return {"type": "http.request", "body": seen.body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status, headers, body
            if message["type"] == "http.response.start":
                status, headers = message["status"], message["headers"]
            else:
                body += message.get("body", b"")

        token = CURRENT.set(seen)
        try:
            await self._server.app(scope, receive, send)
        finally:
            CURRENT.reset(token)
        told = json.loads(seen.body)["messages"]
        self._server.played["\n".join(m["content"] for m in told), seen.played] += 1
        lines = b"".join(b"%s: %s\r\n" % pair for pair in headers)
        self._transport.write(b"HTTP/1.1 %d X\r\n%s\r\n%s" % (status, lines, body))
