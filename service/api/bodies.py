"""Bodies: how large, how deep, how slow, and how many at a time.

Sizes are counted while a body is read, since a Content-Length may lie or be absent. What is too slow
is cut off here once its headers are in; the server itself waits for ever (``protocol.py`` bounds the
headers).
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.context import Context
from service.api.json_bodies import check_json
from service.api.problems import Busy, Problem
from service.limits import Limits

_EXEMPT = ("/healthz", "/readyz", "/metrics")


class Bodies:
    """The layer that bounds what is read and how much is worked on at a time."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app, self._limits = app, context.limits
        self._working = self._uploading = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a bounded body, or raise Problem."""
        if scope["type"] != "http" or scope["path"] in _EXEMPT:
            await self._app(scope, receive, send)
            return
        limits, body = self._limits, _Body(scope, receive, self._limits)
        large = body.declared is None or body.declared > limits.upload_from
        upload = body.expected and large and not body.is_json
        if self._working >= limits.max_requests or (
            upload and self._uploading >= limits.max_uploads
        ):
            raise Busy("too many requests at a time", limits.busy_retry_s)
        held = 1

        async def watch(message: Message) -> None:
            nonlocal held
            # a stream of events listens for an hour and works for none of it; it has its own limit
            if message["type"] == "http.response.start" and held:
                kind = dict(message.get("headers", ())).get(b"content-type", b"")
                held = 0 if kind.startswith(b"text/event-stream") else 1
                self._working -= 1 - held
            await send(message)

        self._working += 1
        self._uploading += upload
        try:
            await body.check()
            await self._app(scope, body.receive, watch)
        finally:
            self._working -= held
            self._uploading -= upload


class _Body:
    """One request's body on its way in."""

    def __init__(self, scope: Scope, receive: Receive, limits: Limits) -> None:
        self._receive, self._limits = receive, limits
        headers = {n: v.decode("latin-1") for n, v in scope["headers"]}
        self.media_type = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        self.is_json = self.media_type.endswith(("/json", "+json"))
        self._most = limits.body(scope["path"], self.media_type)
        length = headers.get(b"content-length")
        # more digits than any length has: the number itself may be the attack
        readable = length is not None and length.isdecimal() and len(length) < 20
        self.declared = int(length) if length is not None and readable else None
        self.expected = bool(self.declared) or b"transfer-encoding" in headers
        self._read, self._waited, self._ended = 0, 0.0, not self.expected
        self._whole: list[Message] = []

    async def check(self) -> None:
        """What can be told before the work begins; reads a body of JSON, which is small."""
        if self.declared is not None and self.declared > self._most:
            raise self._too_large()
        if self.expected and self.is_json:
            await self._check_json()

    async def receive(self) -> Message:
        """The next piece, within the limits of size and time."""
        if self._whole:
            return self._whole.pop(0)
        if self._ended:
            return await self._receive()
        message = await self._within_time()
        if message["type"] == "http.disconnect":
            self._ended = True
            return message
        self._read += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        if self._read > self._most:
            raise self._too_large()
        return message

    async def _within_time(self) -> Message:
        limits, clock = self._limits, asyncio.get_running_loop().time
        allowed = limits.body_grace_s + self._read / limits.body_rate - self._waited
        begun = clock()
        try:
            async with asyncio.timeout(min(limits.body_idle_s, max(allowed, 0.0))):
                message = await self._receive()
        except TimeoutError:
            raise Problem(408, "too-slow", "the body came too slowly") from None
        self._waited += clock() - begun
        return message

    async def _check_json(self) -> None:
        read: list[Message] = []
        while not self._ended:
            read.append(await self.receive())
        if read and read[-1]["type"] == "http.request":
            body = b"".join(m.get("body", b"") for m in read)
            check_json(body, self._limits.max_json_depth)
            read = [{"type": "http.request", "body": body, "more_body": False}]
        self._whole = read

    def _too_large(self) -> Problem:
        said = f"the body is larger than {self._most} bytes"
        return Problem(413, "too-large", said, limit=self._most)
