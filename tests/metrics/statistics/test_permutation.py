"""Permutation tests against scipy's and against full enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from metrics.statistics.intervals import summarise
from metrics.statistics.permutation import (
    _drawn,
    _random_choice,
    _sums,
    sign_flip,
    smallest_p,
    two_sample,
    welch_t,
)

NO = np.array([False])
YES = np.array([True])


def _p(a: object, b: object, binary: bool = False, seed: int = 0) -> float:
    x, y = (np.asarray(v, dtype=float)[:, None] for v in (a, b))
    tail = two_sample(x, y, YES if binary else NO, seed)
    return float(tail.p[0])


def test_small_groups_are_enumerated_and_agree_with_scipy() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(1, 1, 7), rng.normal(0, 1, 7)
    exact = stats.permutation_test(
        (a, b), lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)),
        vectorized=True, n_resamples=np.inf, alternative="greater",
    )  # fmt: skip
    assert _p(a, b) == pytest.approx(exact.pvalue)


def test_unequal_groups_are_judged_by_the_studentised_difference() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(1, 3, 4), rng.normal(0, 1, 9)
    pooled = np.concatenate([a, b])
    seen = abs(stats.ttest_ind(a, b, equal_var=False).statistic)
    count = total = 0
    for chosen in itertools.combinations(range(13), 4):
        rest = [i for i in range(13) if i not in chosen]
        t = abs(stats.ttest_ind(pooled[list(chosen)], pooled[rest], equal_var=False).statistic)
        count += t >= seen - 1e-9
        total += 1
    assert _p(a, b) == pytest.approx(count / total)


def test_many_shuffles_come_near_scipys() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0.5, 1, 30), rng.normal(0, 1, 30)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)),
        vectorized=True, n_resamples=20_000, alternative="greater", rng=np.random.default_rng(1),
    )  # fmt: skip
    assert _p(a, b) == pytest.approx(theirs.pvalue, abs=0.015)


def test_a_p_value_is_never_zero_by_lack_of_shuffles() -> None:
    a, b = np.arange(40.0), np.arange(40.0) + 500
    tail = two_sample(a[:, None], b[:, None], NO, 0)
    assert tail.conservative[0] == pytest.approx(1 / 12_001)
    assert 0 < tail.p[0] < tail.conservative[0]


def test_what_nobody_named_gets_the_first_shuffles_alone() -> None:
    a, b = np.arange(40.0)[:, None], np.arange(40.0)[:, None] + 500
    tail = two_sample(a, b, NO, 0, precise=NO)
    assert tail.conservative[0] == pytest.approx(1 / 2_001)
    assert tail.p[0] == two_sample(a, b, NO, 0).p[0]  # both far beyond what shuffles resolve


def test_groups_of_the_same_sizes_are_shuffled_alike_and_seeds_differ() -> None:
    rng = np.random.default_rng(9)
    a, b = rng.normal(0, 1, (30, 1)), rng.normal(0.2, 1, (40, 1))
    alone = two_sample(a, b, NO, 3).p[0]
    _drawn.cache_clear()
    beside = two_sample(np.hstack([a, a + 1]), np.hstack([b, b + 1]), np.array([False, False]), 3).p
    assert beside == pytest.approx([alone, alone])
    assert two_sample(a, b, NO, 4).p[0] != alone


def test_every_shuffle_keeps_the_sizes_of_the_groups() -> None:
    chosen = _random_choice(83, 41, 3000, np.random.default_rng(0))
    assert (chosen.sum(axis=1) == 41).all()
    assert chosen.mean(axis=0) == pytest.approx(41 / 83, abs=0.04)


def test_rates_are_judged_by_mid_p_and_keep_the_full_p_beside_it() -> None:
    a, b = [1.0] * 6 + [0.0] * 2, [1.0] * 2 + [0.0] * 6
    full = stats.fisher_exact([[6, 2], [2, 6]]).pvalue
    x, y = np.array(a)[:, None], np.array(b)[:, None]
    tail = two_sample(x, y, YES, 0)
    assert tail.conservative[0] == pytest.approx(full)
    tie = 2 * stats.hypergeom.pmf(6, 16, 8, 8)
    assert tail.p[0] == pytest.approx(full - tie / 2)


def test_groups_without_any_spread_that_differ_get_the_smallest_exact_p() -> None:
    assert _p([1.0] * 5, [2.0] * 5) == pytest.approx(2 / 252)


def test_identical_groups_get_p_one() -> None:
    values = np.arange(6.0)
    assert _p(values, values) == 1
    assert welch_t(summarise(values[:, None]), summarise(values[:, None]))[0] == 0


def test_swapping_the_groups_leaves_an_exact_p_as_it_is() -> None:
    rng = np.random.default_rng(11)
    a, b = rng.exponential(1, 6), rng.exponential(2, 8)
    assert _p(a, b) == pytest.approx(_p(b, a))


def test_two_thousand_subjects_follow_the_welch_law() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(0, 1, 1200), rng.normal(0.05, 1, 1200)
    assert _p(a, b) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)


def test_sign_flips_of_few_pairs_are_enumerated() -> None:
    d = np.array([0.3, 0.1, 0.7, -0.2, 0.5, 0.4])
    exact = stats.permutation_test(
        (d,), lambda x, axis: np.abs(x.mean(axis=axis)), permutation_type="samples",
        vectorized=True, n_resamples=np.inf, alternative="greater",
    )  # fmt: skip
    tail = sign_flip(d[:, None], np.random.default_rng(0))
    assert tail.p[0] == pytest.approx(exact.pvalue)


def test_no_exact_p_lies_below_the_smallest_that_the_sizes_allow() -> None:
    assert _p([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]) == pytest.approx(smallest_p(3, 3, False))
    assert _p([1.0, 2.0], [11.0, 12.0, 13.0]) == pytest.approx(smallest_p(2, 3, False))
    tail = sign_flip(np.array([[1.0], [2.0], [3.0]]), np.random.default_rng(0))
    assert tail.p[0] == pytest.approx(smallest_p(3, 3, True))
    assert smallest_p(5000, 5000, False) < 1e-200


def test_swapping_the_groups_leaves_a_shuffled_p_as_it_is() -> None:
    rng = np.random.default_rng(12)
    a, b = rng.exponential(1, 30), rng.exponential(1.5, 50)
    assert _p(a, b) == _p(b, a)


def test_large_groups_without_much_skew_follow_the_student_law_and_skewed_ones_are_shuffled() -> (
    None
):
    rng = np.random.default_rng(13)
    even, skewed = rng.normal(size=(900, 1)), rng.lognormal(0, 2, (900, 1))
    both = np.hstack([even, skewed])
    tail = two_sample(both[:300], both[300:], np.array([False, False]), 0)
    assert list(tail.method) == ["asymptotic permutation", "permutation"]


def test_the_student_law_of_large_groups_is_that_of_many_shuffles() -> None:
    rng = np.random.default_rng(14)
    a, b = rng.exponential(1, 250), rng.exponential(1.12, 600)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.abs(stats.ttest_ind(x, y, axis=axis, equal_var=False)[0]),
        vectorized=True, n_resamples=20_000, batch=2_000, alternative="greater",
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert _p(a, b) == pytest.approx(theirs.pvalue, abs=0.01)


def test_no_event_in_a_small_group_is_no_finding_where_events_are_rare_among_thousands() -> None:
    # 40 of 3,000 subjects have an event; chance leaves a group of 100 without any in 26 % of deals,
    # where Welch, which sees a group without spread, gives a p of one in a hundred million.
    a, b = np.zeros((100, 1)), np.zeros((2900, 1))
    b[:40] = 0.5
    tail = two_sample(a, b, NO, 0)
    assert list(tail.method) == ["permutation"]
    assert stats.ttest_ind(b, a, equal_var=False).pvalue[0] < 1e-8
    assert tail.conservative[0] == pytest.approx(stats.hypergeom.pmf(0, 3000, 40, 100), abs=0.03)


def test_sums_over_few_subjects_of_many_are_those_of_whole_shuffles() -> None:
    values = np.random.default_rng(15).normal(size=(90, 2))
    chosen = _random_choice(90, 7, 50, np.random.default_rng((4, 2)))
    assert _sums(values, 7, 50, (4, 2)) == pytest.approx(chosen @ values)
