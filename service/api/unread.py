"""What to do with a body that nobody read to its end, when its request is refused.

A connection that is closed upon unread bytes is reset, and the answer is lost with it; one that is kept
has to read them all, however many there are. So: read on for a little while, answer, close.
"""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import Message, Receive, Scope

DRAIN_BYTES = 4 * 1024 * 1024
DRAIN_S = 2.0
CLOSE = (b"connection", b"close")


class Incoming:
    """A request's body on its way in, seen from the outermost layer."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        headers = dict(scope["headers"])
        self._waits_for_leave = b"expect" in headers
        length = headers.get(b"content-length", b"0")
        self._ended = length.strip(b"0") == b"" and b"transfer-encoding" not in headers
        self._begun = False

    async def receive(self) -> Message:
        """The next message, noting where the body ends."""
        message = await self._receive()
        self._begun = True
        self._ended = self._ended or not message.get("more_body", False)
        return message

    async def leave(self, wait: bool = True) -> bool:
        """Called before an answer of refusal: whether the connection must be closed after it. Who
        waits for leave to send (Expect) has sent nothing, so nothing is read from them; who was too
        slow (``wait`` false) is not waited for once more."""
        if self._ended or not wait:
            return not self._ended
        if self._waits_for_leave and not self._begun:
            return True
        left = DRAIN_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                while left > 0 and not self._ended:
                    message = await self.receive()
                    left -= len(message.get("body", b""))
        return not self._ended
