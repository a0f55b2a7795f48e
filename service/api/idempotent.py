"""``Idempotency-Key`` on every POST: sending a request again does its work once.

The same request gets the same answer, byte for byte, with ``Idempotent-Replayed: true``; another one
under the same key gets 422; while the first is under way, 409 with Retry-After. Answers are kept for
24 hours. Only answers that tell of success are kept: after a failure nothing was made, so the key is
free again, for the same request or for a mended one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from functools import partial

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from domain.errors import LedgerError
from service.api.context import Context
from service.api.fingerprints import Fingerprint
from service.api.logs import LOGGER
from service.api.problem_kinds import kind
from service.api.problems import Problem
from service.api.security import Caller, at_the_door, caller_of
from service.store.idempotency import Entry, Idempotency

HEADER = "Idempotency-Key"
REPLAYED = (b"idempotent-replayed", b"true")
_OWN = {b"x-request-id", b"date", b"connection", b"transfer-encoding"}
"""Headers of one answer that are not the answer's."""
kind("repeat-key", 400, "Idempotency-Key unusable", "Use 1 to 200 printable ASCII characters.")


class Idempotent:
    """The layer that knows which requests were made before."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        limits = context.limits
        self._app, self._context = app, context
        self._store = Idempotency(
            context.database, lasts_s=limits.idempotency_s, lease_s=limits.idempotency_lease_s
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Do the work of a new request; answer a repeated one from what was kept."""
        key, caller = self._key(scope), caller_of(scope)
        if key is None or caller is None:
            await self._app(scope, receive, send)
            return
        entry = await at_the_door(partial(self._store.begin, caller.key_id, key, self._now()))
        if entry.state == "waiting":
            retry = {"Retry-After": str(self._context.limits.busy_retry_s)}
            said = "a request with this Idempotency-Key is still being worked on"
            raise Problem(409, "repeat-in-flight", said, headers=retry)
        if entry.state == "done":
            await _replay(entry, scope, receive, send)
            return
        scope["state"]["idempotency"] = (caller.key_id, key, entry.nonce)
        await _Work(self, caller, key, scope).do(receive, send)

    def _now(self) -> float:
        return self._context.clock()

    def _key(self, scope: Scope) -> str | None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        sent = [v for n, v in scope["headers"] if n == b"idempotency-key"]
        if not sent:
            return None
        key: str = sent[0].decode("latin-1")
        most = self._context.limits.max_idempotency_key
        if len(sent) > 1 or not 0 < len(key) <= most or not (key.isascii() and key.isprintable()):
            said = f"the Idempotency-Key must be one value of 1 to {most} printable characters"
            raise Problem(400, "repeat-key", said)
        return key


class _Work:
    """One request under way, under a key."""

    def __init__(self, layer: Idempotent, caller: Caller, key: str, scope: Scope) -> None:
        self._layer, self._scope = layer, scope
        self._store, self._who = layer._store, (caller.key_id, key)
        self._print = Fingerprint(scope)
        self._held: list[Message] = []
        self._size, self._passing, self._ended = 0, False, False

    async def do(self, receive: Receive, send: Send) -> None:
        alive = asyncio.create_task(self._signs_of_life())
        kept = False
        try:
            await self._layer._app(
                self._scope, partial(self._read, receive), partial(self._hold, send)
            )
            await self._read_on(receive)
            kept = await self._keep()
        finally:
            alive.cancel()
            if not kept:
                await self._release()
        for message in self._held:
            await send(message)

    async def _read(self, receive: Receive) -> Message:
        message = await receive()
        if message["type"] == "http.request" and not self._ended:
            self._print.feed(message.get("body", b""))
            self._ended = not message.get("more_body", False)
        return message

    async def _read_on(self, receive: Receive) -> None:
        """To the end of a body that the work did not need: the hash is over all of it."""
        while not self._ended:
            if (await self._read(receive))["type"] == "http.disconnect":
                return

    async def _hold(self, send: Send, message: Message) -> None:
        """Answers go out once they are kept; streams, and what is too large, go out as they come."""
        limit = self._layer._context.limits.max_kept_answer_bytes
        self._size += len(message.get("body", b""))
        if self._passing:
            await send(message)
            return
        self._held.append(message)
        kind_of = dict(self._held[0].get("headers", ())).get(b"content-type", b"")
        if self._size > limit or kind_of.startswith(b"text/event-stream"):
            self._passing = True
            held, self._held = self._held, []
            self._start = held[0]
            for one in held:
                await send(one)

    async def _keep(self) -> bool:
        """Whether the key now stands for this answer. Where the store is gone the work is done all
        the same, and the answer goes out."""
        start = self._start if self._passing else self._held[0] if self._held else None
        if start is None or start["status"] >= 400:
            return False
        headers = [
            (n.decode("latin-1"), v.decode("latin-1"))
            for n, v in start.get("headers", ())
            if n.lower() not in _OWN
        ]
        body = None if self._passing else b"".join(m.get("body", b"") for m in self._held)
        finish = partial(
            self._store.finish, *self._who, self._print.hexdigest(), self._layer._now(),
            status=start["status"], headers=headers, body=body,
        )  # fmt: skip
        try:
            await at_the_door(finish)
        except LedgerError:
            LOGGER.warning("an answer could not be kept for repeats")
        return True

    async def _release(self) -> None:
        with contextlib.suppress(LedgerError):
            await asyncio.shield(at_the_door(partial(self._store.release, *self._who)))

    async def _signs_of_life(self) -> None:
        pause = self._layer._context.limits.idempotency_lease_s / 3
        while True:
            await asyncio.sleep(pause)
            with contextlib.suppress(LedgerError):
                await at_the_door(partial(self._store.alive, *self._who, self._layer._now()))


async def _replay(entry: Entry, scope: Scope, receive: Receive, send: Send) -> None:
    """The kept answer, once the whole body has turned out to be the same."""
    fingerprint, more = Fingerprint(scope), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        fingerprint.feed(message.get("body", b""))
        more = message.get("more_body", False)
    if fingerprint.hexdigest() != entry.request:
        said = "this Idempotency-Key came before with another request"
        raise Problem(422, "repeat-differs", said)
    if entry.body is None:
        raise Problem(409, "answer-not-kept", "the request was done; its answer was not kept")
    headers = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in entry.headers]
    start = {"type": "http.response.start", "status": entry.status, "headers": [*headers, REPLAYED]}
    await send(start)
    await send({"type": "http.response.body", "body": entry.body, "more_body": False})


def once_id(request: Request, prefix: str, digits: int = 24) -> str | None:
    """The id that what this request makes must have, so that it is made once even where the process
    died between making it and answering; None for a request without an Idempotency-Key.

    Make the row under this id. Where it is there already (Conflict), it was made by this very
    request: answer with it.
    """
    mark = request.scope.get("state", {}).get("idempotency")
    if mark is None:
        return None
    return prefix + hashlib.sha256("\0".join(mark).encode()).hexdigest()[:digits]
