"""Downloads one file that a stranger named: from a public address, within a size and a time, and
without letting the answer say where to go on to.

The name is resolved once, every address is checked, and the checked one is connected to
(``http_addresses``). No redirect is followed, no cookie and no proxy of the environment is used.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, BinaryIO

import httpcore
import httpx

from adapters.over_http.addresses import _CheckedConnections, origin_of
from domain.errors import LikenessError
from domain.urls import check_url

USER_AGENT = "likeness-audit"
PORTS = (80, 443, 8080, 8443)
"""Others serve no pictures; asking them for one would be knocking at a stranger's doors."""
_SILENCE_S = 10.0
_PIECE = 64 * 1024


class NotFetched(LikenessError):
    """Why nothing was fetched: one sentence, and a stable word ``code``. Neither holds what stands
    in the URL behind its host, which may be a signature."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.reason, self.code = reason, code


def download(
    url: str,
    into: BinaryIO,
    *,
    limit: int,
    seconds: float,
    allowed: Collection[str] = (),
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Write what ``url`` answers into ``into``, at most ``limit`` bytes, within ``seconds`` from the
    first packet to the last. Returns their number. ``allowed`` are "host" or "host:port" that an
    operator trusts: their addresses and ports are not checked. Raises NotFetched."""
    trusted = is_allowed(url, allowed)
    if not trusted:
        _check(url)
    ends = clock() + seconds
    network = _Timed(None if trusted else _CheckedConnections(), clock, ends)
    try:
        with _client(network) as client, client.stream("GET", url) as response:
            return _read(response, into, limit, lambda: stopped() or clock() > ends)
    except NotFetched:
        raise
    except LikenessError as error:  # from the check of the addresses
        raise NotFetched(f"not fetched: {error}", "address_refused") from None
    except httpx.TimeoutException:
        raise NotFetched("the server did not answer in time", "timeout") from None
    except httpx.ConnectError as error:
        tls = isinstance(_root(error), ssl.SSLError)
        what = "its certificate is not valid" if tls else "it cannot be reached"
        raise NotFetched(f"the server was not asked: {what}", "unreachable") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError):
        raise NotFetched("the server did not give a whole answer", "broken_answer") from None


def is_allowed(url: str, allowed: Collection[str]) -> bool:
    """Whether an operator trusts this http(s) URL's host, or its host and port."""
    origin = origin_of(url)
    if origin is None or "@" in url.partition("://")[2].partition("/")[0]:
        return False
    _scheme, host, port = origin
    named = f"[{host}]" if ":" in host else host
    return any(entry.lower() in (host, named, f"{named}:{port}") for entry in allowed)


def _check(url: str) -> None:
    try:
        check_url(url)
    except LikenessError as error:
        raise NotFetched(f"not fetched: {error}", "address_refused") from None
    origin = origin_of(url)
    if origin is None or origin[2] not in PORTS:
        ports = ", ".join(map(str, PORTS))
        raise NotFetched(f"not fetched: port not accepted ({ports})", "address_refused")


def _read(response: httpx.Response, into: BinaryIO, limit: int, late: Callable[[], bool]) -> int:
    status = response.status_code
    if response.is_redirect or 300 <= status < 400:
        raise NotFetched(f"the server redirects ({status}), which is not followed", "redirect")
    if status != 200:
        raise NotFetched(f"the server answered {status}", "http_status")
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise NotFetched("the server packed its answer, unasked", "broken_answer")
    said = response.headers.get("content-length", "")
    size = int(said) if said.isascii() and said.isdigit() else 0
    written = 0
    if size <= limit:
        for piece in response.iter_raw(_PIECE):
            if late():
                raise NotFetched("the server did not answer in time", "timeout")
            written += len(piece)
            if written > limit:
                break
            into.write(piece)
    if max(size, written) > limit:
        raise NotFetched(f"file too large, limit {limit / 1e6:.0f} MB", "too_large")
    return written


def _root(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _client(network: httpcore.NetworkBackend) -> httpx.Client:
    """A client for one file: nothing of one answer can colour what the next server is asked."""
    return httpx.Client(
        transport=_Transport(network),
        trust_env=False,
        follow_redirects=False,
        timeout=_SILENCE_S,
        headers={"user-agent": USER_AGENT, "accept": "image/*", "accept-encoding": "identity"},
    )


@lru_cache(maxsize=1)
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


class _Transport(httpx.HTTPTransport):
    def __init__(self, network: httpcore.NetworkBackend) -> None:
        super().__init__(verify=_authorities(), trust_env=False)
        # httpx offers no way to hand a network backend in; a test holds on to this
        self._pool = httpcore.ConnectionPool(
            ssl_context=_authorities(), max_connections=1, network_backend=network
        )


class _Timed(httpcore.NetworkBackend):
    """Connections whose every step ends at one moment: a server that sends a byte now and then would
    stay below any limit of silence."""

    def __init__(
        self, inner: httpcore.NetworkBackend | None, clock: Callable[[], float], ends: float
    ) -> None:
        self._inner = inner or httpcore.SyncBackend()
        self._clock, self._ends = clock, ends

    def _left(self) -> float:
        return self._ends - self._clock()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the address that the inner network has checked."""
        stream = self._inner.connect_tcp(
            host, port, _bounded(timeout, self._left()), local_address, socket_options
        )
        return _TimedStream(stream, self._left)


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, left: Callable[[], float]) -> None:
        self._inner, self._left = inner, left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read, within what is left of the time."""
        return self._inner.read(max_bytes, _bounded(timeout, self._left()))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write, within what is left of the time."""
        self._inner.write(buffer, _bounded(timeout, self._left()))

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Begin TLS, within what is left of the time."""
        left = _bounded(timeout, self._left())
        return _TimedStream(self._inner.start_tls(ssl_context, server_hostname, left), self._left)

    def get_extra_info(self, info: str) -> Any:
        """What the connection knows of itself."""
        return self._inner.get_extra_info(info)


def _bounded(timeout: float | None, left: float) -> float:
    if left <= 0:
        raise httpcore.ReadTimeout("out of time")
    return left if timeout is None else min(timeout, left)
