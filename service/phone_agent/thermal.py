"""How hot the pretended phone is: it warms with the pixels it works on and cools with time, or it
follows a script. The states are Android's (PowerManager.THERMAL_STATUS_*)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from domain.errors import LikenessError

STATES = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
THROTTLES = STATES.index("severe")
"""From here on the SDK works in its low-power mode, whatever was asked."""
REFUSES = STATES.index("critical")
"""From here on it does not work at all."""
_LEVELS = (60.0, 200.0, 600.0, 900.0)
"""Warmth, in megapixels worked on and not yet cooled away, from which the next state begins: steady
work on a desk computer stays below "severe", four times as much does not."""
_COOLING_S = 60.0


class Thermal(Protocol):
    """What the SDK asks."""

    def state(self) -> str:
        """One of STATES, now."""
        ...

    def work(self, megapixels: float) -> None:
        """So much was just worked on."""
        ...


class Load:
    """Warmth rises by ``factor`` a megapixel and falls by 1/e in a minute."""

    def __init__(self, factor: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._factor, self._clock = factor, clock
        self._warmth, self._when = 0.0, clock()

    def _cool(self) -> None:
        now = self._clock()
        self._warmth *= math.exp(-max(now - self._when, 0.0) / _COOLING_S)
        self._when = now

    def state(self) -> str:
        """By the warmth that is left."""
        self._cool()
        return STATES[sum(self._warmth >= level for level in _LEVELS)]

    def work(self, megapixels: float) -> None:
        """Warm up."""
        self._cool()
        self._warmth += self._factor * megapixels


class Script:
    """The state at each edit in turn; the last one stays."""

    def __init__(self, states: Sequence[str]) -> None:
        self._states, self._at = list(states), 0

    def state(self) -> str:
        """The script's word for this edit."""
        return self._states[min(self._at, len(self._states) - 1)]

    def work(self, megapixels: float) -> None:
        """On to the next line."""
        self._at += 1


def thermal(text: str, clock: Callable[[], float] = time.monotonic) -> Thermal:
    """ "load", "load:4" (four times as warm) or states in a row such as "none,light,severe"."""
    name, _, factor = text.partition(":")
    if name == "load":
        try:
            return Load(float(factor or 1), clock)
        except ValueError:
            raise LikenessError(f"--thermal: '{factor}' is no number") from None
    states = [part.strip() for part in text.split(",")]
    unknown = [s for s in states if s not in STATES]
    if unknown:
        raise LikenessError(f"--thermal: no state '{unknown[0]}'; known: {', '.join(STATES)}, load")
    return Script(states)
