import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from probes.analysis.multiplicity import benjamini_hochberg, holm, max_t
from probes.analysis.tests import sign_flip


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> dict[str, Any]:
    text = (data_dir / "text" / "metrics_cases" / "cases.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("number", range(3))
def test_every_multiplicity_case_on_disk_comes_out_the_same(
    cases: dict[str, Any], number: int
) -> None:
    assert len(cases["multiplicity"]) == 3
    case = cases["multiplicity"][number]
    assert holm(case["p"]) == pytest.approx(case["holm"])
    assert benjamini_hochberg(case["p"]) == pytest.approx(case["bh"])


def test_random_p_values_are_corrected_as_statsmodels_does() -> None:
    ps = np.random.default_rng(1).uniform(0, 0.3, 9)
    assert holm(list(ps)) == pytest.approx(list(multipletests(ps, method="holm")[1]))
    assert benjamini_hochberg(list(ps)) == pytest.approx(
        list(multipletests(ps, method="fdr_bh")[1])
    )


def test_what_was_not_tested_stays_untested_and_costs_nothing() -> None:
    assert holm([0.01, None, 0.04]) == [pytest.approx(0.02), None, pytest.approx(0.04)]
    assert benjamini_hochberg([None, 0.01]) == [None, 0.01]
    assert holm([None, None]) == [None, None]
    assert benjamini_hochberg([]) == []


def test_a_p_value_beyond_one_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.2])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_no_correction_makes_a_p_value_smaller_and_holm_is_the_stricter(ps: list[float]) -> None:
    for p, h, b in zip(ps, holm(ps), benjamini_hochberg(ps), strict=True):
        assert h is not None
        assert b is not None
        assert p - 1e-12 <= b <= h + 1e-12
        assert h <= 1


def test_max_t_over_one_label_is_the_sign_flip_test() -> None:
    diffs = [0.2, 0.1, 0.3, -0.05, 0.15, 0.25]
    assert max_t([[d] for d in diffs], seed=1) == [pytest.approx(sign_flip(diffs, seed=1).p)]


def test_max_t_over_the_same_label_twice_costs_nothing() -> None:
    diffs = [0.2, 0.1, 0.3, -0.05, 0.15, 0.25]
    twice = max_t([[d, d] for d in diffs], seed=1)
    assert twice == [pytest.approx(0.0625)] * 2


def test_max_t_finds_the_planted_label_alone() -> None:
    diffs = np.random.default_rng(2).normal(0, 1, (20, 8))
    diffs[:, 3] += 2
    found = max_t(diffs, seed=1)
    assert [i for i, p in enumerate(found) if p is not None and p <= 0.05] == [3]
    assert found == max_t(diffs, seed=1)


def test_a_label_nobody_has_gets_none_and_one_without_a_difference_gets_one() -> None:
    nan = float("nan")
    assert max_t([[0.5, nan, 0.0], [0.4, nan, 0.0], [0.6, nan, 0.0]], seed=1) == [0.25, None, 1.0]
    assert max_t(np.zeros((0, 3)), seed=1) == [None, None, None]


def test_max_t_alarms_at_most_five_times_in_a_hundred_without_a_difference() -> None:
    rng = np.random.default_rng(9)
    rounds, alarms = 300, 0
    for seed in range(rounds):
        shared = rng.normal(0, 1, (10, 1))
        ps = max_t(rng.normal(0, 1, (10, 12)) + shared, seed)
        alarms += any(p is not None and p <= 0.05 for p in ps)
    assert alarms / rounds <= 0.05 + 1.96 * (0.05 * 0.95 / rounds) ** 0.5
