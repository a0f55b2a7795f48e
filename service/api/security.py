"""Who is asking, and what they may do: API keys with scopes, and a door that shuts after wrong ones.

A key comes as ``Authorization: Bearer lk_<key id>_<secret>``, never in an address, where logs would
keep it. Without any key made, a server on loopback lets everybody of this machine in.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import anyio
from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.context import Context
from service.api.problems import Problem
from service.store.api_keys import SCOPES, ApiKeys, digest

T = TypeVar("T")
Right = Literal["submit", "read", "review", "admin"]
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="likeness"'}
REFUSED = {"WWW-Authenticate": 'Bearer realm="likeness", error="invalid_token"'}
GUARDED = ("/v1", "/metrics")
OPEN_OWNER = "open"
FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
_MOST_REMEMBERED = 10_000
DOOR_THREADS = anyio.CapacityLimiter(8)
"""Threads that look keys and repeats up: of their own, so that work never keeps anybody waiting at
the door."""
WORK_THREADS = anyio.CapacityLimiter(16)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. ``key_id`` is the owner of what they make; ``open`` without keys."""

    key_id: str
    scopes: frozenset[str]

    @property
    def is_admin(self) -> bool:
        """Whether this caller sees what belongs to others."""
        return "admin" in self.scopes

    def may(self, scope: str) -> bool:
        """Whether the key holds ``scope``; an administrator's holds all."""
        return self.is_admin or scope in self.scopes

    def owns(self, owner: str) -> bool:
        """Whether this caller may see what ``owner`` made."""
        return self.is_admin or owner == self.key_id


EVERYBODY = Caller(OPEN_OWNER, frozenset(SCOPES))


class Door:
    """Wrong keys an address, within a time; and the keys that were good, which still pass while
    their address is shut: many callers may share one behind a proxy."""

    def __init__(self, allowed: int, within_s: float) -> None:
        self._allowed, self._within = allowed, within_s
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._good: OrderedDict[str, None] = OrderedDict()

    def shut_for(self, address: str, hashed: str, now: float) -> float:
        """Seconds that ``address`` has to wait with the key of this hash; 0 when it may try."""
        times = self._wrong.get(address)
        while times and times[0] <= now - self._within:
            times.popleft()
        if not times or len(times) < self._allowed or hashed in self._good:
            return 0.0
        return times[0] + self._within - now

    def wrong(self, address: str, now: float) -> None:
        """One more wrong key."""
        self._wrong.setdefault(address, deque(maxlen=self._allowed)).append(now)
        self._wrong.move_to_end(address)
        _shorten(self._wrong)

    def good(self, hashed: str) -> None:
        """A key that was good."""
        self._good[hashed] = None
        self._good.move_to_end(hashed)
        _shorten(self._good)


def _shorten(held: OrderedDict[str, Any]) -> None:
    while len(held) > _MOST_REMEMBERED:
        held.popitem(last=False)


class Authentication:
    """The layer that finds the caller of each request, or refuses the key it came with.

    Whether the caller may do what they ask is for ``needs`` to say; a request without a key goes on
    as nobody's.
    """

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app, self._context = app, context
        self._keys = ApiKeys(context.database)
        limits = context.limits
        self._door = Door(limits.failed_keys, limits.failed_keys_s)
        self._had_keys = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put ``caller`` into the request's state."""
        if scope["type"] == "http" and scope["path"].startswith(GUARDED):
            caller = await self._caller(scope)
            scope.setdefault("state", {})["caller"] = caller
            _may_send(scope, caller)
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller | None:
        sent = [v for n, v in scope["headers"] if n == b"authorization"]
        if not sent:
            return await self._nobody(scope)
        kind, _, token = sent[0].decode("latin-1").strip().partition(" ")
        if len(sent) > 1 or kind.lower() != "bearer" or not token.strip():
            raise Problem(
                401,
                "key-refused",
                "send the key as 'Authorization: Bearer lk_...'",
                headers=REFUSED,
            )
        return await self._holder(token.strip(), address_of(scope))

    async def _nobody(self, scope: Scope) -> Caller | None:
        # what a proxy passes on comes from somebody else, whatever address it seems to come from
        if not self._context.open_access or forwarded(scope):
            return None
        if not self._had_keys:
            self._had_keys = await at_the_door(self._keys.any_made)
        return None if self._had_keys else EVERYBODY

    async def _holder(self, token: str, address: str) -> Caller:
        now, hashed = self._context.clock(), digest(token)
        wait = self._door.shut_for(address, hashed, now)
        if wait > 0:
            retry = {"Retry-After": str(int(wait) + 1)}
            raise Problem(429, "too-many-attempts", "too many wrong keys", headers=retry)
        seen = self._context.limits.key_seen_s
        key = await at_the_door(partial(self._keys.check, token, now, seen))
        if key is None:
            self._door.wrong(address, now)
            raise Problem(
                401, "key-refused", "the key is unknown, revoked or expired", headers=REFUSED
            )
        self._door.good(hashed)
        return Caller(key.key_id, frozenset(key.scopes))


async def in_thread(work: Callable[[], T]) -> T:
    """Run a piece of work on the database beside the event loop."""
    return await anyio.to_thread.run_sync(work, limiter=WORK_THREADS)


async def at_the_door(work: Callable[[], T]) -> T:
    """Run what every request has to wait for beside the event loop; short."""
    return await anyio.to_thread.run_sync(work, limiter=DOOR_THREADS)


def _may_send(scope: Scope, caller: Caller | None) -> None:
    """Refuse a body before any of it is read: a framework that reads first and asks later would let
    strangers fill the disk. What the operation itself needs is for ``needs`` to say."""
    headers = dict(scope["headers"])
    sends = headers.get(b"content-length", b"0").strip(b"0") or b"transfer-encoding" in headers
    if not sends:
        return
    if caller is None:
        raise Problem(401, "key-missing", "this operation needs a key", headers=CHALLENGE)
    is_json = headers.get(b"content-type", b"").lower().startswith(b"application/json")
    if not is_json and not any(map(caller.may, ("submit", "review"))):
        raise lacks("submit")


def lacks(scope: str) -> Problem:
    """403 that names the scope."""
    said = f'Bearer realm="likeness", error="insufficient_scope", scope="{scope}"'
    return Problem(
        403,
        "scope-missing",
        f"the key lacks the scope '{scope}'",
        headers={"WWW-Authenticate": said},
        scope=scope,
    )


def address_of(scope: Scope) -> str:
    """The peer's address, "" where there is none."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def forwarded(scope: Scope) -> bool:
    """Whether a proxy passed the request on."""
    return any(name in FORWARDED for name, _ in scope["headers"])


bearer = HTTPBearer(
    scheme_name="ApiKey",
    bearerFormat="lk_<key id>_<secret>",
    description="A key made with `likeness keys add`, with the scopes an operation needs.",
    auto_error=False,
)


def caller_of(scope: Scope) -> Caller | None:
    """The caller that the outer layer found."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    return caller


def needs(scope: Right) -> Callable[..., Awaitable[Caller]]:
    """A dependency that gives the Caller, or answers 401 without a key, 403 without ``scope``.

    Use it as ``caller: Annotated[Caller, Depends(needs("read"))]``.
    """

    async def check(request: Request, _sent: Annotated[object, Depends(bearer)]) -> Caller:
        caller = caller_of(request.scope)
        if caller is None:
            raise Problem(401, "key-missing", "this operation needs a key", headers=CHALLENGE)
        if not caller.may(scope):
            raise lacks(scope)
        return caller

    return check
