"""What the HTTP server does before the application hears of a request.

uvicorn waits for ever for headers that never end (slowloris), and answers what it cannot read, or has
no room for, in plain text. Here headers have a time limit, connections a number, and both answers
are problems.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.api.problem_kinds import PREFIX, title_of
from service.api.problems import MEDIA_TYPE
from service.limits import Limits


def server_config(app: FastAPI, host: str = "127.0.0.1", port: int = 8600) -> uvicorn.Config:
    """How the server is run: this protocol, the limits of the application's context, no log of
    addresses, no trust in what proxies say about where a request came from."""
    limits: Limits = app.state.context.limits
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=protocol(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, int(limits.keep_alive_s)),
        timeout_graceful_shutdown=20,
        h11_max_incomplete_event_size=limits.max_header_bytes,
    )


def send_at_once(transport: asyncio.BaseTransport) -> None:
    """Headers and body leave in two pieces; without this the second waits 40 ms for the first to be
    acknowledged. asyncio does it only for sockets that it made itself."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def protocol(limits: Limits) -> type[H11Protocol]:
    """The server's side of a connection under ``limits``."""

    class Bounded(H11Protocol):
        """One connection."""

        _deadline: asyncio.TimerHandle | None = None

        def __init__(self, *settings: Any, **more: Any) -> None:
            super().__init__(*settings, **more)
            self.access_log = False  # it would write addresses with their queries

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            send_at_once(transport)
            if len(self.connections) > limits.max_connections:
                self._say(503, "busy", "too many connections", limits.busy_retry_s)
                return
            self._watch()

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            said = f"not a readable request, or headers over {limits.max_header_bytes} bytes"
            self._say(400, "bad-request", said)

        def _watch(self) -> None:
            """The clock runs from a connection, or an answer, to the end of the next headers."""
            if self.transport.is_closing() or not self._waits_for_headers():
                self._disarm()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(limits.header_timeout_s, self._too_slow)

        def _waits_for_headers(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _too_slow(self) -> None:
            self._deadline = None
            if not self.transport.is_closing():
                self.transport.close()

        def _say(self, status: int, slug: str, detail: str, retry_s: int | None = None) -> None:
            body = json.dumps(
                {
                    "type": PREFIX + slug,
                    "title": title_of(slug, status),
                    "status": status,
                    "detail": detail,
                    "instance": "urn:likeness:request:none",
                }
            ).encode()
            headers = [
                ("Content-Type", MEDIA_TYPE),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
                ("X-Content-Type-Options", "nosniff"),
                ("Connection", "close"),
            ]
            if retry_s is not None:
                headers.append(("Retry-After", str(retry_s)))
            self._write(h11.Response(status_code=status, headers=headers, reason=b""), body)

        def _write(self, start: Any, body: bytes) -> None:
            try:
                for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
            except h11.LocalProtocolError:  # half an answer is out already
                pass
            self.transport.close()

    return Bounded
