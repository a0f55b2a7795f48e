"""Holm, Benjamini-Hochberg, equivalence and power against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower
from statsmodels.stats.weightstats import ttost_ind

from metrics.statistics import power
from metrics.statistics.equivalence import tost_means, tost_rates
from metrics.statistics.intervals import newcombe, summarise
from metrics.statistics.multiplicity import benjamini_hochberg, holm

PS = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@settings(max_examples=15, deadline=None)  # statsmodels collects garbage at each call
@given(PS)
def test_both_corrections_are_those_of_statsmodels(p: list[float]) -> None:
    given_p = np.array(p)
    assert holm(given_p) == pytest.approx(multipletests(given_p, method="holm")[1])
    assert benjamini_hochberg(given_p) == pytest.approx(multipletests(given_p, method="fdr_bh")[1])


def test_a_question_that_could_not_be_asked_costs_nothing() -> None:
    corrected = holm(np.array([0.01, np.nan, 0.02]))
    assert corrected[[0, 2]] == pytest.approx([0.02, 0.02])
    assert np.isnan(corrected[1])


def test_equivalence_of_means_is_statsmodels_tost() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 40), rng.normal(0.1, 1.5, 55)
    expected = ttost_ind(a, b, -0.8, 0.8, usevar="unequal")[0]
    ours = tost_means(summarise(a[:, None]), summarise(b[:, None]), np.array([0.8]))
    assert ours[0] == pytest.approx(expected)


def test_rates_are_equivalent_exactly_where_newcombes_interval_fits_the_margin() -> None:
    p = tost_rates(0.50, 400, 0.52, 400, 0.10)
    low, high = newcombe(0.50, 400, 0.52, 400, 2 * p)
    assert max(-low, high) == pytest.approx(0.10, abs=1e-4)
    assert tost_rates(0.5, 400, 0.65, 400, 0.10) == 1


def test_needed_n_gives_the_two_numbers_every_planner_knows() -> None:
    assert power.needed_n_rates(0.5, 0.6) == 385
    assert power.needed_n_rates(0.73, 0.44) == 42  # 41.4


def test_needed_n_of_means_is_that_of_statsmodels() -> None:
    theirs = TTestIndPower().solve_power(effect_size=0.5, alpha=0.05, power=0.8)
    assert power.needed_n_means(1, 1, 0.5) == pytest.approx(theirs, abs=1)


def test_needed_n_has_no_answer_without_spread_or_gap() -> None:
    assert power.needed_n_means(0, 0, 0.5) is None
    assert power.needed_n_means(1, 1, 0) is None
    with pytest.raises(ValueError, match="equal rates"):
        power.needed_n_rates(0.5, 0.5)


def test_power_at_the_needed_n_is_four_fifths() -> None:
    n = power.needed_n_means(1, 1, 0.3)
    assert n is not None
    assert power.power_means(0.3, (2 / n) ** 0.5) == pytest.approx(0.8, abs=0.01)
