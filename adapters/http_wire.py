"""One HTTP conversation with a tool: bytes go up and come down untouched, and every way in which it
can go wrong is an outcome.

Used by every adapter that speaks HTTP. It knows nothing of any maker's protocol; what a refusal
looks like is for the adapter to say.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Annotated, Any
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import Field, SecretStr, field_validator

from adapters.guard import EditEnded, Settings, one_line
from adapters.http_addresses import PublicOnly, check_result_url
from adapters.http_retry import is_retryable, named_wait
from adapters.redaction import redact
from domain.edits import Failed
from domain.errors import LikenessError

USER_AGENT = "likeness-audit"
SKEW_WORTH_SAYING = 30.0
"""Seconds between two clocks from which signed requests begin to be refused (AWS: 300, most: 60)."""
STOP_STATUSES = frozenset({401, 402, 403})
"""Wrong key, no credit, no right: the next item would fare the same."""


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
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an http or https address is needed, such as https://api.example.com")
        if parts.username or parts.password:
            raise ValueError("no user name or password in an address; use the key")
        return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status. ``skew_s`` is the server's clock minus ours, in seconds (its
    Date header is whole seconds, so +-1 means nothing); None without a Date."""

    status: int
    headers: httpx.Headers
    body: bytes
    seconds: float
    skew_s: float | None
    host: str

    @property
    def media_type(self) -> str:
        """Of the header, lower case, without parameters."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip().lower()

    @property
    def request_id(self) -> str:
        """Whatever name the maker gave it; "" where there is none."""
        for name in (
            "x-request-id",
            "request-id",
            "x-amzn-requestid",
            "x-goog-request-id",
            "cf-ray",
        ):
            if self.headers.get(name):
                return one_line(str(self.headers[name]), 100)
        return ""

    def json(self) -> Any:
        """The body as JSON. Raises ValueError in one clear line."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise ValueError(
                f"HTTP {self.status}: the answer is not JSON ({self.media_type or 'no type given'})"
            ) from None

    def json_or_none(self) -> Any:
        """The body as JSON, None where it is none: for looking into error answers."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def meta(self) -> dict[str, Any]:
        """The facts of this call for the outcome's ``meta``."""
        found: dict[str, Any] = {"http_status": self.status}
        if self.request_id:
            found["request_id"] = self.request_id
        if self.skew_s is not None:
            found["clock_skew_s"] = round(self.skew_s, 1)
        return found


