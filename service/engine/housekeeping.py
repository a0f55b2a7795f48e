"""What a service does beside its runs: sends webhooks that are due, deletes what is past its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from domain.errors import LikenessError
from service import webhooks
from service.limits import Limits
from service.store import retention
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.deliveries import Deliveries

LOOK_S = 2.0
SWEEP_S = 3600.0


class Housekeeper:
    """Both jobs in threads of their own, so that a slow address holds up no deletion. Any number of
    them may work on one database. A store that is gone is tried again at the next turn."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        limits: Limits,
        secret: bytes,
        *,
        allowed: Collection[str] = (),
        say: Callable[[str], object] = lambda _text: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``allowed`` are hosts that webhooks may go to though they are not public. The threads
        begin at once and last until ``close``."""
        self._database, self._blobs, self._limits = database, blobs, limits
        self._secret, self._allowed, self._say, self._clock = secret, allowed, say, clock
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._turns, args=job, name=job[0].__name__, daemon=True)
            for job in ((self.tell, LOOK_S), (self.sweep, SWEEP_S))
        ]
        for thread in self._threads:
            thread.start()

    def tell(self) -> None:
        """Send the webhooks that are due."""
        webhooks.send_due(
            Deliveries(self._database), self._secret, self._limits,
            allowed=self._allowed, clock=self._clock,
        )  # fmt: skip

    def sweep(self) -> None:
        """Delete what is past its time, and say how much that was."""
        gone = retention.sweep(
            self._database, self._blobs, self._clock(), limits=self._limits, say=self._say
        )
        told = ", ".join(f"{many} {kind}" for kind, many in sorted(gone.items()) if many)
        if told:
            self._say(f"past their time and deleted: {told}")

    def close(self, seconds: float = 2.0) -> None:
        """Begin nothing more; wait ``seconds`` for what is under way."""
        self._over.set()
        for thread in self._threads:
            thread.join(seconds)

    def _turns(self, job: Callable[[], None], every: float) -> None:
        while not self._over.is_set():
            try:
                job()
            except LikenessError as error:
                self._say(f"{job.__name__}: tried again in {every:g} s: {error}")
            except Exception as error:  # the next turn may fare better; its text may quote anything
                self._say(f"{job.__name__}: a fault of the program ({type(error).__name__})")
            self._over.wait(every)
