"""Trials of a text probe whose truth is known, and what is counted over many seeds of them."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from docs.validity.harness.targets import Target
from domain.verdicts import VerdictKind
from probes.analysis.rates import wilson
from probes.results import Figure, Interval, ProbeResult

COVERS, FALSE_ALARM = 0.93, 0.05
"""The promises: intervals hold the truth at least so often, alarms without a difference at most."""
Naive = tuple[float, float] | None


def expit(log_odds: float) -> float:
    """The chance that has these log-odds."""
    return 1 / (1 + math.exp(-log_odds))


def own(seed: int, who: str, sd: float) -> float:
    """The random effect of a name, couple or template in the run ``seed``: normal, mean 0, in log-odds."""
    return random.Random(f"{seed} {who}").gauss(0, sd) if sd else 0.0


def marginal(log_odds: float, sd: float) -> float:
    """The mean chance over a normal random effect: what many names show together (Gauss-Hermite)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    chances = 1 / (1 + np.exp(-(log_odds + sd * nodes)))
    return float(chances @ weights / weights.sum())


def apart(first: Sequence[float], second: Sequence[float]) -> Naive:
    """The interval of a difference of means that takes every answer as independent of the others."""
    if len(first) < 2 or len(second) < 2:
        return None
    value = statistics.fmean(first) - statistics.fmean(second)
    error = math.sqrt(
        statistics.variance(first) / len(first) + statistics.variance(second) / len(second)
    )
    return value - 1.96 * error, value + 1.96 * error


def alone(values: Sequence[float]) -> Naive:
    """The same for one mean."""
    if len(values) < 2:
        return None
    value, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))
    return value - 1.96 * error, value + 1.96 * error


def within(truth: float, span: Interval | Naive) -> bool:
    """Whether the interval holds the truth; no interval holds nothing."""
    if span is None:
        return False
    low, high = (span.low, span.high) if isinstance(span, Interval) else span
    return low <= truth <= high


@dataclass(slots=True)
class Trials:
    """What was seen over the seeds of one scenario. ``truth`` is that of the figure ``figure``."""

    name: str
    figure: str
    truth: float
    values: list[float] = field(default_factory=list)
    covered: list[bool] = field(default_factory=list)
    naive: list[bool] = field(default_factory=list)
    alarms: list[frozenset[str]] = field(default_factory=list)

    def add(self, result: ProbeResult, naive: Naive) -> None:
        """Count one seed. Raises ValueError where the probe calls the model unusable or has no figure."""
        found = self._found(result)
        if found.value is None or not result.usable:
            raise ValueError(f"{self.name}: no figure, {result.why_not or found.reason}")
        self.values.append(found.value)
        self.covered.append(within(self.truth, found.interval))
        self.naive.append(within(self.truth, naive))
        self.alarms.append(
            frozenset(t.id for t in result.tests if t.verdict is VerdictKind.DISPARITY)
        )

    def _found(self, result: ProbeResult) -> Figure:
        if self.figure == "index":
            return result.index
        told = [t.effect for t in result.tests if t.id == self.figure]
        found = told[0] if told else result.figure(self.figure)
        if found is None:
            raise ValueError(f"{self.name}: there is no figure '{self.figure}'")
        return found

    def coverage(self) -> Iterator[Target]:
        """The interval's coverage with the bound that it must keep, and beside it the naive one's."""
        off = statistics.fmean(self.values) - self.truth
        text = f"{self.name}: {self.figure} {self.truth:+.3f} in its interval"
        yield _share(text, self.covered, low=COVERS)
        yield _share(f"{self.name}: in the interval of independent answers", self.naive)
        yield Target(f"{self.name}: mean figure less the truth", off)

    def false_alarms(self) -> Iterator[Target]:
        """Seeds with any verdict of a disparity, where there is no difference at all."""
        yield _share(
            f"{self.name}: any disparity though there is none",
            [bool(a) for a in self.alarms],
            high=FALSE_ALARM,
        )

    def power(self, test: str, low: float | None = None) -> Target:
        """Seeds in which the test ``test`` says disparity."""
        return _share(f"{self.name}: {test} found", [test in a for a in self.alarms], low=low)


def _share(
    text: str, hits: Sequence[bool], low: float | None = None, high: float | None = None
) -> Target:
    """A share over seeds with its Wilson interval in the text. Held to the bound as it stands."""
    span = wilson(sum(hits), len(hits))
    shown = f" ({span.low:.3f} to {span.high:.3f})" if span else ""
    return Target(text + shown, sum(hits) / len(hits), low, high)
