"""Effect sizes against brute force and hand-made answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics.statistics import effects

FIGURES = st.lists(st.floats(-100, 100), min_size=1, max_size=25)


@given(FIGURES, FIGURES)
def test_the_shift_is_the_median_of_all_differences(a: list[float], b: list[float]) -> None:
    brute = float(np.median([x - y for x in a for y in b]))
    shift = effects.hodges_lehmann(np.array(a), np.array(b))
    assert shift.value == pytest.approx(brute, abs=1e-9)
    assert shift.low <= shift.value <= shift.high


@given(FIGURES, FIGURES)
def test_cliffs_delta_counts_who_is_above_whom(a: list[float], b: list[float]) -> None:
    brute = sum((x > y) - (x < y) for x in a for y in b) / (len(a) * len(b))
    assert effects.cliffs_delta(np.array(a), np.array(b)) == pytest.approx(brute)


def test_cliffs_delta_is_mann_whitneys_u_on_another_scale() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.4, 1, 30), rng.normal(0, 1, 45)
    u = stats.mannwhitneyu(a, b).statistic
    assert effects.cliffs_delta(a, b) == pytest.approx(2 * u / (30 * 45) - 1)


def test_large_groups_are_thinned_without_moving_the_shift() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.lognormal(0.3, 1, 1500), rng.lognormal(0, 1, 1500)
    exact = float(np.median(np.subtract.outer(a, b)))
    shift = effects.hodges_lehmann(a, b)
    assert shift.value == pytest.approx(exact, abs=0.02)
    assert shift.low < exact < shift.high


def test_the_one_sample_shift_is_the_median_of_pairwise_means() -> None:
    assert effects.walsh_shift(np.array([1.0, 2.0, 6.0])) == pytest.approx(
        np.median([1, 1.5, 3.5, 2, 4, 6])
    )


def test_the_impact_ratio_compares_rates_of_the_favourable_event() -> None:
    ratio = effects.impact_ratio(0.4, 100, 0.8, 100)
    assert ratio.value == pytest.approx(0.5)
    assert ratio.low < 0.5 < ratio.high < 0.8


def test_the_impact_ratio_has_no_value_where_nobody_has_the_event() -> None:
    ratio = effects.impact_ratio(0.4, 10, 0.0, 10)
    assert math.isnan(ratio.value)
    assert ratio.low > 0


def test_garbe_is_zero_for_equal_rates_and_one_when_one_group_bears_all() -> None:
    assert effects.garbe([0.2, 0.2, 0.2]) == pytest.approx(0)
    assert effects.garbe([0.3, 0.0, 0.0]) == pytest.approx(1)
    assert effects.garbe([0.0, 0.0]) == 0
    assert math.isnan(effects.garbe([0.2]))
