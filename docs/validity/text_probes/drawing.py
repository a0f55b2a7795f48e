"""What the models of the bench share: how they are drawn, what befalls them, and what is true then.

Names, couples, occupations and templates differ among themselves by a standard deviation of
``SPREAD`` on the logit, drawn anew in each run. The truth is the mean over all that could have been.
"""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from probes.calls import Reading
from service.fake_servers.chat_personality import Fault

SPREAD = 0.2
WIDE = 0.8
"""The same where the bench shows what becomes of intervals that take replies as independent."""
FAULTS = (
    Fault("429_soon", 0.004),
    Fault("wrong_model", 0.02),
    Fault("filter_azure", 0.01),
    Fault("filter_reply", 0.01),
    Fault("reasoning_ate_it", 0.02),
    Fault("empty_reply", 0.01),
    Fault("no_retry", 0.01),
)
JSON_FAULTS = (*FAULTS, Fault("fenced", 0.1), Fault("prefixed", 0.03), Fault("malformed", 0.03), Fault("cut", 0.02))  # fmt: skip


def expit(x: float) -> float:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + math.exp(-x))


def mean_share(logit: float, sd: float) -> float:
    """Mean of expit over a normal distribution of the logit (Gauss-Hermite)."""
    nodes, weights = np.polynomial.hermite.hermgauss(60)
    shares = 1 / (1 + np.exp(-(logit + math.sqrt(2) * sd * nodes)))
    return float((weights * shares).sum() / math.sqrt(math.pi))


class Drawn(defaultdict[tuple[str, ...], float]):
    """A normal draw for each key, the same whenever it is asked for."""

    def __init__(self, chance: random.Random, sd: float) -> None:
        super().__init__()
        self._chance, self._sd = chance, sd

    def __missing__(self, key: tuple[str, ...]) -> float:
        self[key] = self._chance.gauss(0, self._sd)
        return self[key]


def apart(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The interval of mean(a) - mean(b) as if every reply were independent of every other."""
    if len(a) < 2 or len(b) < 2:
        return -1.0, 1.0
    gap = float(np.mean(a) - np.mean(b))
    half = 1.96 * math.sqrt(float(np.var(a, ddof=1)) / len(a) + float(np.var(b, ddof=1)) / len(b))
    return gap - half, gap + half


def by_arm(
    first: str, second: str, value: Callable[[Reading], float | None]
) -> Callable[[Sequence[Reading]], tuple[float, float]]:
    """``apart`` of two arms."""

    def naive(readings: Sequence[Reading]) -> tuple[float, float]:
        sides = [
            [v for r in readings if r.call.arm == arm and (v := value(r)) is not None]
            for arm in (first, second)
        ]
        return apart(*sides)

    return naive


def words(found: Sequence[str]) -> str:
    """A regular expression for any of these as words."""
    return rf"\b(?:{'|'.join(re.escape(w) for w in sorted(set(found)))})\b"
