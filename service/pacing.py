"""When a tool may be called: its rate, the waits it asks for, and when to try again or to stop.

One ``Pacing`` belongs to one tool of a run and is shared by all its threads.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Self

from adapters.contract import ToolSpec
from domain.edits import Failed
from domain.plan import ToolChoice
from domain.tools import RateLimit

REMOTE_ATTEMPTS = 5
LOCAL_ATTEMPTS = 3
FIRST_BACK_OFF = 1.0
LONGEST_BACK_OFF = 60.0
JITTER, LONGEST_JITTER = 0.1, 1.0
"""Share and seconds by which a wait that the tool named is drawn out at most, so that its callers do
not come back as one crowd."""


class Pacing:
    """Gate of one tool. ``wait(seconds)`` sleeps; true from it means that the run is being stopped.

    ``chance()`` is uniform in [0, 1); ``clock()`` is in seconds and never runs backwards.
    """

    def __init__(
        self,
        rate: RateLimit | None = None,
        max_attempts: int = LOCAL_ATTEMPTS,
        max_wait_s: float = 120.0,
        *,
        wait: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.max_attempts, self.max_wait_s = max_attempts, max_wait_s
        self._rate, self._wait, self._clock, self._chance = rate, wait, clock, chance
        self._begun: deque[float] = deque()
        self._closed_until = -math.inf
        self._stopped_by = ""
        self._lock = threading.Lock()

    @classmethod
    def of(
        cls, tool: ToolChoice, spec: ToolSpec, wait: Callable[[float], object] = time.sleep
    ) -> Self:
        """As the plan says, and where it is silent as the tool says of itself."""
        rate = RateLimit.parse(tool.rate_limit) if tool.rate_limit else spec.rate
        attempts = tool.max_attempts or (REMOTE_ATTEMPTS if spec.remote else LOCAL_ATTEMPTS)
        return cls(rate, attempts, tool.max_wait_s, wait=wait)

    @property
    def stopped_by(self) -> str:
        """The failure after which nothing more is sent to this tool; "" while there is none."""
        return self._stopped_by

    def why_not(self) -> str:
        """Why nothing may be sent to the tool now, "" when something may."""
        if self._stopped_by:
            return f"not sent: {self._stopped_by}"
        left = self._closed_until - self._clock()
        if left > self.max_wait_s:
            return (
                f"not sent: the tool asks to wait another {left:.0f} s, "
                f"more than max_wait_s {self.max_wait_s:g}"
            )
        return ""

    def enter(self) -> bool:
        """Wait until a call may begin, and count it. False when none may: ``why_not`` has the reason,
        "" there means that the run is being stopped."""
        while not self.why_not():
            delay = self._delay_or_begin()
            if delay <= 0:
                return True
            if self._wait(delay):
                break
        return False

    def _delay_or_begin(self) -> float:
        with self._lock:
            now = self._clock()
            asked = self._closed_until - now
            if asked > 0:
                return asked + self._chance() * min(LONGEST_JITTER, JITTER * asked)
            if self._rate is None:
                return 0.0
            if len(self._begun) == self._rate.calls:
                # Any window of ``seconds`` that ends now has begun just after the oldest of them
                delay = self._begun[0] + self._rate.seconds - now
                if delay > 0:
                    return delay
                self._begun.popleft()
            self._begun.append(now)
            return 0.0

    def heed(self, failure: Failed) -> None:
        """Take in what a failure says of the calls to come: a wait, or that there shall be none."""
        wait = named_wait(failure)
        with self._lock:
            if failure.meta.get("stop") is True and not self._stopped_by:
                self._stopped_by = failure.reason
            if wait is not None:
                self._closed_until = max(self._closed_until, self._clock() + wait)

    def too_long(self, failure: Failed) -> str:
        """A sentence when the wait that the tool names is longer than may be waited, else ""."""
        wait = named_wait(failure)
        if wait is None or wait <= self.max_wait_s:
            return ""
        return f"the tool asks to wait {wait:g} s, more than max_wait_s {self.max_wait_s:g}"

    def rest(self, failure: Failed, tries: int) -> bool:
        """Wait before the next try, after ``tries`` of them: exponential back-off with full jitter. A
        wait that the tool named is served in ``enter``, by all its threads. False when the run is
        being stopped."""
        if named_wait(failure) is not None:
            return True
        longest = min(LONGEST_BACK_OFF, FIRST_BACK_OFF * 2.0 ** (tries - 1))
        return not self._wait(self._chance() * longest)


def named_wait(failure: Failed) -> float | None:
    """Seconds that the tool asks to wait before it is called again; None where it names no time."""
    wait = failure.retry_after
    if not failure.retryable or wait is None or not math.isfinite(wait) or wait < 0:
        return None
    return float(wait)
