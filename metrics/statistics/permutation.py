"""Permutation tests over subjects: labels are shuffled between people, never between pictures.

Two groups: the studentised difference of subject means (Janssen 1997; Chung and Romano 2013),
valid also where the groups' spreads differ; with equal group sizes it orders the shuffles exactly
as the plain difference of means does. Pairs: sign flips of the subjects' differences.
Exact where at most ``EXACT`` shuffles exist; else ``SHUFFLES`` seeded ones with the +1 correction
(Phipson and Smyth 2010), more where p is small, and the Student tail beyond their resolution.
Above ``ASYMPTOTIC`` subjects the studentised permutation law is the normal one.
Yes/no claims use the mid-p value: without it the exact test's true error rate is 3.3 % where 5 %
was asked for (41 subjects a group), with it 4.8 % and never above 5 % there.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from metrics.statistics.intervals import Floats, Summary, summarise, welch_df

EXACT = 20_000
SHUFFLES = 2_000
MORE_SHUFFLES = 10_000
ASYMPTOTIC = 2_000
_BLOCK = 4_000_000
_TIE = 1e-9

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """Two-sided p-values, one a column. ``p`` decides; ``conservative`` counts ties in full."""

    p: Floats
    conservative: Floats
    method: str


def two_sample(a: Floats, b: Floats, binary: Bools, rng: np.random.Generator) -> Tail:
    """Does the mean of a column differ between groups? a (n, c), b (m, c) without NaN.

    ``binary`` (c,) marks columns judged by mid-p; those of nothing but 0 and 1 are enumerated at
    any size. Needs two subjects in each group.
    """
    plain = binary & ((a == 0) | (a == 1)).all(axis=0) & ((b == 0) | (b == 1)).all(axis=0)
    if not plain.any():
        return _two_sample(a, b, binary, rng)
    p, full, method = np.empty(len(plain)), np.empty(len(plain)), "exact permutation"
    for column in np.flatnonzero(plain):
        p[column], full[column] = _yes_no(
            int(a[:, column].sum()), len(a), int(b[:, column].sum()), len(b)
        )
    if not plain.all():
        rest = _two_sample(a[:, ~plain], b[:, ~plain], binary[~plain], rng)
        p[~plain], full[~plain], method = rest.p, rest.conservative, rest.method
    return Tail(p, full, method)


def _yes_no(hits_a: int, n: int, hits_b: int, m: int) -> tuple[float, float]:
    """Mid-p and full p over every way to share the hits out (hypergeometric)."""
    hits = hits_a + hits_b
    shared = np.arange(max(0, hits - m), min(n, hits) + 1)
    chance = stats.hypergeom.pmf(shared, n + m, hits, n)
    x, y = shared / n, (hits - shared) / m
    se2 = x * (1 - x) / max(n - 1, 1) + y * (1 - y) / max(m - 1, 1)
    gap = np.abs(x - y)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap < _TIE, 0.0, gap / np.sqrt(se2))
    seen = t[hits_a - shared[0]]
    if np.isinf(seen):
        more, same = 0.0, float(chance[np.isinf(t)].sum())
    else:
        more = float(chance[t > seen * (1 + _TIE)].sum())
        same = float(chance[t >= seen * (1 - _TIE)].sum()) - more
    return min(more + same / 2, 1.0), min(more + same, 1.0)


def _two_sample(a: Floats, b: Floats, binary: Bools, rng: np.random.Generator) -> Tail:
    n, m = len(a), len(b)
    pooled = np.concatenate([a, b])
    pooled = pooled - pooled.mean(axis=0)
    observed = welch_t(summarise(a), summarise(b))
    if n + m > ASYMPTOTIC:
        p = _student_tail(observed, summarise(a), summarise(b))
        return Tail(p, p, "asymptotic permutation")
    if math.comb(n + m, n) <= EXACT:
        chosen = _every_choice(n + m, n)
        more, same = _count(pooled, chosen, observed)
        return _exact(more, same, len(chosen), binary)
    chosen = _random_choice(n + m, n, SHUFFLES, rng)
    more, same = _count(pooled, chosen, observed)
    total = np.full(len(observed), float(SHUFFLES))
    rare = more + same < SHUFFLES / 10
    if rare.any():
        extra: Floats = np.zeros(rare.sum())
        ties: Floats = np.zeros(rare.sum())
        step = max(1, min(MORE_SHUFFLES, _BLOCK // (n + m)))
        for start in range(0, MORE_SHUFFLES, step):
            size = min(step, MORE_SHUFFLES - start)
            beyond, tied = _count(
                pooled[:, rare], _random_choice(n + m, n, size, rng), observed[rare]
            )
            extra += beyond
            ties += tied
        more[rare] += extra
        same[rare] += ties
        total[rare] += MORE_SHUFFLES
    return _monte_carlo(
        more, same, total, binary, _student_tail(observed, summarise(a), summarise(b))
    )


def sign_flip(differences: Floats, rng: np.random.Generator) -> Tail:
    """Is the mean paired difference zero? (subjects, columns) without NaN."""
    n = len(differences)
    observed = np.abs(differences.sum(axis=0))
    scale = _TIE * np.abs(differences).sum(axis=0)
    exact = 2**n <= EXACT
    signs: Floats
    if exact:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    else:
        draws = int(min(SHUFFLES + MORE_SHUFFLES, max(SHUFFLES, _BLOCK // n)))
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=(draws, n)).astype(np.float64)
    sums = np.abs(signs @ differences)
    more = (sums > observed + scale).sum(axis=0).astype(np.float64)
    same = (sums >= observed - scale).sum(axis=0) - more
    never = np.zeros(differences.shape[1], dtype=bool)
    if exact:
        return _exact(more, same, len(signs), never)
    one = summarise(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(one.mean == 0, 0.0, np.abs(one.mean) / np.sqrt(one.se2))
    tail = 2 * stats.t.sf(t, n - 1)
    return _monte_carlo(more, same, np.full(len(more), float(len(signs))), never, tail)


def smallest_p(n: int, m: int, paired: bool) -> float:
    """The p-value below which the exact test cannot get with so few subjects."""
    if n < 1 or m < 1:
        return 1.0
    if n + m > 60 and min(n, m) > 10:
        return 0.0  # below 1e-10: no bound at all, and the binomials get long
    ways = 2.0 ** min(n, 60) if paired else float(math.comb(n + m, n))
    mirrored = paired or n == m  # every shuffle has its mirror image, equally far out
    return min((2 if mirrored else 1) / ways, 1.0)


def welch_t(a: Summary, b: Summary) -> Floats:
    """|studentised difference|: 0 where the means agree, infinite where nothing else varies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(a.mean - b.mean) / np.sqrt(a.se2 + b.se2)
    return np.where(a.mean == b.mean, 0.0, t)


