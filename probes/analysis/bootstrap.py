"""Intervals for figures pooled over templates or names: whole clusters are drawn, never replies.

Replies to one template go together, so that n replies say less than n. With ``FEW`` clusters or more
the interval is a cluster bootstrap with expanded percentiles (Hesterberg 2015: plain percentiles
are too narrow by sqrt((G-1)/G) and by normal against t); with fewer it is a t interval over the
jackknife of the clusters, and says so. One cluster has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from probes.analysis.rates import newcombe, smoothed_log2_ratio
from probes.results import Interval

FEW = 8
"""From so many clusters on their drawing has tails enough for a percentile."""
WARN_BELOW = 6
"""With fewer clusters a reader is told that there are few."""
Floats = npt.NDArray[np.float64]


def few_clusters(count: int) -> str:
    """A sentence for readers when an interval rests on few clusters, "" when it does not."""
    if count >= WARN_BELOW:
        return ""
    return (
        f"rests on {count} cluster{'' if count == 1 else 's'} only: the interval is wide or absent"
    )


def cluster_bootstrap(
    clusters: Sequence[Any],
    seed: int,
    draws: int = 2000,
    statistic: Callable[[Sequence[Any]], float] | None = None,
    level: float = 0.95,
) -> tuple[float | None, Interval | None]:
    """Value and interval of ``statistic`` over ``clusters``; without one, of the mean of all values.

    ``statistic`` gets a list of clusters (some of them several times) and returns a float, NaN where
    it has none. It is called once a draw: for what follows from sums take ``of_sums``, which is
    faster by far. Empty clusters do not count.
    """
    if statistic is None:
        totals = np.array([[float(np.sum(c)), len(c)] for c in clusters if len(c)]).reshape(-1, 2)
        return of_sums(totals, lambda s: s[..., 0] / s[..., 1], seed, draws, level)
    kept = [c for c in clusters if len(c)]

    def chosen(picks: npt.NDArray[np.int_]) -> Floats:
        return np.array([statistic([kept[i] for i in row]) for row in picks], float)

    return _interval(len(kept), chosen, seed, draws, level)


def of_sums(
    totals: Sequence[Sequence[float]] | Floats,
    statistic: Callable[[Floats], Floats],
    seed: int,
    draws: int = 2000,
    level: float = 0.95,
) -> tuple[float | None, Interval | None]:
    """Value and interval of a figure that follows from sums over clusters.

    ``totals`` is (clusters, k): for each cluster k numbers that add up (successes and trials of each
    arm, sums and squares). ``statistic`` takes an array (..., k) of their sums and returns (...).
    """
    table = np.asarray(totals, float)

    def chosen(picks: npt.NDArray[np.int_]) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(statistic(table[picks].sum(axis=1)), float)

    return _interval(len(table), chosen, seed, draws, level)


def pooled_difference(
    counts: Sequence[tuple[int, int, int, int]], seed: int, draws: int = 2000, level: float = 0.95
) -> tuple[float | None, Interval | None]:
    """P_A - P_B pooled over clusters of (x_A, n_A, x_B, n_B), in [-1, 1], with its interval.

    Where all clusters are alike (0 of everything, say) drawing them shows no spread: the interval is
    Newcombe's then, never one without width.
    """
    table = np.asarray([c for c in counts if c[1] or c[3]], float).reshape(-1, 4)
    value, found = of_sums(
        table, lambda s: s[..., 0] / s[..., 1] - s[..., 2] / s[..., 3], seed, draws, level
    )
    if value is None or found is None:
        return value, found
    if found.high - found.low < 1e-12:
        xa, na, xb, nb = (int(v) for v in table.sum(axis=0))
        plain = newcombe(xa, na, xb, nb, level)
        assert plain is not None
        return value, Interval(plain.low, plain.high, "newcombe (clusters all alike)", level)
    return value, Interval(max(-1.0, found.low), min(1.0, found.high), found.method, level)


def pooled_log2_ratio(
    counts: Sequence[tuple[int, int, int, int]], seed: int, draws: int = 2000, level: float = 0.95
) -> tuple[float | None, Interval | None]:
    """log2 of the smoothed ratio of the rates pooled over clusters of (x_A, n_A, x_B, n_B), with its
    interval; that of independent replies where all clusters are alike."""
    table = np.asarray([c for c in counts if c[1] or c[3]], float).reshape(-1, 4)
    value, found = of_sums(table, _log2_ratio, seed, draws, level)
    if value is None or found is None or found.high - found.low >= 1e-12:
        return value, found
    xa, na, xb, nb = (int(v) for v in table.sum(axis=0))
    return smoothed_log2_ratio(xa, na, xb, nb, level)


def _log2_ratio(sums: Floats) -> Floats:
    xa, na, xb, nb = (sums[..., i] for i in range(4))
    found = np.log2((xa + 0.5) / (na + 1)) - np.log2((xb + 0.5) / (nb + 1))
    return np.where((na > 0) & (nb > 0), found, np.nan)


def _interval(
    count: int,
    chosen: Callable[[npt.NDArray[np.int_]], Floats],
    seed: int,
    draws: int,
    level: float,
) -> tuple[float | None, Interval | None]:
    if count == 0:
        return None, None
    value = float(chosen(np.arange(count)[None, :])[0])
    if not math.isfinite(value):
        return None, None
    if count == 1:
        return value, None
    t = float(stats.t.ppf(0.5 + level / 2, count - 1))
    if count < FEW:
        return value, _jackknife(value, count, chosen, t, level)
    picks = np.random.default_rng(seed).integers(0, count, (draws, count))
    drawn = chosen(picks)
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < 0.95 * draws:
        return value, None  # the figure often does not exist in a draw: its spread is not known
    tail = float(stats.norm.sf(t * math.sqrt(count / (count - 1))))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    method = f"cluster bootstrap over {count} clusters, expanded percentiles"
    return value, Interval(float(low), float(high), method, level)


def _jackknife(
    value: float,
    count: int,
    chosen: Callable[[npt.NDArray[np.int_]], Floats],
    t: float,
    level: float,
) -> Interval | None:
    """Each cluster left out in turn; the spread of what is left gives the standard error."""
    left = np.array([[j for j in range(count) if j != i] for i in range(count)])
    values = chosen(left)
    if not np.isfinite(values).all():
        return None
    spread = (count - 1) / count * float(((values - values.mean()) ** 2).sum())
    half = t * math.sqrt(spread)
    note = ", few" if count < WARN_BELOW else ""
    return Interval(
        value - half, value + half, f"cluster jackknife t ({count} clusters{note})", level
    )
