"""One comparison of two groups, for all questions of a block at once."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from metrics.statistics.effects import thinned
from metrics.statistics.equivalence import tost_t
from metrics.statistics.groups import Comparison
from metrics.statistics.intervals import (
    Draws,
    Floats,
    Summary,
    bootstrap,
    design_effect,
    difference_interval,
    effective_n,
    mean_interval,
    summarise,
    wants_bootstrap,
    welch_df,
)
from metrics.statistics.permutation import sign_flip, two_sample
from metrics.statistics.samples import Block, Sample

PAIRED_SHARE = 0.5
"""From so large a share of shared subjects on, two groups are compared within subjects."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One group of a comparison; ``low`` and ``high`` bound each column's mean at 95 %."""

    sample: Sample
    means: Floats
    summary: Summary
    draws: Draws | None
    low: Floats
    high: Floats
    items: Floats
    """Measured items, (columns,)."""
    missing: Floats
    design_effect: Floats
    effective: Floats
    """Independent yes/no answers that the items are worth, for rates."""
    _values: dict[int, Floats] = field(default_factory=dict)

    def values(self, column: int) -> Floats:
        """The subjects' figures in a column, none missing."""
        if column not in self._values:
            v = self.means[:, column]
            self._values[column] = v[np.isfinite(v)]
        return self._values[column]

    def few_values(self, column: int) -> Floats:
        """``values`` as evenly spaced quantiles, for sizes of effects in large groups."""
        if -1 - column not in self._values:
            self._values[-1 - column] = thinned(self.values(column))
        return self._values[-1 - column]


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """First minus second, an entry a column; NaN where it cannot be had.

    ``interval`` has 95 %; ``inner`` has 1 - 2 alpha, for equivalence. ``spread`` is the variance
    of the first and the second group's subject means (for planning), paired: of the differences.
    """

    first: Side
    second: Side
    effect: Floats
    interval: tuple[Floats, Floats]
    inner: tuple[Floats, Floats]
    se: Floats
    df: Floats
    p: Floats
    conservative: Floats
    method: Sequence[str]
    spread: tuple[Floats, Floats]
    paired: Floats | None = None
    """(subjects, columns) differences, where the same subjects stand in both groups."""
    left_out: int = 0

    def equivalence(self, margin: Floats) -> Floats:
        """TOST p-value; the bootstrap interval has to agree, so that skew cannot feign equality."""
        p = tost_t(self.effect, self.se, self.df, margin)
        low, high = self.inner
        return np.where((low > -margin) & (high < margin), p, np.maximum(p, 0.5))


