"""Fetches the pictures that a list of URLs names: a few at a time, one host gently."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from adapters.over_http.download import NotFetched, download
from domain.errors import LikenessError
from service.intake.manifest import MAX_COLUMNS, MAX_VALUE
from service.intake.names import name_in_url, stored_name

PER_HOST = 2
"""Files that one host is asked for at a time."""
GAP_S = 0.05
"""Seconds between two requests to one host."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One entry of the list. ``name`` "" is made from the URL's path."""

    url: str
    name: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """The name it is kept under, as far as its sender has a say in it."""
        return stored_name(self.name) if self.name else name_in_url(self.url)

    def row(self) -> Mapping[str, str]:
        """Its attributes as a manifest's row would give them. Raises LikenessError."""
        if len(self.attributes) > MAX_COLUMNS:
            raise LikenessError(f"{self.called}: more than {MAX_COLUMNS} attributes")
        row = {}
        for name, value in self.attributes.items():
            if stored_name(name, 60) != name:
                raise LikenessError(
                    f"{self.called}: an attribute's name is empty, longer than 60 or not plain"
                )
            if len(value) > MAX_VALUE:
                raise LikenessError(
                    f"{self.called}: '{name}' is longer than {MAX_VALUE} characters"
                )
            if value.strip():
                row[name] = stored_name(value, MAX_VALUE)
        return row


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of one entry: a file at ``path``, or a code and a reason."""

    wanted: Wanted
    size: int = 0
    path: Path | None = None
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """``file_bytes`` and ``file_s`` of one file, ``all_bytes`` and ``all_s`` of the whole list,
    ``at_once`` files in flight; ``allowed`` are hosts that the operator trusts."""

    file_bytes: int
    file_s: float
    all_bytes: int
    all_s: float
    at_once: int
    allowed: Collection[str] = ()


def fetch_all(
    wanted: Sequence[Wanted],
    folder: Path,
    limits: FetchLimits,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] = time.sleep,
) -> Iterator[Fetched]:
    """Every entry in the list's order, as soon as it and those before it are there. Only a few files
    are ahead of the reader at any time."""
    round_ = _Round(folder, limits, clock, wait)
    with ThreadPoolExecutor(limits.at_once, thread_name_prefix="fetch") as pool:
        flying: list[Future[Fetched]] = []
        rest = iter(enumerate(wanted))
        try:
            for number, entry in rest:
                flying.append(pool.submit(round_.fetch, number, entry))
                if len(flying) >= 2 * limits.at_once:
                    yield flying.pop(0).result()
            while flying:
                yield flying.pop(0).result()
        finally:
            round_.stopped.set()
            for job in flying:
                job.cancel()


class _Round:
    def __init__(
        self,
        folder: Path,
        limits: FetchLimits,
        clock: Callable[[], float],
        wait: Callable[[float], object],
    ) -> None:
        self.stopped = threading.Event()
        self._folder, self._limits = folder, limits
        self._clock, self._wait = clock, wait
        self._ends = clock() + limits.all_s
        self._bytes = 0
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = defaultdict(_Host)

    def fetch(self, number: int, wanted: Wanted) -> Fetched:
        left = self._ends - self._clock()
        if left <= 0:
            return Fetched(wanted, code="timeout", reason="no time was left for this address")
        with self._lock:
            host = self._hosts[_host(wanted.url)]
        path = self._folder / f"url-{number:06d}"
        try:
            with host.turns:
                host.rest(self._clock, self._wait)
                with path.open("wb") as sink:
                    size = download(
                        wanted.url,
                        sink,
                        limit=self._limits.file_bytes,
                        seconds=min(self._limits.file_s, left),
                        allowed=self._limits.allowed,
                        stopped=self.stopped.is_set,
                        clock=self._clock,
                    )
            self._count(size)
        except NotFetched as error:
            path.unlink(missing_ok=True)
            return Fetched(wanted, code=error.code, reason=error.reason)
        return Fetched(wanted, size, path)

    def _count(self, size: int) -> None:
        with self._lock:
            if self._bytes + size > self._limits.all_bytes:
                limit = self._limits.all_bytes / 1e6
                raise NotFetched(f"the batch is larger than {limit:.0f} MB", "batch_too_large")
            self._bytes += size


class _Host:
    def __init__(self) -> None:
        self.turns = threading.BoundedSemaphore(PER_HOST)
        self._lock = threading.Lock()
        self._next = 0.0

    def rest(self, clock: Callable[[], float], wait: Callable[[float], object]) -> None:
        """Wait until this host may be asked again."""
        with self._lock:
            now = clock()
            due = max(now, self._next)
            self._next = due + GAP_S
        if due > now:
            wait(due - now)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
