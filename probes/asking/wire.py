"""One request over HTTP: no cookie, no redirect, no proxy of the environment, and nothing of one call
is seen by the next."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from dataclasses import dataclass
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from probes.asking.endpoint import Endpoint
from probes.asking.trouble import one_line

USER_AGENT = "likeness-audit"
LARGEST = 16_000_000
"""Bytes of an answer, unpacked."""
CONNECT_S = 15.0
_IDS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came, whatever its status. ``found`` is its JSON, None where it is none."""

    status: int
    headers: httpx.Headers
    body: bytes
    found: Any
    seconds: float

    @property
    def request_id(self) -> str | None:
        """Whatever name the maker gave it."""
        return next((self.headers[n][:100] for n in _IDS if self.headers.get(n)), None)

    @property
    def text(self) -> str:
        """The body for people."""
        return self.body[:20_000].decode("utf-8", "replace")


class Broken(Exception):
    """No whole answer came. ``retryable``: it may go better; ``maybe_billed``: it may have begun."""

    def __init__(self, reason: str, *, retryable: bool = True, maybe_billed: bool = False) -> None:
        super().__init__(reason)
        self.retryable, self.maybe_billed = retryable, maybe_billed


class Wire:
    """One connection, kept open. A pool shared by 64 calls costs four times as much processor time
    for each of them as 64 of these (docs/adr/0006). Use within one event loop, one call at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client = httpx.AsyncClient(
            verify=_trusted() if endpoint.base_url.startswith("https") else False,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx.Timeout(endpoint.timeout_s, connect=min(CONNECT_S, endpoint.timeout_s)),
            limits=httpx.Limits(
                max_connections=2, max_keepalive_connections=1, keepalive_expiry=30
            ),
            headers={
                "user-agent": USER_AGENT,
                "content-type": "application/json",
                "accept": "application/json",
                **endpoint.headers(),
            },
        )
        self._urls: dict[str, str] = {}

    async def post(self, path: str, body: Any) -> Answer:
        """Send ``body`` as JSON to ``path``. Raises Broken."""
        url = self._urls.get(path) or self._urls.setdefault(path, self._endpoint.url(path))
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._endpoint.timeout_s):
                return await self._exchange(url, content, began)
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout):
            reason = f"no whole answer within {self._endpoint.timeout_s:g} s"
            raise Broken(reason, maybe_billed=True) from None
        except httpx.HTTPError as error:
            raise self._broken(error) from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise Broken(f"the address cannot be used: {error}", retryable=False) from None

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def _exchange(self, url: str, content: bytes, began: float) -> Answer:
        async with self._client.stream("POST", url, content=content) as response:
            pieces, size = [], 0
            async for piece in response.aiter_bytes():
                size += len(piece)
                if size > LARGEST:
                    reason = f"the answer is over {LARGEST // 1_000_000} MB"
                    raise Broken(reason, retryable=False, maybe_billed=True)
                pieces.append(piece)
        body = b"".join(pieces)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        seconds = time.monotonic() - began
        return Answer(response.status_code, response.headers, body, found, seconds)

    def _broken(self, error: httpx.HTTPError) -> Broken:
        host = self._endpoint.host
        said = one_line(str(error), self._endpoint.secrets)
        if "CERTIFICATE_VERIFY_FAILED" in said:
            return Broken(
                f"{host} shows a certificate that nobody here vouches for", retryable=False
            )
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            return Broken(f"{host} cannot be reached: {said or 'no answer'}")
        if isinstance(error, httpx.DecodingError):
            return Broken(f"{host} sent an answer that cannot be unpacked", maybe_billed=True)
        return Broken(f"{host} broke off: {said or type(error).__name__}", maybe_billed=True)


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Made once: reading the bundle of authorities takes 50 ms."""
    return httpx.create_ssl_context(trust_env=False)
