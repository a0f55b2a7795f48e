"""How far two or more passes over the same replies agree in their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from statsmodels.stats.inter_rater import cohens_kappa

from probes.results import Interval

MERGE_ABOVE = 0.15
"""Two labels are proposed for merging when more than this share of their replies is split."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """``share`` of the replies that at least one pass gave ``label`` and not both did; ``n`` of them."""

    label: str
    share: float
    n: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Labels ``first`` and ``second`` are mixed up in ``share`` of the ``n`` replies in which both
    passes chose between these two."""

    first: str
    second: str
    share: float
    n: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two passes compared. ``kappa`` in [-1, 1] is None with a ``reason`` where chance alone would
    agree always. ``observed`` is the share of equal labels, ``n`` the replies with both."""

    n: int
    observed: float | None
    kappa: float | None
    interval: Interval | None
    reason: str = ""
    by_label: tuple[Disagreement, ...] = ()
    merges: tuple[Merge, ...] = ()
    left_out: int = 0


def agreement(first: Sequence[str | None], second: Sequence[str | None]) -> Agreement:
    """Cohen's kappa (1960) with its large-sample interval (Fleiss, Cohen, Everitt 1969), label by
    label and pair by pair. Replies that one pass left without a label are ``left_out``.

    Raises ValueError when the passes are not of the same replies.
    """
    if len(first) != len(second):
        raise ValueError(f"two passes of different lengths: {len(first)} and {len(second)}")
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    left_out = len(first) - len(both)
    if not both:
        return Agreement(0, None, None, None, "no reply has a label in both", left_out=left_out)
    labels = sorted({name for pair in both for name in pair})
    place = {name: i for i, name in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)), int)
    for a, b in both:
        table[place[a], place[b]] += 1
    observed = float(np.trace(table)) / len(both)
    by_label, merges = _by_label(table, labels), _merges(table, labels)
    if len(labels) == 1:
        reason = "both passes know one label only: chance would agree as well"
        return Agreement(len(both), observed, None, None, reason, by_label, left_out=left_out)
    found = cohens_kappa(table)
    interval = Interval(
        max(-1.0, float(found.kappa_low)), min(1.0, float(found.kappa_upp)), "asymptotic kappa"
    )
    return Agreement(
        len(both), observed, float(found.kappa), interval, "", by_label, merges, left_out
    )


def krippendorff_alpha(passes: Sequence[Sequence[str | None]]) -> tuple[float | None, str]:
    """Krippendorff's alpha for nominal labels (2011), any number of passes, None for a label that is
    missing; at most 1. Returns (None, reason) where it is not defined.

    Raises ValueError when the passes are not of the same replies.
    """
    if len({len(p) for p in passes}) > 1:
        raise ValueError("passes of different lengths")
    weight: dict[tuple[str, str], float] = {}
    totals: Counter[str] = Counter()
    for unit in zip(*passes, strict=True):
        names = [name for name in unit if name is not None]
        if len(names) < 2:
            continue
        totals.update(names)
        for a, b in combinations(names, 2):
            if a != b:
                weight[a, b] = weight.get((a, b), 0.0) + 2 / (len(names) - 1)
    n = totals.total()
    if n == 0:
        return None, "no reply has two labels"
    expected = n * n - sum(count * count for count in totals.values())
    if expected == 0:
        return None, "all passes know one label only"
    return 1 - (n - 1) * sum(weight.values()) / expected, ""


def _by_label(table: np.ndarray, labels: Sequence[str]) -> tuple[Disagreement, ...]:
    found = []
    for i, name in enumerate(labels):
        n = int(table[i].sum() + table[:, i].sum() - table[i, i])
        found.append(Disagreement(name, 1 - float(table[i, i]) / n, n))
    return tuple(found)


def _merges(table: np.ndarray, labels: Sequence[str]) -> tuple[Merge, ...]:
    found = []
    for i, j in combinations(range(len(labels)), 2):
        split = int(table[i, j] + table[j, i])
        n = split + int(table[i, i] + table[j, j])
        if n and split / n > MERGE_ABOVE:
            found.append(Merge(labels[i], labels[j], split / n, n))
    return tuple(sorted(found, key=lambda m: -m.share))
