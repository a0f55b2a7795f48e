"""Headers: who may be spoken to under which name, and what every answer carries.

A web page can make a browser send requests to this service, with a name of the page's own that it
points at this machine (DNS rebinding) or plainly across origins. The first is told by ``Host``, the
second by ``Origin``.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.context import Context
from service.api.problems import Problem

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
ALWAYS: dict[bytes, bytes] = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), microphone=(), geolocation=()",
}
UNLESS_SAID: dict[bytes, bytes] = {
    b"content-security-policy": POLICY.encode(),
    b"cache-control": b"no-store",
}
"""What an operation may say otherwise: a report brings its own policy, a stylesheet may be cached."""


class Origins:
    """The layer that refuses requests by other names and from other origins."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app, self._hosts = app, frozenset(context.server.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or raise Problem."""
        if scope["type"] == "http":
            self._check(scope)
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        if b"%00" in scope.get("raw_path", b"") or b"%00" in scope.get("query_string", b""):
            raise Problem(400, "bad-request", "the address holds a NUL")
        hosts = [v.decode("latin-1").lower() for n, v in scope["headers"] if n == b"host"]
        if len(hosts) != 1 or not self._known(hosts[0]):
            raise Problem(403, "host-refused", "the service does not answer to this host name")
        origins = [v.decode("latin-1").lower() for n, v in scope["headers"] if n == b"origin"]
        if any(not self._same(origin, hosts[0]) for origin in origins):
            raise Problem(
                403, "origin-refused", "a page of another origin may not call the service"
            )

    def _known(self, host: str) -> bool:
        name = _name(host)
        if name is None:
            return False
        if name in LOOPBACK_NAMES or name in self._hosts or host in self._hosts:
            return True
        # a browser shows an address as Host only where the user typed that address: nobody can
        # make a name of their own turn into one
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _same(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or parts.path or parts.query:
            return False
        return parts.netloc == host or parts.netloc in self._hosts


def _name(host: str) -> str | None:
    """The name or address of a Host header without its port; None for what is neither."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises for what is no number
    except ValueError:
        return None
    if parts.netloc != host or "@" in host or parts.path or not parts.hostname:
        return None
    return parts.hostname.rstrip(".")


def dressed(headers: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """``headers`` of an answer with those that every answer carries."""
    kept = [(n, v) for n, v in headers if n.lower() not in ALWAYS and n.lower() != b"server"]
    said = {n.lower() for n, _ in kept}
    kept += ALWAYS.items()
    kept += [(n, v) for n, v in UNLESS_SAID.items() if n not in said]
    if b"x-request-id" not in said:
        kept.append((b"x-request-id", request_id.encode()))
    return kept
