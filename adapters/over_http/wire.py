"""One HTTP conversation with a tool: bytes go up and come down untouched, and every way in which it
can go wrong is an outcome.

Used by every adapter that speaks HTTP. It knows nothing of any maker's protocol; what a refusal
looks like is for the adapter to say.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Annotated, Any, Self
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import Field, SecretStr, field_validator, model_validator

from adapters.guard import EditEnded, Settings, one_line
from adapters.over_http.addresses import PublicOnly, check_result_url, may_have_key, origin_of
from adapters.over_http.body import ACCEPTED, TooLarge, Unreadable, read_body
from adapters.over_http.reply import TEXT_BYTES, Reply, broken, clock_skew
from domain.edits import Failed
from domain.errors import LikenessError
from domain.redaction import redact
from domain.retry import is_retryable, named_wait
from domain.tools import CLOCK_OFF_S
from domain.urls import check_url

__all__ = ["HttpSettings", "Reply", "Wire"]
USER_AGENT = "likeness-audit"
SKEW_WORTH_SAYING = CLOCK_OFF_S
STOP_STATUSES = frozenset({401, 402, 403})
"""Wrong key, no credit, no right: the next item would fare the same."""


_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class HttpSettings(Settings):
    """Settings that every HTTP tool has. ``key`` is filled in by the caller from the environment or
    a file. ``timeout_s`` bounds the silence between two pieces of an answer, ``total_s`` one whole
    edit with its polls. ``proxy`` is an http(s) URL; the environment's proxies are not read.
    ``ca_file`` is a PEM file of further authorities."""

    base_url: str
    key: SecretStr | None = None
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    total_s: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    max_result_mb: Annotated[float, Field(gt=0, le=1024)] = 64.0
    proxy: str = ""
    ca_file: str = ""

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if origin_of(url) is None:
            raise ValueError("an http or https address is needed, such as https://api.example.com")
        if parts.username or parts.password:
            raise ValueError("no user name or password in an address; use the key")
        return url.rstrip("/")

    @field_validator("proxy")
    @classmethod
    def _is_a_proxy(cls, url: str) -> str:
        if url and origin_of(url) is None:
            raise ValueError("an http or https address is needed, such as http://proxy:3128")
        return url

    @field_validator("key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        """A line break in it would end up, key and all, in the error of whoever builds headers."""
        if key is None:
            return None
        value = key.get_secret_value().strip()
        if not (value and value.isascii() and value.isprintable()):
            raise ValueError("empty, or with a character that no key has (a line break, a quote)")
        return SecretStr(value)

    @model_validator(mode="after")
    def _keeps_the_key_covered(self) -> Self:
        """Plain http with a key is for this machine and the local network."""
        if self.key is not None and self.base_url.startswith("http://"):
            try:
                check_url(self.base_url)
            except LikenessError:
                return self
            raise ValueError("base_url: over http the key could be read on its way; use https")
        return self


class Wire:
    """A pool of connections to one tool. Safe in threads. Never follows a redirect by itself and
    never sends the key to another host than ``base_url``'s."""

    def __init__(
        self,
        settings: HttpSettings,
        auth: Mapping[str, str] | None = None,
        key_hosts: Sequence[str] = (),
    ) -> None:
        """``auth`` are the headers that carry the key. ``key_hosts`` are further hosts of the same
        maker ("*.bfl.ai") that ``send`` may hand it to, over https only."""
        self.base_url = settings.base_url
        self._settings, self._auth, self._key_hosts = settings, dict(auth or {}), tuple(key_hosts)
        self._secrets = [settings.key.get_secret_value()] if settings.key else []
        if password := urlsplit(settings.proxy).password:
            self._secrets.append(password)
        options: dict[str, Any] = {
            "timeout": _silence(min(settings.timeout_s, settings.total_s)),
            "trust_env": False,
            "follow_redirects": False,
            # What one item was answered must not colour what the next is asked
            "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=())),
            "headers": {"user-agent": USER_AGENT, "accept-encoding": ACCEPTED},
        }
        verify = _trusted(settings.ca_file)
        self._own = httpx.Client(verify=verify, proxy=settings.proxy or None, **options)
        # A proxy resolves names itself, so the check of addresses would be on the wrong machine
        self._others = httpx.Client(
            transport=None if settings.proxy else PublicOnly(verify),
            verify=verify,
            proxy=settings.proxy or None,
            **options,
        )

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        **content: Any,
    ) -> Reply:
        """One request to the tool itself, with the key. ``path`` is relative to ``base_url``, or a
        whole URL: of the same host, or of one of ``key_hosts``; any other gets no key and must be
        public. ``content`` is httpx's: json, files, data, content, params.

        Raises EditEnded with ``Failed`` when no whole answer came back."""
        url = path if _WHOLE.match(path) else f"{self.base_url}/{path.lstrip('/')}"
        own = self._is_own(url)
        sent = {
            **(self._auth if own or may_have_key(url, self._key_hosts) else {}),
            **(headers or {}),
        }
        if not own:
            self._check(url)
        client = self._own if own else self._others
        limits = {} if timeout_s is None else {"timeout": _silence(timeout_s)}
        return self._exchange(client, method, url, headers=sent, **limits, **content)

    def fetch(self, url: str, *, with_key: bool = False) -> Reply:
        """Fetch a result from where the tool says it lies, without the key (``with_key``: with it,
        if that is the tool's own host). Another host must be public and speak https; its address is
        checked as it is connected to."""
        whole = urljoin(f"{self.base_url}/", url)
        own = self._is_own(whole)
        if not own:
            self._check(whole)
        headers = self._auth if own and with_key else {}
        client = self._own if own else self._others
        reply = self._exchange(client, "GET", whole, headers=headers)
        if reply.status in (403, 404, 410):
            raise EditEnded(
                Failed(
                    f"the result's address has expired (HTTP {reply.status})",
                    meta={**reply.meta(), "maybe_billed": True},
                )
            )
        if reply.status != 200:
            failed = self.failure(
                reply, f"fetching the result: {reply.words}".strip(": "), maybe_billed=True
            )
            meta = {name: value for name, value in failed.meta.items() if name != "stop"}
            raise EditEnded(replace(failed, meta=meta))
        return reply

    def failure(self, reply: Reply, said: str = "", *, maybe_billed: bool = False) -> Failed:
        """``reply``, which is no success and no refusal, as a Failed: retryable for 408, 425, 429 and
        5xx unless the server says otherwise, with the wait that it named. ``said`` is the tool's
        own sentence; without one the beginning of the body."""
        words = self.redact(said or reply.words)
        reason = f"HTTP {reply.status}"
        if words:
            reason += f": {words}"
        if 300 <= reply.status < 400:
            reason += " (redirects are not followed)"
        skew = reply.skew_s or 0.0
        if reply.status in STOP_STATUSES and abs(skew) > SKEW_WORTH_SAYING:
            ahead = "behind" if skew > 0 else "ahead of"
            reason += f" (this machine's clock is {abs(skew):.0f} s {ahead} the server's)"
        meta = reply.meta()
        if reply.status in STOP_STATUSES:
            meta["stop"] = True
        if maybe_billed:
            meta["maybe_billed"] = True
        retryable = is_retryable(reply.status, reply.headers)
        told = f"{said}\n{reply.words}"
        wait = named_wait(reply.headers, reply.json_or_none(), told) if retryable else None
        return Failed(one_line(reason, 300), retryable, wait, meta)

    def redact(self, text: str) -> str:
        """``text`` in one line, without the key (plain or encoded) and without runs of encoded data,
        which may be somebody's face."""
        return one_line(redact(text[:TEXT_BYTES], self._secrets), 300)

    def close(self) -> None:
        """Close the connections. May come twice."""
        self._own.close()
        self._others.close()

    def _is_own(self, url: str) -> bool:
        return origin_of(url) == origin_of(self.base_url)

    def _check(self, url: str) -> None:
        try:
            check_result_url(url)
        except LikenessError as error:
            raise EditEnded(
                Failed(f"the tool named an address that is not fetched: {error}")
            ) from None

    def _exchange(self, client: httpx.Client, method: str, url: str, **options: Any) -> Reply:
        began, wall = time.monotonic(), time.time()
        try:
            with client.stream(method, url, **options) as response:
                skew = clock_skew(response.headers, wall, time.time())
                body = read_body(
                    response, int(self._settings.max_result_mb * 1e6), lambda: self._in_time(began)
                )
        except TooLarge:
            raise EditEnded(Failed(
                f"the answer is over {self._settings.max_result_mb:g} MB",
                meta={"maybe_billed": True},
            )) from None  # fmt: skip
        except Unreadable as error:
            host = urlsplit(url).hostname or ""
            raise EditEnded(Failed(
                f"{host} sent an answer that cannot be unpacked: {error}",
                meta={"maybe_billed": True},
            )) from None  # fmt: skip
        except httpx.HTTPError as error:
            raise EditEnded(
                broken(error, self.redact(str(error)), urlsplit(url).hostname or "")
            ) from None
        except (httpx.InvalidURL, LikenessError) as error:
            raise EditEnded(
                Failed(f"the address cannot be used: {self.redact(str(error))}")
            ) from None
        host = urlsplit(url).hostname or ""
        seconds = time.monotonic() - began
        return Reply(response.status_code, response.headers, body, seconds, skew, host)

    def _in_time(self, began: float) -> None:
        if time.monotonic() - began > self._settings.total_s:
            raise EditEnded(Failed(
                f"the answer was not complete after {self._settings.total_s:g} s",
                retryable=True, meta={"maybe_billed": True},
            ))  # fmt: skip


def _silence(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(15.0, seconds))


@lru_cache(maxsize=8)
def _trusted(ca_file: str) -> ssl.SSLContext:
    """Made once: reading the bundle of authorities takes 50 ms. Raises LikenessError."""
    context = httpx.create_ssl_context(trust_env=False)
    try:
        if ca_file:
            context.load_verify_locations(ca_file)
    except (OSError, ValueError) as error:
        raise LikenessError(f"setting 'ca_file': cannot be used: {error}") from None
    return context
