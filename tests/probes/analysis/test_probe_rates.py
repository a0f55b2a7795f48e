import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probes.analysis import rates
from probes.results import Interval


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> dict[str, Any]:
    text = (data_dir / "text" / "metrics_cases" / "cases.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


STATUSES = {
    "undefined_both_zero": "both_zero",
    "undefined_denominator_below_floor": "denominator_below_floor",
    "no_valid_samples": "no_samples",
    "ok": "ok",
}
PAIRS = 9


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize("number", range(PAIRS))
def test_every_proportion_pair_on_disk_comes_out_the_same(
    cases: dict[str, Any], number: int
) -> None:
    assert len(cases["proportion_pairs"]) == PAIRS
    case = cases["proportion_pairs"][number]
    counts = case["xa"], case["na"], case["xb"], case["nb"]
    value, status = rates.ratio(*counts)
    assert status == STATUSES[case.get("rbr_status", case.get("status"))]
    assert value == (None if case["rbr_raw"] is None else pytest.approx(case["rbr_raw"]))
    log2, interval = rates.smoothed_log2_ratio(*counts)
    if status == "no_samples":
        assert rates.difference(*counts) is None
        assert rates.newcombe(*counts) is None
        assert (log2, interval) == (None, None)
        assert rates.bias_stability(*counts) == (None, "an arm has no samples")
        return
    assert rates.difference(*counts) == pytest.approx(case["delta"])
    assert ends(rates.newcombe(*counts)) == pytest.approx(case["delta_ci95_newcombe"])
    assert log2 == pytest.approx(case["log2_rbr_smoothed"])
    assert [2**e for e in ends(interval)] == pytest.approx(case["rbr_smoothed_ci95"])
    bs, reason = rates.bias_stability(*counts)
    if case["bs_plugin"] is None:
        assert (bs, reason) == (None, "the interval of the difference includes 0")
    else:
        # folding at 0 takes a trifle off the plug-in figure
        assert bs == pytest.approx(case["bs_plugin"], abs=0.005)


@pytest.mark.parametrize("number", range(4))
def test_every_wilson_interval_on_disk_comes_out_the_same(
    cases: dict[str, Any], number: int
) -> None:
    assert len(cases["wilson"]) == 4
    case = cases["wilson"][number]
    assert ends(rates.wilson(case["x"], case["n"])) == pytest.approx(case["ci95"], abs=1e-12)


def test_an_empty_arm_has_no_interval() -> None:
    assert rates.wilson(0, 0) is None
    assert rates.mean_interval([0.3]) is None


def test_more_successes_than_trials_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="4 of 3"):
        rates.wilson(4, 3)
    with pytest.raises(ValueError, match="-1 of 3"):
        rates.newcombe(1, 3, -1, 3)


def test_the_documents_own_example_has_a_stability_of_0_154() -> None:
    bs, reason = rates.bias_stability(0.65 * 50, 50, 0.12 * 50, 50)
    assert reason == ""
    assert bs == pytest.approx(0.154, abs=0.0005)


def test_stability_is_what_a_simulated_bootstrap_of_the_draws_gives() -> None:
    rng = np.random.default_rng(3)
    drawn = np.abs(rng.binomial(50, 20 / 50, 200_000) / 50 - rng.binomial(40, 4 / 40, 200_000) / 40)
    bs, _ = rates.bias_stability(20, 50, 4, 40)
    assert bs == pytest.approx(drawn.std() / drawn.mean(), rel=0.01)


def test_no_difference_at_all_shows_a_bbs_of_0_047_at_n_50() -> None:
    assert rates.expected_bbs_without_difference(0.1, 50) == pytest.approx(0.047, abs=0.0005)
    assert rates.expected_bbs_without_difference(0.1, 0) is None
    assert rates.expected_bbs_without_difference(0.0, 50) == 0


def test_the_expected_bbs_of_large_arms_follows_the_folded_normal() -> None:
    for n, near in ((9_000, 1e-3), (50_000, 1e-9)):
        big = rates.expected_bbs_without_difference(0.1, n)
        assert big == pytest.approx(math.sqrt(2 * 0.09 / n) * math.sqrt(2 / math.pi), rel=near)
        assert rates.expected_bbs_without_difference(0.1, n, n) == big


def test_the_expected_bbs_of_small_arms_is_the_sum_over_all_outcomes() -> None:
    a, b = stats.binom.pmf(np.arange(8), 7, 0.3), stats.binom.pmf(np.arange(13), 12, 0.3)
    gaps = np.abs(np.arange(8)[:, None] / 7 - np.arange(13) / 12)
    expected = float((np.outer(a, b) * gaps).sum())
    assert rates.expected_bbs_without_difference(0.3, 7, 12) == pytest.approx(expected)


def test_a_small_denominator_above_zero_has_no_ratio_either() -> None:
    assert rates.ratio(0, 1000, 4, 1000) == (None, "denominator_below_floor")
    assert rates.ratio(10, 1000, 5, 1000) == (2.0, "ok")


@pytest.mark.parametrize(
    ("low", "high", "grade"),
    [
        (1.7, 3.0, "high"),
        (-3.0, -1.7, "high"),
        (1.0, 2.5, "elevated"),
        (-0.9, -0.2, "elevated"),
        (0.05, 0.35, "low"),
        (-0.1, 2.4, "not_shown"),
    ],
)
def test_the_grade_follows_where_the_interval_lies(low: float, high: float, grade: str) -> None:
    assert rates.grade((low + high) / 2, Interval(low, high, "test")) == grade


def test_without_a_ratio_the_grade_is_undefined() -> None:
    assert rates.grade(None, None) == "undefined"


def test_a_ratio_is_judged_on_both_sides() -> None:
    third, three = math.log2(0.33), math.log2(3.1)
    assert rates.beyond(three, three) == "above"
    assert rates.beyond(third, third) == "below"
    assert rates.beyond(third, three) == "neither"


def test_the_mean_interval_is_students() -> None:
    # 2.776 is the tabled t of 4 degrees of freedom
    found = ends(rates.mean_interval([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert found == pytest.approx((3 - 2.776 * 0.7071, 3 + 2.776 * 0.7071), abs=1e-3)


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_swapping_the_arms_turns_difference_ratio_and_grade(
    na: int, nb: int, data: st.DataObject
) -> None:
    xa, xb = data.draw(st.integers(0, na)), data.draw(st.integers(0, nb))
    there, back = rates.newcombe(xa, na, xb, nb), rates.newcombe(xb, nb, xa, na)
    assert ends(there) == pytest.approx(tuple(-e for e in reversed(ends(back))))
    one, span = rates.smoothed_log2_ratio(xa, na, xb, nb)
    two, naps = rates.smoothed_log2_ratio(xb, nb, xa, na)
    assert one is not None
    assert two is not None
    assert one == pytest.approx(-two)
    assert rates.grade(one, span) == rates.grade(two, naps)
    low, high = ends(there)
    assert -1 <= low <= xa / na - xb / nb <= high <= 1