class Wire:
    """A pool of connections to one tool. Safe in threads. Never follows a redirect by itself and
    never sends the key to another host than ``base_url``'s."""

    def __init__(self, settings: HttpSettings, auth: Mapping[str, str] | None = None) -> None:
        """``auth`` are the headers that carry the key."""
        self.base_url = settings.base_url
        self._settings, self._auth = settings, dict(auth or {})
        self._secrets = [settings.key.get_secret_value()] if settings.key else []
        options: dict[str, Any] = {
            "timeout": httpx.Timeout(settings.timeout_s, connect=min(15.0, settings.timeout_s)),
            "trust_env": False,
            "follow_redirects": False,
            "headers": {"user-agent": USER_AGENT},
        }
        try:
            verify = httpx.create_ssl_context(trust_env=False)
            if settings.ca_file:
                verify.load_verify_locations(settings.ca_file)
        except (OSError, ValueError) as error:
            raise LikenessError(f"setting 'ca_file': cannot be used: {error}") from None
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
        whole URL, then of the same host. ``content`` is httpx's: json, files, data, content, params.

        Raises EditEnded with ``Failed`` when no whole answer came back."""
        url = path if "://" in path else f"{self.base_url}/{path.lstrip('/')}"
        same_host = urlsplit(url)[:2] == urlsplit(self.base_url)[:2]
        sent = {**(self._auth if same_host else {}), **(headers or {})}
        if not same_host:
            self._check(url)
        client = self._own if same_host else self._others
        limits = {} if timeout_s is None else {"timeout": timeout_s}
        return self._exchange(client, method, url, headers=sent, **limits, **content)

    def fetch(self, url: str) -> Reply:
        """Fetch a result from where the tool says it lies, without the key. Another host than the
        tool's must be public and speak https; its address is checked as it is connected to."""
        whole = urljoin(f"{self.base_url}/", url)
        own = urlsplit(whole)[:2] == urlsplit(self.base_url)[:2]
        if not own:
            self._check(whole)
        reply = self._exchange(self._own if own else self._others, "GET", whole)
        if reply.status in (403, 404, 410):
            raise EditEnded(
                Failed(
                    f"the result's address has expired (HTTP {reply.status})",
                    meta={**reply.meta(), "maybe_billed": True},
                )
            )
        if reply.status != 200:
            raise EditEnded(self.failure(reply, "fetching the result", maybe_billed=True))
        return reply

    def failure(self, reply: Reply, said: str = "", *, maybe_billed: bool = False) -> Failed:
        """``reply``, which is no success and no refusal, as a Failed: retryable for 408, 425, 429 and
        5xx unless the server says otherwise, with the wait that it named. ``said`` is the tool's
        own sentence; without one the beginning of the body."""
        words = said or one_line(reply.body[:2000].decode("utf-8", "replace"), 200)
        reason = f"HTTP {reply.status}"
        if words:
            reason += f": {self.redact(words)}"
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
        wait = named_wait(reply.headers, reply.json_or_none(), words) if retryable else None
        return Failed(one_line(reason, 300), retryable, wait, meta)

    def redact(self, text: str) -> str:
        """``text`` in one line, without the key (plain or encoded) and without runs of encoded data,
        which may be somebody's face."""
        return one_line(redact(text, self._secrets), 300)

    def close(self) -> None:
        """Close the connections. May come twice."""
        self._own.close()
        self._others.close()

    def _check(self, url: str) -> None:
        try:
            check_result_url(url)
        except LikenessError as error:
            raise EditEnded(
                Failed(f"the tool named an address that is not fetched: {error}")
            ) from None

    def _exchange(self, client: httpx.Client, method: str, url: str, **options: Any) -> Reply:
        began, wall = time.monotonic(), time.time()
        limit = int(self._settings.max_result_mb * 1_000_000)
        try:
            with client.stream(method, url, **options) as response:
                chunks, size = [], 0
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    if size > limit:
                        raise EditEnded(Failed(
                            f"the answer is over {self._settings.max_result_mb:g} MB",
                            meta={"maybe_billed": True},
                        ))  # fmt: skip
                    if time.monotonic() - began > self._settings.total_s:
                        raise EditEnded(Failed(
                            f"the answer was not complete after {self._settings.total_s:g} s",
                            retryable=True, meta={"maybe_billed": True},
                        ))  # fmt: skip
                    chunks.append(chunk)
        except httpx.HTTPError as error:
            raise EditEnded(
                _broken(error, self.redact(str(error)), urlsplit(url).hostname or "")
            ) from None
        except (httpx.InvalidURL, LikenessError) as error:
            raise EditEnded(
                Failed(f"the address cannot be used: {self.redact(str(error))}")
            ) from None
        seconds = time.monotonic() - began
        return Reply(
            response.status_code, response.headers, b"".join(chunks), seconds,
            _skew(response.headers, wall + seconds), urlsplit(url).hostname or "",
        )  # fmt: skip


def _skew(headers: httpx.Headers, ours: float) -> float | None:
    """Server's clock minus ours. The Date header is cut to the second, hence the half."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp() + 0.5 - ours
    except (KeyError, ValueError, TypeError):
        return None


def _broken(error: httpx.HTTPError, said: str, host: str) -> Failed:
    """No whole answer came. What may have reached the tool may be billed."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Failed(f"{host} cannot be reached: {said or 'no answer'}", retryable=True)
    if isinstance(error, httpx.TimeoutException):
        return Failed(f"{host} gave no answer in time", retryable=True, meta={"maybe_billed": True})
    if isinstance(error, httpx.RemoteProtocolError):
        return Failed(
            f"{host} broke off its answer: {said}", retryable=True, meta={"maybe_billed": True}
        )
    if isinstance(error, httpx.DecodingError):
        return Failed(
            f"{host} sent an answer that cannot be unpacked: {said}", meta={"maybe_billed": True}
        )
    return Failed(
        f"{host}: {type(error).__name__}: {said}",
        retryable=isinstance(error, httpx.NetworkError),
        meta={"maybe_billed": True},
    )
