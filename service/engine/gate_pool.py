"""The gate's measuring processes: warm, few, each with one pair at a time and its own pipe.

A pair that kills its process gets one more chance on a fresh one and then a clear answer; no other
pair is touched. The queue is bounded by pairs and by bytes: what does not fit is told when to come
back. Whoever gives up frees the place.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from preprocess.limits import DEFAULT_LIMITS, Limits
from service.engine.gate_member import Died, Member, Room, TooSlow
from service.engine.gate_process import GateAnswer, Pair
from service.gate import ExitCode

__all__ = ["GateAnswer", "GatePool", "Pair", "PoolFull", "Room", "Ticket"]


class PoolFull(Exception):
    """No room for another pair; ``retry_after`` is whole seconds, 1 to 60."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"all measuring processes are busy; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass(eq=False)
class Ticket:
    """A pair that was taken in. ``future`` brings its answer, whatever becomes of the pair; it is
    cancelled when the pool closes before the pair's turn."""

    pair: Pair
    future: Future[GateAnswer] = field(default_factory=Future)
    unwanted: threading.Event = field(default_factory=threading.Event)


class GatePool:
    """Threads of this process, each with a measuring process of its own. Use as a context manager,
    or call ``close``."""

    def __init__(self, models: Path, room: Room, limits: Limits = DEFAULT_LIMITS) -> None:
        """``models`` is the folder of model files, ``limits`` those of the decode gate. The
        processes begin to start at once."""
        self.room = room
        self._queue: deque[Ticket] = deque()
        self._lock = threading.Condition()
        self._closing = threading.Event()
        self._bytes = self._busy = self._died = 0
        self._seconds = 0.2
        self._members = [Member(models, limits, room, self._closing) for _ in range(room.processes)]
        self._threads = [
            threading.Thread(target=self._live, args=(m,), name=f"gate-{n}", daemon=True)
            for n, m in enumerate(self._members)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def submit(self, pair: Pair) -> Ticket:
        """Queue a pair. Raises PoolFull."""
        ticket = Ticket(pair)
        with self._lock:
            waiting = len(self._queue)
            free = self.room.processes - self._busy - waiting > 0
            heavy = waiting > 0 and self._bytes + pair.held > self.room.waiting_bytes
            if self._closing.is_set() or (not free and (waiting >= self.room.waiting or heavy)):
                raise PoolFull(self._until_room())
            self._queue.append(ticket)
            self._bytes += pair.held
            self._lock.notify()
        return ticket

    def abandon(self, ticket: Ticket) -> None:
        """Nobody waits for it any more: it leaves the queue, or has ``abandoned_s`` left."""
        with self._lock:
            ticket.unwanted.set()
            if ticket in self._queue:
                self._queue.remove(ticket)
                self._bytes -= ticket.pair.held
        ticket.future.cancel()

    def state(self) -> dict[str, int]:
        """Processes, pairs being measured, pairs waiting, and processes that died so far."""
        with self._lock:
            return {
                "processes": self.room.processes,
                "measuring": self._busy,
                "waiting": len(self._queue),
                "died": self._died,
            }

    def pids(self) -> list[int]:
        """The measuring processes that run now."""
        return [pid for m in self._members if (pid := m.pid) is not None]

    def close(self) -> None:
        """Drop what waits, let what is measured end within ``abandoned_s``, end the processes."""
        with self._lock:
            self._closing.set()
            left = list(self._queue)
            self._queue.clear()
            self._lock.notify_all()
        for ticket in left:
            ticket.future.cancel()
        for thread in self._threads:
            thread.join()

    # -- inside ------------------------------------------------------------------------------

    def _until_room(self) -> int:
        ahead = (len(self._queue) + self._busy) * self._seconds / self.room.processes
        return min(60, max(1, math.ceil(ahead)))

    def _take(self) -> Ticket | None:
        """The next pair that is still wanted; None when the pool closes."""
        with self._lock:
            while True:
                while not self._queue and not self._closing.is_set():
                    self._lock.wait()
                if self._closing.is_set():
                    return None
                ticket = self._queue.popleft()
                self._bytes -= ticket.pair.held
                if ticket.future.set_running_or_notify_cancel():
                    self._busy += 1
                    return ticket

    def _live(self, member: Member) -> None:
        try:
            with contextlib.suppress(Died, OSError):  # the first pair tries again and says why
                member.start()
            while (ticket := self._take()) is not None:
                began = time.monotonic()
                answer = self._measure(member, ticket)
                took = time.monotonic() - began
                with self._lock:
                    self._busy -= 1
                    self._seconds += 0.1 * (took - self._seconds)
                ticket.future.set_result(replace(answer, seconds=took))
                del ticket, answer  # or this thread would hold the pictures until the next pair
                member.renew()
        finally:
            member.end()

    def _measure(self, member: Member, ticket: Ticket) -> GateAnswer:
        """The pair's answer; a process that dies over it is replaced, and asked once more."""
        for _ in range(2):
            try:
                return member.ask(ticket.pair, ticket.unwanted)
            except Died:
                with self._lock:
                    self._died += 1
                if ticket.unwanted.is_set() or self._closing.is_set():
                    return _cannot("closing", "the measuring processes are being ended")
            except TooSlow:
                return _cannot("too_slow", f"took longer than {self.room.pair_s:g} s")
            except OSError as error:
                reason = error.strerror or type(error).__name__
                return _cannot("not_ready", f"no measuring process can be started: {reason}")
            except Exception as error:  # or the thread would end, and its place with it
                member.end()
                return _cannot("not_ready", f"a fault of the pool ({type(error).__name__})")
        return _cannot("died", "the measuring process died on this pair, twice")


def _cannot(cause: str, reason: str) -> GateAnswer:
    return GateAnswer(ExitCode.COULD_NOT_RUN, reason=reason, cause=cause)
