"""One server over HTTP: keys that never show, tries that cannot do harm, one line for every failure.

A request is tried again only where doing it twice is the same as doing it once: readings, deletions,
and posts under an ``Idempotency-Key`` made here.
"""

from __future__ import annotations

import email.utils
import ipaddress
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpx

from domain.errors import LikenessError
from service import secrets
from service.destinations import is_loopback

AGAIN = frozenset({429, 502, 503, 504})
"""Statuses by which a server says that it may well work later."""
IN_FLIGHT = "/problems/repeat-in-flight"
MOST_ERRORS = 5
LONGEST_LINE = 1000
PROBLEM = "application/problem+json"
Body = Callable[[], Iterable[bytes]]
"""Gives the bytes of a body, from the start each time it is called."""


class ServerProblem(LikenessError):
    """The server said no. ``slug`` is the last part of the problem's type, "" where the answer was
    no problem of ours; ``more`` are its other members."""

    def __init__(self, line: str, status: int, slug: str = "", more: Any = None) -> None:
        super().__init__(line)
        self.status, self.slug = status, slug
        self.more: dict[str, Any] = dict(more or {})


class Unreachable(LikenessError):
    """The server did not answer, again and again."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request that may be repeated is repeated: until ``wait_s`` seconds were waited in
    all. Pauses begin at ``first_s`` and double up to ``longest_s``; ``Retry-After`` goes first."""

    wait_s: float = 120.0
    first_s: float = 0.5
    longest_s: float = 20.0
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random

    def pauses(self) -> _Pauses:
        """The pauses of one request."""
        return _Pauses(self)


@dataclass(slots=True)
class _Pauses:
    patience: Patience
    waited: float = 0.0
    next_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.next_s = self.patience.first_s

    def pause(self, asked_s: float | None) -> bool:
        """Wait, as long as the server asked where it did. False: patience has run out."""
        seconds = self.next_s * (1 + 0.25 * self.patience.chance()) if asked_s is None else asked_s
        self.next_s = min(2 * self.next_s, self.patience.longest_s)
        if self.waited + seconds > self.patience.wait_s:
            return False
        self.waited += seconds
        self.patience.sleep(seconds)
        return True


