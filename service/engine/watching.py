"""How far a run is, kept for those who ask over the network: stages with their counts, and notes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from service import secrets
from service.store.events import instant

MOST_NOTES = 100
"""Notes of one run that are kept; a tool that complains at every item would fill the table."""


class Shown:
    """A watcher of a run that writes nothing itself: it is asked what is new."""

    def __init__(self, progressed: Callable[[], object], clean: Callable[[str], str]) -> None:
        """``progressed`` is told of each item that ended; ``clean`` takes paths out of notes."""
        self._progressed, self._clean = progressed, clean
        self._stages: dict[str, dict[str, Any]] = {}
        self._notes: deque[str] = deque()
        self._left, self._number, self._written = MOST_NOTES, 0, 0
        self._lock = threading.Lock()

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""
        with self._lock:
            self._stages[name] = {"done": 0, "total": total, "began": instant()}
            self._number += 1

    def step(self, name: str) -> None:
        """One step of the stage ``name`` is done."""
        with self._lock:
            self._stages[name]["done"] += 1
            self._number += 1
        if name != "edited":
            self._progressed()

    def say(self, text: str) -> None:
        """Something worth a line."""
        with self._lock:
            if self._left:
                self._left -= 1
                self._notes.append(self._clean(secrets.hide_keys(text)))

    def stages(self) -> tuple[int, dict[str, Any]] | None:
        """A copy of the stages with its number, None when none is new."""
        with self._lock:
            if self._number == self._written:
                return None
            return self._number, {name: dict(stage) for name, stage in self._stages.items()}

    def stages_shown(self, number: int) -> None:
        """The stages of that number were written down."""
        with self._lock:
            self._written = number

    def note(self) -> str | None:
        """The oldest note that has not been shown; it stays until ``note_shown``."""
        with self._lock:
            return self._notes[0] if self._notes else None

    def note_shown(self) -> None:
        """The note was written down."""
        with self._lock:
            self._notes.popleft()
