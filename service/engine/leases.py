"""What a worker holds while it works: a lease that beats, a ledger that writes only under it, and
patience with stores that are gone for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection

from domain.errors import Conflict, LikenessError, StoreUnavailable
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.jobs import Jobs, Lease, LeaseLost, held
from service.store.ledger import Ledger
from service.store.tables import ITEM

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
LONGEST_BEAT = 1.0
"""Seconds between two beats at most: how soon a run hears that it is cancelled."""
T = TypeVar("T")
Row = Mapping[str, Any]


def pauses() -> Iterator[float]:
    """Seconds to wait before each next try of a store that cannot be reached."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(LONGEST_PAUSE, 2 * pause)


class Heart:
    """Renews a lease from a thread until closed. ``stop`` is set once the run must end; ``lost`` and
    ``cancelled`` say why. A database that is gone is no reason: the lease is asked for again.
    ``also`` is done at every beat; StoreUnavailable and LeaseLost are its right."""

    def __init__(
        self,
        jobs: Jobs,
        lease: Lease,
        seconds: float,
        also: Callable[[], object] = lambda: None,
    ) -> None:
        self.stop, self.lost, self.cancelled = threading.Event(), False, False
        self._jobs, self._lease, self._seconds = jobs, lease, seconds
        self._also, self._every = also, min(LONGEST_BEAT, seconds / 4)
        self._progressed, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def progressed(self) -> None:
        """An item has ended: the deaths of earlier workers are not this job's fault."""
        self._progressed.set()

    def fresh_stop(self) -> threading.Event:
        """A ``stop`` for another try, set already when the run must end."""
        self.stop = threading.Event()
        if self.lost or self.cancelled:
            self.stop.set()
        return self.stop

    def close(self) -> None:
        """No further beat."""
        self._closed.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._closed.wait(self._every):
            had = self._progressed.is_set()
            try:
                asked = self._jobs.heartbeat(self._lease, self._seconds, had)
                self.cancelled = self.cancelled or asked
                if had:
                    self._progressed.clear()  # said once more at worst, never lost
                self._also()
            except LeaseLost:
                self.lost = True
            except LikenessError:
                pass  # asked again at the next beat
            if self.lost or self.cancelled:
                self.stop.set()
            if self.lost:
                return


class HeldDatabase(Database):
    """The same database; what is written here is written under the lease, or not at all. The check
    is part of each transaction: no take-over can come in between."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self.__dict__.update(database.__dict__)  # one pool of connections for both
        self._lease = lease

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """As ``Database.begin``. Raises LeaseLost."""
        with super().begin() as link:
            if not held(link, self._lease):
                raise LeaseLost(f"run {self._lease.run_id}: another worker has taken it over")
            yield link


class Patience:
    """Tries a step again while its store is unavailable, until ``over`` is set."""

    def __init__(self, over: threading.Event, say: Callable[[str], object]) -> None:
        self._over, self._say = over, say

    def of(self, step: Callable[[], T]) -> T:
        """``step()``; it may be done more than once."""
        for pause in pauses():
            try:
                return step()
            except StoreUnavailable as error:
                self.sleep(error, pause)
        raise AssertionError("pauses never end")

    def once(self, step: Callable[[], T], there: T) -> T:
        """As ``of`` for a step that enters something new: where it turns out on a second try that
        the first got through although its answer was lost, ``there``."""
        tried = False
        for pause in pauses():
            try:
                return step()
            except Conflict:
                if tried:
                    return there
                raise
            except StoreUnavailable as error:
                tried = True
                self.sleep(error, pause)
        raise AssertionError("pauses never end")

    def sleep(self, error: StoreUnavailable, pause: float) -> None:
        """Wait before the next try; raises ``error`` when waiting is over."""
        self._say(f"waiting for the store: {error}")
        if self._over.wait(pause):
            raise error


class PatientLedger(Ledger):
    """A ledger whose steps wait for a database that is gone. A call recorded twice, because the
    answer to the first record was lost, counts as one that was cut off."""

    def __init__(self, database: Database, run_id: str, patience: Patience) -> None:
        super().__init__(database, run_id)
        self._patience = patience

    def begin_call(self, item_id: str, attempt: int, kind: str = ITEM) -> int:
        """As ``Ledger.begin_call``."""
        return self._patience.of(lambda: Ledger.begin_call(self, item_id, attempt, kind))

    def _rows(self, query: Any) -> list[Row]:
        return self._patience.of(lambda: Ledger._rows(self, query))

    def _write(self, *steps: tuple[Any, Sequence[Row] | None]) -> None:
        self._patience.once(lambda: Ledger._write(self, *steps), None)


class PatientBlobs(Blobs):
    """A blob store that is waited for."""

    def __init__(self, url: str, patience: Patience) -> None:
        super().__init__(url)
        self._patience = patience

    def put(self, data: bytes) -> str:
        """As ``Blobs.put``."""
        return self._patience.of(lambda: Blobs.put(self, data))

    def get(self, key: str) -> bytes:
        """As ``Blobs.get``."""
        return self._patience.of(lambda: Blobs.get(self, key))