class ServerWire:
    """Requests to one server. Safe in threads."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Raises LikenessError for an address that is none, or to which a key must not be sent."""
        self.url, self._token = checked(url, token), token or ""
        self._patience = patience or Patience()
        headers = {"User-Agent": "likeness"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self._client = httpx.Client(
            headers=headers,
            # a body may be decoded picture by picture while it is sent: long silences are work
            timeout=httpx.Timeout(300.0, connect=10.0),
            follow_redirects=False,
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def ask(
        self, method: str, path: str, *, body: Body | None = None, twice: bool = False, **how: Any
    ) -> Any:
        """The JSON of a successful answer. ``twice``: the request may be repeated though it is a
        POST. ``how`` are httpx's ``params``, ``json`` and ``headers``. Raises ServerProblem, and
        Unreachable when there is no answer after all tries."""
        with self._answer(method, path, body, twice, how, whole=True) as answer:
            try:
                return answer.json()
            except ValueError:
                raise self._strange(answer) from None

    @contextmanager
    def stream(
        self, path: str, *, timeout: httpx.Timeout | None = None, **how: Any
    ) -> Iterator[httpx.Response]:
        """A successful answer whose body the caller reads. What breaks while it is read is httpx's
        TransportError: it is the caller who knows what was read."""
        if timeout is not None:
            how["timeout"] = timeout
        with self._answer("GET", path, None, False, how, whole=False) as answer:
            yield answer

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        body: Body | None,
        twice: bool,
        how: dict[str, Any],
        whole: bool,
    ) -> Iterator[httpx.Response]:
        repeatable = twice or method in ("GET", "HEAD", "DELETE")
        pauses = self._patience.pauses()
        while True:
            if body is not None:
                how["content"] = body()
            try:
                answer = self._client.send(
                    self._client.build_request(method, self.url + path, **how), stream=True
                )
                if whole or not answer.is_success:
                    with closing(answer):
                        answer.read()
            except httpx.TransportError as error:
                if not (repeatable and pauses.pause(None)):
                    raise self._unreachable(error) from None
                continue
            if answer.is_success:
                with closing(answer):
                    yield answer
                return
            problem = self._problem(answer)
            if not (repeatable and _may_again(problem) and pauses.pause(_retry_after(answer))):
                raise problem

    def _unreachable(self, error: httpx.TransportError) -> Unreachable:
        slow = isinstance(error, httpx.TimeoutException)
        why = "it does not answer" if slow else self.clean(str(error)) or type(error).__name__
        return Unreachable(f"{self.url}: the server cannot be reached: {why}")

    def _problem(self, answer: httpx.Response) -> ServerProblem:
        try:
            said = answer.json()
        except ValueError:
            said = None
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != PROBLEM or not isinstance(said, dict):
            return self._strange(answer)
        slug = str(said.get("type", "")).rpartition("/")[2]
        return ServerProblem(self.clean(line_of(said)), answer.status_code, slug, said)

    def _strange(self, answer: httpx.Response) -> ServerProblem:
        status = f"{answer.status_code} {answer.reason_phrase}".rstrip()
        line = f"{self.url}: answered {status} in a form unknown here; is this a Likeness server?"
        return ServerProblem(self.clean(line), answer.status_code)

    def clean(self, text: str) -> str:
        """``text`` on one line, without the token, whoever may have put it there."""
        if self._token:
            text = text.replace(self._token, "[key]")
        return secrets.hide_keys(" ".join(text.split()))[:LONGEST_LINE]


def line_of(problem: Mapping[str, Any]) -> str:
    """A problem's detail, and its list of mistakes where the detail only counts them."""
    detail = str(problem.get("detail") or problem.get("title") or "no reason was given")
    listed = problem.get("errors")
    errors = [e for e in listed if isinstance(e, Mapping)] if isinstance(listed, list) else []
    if not errors:
        return detail
    if len(errors) == 1 and str(errors[0].get("detail")) == detail:
        return _mistake(errors[0])  # the detail itself, with the place where it stands
    more = f"; and {len(errors) - MOST_ERRORS} more" if len(errors) > MOST_ERRORS else ""
    return f"{detail}: {'; '.join(map(_mistake, errors[:MOST_ERRORS]))}{more}"


def _mistake(error: Mapping[str, Any]) -> str:
    said = str(error.get("detail", ""))
    if "line" in error:
        return f"plan.yaml:{error['line']}: {said}"
    place = error.get("parameter") or str(error.get("pointer", "")).lstrip("#/")
    return f"{place}: {said}" if place and place != "plan" else said


def _may_again(problem: ServerProblem) -> bool:
    if problem.status == 409:
        return str(problem.more.get("type", "")) == IN_FLIGHT
    return problem.status in AGAIN


def _retry_after(answer: httpx.Response) -> float | None:
    """Seconds, from a number or a date (RFC 9110); None for neither."""
    said = answer.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit() and len(said) < 10:
        return float(said)
    try:
        at = email.utils.parsedate_to_datetime(said)
        return max(0.0, at.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def checked(url: str, token: str | None) -> str:
    """``url`` without a slash at its end. Raises LikenessError."""
    try:
        parts = urlsplit(url.strip())
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise LikenessError("the server's address is like https://likeness.example.com")
    if parts.username is not None or parts.password is not None:
        raise LikenessError("a server's address holds no key; put it into LIKENESS_TOKEN")
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise LikenessError(
            "the server's key in LIKENESS_TOKEN is not one: it has unusual characters"
        )
    if token and parts.scheme == "http" and not _near(host):
        raise LikenessError(f"{host}: a key is sent over https, or within this network, only")
    return url.strip().rstrip("/")


def _near(host: str) -> bool:
    """This machine, a private address, or a name without a domain (as containers have)."""
    if is_loopback(host) or ("." not in host and ":" not in host):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_private
    except ValueError:
        return False
