"""When the next request may be sent: the rate limit, the server's word, and the end of asking."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from domain.tools import RateLimit

GIVEN_UP, SILENT_S = 25, 30.0
"""Calls in a row that got no reply in all their attempts, and seconds without any, after which the
endpoint is taken for dead."""
POLL_S = 0.1
"""Seconds between two looks at whether the user wants to stop."""


class Pace:
    """Shared by all calls of a run, in one event loop.

    ``halted`` is "" while asking goes on, else why nothing more is sent, in one sentence."""

    def __init__(
        self, rate: RateLimit | None, stopping: Callable[[], bool], patience_s: float = SILENT_S
    ) -> None:
        """``patience_s`` bounds ``SILENT_S``: who allows calls less waiting wants to know earlier."""
        self.halted = ""
        self._patience_s = min(SILENT_S, patience_s)
        self._rate, self._stopping = rate, stopping
        self._begun: deque[float] = deque()
        self._held_until = 0.0
        self._failed, self._answered_at = 0, asyncio.get_running_loop().time()
        self._end = asyncio.Event()

    def halt(self, reason: str) -> None:
        """Send nothing more. The first reason is the one that counts."""
        if not self.halted:
            self.halted = reason
            self._end.set()

    def answered(self) -> None:
        """A call got its reply."""
        self._failed, self._answered_at = 0, asyncio.get_running_loop().time()

    def given_up(self, sentence: str) -> None:
        """A call got none, however often it was sent. Too many in a row end asking: thousands of
        calls, each with its waits, would find the same."""
        self._failed += 1
        silent = asyncio.get_running_loop().time() - self._answered_at
        if self._failed >= GIVEN_UP and silent >= self._patience_s:
            self.halt(f"{self._failed} calls in a row got no reply, the last: {sentence}")

    def hold(self, seconds: float) -> None:
        """Begin nothing for ``seconds``: the server said so, to whichever call."""
        until = asyncio.get_running_loop().time() + seconds
        self._held_until = max(self._held_until, until)

    async def turn(self) -> bool:
        """Wait until one request may be begun, and count it. False: asking has ended."""
        while not self.halted:
            wait = self._wait()
            if wait <= 0:
                return True
            await self.sleep(wait)
        return False

    def _wait(self) -> float:
        now = asyncio.get_running_loop().time()
        if now < self._held_until:
            return self._held_until - now
        if self._rate is None:
            return 0.0
        begun = self._begun
        if len(begun) < self._rate.calls:
            begun.append(now)
            return 0.0
        wait = begun[0] + self._rate.seconds - now
        if wait <= 0:
            begun.popleft()
            begun.append(now)
        return wait

    async def sleep(self, seconds: float) -> None:
        """Sleep, but wake when asking ends."""
        try:
            await asyncio.wait_for(self._end.wait(), seconds)
        except TimeoutError:
            return

    async def watch(self) -> None:
        """Look again and again whether the user wants to stop. Ends with asking."""
        while not self.halted:
            if self._stopping():
                self.halt("the run was stopped")
            else:
                await self.sleep(POLL_S)
