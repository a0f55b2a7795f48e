"""How often a tool may be asked, and what asking costs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator

CLOCK_OFF_S = 30.0
"""Seconds between a tool's clock and ours from which it is said: servers that sign by time refuse
differences of 60 to 300."""
_UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "hour": 3600.0}
_RATE = re.compile(r"^\s*(\d{1,9})\s*/\s*(\d{0,6}(?:\.\d{1,3})?)\s*(s|sec|min|m|h|hour)\s*$")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most ``calls`` calls begun within any ``seconds`` seconds. Written "150/10s", "30/min"."""

    calls: int
    seconds: float

    def __post_init__(self) -> None:
        if self.calls < 1 or not self.seconds > 0:
            raise ValueError("a rate limit is a number of calls over a time, such as 150/10s")

    @classmethod
    def parse(cls, text: str) -> Self:
        """``text`` such as "150/10s", "30/min" or "1/h". Raises ValueError with an example."""
        found = _RATE.match(text)
        if found is None:
            raise ValueError(
                f"'{text}' is not a rate limit; write calls over a time: 150/10s, 30/min"
            )
        return cls(int(found[1]), float(found[2] or 1) * _UNITS[found[3]])

    def __str__(self) -> str:
        return f"{self.calls}/{self.seconds:g}s"


def _is_a_rate(text: str) -> str:
    RateLimit.parse(text)
    return text


RateText = Annotated[str, AfterValidator(_is_a_rate)]
"""A rate limit as a plan writes it."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one call costs: ``per_call`` plus ``per_megapixel`` for each 10^6 pixels sent, in
    ``currency``. ``source`` says where the figure is from and of what date: prices change."""

    per_call: float
    currency: str = "USD"
    per_megapixel: float = 0.0
    source: str = ""

    def of(self, megapixels: float) -> float:
        """The price of one call with a picture of that many 10^6 pixels."""
        return self.per_call + self.per_megapixel * megapixels
