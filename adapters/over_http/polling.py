"""Waiting for a job that another machine works on: bounded, and patient with a poll that fails.

A poll is free and the job is paid for, so a poll that meets a 429, a 502 or a broken line is asked
again; it does not end the edit, whose repetition would be billed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from adapters.guard import EditEnded
from domain.edits import Failed

Wait = Callable[[float], object]
T = TypeVar("T")
GROWTH = 1.3
LONGEST = 10.0
"""Seconds between two polls of a job that takes long."""
SHORTEST = 0.05


class Patience:
    """The time one edit may take, in seconds. Its own waits count as time even where ``wait`` is
    a test's that returns at once."""

    def __init__(self, total_s: float, every_s: float, wait: Wait = time.sleep) -> None:
        self.total_s, self._every, self._wait = total_s, max(every_s, SHORTEST), wait
        self._began, self._waited = time.monotonic(), 0.0

    def pause(self, wanted: float | None = None) -> bool:
        """Wait ``wanted`` seconds, or until the next poll is due (each time a little longer). False,
        at once, when that would be beyond the end."""
        seconds = max(self._every if wanted is None else wanted, SHORTEST)
        spent = max(time.monotonic() - self._began, self._waited)
        if spent + seconds > self.total_s:
            return False
        if wanted is None:
            self._every = max(self._every, min(self._every * GROWTH, LONGEST))
        self._waited += seconds
        self._wait(seconds)
        return True


def patiently(ask: Callable[[], T], patience: Patience, known: Mapping[str, Any]) -> T:
    """What ``ask`` gives; a retryable failure of it is waited out as long as there is time.

    Raises EditEnded with the last failure, marked as maybe billed and not to be retried: the job
    was begun. ``known`` is the ``meta`` so far: the failure keeps it, its request id above all."""
    while True:
        try:
            return ask()
        except EditEnded as end:
            outcome = end.outcome
            if not isinstance(outcome, Failed):
                raise
            if not outcome.retryable or not patience.pause(outcome.retry_after):
                meta = {**outcome.meta, **known, "maybe_billed": True}
                meta |= {k: v for k, v in outcome.meta.items() if k in ("http_status", "stop")}
                raise EditEnded(replace(outcome, retryable=False, meta=meta)) from None
