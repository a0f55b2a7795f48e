"""Sizes of a difference that do not hang on a p-value.

Hodges-Lehmann shift (1963), Cliff's delta (1993), the impact ratio of a favourable event with
Katz's log interval (1978), and GARBE, the Gini coefficient of error rates of ISO/IEC 19795-10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

EXACT_PAIRS = 200_000
"""Up to so many pairs of subjects the shift is exact; beyond, each group is thinned to evenly
spaced quantiles, which moves it by far less than the interval is wide."""
QUANTILES = 200


@dataclass(frozen=True, slots=True)
class Shift:
    """An effect with its interval; NaN where it cannot be had."""

    value: float
    low: float
    high: float


def hodges_lehmann(a: Floats, b: Floats, alpha: float = 0.05) -> Shift:
    """Median of all differences a_i - b_j, with the rank-test interval. Unit: that of the figure."""
    n, m = len(a), len(b)
    if n == 0 or m == 0:
        return Shift(math.nan, math.nan, math.nan)
    x, y = (a, b) if n * m <= EXACT_PAIRS else (thinned(a), thinned(b))
    return shift_of(x, y, n, m, alpha)


def shift_of(x: Floats, y: Floats, n: int, m: int, alpha: float = 0.05) -> Shift:
    """``hodges_lehmann`` of samples that stand for ``n`` and ``m`` subjects."""
    differences = np.subtract.outer(x, y).ravel()
    last = len(differences) - 1
    reach = _z(alpha) * math.sqrt((n + m + 1) / (12 * n * m))
    first = int(max(0.5 - reach, 0.0) * len(differences))
    middle = (last // 2, len(differences) // 2)
    found = np.partition(differences, sorted({first, *middle, last - first}))
    return Shift(
        float((found[middle[0]] + found[middle[1]]) / 2), float(found[first]),
        float(found[last - first]),
    )  # fmt: skip


def cliffs_delta(a: Floats, b: Floats) -> float:
    """P(a > b) - P(a < b), from -1 to 1; NaN where a group is empty."""
    if len(a) == 0 or len(b) == 0:
        return math.nan
    ordered = np.sort(b)
    below = np.searchsorted(ordered, a, side="left").sum()
    above = (len(b) - np.searchsorted(ordered, a, side="right")).sum()
    return float((below - above) / (len(a) * len(b)))


def walsh_shift(differences: Floats) -> float:
    """One-sample Hodges-Lehmann: median of all pairwise means of paired differences."""
    d = differences if len(differences) ** 2 <= EXACT_PAIRS else thinned(differences)
    i, j = np.triu_indices(len(d))
    return float(np.median((d[i] + d[j]) / 2)) if len(d) else math.nan


def impact_ratio(
    rate_a: float, n_a: float, rate_b: float, n_b: float, alpha: float = 0.05
) -> Shift:
    """Rate of a favourable event in a over that in b, Katz log interval with half counts added.

    NaN value where nobody in b has the event; the interval is still there.
    """
    ratio = rate_a / rate_b if rate_b > 0 else math.nan
    pa, pb = (rate_a * n_a + 0.5) / (n_a + 1), (rate_b * n_b + 0.5) / (n_b + 1)
    se = math.sqrt((1 - pa) / (pa * (n_a + 1)) + (1 - pb) / (pb * (n_b + 1)))
    reach = _z(alpha) * se
    centre = math.log(pa / pb)
    return Shift(ratio, math.exp(centre - reach), math.exp(centre + reach))


def garbe(rates: Sequence[float]) -> float:
    """Gini aggregation rate of one error rate over groups: 0 alike, 1 all in one group.

    ISO/IEC 19795-10 (Gini coefficient with the n/(n-1) correction). NaN with fewer than two
    groups; 0 where every rate is 0.
    """
    x = np.asarray(rates, dtype=np.float64)
    n = len(x)
    if n < 2 or not np.isfinite(x).all():
        return math.nan
    if x.sum() == 0:
        return 0.0
    gini = np.abs(np.subtract.outer(x, x)).sum() / (2 * n * n * x.mean())
    return float(gini * n / (n - 1))


def thinned(values: Floats) -> Floats:
    """``values`` (subjects, ...) as at most ``QUANTILES`` evenly spaced quantiles."""
    if len(values) <= QUANTILES:
        return values
    return np.asarray(np.quantile(values, (np.arange(QUANTILES) + 0.5) / QUANTILES, axis=0))


@cache
def _z(alpha: float) -> float:
    return float(stats.norm.ppf(1 - alpha / 2))
