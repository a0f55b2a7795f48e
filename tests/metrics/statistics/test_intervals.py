"""Intervals against statsmodels, scipy and published examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from metrics.statistics import intervals as iv


def test_wilson_is_that_of_statsmodels_and_of_the_textbook() -> None:
    low, high = iv.wilson(np.array([0.3]), np.array([50.0]))
    assert (low[0], high[0]) == pytest.approx(proportion_confint(15, 50, method="wilson"))
    # Newcombe 1998a, table I, method 3: 81 of 263
    low, high = iv.wilson(np.array([81 / 263]), np.array([263.0]))
    assert (round(low[0], 4), round(high[0], 4)) == (0.2553, 0.3662)


def test_newcombe_gives_the_published_interval_of_56_of_70_less_48_of_80() -> None:
    # Newcombe 1998b, table II, method 10
    low, high = iv.newcombe(56 / 70, 70, 48 / 80, 80)
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def test_newcombe_is_that_of_statsmodels() -> None:
    expected = confint_proportions_2indep(30, 41, 18, 41, compare="diff", method="newcomb")
    assert iv.newcombe(30 / 41, 41, 18 / 41, 41) == pytest.approx(expected)


def test_the_welch_interval_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 12), rng.normal(1, 3, 30)
    low, high = iv.difference_interval(iv.summarise(a[:, None]), iv.summarise(b[:, None]), None)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high))


def test_the_bootstrap_agrees_with_welch_where_nothing_is_skewed() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, (200, 1)), rng.normal(0.5, 1, (200, 1))
    first, second = iv.summarise(a), iv.summarise(b)
    draws = iv.bootstrap(a, (1,)), iv.bootstrap(b, (2,))
    plain = np.ravel(iv.difference_interval(first, second, None))
    better = np.ravel(iv.difference_interval(first, second, draws))
    assert better == pytest.approx(plain, abs=0.02)


def test_the_bootstrap_leans_towards_the_long_tail() -> None:
    rng = np.random.default_rng(6)
    values = rng.lognormal(0, 1, (60, 1))
    group = iv.summarise(values)
    low, high = iv.mean_interval(group, iv.bootstrap(values, (1,)))
    assert high[0] - group.mean[0] > 1.15 * (group.mean[0] - low[0])


def test_every_resample_draws_as_many_subjects_as_there_are() -> None:
    weights = iv.resample_weights(17, (0,), 50)
    assert weights.shape == (50, 17)
    assert (weights.sum(axis=1) == 17).all()


def test_missing_figures_do_not_enter_a_mean() -> None:
    group = iv.summarise(np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, np.nan]]))
    assert group.n.tolist() == [2, 1]
    assert group.mean.tolist() == [2, 5]
    assert group.var[0] == 2
    assert np.isnan(group.var[1])


def test_repeats_that_always_agree_are_worth_one_answer_a_subject() -> None:
    means = np.repeat([0.0, 1.0], 20)[:, None]
    worth = iv.effective_n(np.array([0.5]), iv.summarise(means), np.array([120.0]))
    assert worth[0] == pytest.approx(40)


def test_repeats_that_tell_as_much_as_new_subjects_count_in_full() -> None:
    rng = np.random.default_rng(2)
    means = rng.binomial(3, 0.4, 4000)[:, None] / 3
    rate = means.mean(axis=0)
    worth = iv.effective_n(rate, iv.summarise(means), np.array([12000.0]))
    assert worth[0] == pytest.approx(12000, rel=0.08)


def test_the_design_effect_is_the_number_of_repeats_where_they_add_nothing() -> None:
    means = np.random.default_rng(1).normal(size=(500, 1))
    item_var = np.repeat(means, 3).var(ddof=1)
    effect = iv.design_effect(iv.summarise(means), np.array([item_var]), np.array([1500.0]))
    assert effect[0] == pytest.approx(3, rel=0.01)


@given(
    st.floats(0, 1), st.floats(0, 1), st.floats(1, 1e5), st.floats(1, 1e5), st.floats(1e-9, 0.9)
)  # fmt: skip
def test_the_closed_forms_are_those_of_statsmodels_at_every_rate_size_and_level(
    a: float, b: float, n: float, m: float, alpha: float
) -> None:
    low, high = iv.wilson(np.array([a, b]), np.array([n, m]), alpha)
    theirs = proportion_confint(
        np.array([a * n, b * m]), np.array([n, m]), alpha=alpha, method="wilson"
    )
    assert np.array([low, high]) == pytest.approx(np.array(theirs), abs=1e-12)
    expected = confint_proportions_2indep(
        a * n, n, b * m, m, compare="diff", method="newcomb", alpha=alpha
    )
    assert iv.newcombe(a, n, b, m, alpha) == pytest.approx(expected, abs=1e-9)


@given(
    st.floats(0, 1), st.floats(0, 1), st.integers(2, 400), st.integers(2, 400)
)  # fmt: skip
def test_swapping_the_groups_mirrors_newcombes_interval(a: float, b: float, n: int, m: int) -> None:
    low, high = iv.newcombe(a, n, b, m)
    assert iv.newcombe(b, m, a, n) == pytest.approx((-high, -low), abs=1e-9)