@dataclass(slots=True)
class Comparer:
    """Makes contrasts of a block; keeps each group's resamples so that they are drawn once."""

    block: Block
    alpha: float
    seed: int
    _sides: dict[int, Side] = field(default_factory=dict)

    def side(self, group: int) -> Side:
        """The group's means with their intervals."""
        if group not in self._sides:
            self._sides[group] = self._make(self.block.of(group), self.block.groups[group])
        return self._sides[group]

    def contrast(self, comparison: Comparison) -> Contrast:
        """Compare two groups; within subjects where they share at least half of the smaller one,
        else between subjects, those who stand in both left out and counted."""
        first = self.side(comparison.first)
        if comparison.second is not None:
            second = self.side(comparison.second)
        else:
            rest = self.block.units.take(self.block.group != comparison.first).merged()
            second = self._make(rest, f"not {self.block.groups[comparison.first]}")
        shared = np.intersect1d(first.sample.subjects, second.sample.subjects)
        if len(shared) == 0:
            return self._between(first, second, 0)
        smaller = min(len(first.sample.subjects), len(second.sample.subjects))
        if len(shared) >= PAIRED_SHARE * smaller:
            return self._within(first, second, shared)
        return self._between(
            self._without(first, shared, "first"),
            self._without(second, shared, "second"),
            len(shared),
        )

    def _seed(self, label: str) -> tuple[int, int]:
        key = f"{self.block.attribute}|{label}|{len(self.block.units.subjects)}"
        return self.seed, zlib.crc32(key.encode())

    def _rng(self, label: str) -> np.random.Generator:
        return np.random.default_rng(self._seed(label))

    def _make(self, sample: Sample, label: str) -> Side:
        means = sample.means
        summary = summarise(means)
        few = not wants_bootstrap(len(means))
        draws = None if few else bootstrap(means, self._seed(label))
        low, high = mean_interval(summary, draws)
        items = sample.count.sum(axis=0)
        return Side(
            sample, means, summary, draws, low, high, items, sample.missing(),
            design_effect(summary, sample.item_variance(), items),
            effective_n(summary.mean, summary, items),
        )  # fmt: skip

    def _without(self, side: Side, shared: npt.NDArray[np.int64], label: str) -> Side:
        keep = ~np.isin(side.sample.subjects, shared)
        return self._make(side.sample.take(keep), f"{label} less {len(shared)}")

    def _between(self, first: Side, second: Side, left_out: int) -> Contrast:
        a, b = first.summary, second.summary
        both = (first.draws, second.draws)
        draws = (both[0], both[1]) if both[0] is not None and both[1] is not None else None
        p, conservative, method = self._permute(first.means, second.means)
        return Contrast(
            first, second, a.mean - b.mean,
            difference_interval(a, b, draws), difference_interval(a, b, draws, 2 * self.alpha),
            np.sqrt(a.se2 + b.se2), welch_df(a, b), p, conservative, method,
            (a.var, b.var), None, left_out,
        )  # fmt: skip

    def _permute(self, a: Floats, b: Floats) -> tuple[Floats, Floats, list[str]]:
        """Columns with the same subjects missing are shuffled together."""
        there = np.isfinite(np.concatenate([a, b]))
        p, conservative = np.full(a.shape[1], np.nan), np.full(a.shape[1], np.nan)
        method = ["none"] * a.shape[1]
        patterns: dict[bytes, list[int]] = {}
        for column in range(a.shape[1]):
            patterns.setdefault(there[:, column].tobytes(), []).append(column)
        for columns in patterns.values():
            in_a, in_b = there[: len(a), columns[0]], there[len(a) :, columns[0]]
            if in_a.sum() < 2 or in_b.sum() < 2:
                continue
            x, y = a[np.ix_(in_a, columns)], b[np.ix_(in_b, columns)]
            rates = np.array([self.block.columns[c].is_rate for c in columns])
            named = np.array([self.block.columns[c].named for c in columns])
            tail = two_sample(x, y, rates, self.seed, named)
            p[columns], conservative[columns] = tail.p, tail.conservative
            for column, how in zip(columns, tail.method, strict=True):
                method[column] = how
        return p, conservative, method

    def _within(self, first: Side, second: Side, shared: npt.NDArray[np.int64]) -> Contrast:
        at = np.searchsorted(first.sample.subjects, shared)
        to = np.searchsorted(second.sample.subjects, shared)
        first, second = (
            self._make(first.sample.take(at), "paired"),
            self._make(second.sample.take(to), "paired"),
        )
        differences = first.means - second.means
        one = summarise(differences)
        draws = (
            bootstrap(differences, self._seed("pairs")) if wants_bootstrap(len(shared)) else None
        )
        p = np.full(differences.shape[1], np.nan)
        for column in np.flatnonzero(one.n >= 2):
            d = differences[:, column]
            p[column] = sign_flip(d[np.isfinite(d)][:, None], self._rng("flip")).p[0]
        return Contrast(
            first, second, one.mean,
            mean_interval(one, draws), mean_interval(one, draws, 2 * self.alpha),
            np.sqrt(one.se2), np.maximum(one.n - 1, 1), p, p, ["sign flips"] * len(p),
            (one.var / 2, one.var / 2), differences, 0,
        )  # fmt: skip
