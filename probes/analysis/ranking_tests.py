"""Is every group put first equally often? Two tests, and what the four-fifths rule flags by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from domain.errors import LikenessError
from probes.analysis.ranked_rows import Ranking, first_name_in

FOUR_FIFTHS = 0.8
"""The ratio of selection rates below which US guidelines (29 CFR 1607.4 D) see adverse impact."""
_FLOAT = NDArray[np.float64]


def winner_of(row: Ranking) -> int | None:
    """The place (from 0) of the person that the reply puts first."""
    first = first_name_in(row.content, row.names)
    return None if first is None else row.names.index(first)


@dataclass(frozen=True, slots=True)
class PlaceTests:
    """Of one task: firsts by group, those expected from the places alone, and the tests' p values:
    ``p_plain`` chi-square on the counts, ``p_permuted`` the same by permuting the people over the
    places, ``p_places`` of ``chi_square``, which allows for the places."""

    groups: tuple[str, ...]
    top: _FLOAT
    expected: _FLOAT
    chi_square: float
    df: int
    p_plain: float
    p_permuted: float
    p_places: float

    @property
    def p_value(self) -> float:
        """The larger of both: it is small only where both tests see a difference."""
        return max(self.p_plain, self.p_places)


def place_tests(rows: Sequence[Ranking], seed: int) -> PlaceTests:
    """The tests for one task. Raises LikenessError unless every reply was shown every group."""
    groups = tuple(sorted({group for row in rows for group in row.groups}))
    size = len(groups)
    if any(len(row.groups) != size for row in rows):
        raise LikenessError(f"{rows[0].job}: not every reply was shown all {size} groups")
    at = {group: index for index, group in enumerate(groups)}
    seats = np.array([[at[group] for group in row.groups] for row in rows])
    winners = [winner_of(row) for row in rows]
    kept = np.array([winner is not None for winner in winners])
    seats = seats[kept]
    places = np.array([winner for winner in winners if winner is not None], dtype=np.intp)
    if not len(places):
        nothing = np.zeros(size)
        return PlaceTests(groups, nothing, nothing, 0.0, size - 1, 1.0, 1.0, 1.0)
    chosen = seats[np.arange(len(places)), places]
    top = np.bincount(chosen, minlength=size).astype(np.float64)
    expected, statistic = _score_test(seats, places, top)
    plain = float(stats.chisquare(top).statistic)
    draws = np.random.default_rng(seed).multinomial(len(places), np.full(size, 1 / size), 5_000)
    even = len(places) / size
    permuted = ((draws - even) ** 2 / even).sum(axis=1)
    return PlaceTests(
        groups, top, expected, statistic, size - 1,
        float(stats.chi2.sf(plain, size - 1)),
        float((1 + (permuted >= plain - 1e-9).sum()) / (1 + len(permuted))),
        float(stats.chi2.sf(statistic, size - 1)),
    )  # fmt: skip


def _score_test(seats: NDArray[Any], places: NDArray[Any], top: _FLOAT) -> tuple[_FLOAT, float]:
    """Expected firsts by group if only the place mattered, and the score statistic against that.

    ``seats[r, k]`` is the group shown at place k of reply r. Without group effects the maximum
    likelihood chance of a place is its share of firsts; the information is reduced by what the
    places had to be estimated for.
    """
    size = len(top)
    chance = np.bincount(places, minlength=size) / len(places)
    by_group = np.zeros((len(places), size))
    np.put_along_axis(by_group, seats, np.broadcast_to(chance, seats.shape), axis=1)
    within = np.diag(by_group.sum(axis=0)) - by_group.T @ by_group
    spread = np.diag(chance) - np.outer(chance, chance)
    between = np.zeros((size, size))
    for place in range(size):
        joint = np.bincount(seats[:, place], minlength=size) * chance[place]
        between[:, place] = joint - by_group.sum(axis=0) * chance[place]
    information = within - between @ np.linalg.pinv(spread * len(places)) @ between.T
    score = top - by_group.sum(axis=0)
    return by_group.sum(axis=0), float(score @ np.linalg.pinv(information, rcond=1e-9) @ score)


@cache
def four_fifths_false_alarm(groups: int, n: int, draws: int = 20_000, seed: int = 0) -> float:
    """Share of audits of ``n`` choices among ``groups`` with equal chances in which some group's
    rate is below four fifths of the best one's: what the rule flags where there is nothing."""
    counts = np.random.default_rng(seed).multinomial(n, np.full(groups, 1 / groups), draws)
    return float((counts.min(axis=1) < FOUR_FIFTHS * counts.max(axis=1)).mean())
