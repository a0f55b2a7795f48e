"""Writes replies to the journal in groups: a commit a call would cost more than asking does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from probes.asking.journal import Journal
from probes.calls import Call, Reply

GROUP, EVERY_S = 256, 0.05
"""A group is written when it has this many replies, or when its first has waited this long."""
WAITING = 4 * GROUP
"""Replies beyond which senders wait for the journal, so that memory stays bounded."""


class Keeper:
    """Between the senders and one journal. A reply counts from the moment it is durable: only then
    it is handed to ``kept``."""

    def __init__(self, journal: Journal, kept: Callable[[list[tuple[str, Reply]]], None]) -> None:
        self._journal, self._kept = journal, kept
        self._pending: list[tuple[str, Call, Reply]] = []
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self.fault: Exception | None = None

    async def put(self, key: str, call: Call, reply: Reply) -> None:
        """Hand over one reply; waits only while the journal is far behind."""
        self._pending.append((key, call, reply))
        if len(self._pending) == 1 or len(self._pending) >= GROUP:
            self._wake.set()
        if len(self._pending) >= WAITING and self.fault is None:
            self._room.clear()
            await self._room.wait()

    async def run(self, failed: Callable[[Exception], None]) -> None:
        """Write group after group until closed and empty. ``failed`` is told once when the journal
        takes no more; ``fault`` then has its error, and what is pending is lost."""
        loop = asyncio.get_running_loop()
        try:
            while self._pending or not self._closing:
                await self._group()
                group = self._pending[:GROUP]
                if not group:
                    continue
                await loop.run_in_executor(self._thread, self._journal.keep, group)
                del self._pending[: len(group)]
                self._room.set()
                self._kept([(key, reply) for key, _, reply in group])
        except Exception as error:  # whatever a database may raise: the senders must be let go
            self.fault = error
            self._room.set()
            failed(error)

    async def _group(self) -> None:
        """Wait until there is a group to write."""
        while not self._pending and not self._closing:
            self._wake.clear()
            await self._wake.wait()
        if len(self._pending) < GROUP and not self._closing:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._full(), EVERY_S)
            except TimeoutError:
                return

    async def _full(self) -> None:
        while len(self._pending) < GROUP and not self._closing:
            self._wake.clear()
            await self._wake.wait()

    def close(self) -> None:
        """No more replies will come: write what is pending at once."""
        self._closing = True
        self._wake.set()

    def release(self) -> None:
        """End the thread, after ``run``."""
        self._thread.shutdown()
