"""Permutation tests over subjects: labels are shuffled between people, never between pictures.

Two groups: the studentised difference of subject means (Janssen 1997; Chung and Romano 2013),
valid also where the groups' spreads differ; with equal group sizes it orders the shuffles exactly
as the plain difference of means does. Pairs: sign flips of the subjects' differences.
Exact where at most ``EXACT`` shuffles exist; else ``SHUFFLES`` seeded ones with the +1 correction
(Phipson and Smyth 2010), more where p is small and decides something, and the Student tail beyond
their resolution. Groups of the same two sizes are shuffled alike, whatever the tool or attribute,
so that the shuffles are drawn once.
From ``STUDENT_FROM`` subjects in the smaller group on, and among more than ``MANY`` in any, the
Student tail takes the shuffles' place where the smaller group has ``SKEW_SUBJECTS`` times the
squared skewness (Cochran 1977, 2.15): there it lies nearer to the full permutation law than two
thousand shuffles do (docs/statistics.md). Above ``ASYMPTOTIC`` subjects it always does.
Yes/no claims use the mid-p value: without it the exact test's true error rate is 3.3 % where 5 %
was asked for (41 subjects a group), with it 4.8 % and never above 5 % there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

from metrics.statistics.intervals import Floats, Summary, summarise, welch_df

EXACT = 20_000
SHUFFLES = 2_000
MORE_SHUFFLES = 10_000
STUDENT_FROM = 250
SKEW_SUBJECTS = 25
MANY = 2_000
ASYMPTOTIC = 5_000
EXACT_TEST, SHUFFLED_TEST = "exact permutation", "permutation"
NORMAL_TEST = "asymptotic permutation"
_FEW = 8
_BLOCK = 4_000_000
_TIE = 1e-9

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """Two-sided p-values, one a column. ``p`` decides; ``conservative`` counts ties in full."""

    p: Floats
    conservative: Floats
    method: Sequence[str]


def two_sample(
    a: Floats, b: Floats, binary: Bools, seed: int, precise: Bools | None = None
) -> Tail:
    """Does the mean of a column differ between groups? a (n, c), b (m, c) without NaN.

    ``binary`` (c,) marks columns judged by mid-p; those of nothing but 0 and 1 are enumerated at
    any size. ``precise`` (c,) marks columns worth ``MORE_SHUFFLES`` where p is small; default all.
    Needs two subjects in each group.
    """
    width = len(binary)
    precise = np.ones(width, dtype=bool) if precise is None else precise
    if len(a) > len(b):  # which group comes first makes no difference to a two-sided test
        a, b = b, a
    p, full, method = np.empty(width), np.empty(width), [EXACT_TEST] * width
    plain = binary & ((a == 0) | (a == 1)).all(axis=0) & ((b == 0) | (b == 1)).all(axis=0)
    for column in np.flatnonzero(plain):
        p[column], full[column] = _yes_no(
            int(a[:, column].sum()), len(a), int(b[:, column].sum()), len(b)
        )
    left = np.flatnonzero(~plain)
    if len(left):
        rest = _two_sample(a[:, left], b[:, left], binary[left], seed, precise[left])
        p[left], full[left] = rest.p, rest.conservative
        for column, how in zip(left, rest.method, strict=True):
            method[column] = how
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


def _two_sample(a: Floats, b: Floats, binary: Bools, seed: int, precise: Bools) -> Tail:
    """``two_sample`` with the smaller group first, for columns that are not enumerated."""
    n, m = len(a), len(b)
    pooled = np.concatenate([a, b])
    pooled = pooled - pooled.mean(axis=0)
    first, second = summarise(a), summarise(b)
    observed = welch_t(first, second)
    if math.comb(n + m, n) <= EXACT:
        chosen = _every_choice(n + m, n)
        sums = chosen @ np.concatenate([pooled, pooled**2], axis=1)
        more, same = _count(pooled, n, sums, observed)
        return _exact(more, same, len(chosen), binary)
    tail = _student_tail(observed, first, second)
    p, full, method = tail.copy(), tail.copy(), [NORMAL_TEST] * len(tail)
    at = np.flatnonzero(~_normal(pooled, n))
    if len(at):
        more, same, total = _shuffled(pooled[:, at], n, observed[at], seed, precise[at])
        found = _monte_carlo(more, same, total, binary[at], tail[at])
        p[at], full[at] = found.p, found.conservative
        for column in at:
            method[column] = SHUFFLED_TEST
    return Tail(p, full, method)


def _normal(pooled: Floats, smaller: int) -> Bools:
    """Which columns have so many subjects for their skew that shuffles would only add noise."""
    if len(pooled) > ASYMPTOTIC:
        return np.ones(pooled.shape[1], dtype=bool)
    if smaller < STUDENT_FROM and len(pooled) <= MANY:
        return np.zeros(pooled.shape[1], dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew2 = (pooled**3).mean(axis=0) ** 2 / (pooled**2).mean(axis=0) ** 3
    return np.asarray(smaller >= SKEW_SUBJECTS * skew2)


def _shuffled(
    pooled: Floats, k: int, observed: Floats, seed: int, precise: Bools
) -> tuple[Floats, Floats, Floats]:
    """Shuffles beyond the statistic, on it, and altogether, a column each."""
    more, same = np.zeros(len(observed)), np.zeros(len(observed))
    total = np.zeros(len(observed))
    step = max(1, _BLOCK // len(pooled))
    for part, draws in enumerate((SHUFFLES, MORE_SHUFFLES)):
        wanted = precise & (more + same < SHUFFLES / 10) if part else np.ones_like(precise)
        at = np.flatnonzero(wanted)
        both = np.concatenate([pooled[:, at], pooled[:, at] ** 2], axis=1)
        for start in range(0, draws if len(at) else 0, step):
            size = min(step, draws - start)
            sums = _sums(both, k, size, (seed, len(pooled), k, part, start))
            beyond, tied = _count(pooled[:, at], k, sums, observed[at])
            more[at] += beyond
            same[at] += tied
            total[at] += size
    return more, same, total


def _sums(values: Floats, k: int, draws: int, seed: tuple[int, ...]) -> Floats:
    """(draws, columns): the sums of ``values`` over k subjects, chosen anew in each draw."""
    total = len(values)
    if k * _FEW > total:
        bits = _drawn(total, k, draws, seed)
        return np.asarray(np.unpackbits(bits, axis=1, count=total).astype(np.float64) @ values)
    rows = _drawn_few(total, k, draws, seed).astype(np.int32)
    ends = np.arange(0, draws * k + 1, k, dtype=np.int32)
    chosen = sparse.csr_array((np.ones(draws * k), rows, ends), shape=(draws, total))
    return np.asarray(chosen @ values)


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


def _count(pooled: Floats, k: int, sums: Floats, observed: Floats) -> tuple[Floats, Floats]:
    """How many of the shuffles lie beyond the statistic, how many on it.

    ``sums`` (draws, 2 columns): of the k chosen subjects' figures, then of their squares.
    """
    width, rest = pooled.shape[1], len(pooled) - k
    square = pooled**2
    sum_a, square_a = sums[:, :width], sums[:, width:]
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


@lru_cache(maxsize=128)
def _drawn(total: int, k: int, draws: int, seed: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Kept as bits: at most half a megabyte each (``_BLOCK`` bits)."""
    return np.packbits(_random_choice(total, k, draws, np.random.default_rng(seed)), axis=1)


