"""Between the socket and a pretended maker: records what came, and does to an answer on its way out
what a network or a wrong clock would do to it."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.fake_servers.desk import CURRENT, Desk, Seen, read_form

SKEW_S = 600.0


class Recorder:
    """ASGI middleware. Every request lands in ``desk.seen`` before the app answers it; a form that
    cannot be read is recorded without parts, and the app then misses its fields."""

    def __init__(self, app: ASGIApp, desk: Desk, closing: asyncio.Event) -> None:
        """``closing`` is set when the server ends: late answers then go at once."""
        self._app, self._desk, self._closing = app, desk, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        seen = await self._record(scope, body)
        scope["likeness.seen"] = seen
        token = CURRENT.set(seen)
        out = _Outgoing(send, seen, self._desk.slow_s, self._closing)
        try:
            await self._app(scope, _replay(body, receive), out)
        finally:
            CURRENT.reset(token)

    async def _record(self, scope: Scope, body: bytes) -> Seen:
        request = Request(scope, _replay(body))
        seen = Seen(
            request.method,
            request.url.path,
            dict(request.query_params),
            dict(request.headers),
            body,
        )
        self._desk.record(seen)
        try:
            await read_form(request, seen)
        except HTTPException:
            seen.fields, seen.files = {}, {}
        return seen


class _Outgoing:
    """``send`` for one answer: dates it, and holds it up or breaks it off when that is played.

    A broken-off answer declares its whole length and ends in the middle: the app returns without the
    rest, upon which uvicorn closes the connection."""

    def __init__(self, send: Send, seen: Seen, slow_s: float, closing: asyncio.Event) -> None:
        self._send, self._seen, self._slow_s, self._closing = send, seen, slow_s, closing
        self._broken = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._hold_up()
            late = SKEW_S if self._seen.played == "skewed" else 0.0
            date = formatdate(time.time() + late, usegmt=True).encode()
            message = {**message, "headers": [*message.get("headers", []), (b"date", date)]}
        elif self._seen.played == "truncated":
            if self._broken:
                return
            body = message.get("body", b"")
            self._broken = bool(body)
            message = {**message, "body": body[: len(body) // 2], "more_body": True}
        await self._send(message)

    async def _hold_up(self) -> None:
        if self._seen.played != "slow":
            return
        try:
            await asyncio.wait_for(self._closing.wait(), self._slow_s)
        except TimeoutError:
            return


def _replay(body: bytes, then: Receive | None = None) -> Receive:
    """``receive`` that gives ``body`` again, then whatever the real one has to say."""
    given = False

    async def receive() -> Message:
        nonlocal given
        if not given or then is None:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await then()

    return receive