def _student_tail(t: Floats, a: Summary, b: Summary) -> Floats:
    return np.asarray(2 * stats.t.sf(t, welch_df(a, b)))


def _count(pooled: Floats, chosen: Floats, observed: Floats) -> tuple[Floats, Floats]:
    """How many of the shuffles (rows of ``chosen``, 0/1) lie beyond the statistic, how many on it."""
    total, k = len(pooled), float(chosen[0].sum())
    rest = total - k
    square = pooled**2
    sum_a, square_a = chosen @ pooled, chosen @ square
    mean_a, mean_b = sum_a / k, (pooled.sum(axis=0) - sum_a) / rest
    var_a = (square_a - k * mean_a**2) / max(k - 1, 1)
    var_b = (square.sum(axis=0) - square_a - rest * mean_b**2) / max(rest - 1, 1)
    gap = np.abs(mean_a - mean_b)
    tiny = 1e-12 * square.mean(axis=0)
    se2 = np.maximum(var_a, 0) / k + np.maximum(var_b, 0) / rest
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(se2 <= tiny, np.inf, gap / np.sqrt(se2))
    t = np.where(gap**2 <= tiny, 0.0, t)
    finite = np.where(np.isfinite(observed), observed, 0.0)
    more = np.where(np.isfinite(observed), t > finite * (1 + _TIE) + _TIE, False).sum(axis=0)
    reach = np.where(np.isfinite(observed), t >= finite * (1 - _TIE) - _TIE, np.isinf(t)).sum(
        axis=0
    )
    return more.astype(np.float64), (reach - more).astype(np.float64)


def _every_choice(total: int, k: int) -> Floats:
    rows = np.array(list(itertools.combinations(range(total), k)))
    chosen = np.zeros((len(rows), total))
    np.put_along_axis(chosen, rows, 1.0, axis=1)
    return chosen


def _random_choice(total: int, k: int, draws: int, rng: np.random.Generator) -> Floats:
    """Selection sampling (Knuth, algorithm S) for all draws at once: k of total in each row."""
    chance = rng.random((total, draws), dtype=np.float32)
    left = np.full(draws, k, dtype=np.float32)
    chosen = np.empty((total, draws))
    for i in range(total):
        hit = chance[i] * (total - i) < left
        chosen[i] = hit
        left -= hit
    return chosen.T


def _exact(more: Floats, same: Floats, total: int, binary: Bools) -> Tail:
    full = (more + same) / total
    return Tail(np.where(binary, (more + same / 2) / total, full), full, "exact permutation")


def _monte_carlo(more: Floats, same: Floats, total: Floats, binary: Bools, tail: Floats) -> Tail:
    full = (more + same + 1) / (total + 1)
    p = np.where(binary, (more + (same + 1) / 2) / (total + 1), full)
    # Fewer than ten exceedances say only "small"; the Student tail says how small.
    few = (more + same < 10) & np.isfinite(tail)
    p = np.where(few, np.minimum(np.maximum(tail, 1e-300), p), p)
    return Tail(p, full, "permutation")