@lru_cache(maxsize=128)
def _drawn_few(total: int, k: int, draws: int, seed: tuple[int, ...]) -> npt.NDArray[np.int16]:
    """(draws * k,) which subjects, where few of many are chosen: at most a megabyte each."""
    chosen = _random_choice(total, k, draws, np.random.default_rng(seed))
    return (np.flatnonzero(chosen) % total).astype(np.int16)


def _random_choice(total: int, k: int, draws: int, rng: np.random.Generator) -> Bools:
    """Selection sampling (Knuth, algorithm S) for all draws at once: k of total in each row."""
    chance = rng.random((total, draws), dtype=np.float32)
    left = np.full(draws, k, dtype=np.float32)
    chosen = np.empty((total, draws), dtype=bool)
    for i in range(total):
        hit = chance[i] * (total - i) < left
        chosen[i] = hit
        left -= hit
    return chosen.T


def _exact(more: Floats, same: Floats, total: int, binary: Bools) -> Tail:
    full = (more + same) / total
    return Tail(np.where(binary, (more + same / 2) / total, full), full, [EXACT_TEST] * len(full))


def _monte_carlo(more: Floats, same: Floats, total: Floats, binary: Bools, tail: Floats) -> Tail:
    full = (more + same + 1) / (total + 1)
    p = np.where(binary, (more + (same + 1) / 2) / (total + 1), full)
    # Fewer than ten exceedances say only "small"; the Student tail says how small.
    few = (more + same < 10) & np.isfinite(tail)
    p = np.where(few, np.minimum(np.maximum(tail, 1e-300), p), p)
    return Tail(p, full, [SHUFFLED_TEST] * len(full))
