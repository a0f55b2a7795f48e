"""A figure of a validity bench with the bounds it must keep."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A figure with the bounds it must keep; None where the figure is only shown."""

    text: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def kept(self) -> bool:
        """Inside its bounds."""
        above = self.low is None or self.value >= self.low
        return above and (self.high is None or self.value <= self.high)

    def line(self) -> str:
        """The figure with its bounds and whether they were kept."""
        bounds = [f">= {self.low:g}"] if self.low is not None else []
        bounds += [f"<= {self.high:g}"] if self.high is not None else []
        verdict = "" if not bounds else "  kept" if self.kept else "  MISSED"
        return f"{self.text:58} {self.value:9.4f}  {' and '.join(bounds):16}{verdict}"


def report(targets: Iterable[Target]) -> int:
    """Print each as it comes; how many were missed."""
    missed = 0
    for target in targets:
        print(target.line(), flush=True)
        missed += not target.kept
    return missed


def finish(missed: int) -> None:
    """Say how many were missed and end with 1 if any."""
    print(f"{missed} targets missed")
    sys.exit(1 if missed else 0)
