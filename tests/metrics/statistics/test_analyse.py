"""Verdicts of hand-made audits whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from domain.verdicts import Verdict, VerdictKind
from metrics.statistics import ClaimSpec, analyse
from tests.metrics.statistics.making_rows import repeated, rows_of

BELOW = ClaimSpec(metric="flrr", event="below", threshold=95, attribute="gender")
FIGURE = ClaimSpec(metric="m", attribute="gender", margin=0.5)


def one(rows: pd.DataFrame, claim: ClaimSpec, **more: object) -> Verdict:
    found = analyse(rows, attributes=[claim.attribute], claims=[claim], explore=False, **more)  # type: ignore[arg-type]
    assert len(found) == 1
    return found[0]


def rates(men: int, women: int, n: int = 41) -> pd.DataFrame:
    """``men`` and ``women`` of ``n`` each fall below 95."""
    return rows_of(
        {g: [90.0] * k + [99.0] * (n - k) for g, k in (("men", men), ("women", women))}, "flrr"
    )


def normal(gap: float, n: int = 60, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return rows_of({"men": rng.normal(gap, 1, n), "women": rng.normal(0, 1, n)})


def test_a_rate_claim_gives_risk_difference_newcombe_interval_and_impact_ratio() -> None:
    v = one(rates(30, 18), BELOW)
    assert v.groups == ("men", "women")
    assert v.effect == pytest.approx(12 / 41)
    assert v.interval == pytest.approx(
        confint_proportions_2indep(30, 41, 18, 41, compare="diff", method="newcomb")
    )
    assert v.verdict is VerdictKind.DISPARITY
    assert v.event == "below 95"
    assert v.details["favourable_event"] == "not below 95"
    assert v.details["impact_ratio"] == pytest.approx((11 / 41) / (23 / 41))
    assert v.details["p_conservative"] == pytest.approx(
        stats.fisher_exact([[30, 11], [18, 23]]).pvalue
    )


def test_the_sentence_names_harm_groups_size_and_interval() -> None:
    v = one(rates(30, 18), BELOW)
    for part in (
        "below 95 %",
        "73 % of men",
        "44 % of women",
        "29 percentage points",
        "Harmed more: men",
    ):
        assert part in v.sentence
    assert "bias" not in v.sentence
    assert "fair" not in v.sentence


def test_a_figure_claim_gives_the_difference_of_means_with_both_effect_sizes() -> None:
    rows = normal(1.2)
    men, women = (rows.loc[rows.gender == g, "value"].to_numpy() for g in ("men", "women"))
    v = one(rows, FIGURE)
    assert v.verdict is VerdictKind.DISPARITY
    assert v.effect == pytest.approx(men.mean() - women.mean())
    welch = stats.ttest_ind(men, women, equal_var=False)
    assert v.interval == pytest.approx(tuple(welch.confidence_interval()), abs=0.06)
    assert v.details["hodges_lehmann"] == pytest.approx(np.median(np.subtract.outer(men, women)))
    assert v.details["cliffs_delta"] == pytest.approx(
        2 * stats.mannwhitneyu(men, women).statistic / 3600 - 1
    )


def test_equal_groups_are_equivalent_only_where_the_margin_is_shown_to_hold() -> None:
    assert one(normal(0, 300, 3), FIGURE).verdict is VerdictKind.EQUIVALENT
    rows = normal(0, 12, 3)
    few = one(rows, FIGURE)
    assert few.verdict is VerdictKind.INCONCLUSIVE
    assert few.needed_n is not None
    spread = rows.groupby("gender")["value"].var().sum()
    assert few.needed_n == pytest.approx((1.96 + 0.84) ** 2 * spread / 0.5**2, abs=2)
    assert str(few.needed_n) in few.sentence


def test_a_certain_difference_inside_the_margin_is_equivalent_and_its_size_is_told() -> None:
    v = one(normal(0.15, 3000, 4), FIGURE)
    assert v.p_adjusted is not None
    assert v.p_adjusted < 0.001
    assert v.verdict is VerdictKind.EQUIVALENT
    assert "within the margin of 0.5" in v.sentence


def test_three_subjects_a_group_are_told_that_no_test_can_help() -> None:
    v = one(rows_of({"a": [9.0, 9.1, 9.2], "b": [1.0, 1.1, 1.2]}), FIGURE)
    assert v.verdict is VerdictKind.INCONCLUSIVE
    assert v.reason == "with so few subjects no test can tell chance from a real difference"
    assert v.needed_n == 5


def test_a_question_that_no_outcome_could_answer_costs_the_others_nothing() -> None:
    rng = np.random.default_rng(2)
    groups = {"a": rng.normal(0, 1, 20), "b": rng.normal(2, 1, 20), "c": [0.0]}
    found = analyse(rows_of(groups), attributes=["gender"], claims=[FIGURE], explore=False)
    by = {v.groups: v for v in found}
    assert by["a", "b"].p_adjusted == by["a", "b"].p_value
    tiny = analyse(
        rows_of({"a": [1, 2, 3.0], "c": [9.0, 8.0]}), attributes=["gender"], claims=[FIGURE]
    )
    assert tiny[0].p_value == pytest.approx(0.1)
    assert tiny[0].p_adjusted is None


def test_repeats_of_a_subject_change_neither_interval_nor_p() -> None:
    for claim, rows in ((BELOW, rates(30, 18)), (FIGURE, normal(0.4))):
        once, thrice = one(rows, claim), one(repeated(rows, 3), claim)
        assert thrice.interval == pytest.approx(once.interval)
        assert thrice.p_value == once.p_value
        assert thrice.n == once.n
        assert thrice.details["design_effect"] == pytest.approx(3, rel=0.05)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_swapping_the_names_of_the_groups_mirrors_the_finding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.5, 1, 6), rng.normal(0, 2, 7)
    v, w = one(rows_of({"a": a, "b": b}), FIGURE), one(rows_of({"b": a, "a": b}), FIGURE)
    assert v.effect is not None
    assert w.effect == pytest.approx(-v.effect)
    assert w.p_value == pytest.approx(v.p_value)
    assert v.interval is not None
    assert w.interval == pytest.approx((-v.interval[1], -v.interval[0]))
    assert w.verdict is v.verdict


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = normal(0.6)
    assert one(rows, FIGURE) == one(rows.sample(frac=1, random_state=1), FIGURE)


def test_the_same_seed_gives_the_same_verdict_and_another_one_hardly_moves_it() -> None:
    rows = normal(0.6)
    first = one(rows, FIGURE, seed=1)
    assert first == one(rows, FIGURE, seed=1)
    other = one(rows, FIGURE, seed=2)
    assert other.p_value == pytest.approx(first.p_value, abs=0.01)


def test_every_pair_of_groups_is_a_question_for_holm_and_the_largest_comes_first() -> None:
    rng = np.random.default_rng(1)
    rows = rows_of({g: rng.normal(m, 1, 30) for g, m in (("I", 0), ("III", 0.2), ("VI", 1.5))})
    found = analyse(rows, attributes=["gender"], claims=[FIGURE], explore=False)
    assert found[0].groups == ("I", "VI")
    assert sorted(v.groups for v in found) == [("I", "III"), ("I", "VI"), ("III", "VI")]
    least = min(found, key=lambda v: v.p_value or 1)
    assert least.p_adjusted == pytest.approx(3 * (least.p_value or 0))


def test_more_than_ten_groups_are_each_held_against_all_others() -> None:
    rng = np.random.default_rng(1)
    rows = rows_of({f"g{i:02}": rng.normal(2.0 * (i == 3), 1, 15) for i in range(12)})
    found = analyse(rows, attributes=["gender"], claims=[FIGURE], explore=False)
    assert len(found) == 12
    assert found[0].groups == ("g03", "all others")
    assert [v.groups[0] for v in found if v.verdict is VerdictKind.DISPARITY] == ["g03"]


def test_what_nobody_named_is_explored_under_another_correction() -> None:
    rows = pd.concat([normal(0.9), normal(1.5, seed=9).assign(metric="other")])
    found = analyse(rows, attributes=["gender"], claims=[FIGURE])
    assert [(v.metric, v.details["family"]) for v in found] == [
        ("m", "named"),
        ("other", "exploratory"),
    ]


def test_crossed_groups_need_five_subjects() -> None:
    rng = np.random.default_rng(1)
    rows = rows_of({"f": rng.normal(0, 1, 20), "m": rng.normal(0, 1, 20)})
    tone = ["I"] * 10 + ["VI"] * 10 + ["I"] * 17 + ["VI"] * 3
    found = analyse(
        rows.assign(skin_tone=tone), attributes=["gender", "skin_tone"], claims=[FIGURE]
    )
    crossed = {g for v in found if v.attribute == "gender x skin_tone" for g in v.groups}
    assert crossed == {"f, I", "f, VI", "m, I"}


def test_ages_in_years_become_bands() -> None:
    rng = np.random.default_rng(2)
    rows = rows_of({"x": rng.normal(0, 1, 80)}).assign(
        age=[str(a) for a in rng.integers(16, 80, 80)]
    )
    claim = ClaimSpec(metric="m", attribute="age")
    found = analyse(rows, attributes=["age"], claims=[claim], explore=False)
    assert {g for v in found for g in v.groups} == {
        "under 18", "18-29", "30-44", "45-59", "60 and over",
    }  # fmt: skip


def test_refusals_and_lost_faces_have_rates_of_their_own() -> None:
    rows = normal(0, 60).assign(outcome="measured")
    refused = (rows.gender == "women") & (rows.index % 2 == 0)
    rows.loc[refused, ["value", "status", "outcome"]] = [math.nan, "not_measurable", "refused"]
    claim = ClaimSpec(metric="outcome:refused", attribute="gender")
    v = one(rows, claim)
    assert v.verdict is VerdictKind.DISPARITY
    assert v.effect == pytest.approx(-0.5)
    assert "requests refused: 0 % of men" in v.sentence


def test_worst_case_bounds_tell_how_far_the_missing_could_move_a_rate() -> None:
    rows = rates(20, 20, 40)
    rows.loc[rows.index[:4], ["value", "status"]] = [math.nan, "refused"]
    v = one(rows, BELOW)
    assert v.details["missing_first"] == 4
    assert v.details["worst_case_low"] == pytest.approx(16 / 40 - 20 / 40)
    assert v.details["worst_case_high"] == pytest.approx(20 / 40 - 20 / 40)


def test_a_face_varied_in_the_attribute_itself_is_compared_with_itself() -> None:
    rng = np.random.default_rng(7)
    face = rng.normal(0, 5, 12)
    rows = pd.concat(
        rows_of({"same": face + shift + rng.normal(0, 0.2, 12)}).assign(skin_tone=tone)
        for tone, shift in (("I", 0.0), ("VI", 0.6))
    )
    v = one(rows, ClaimSpec(metric="m", attribute="skin_tone", margin=0.1))
    assert v.details["design"] == "paired within subjects"
    assert v.verdict is VerdictKind.DISPARITY
    assert v.n == {"I": 12, "VI": 12}


def test_default_claims_ignore_certain_trifles_but_not_real_gaps() -> None:
    rng = np.random.default_rng(3)
    rows = rows_of({"a": rng.normal(98.0, 1, 200), "b": rng.normal(98.9, 1, 200)}, "flrr")
    v = analyse(rows, attributes=["gender"], explore=False)[0]
    assert v.verdict is VerdictKind.EQUIVALENT
    rows.loc[rows.gender == "a", "value"] -= 20
    v = analyse(rows, attributes=["gender"], explore=False)[0]
    assert v.verdict is VerdictKind.DISPARITY
    assert v.details["worse_group"] == "a"


def test_the_group_harmed_more_is_the_one_further_from_perfect() -> None:
    rng = np.random.default_rng(3)
    rows = rows_of(
        {"men": rng.normal(-1.16, 0.3, 46), "women": rng.normal(-0.65, 0.3, 47)}, "detail_change"
    )
    v = analyse(rows, attributes=["gender"], explore=False)[0]
    assert v.details["worse_group"] == "men"


def test_no_group_is_called_the_harmed_one_where_the_metrics_direction_is_unknown() -> None:
    v = one(normal(3.0), FIGURE)
    assert v.verdict is VerdictKind.DISPARITY
    assert "Harmed more" not in v.sentence and "The groups differ" in v.sentence


def test_no_interval_of_a_group_reaches_beyond_what_the_metric_can_be() -> None:
    rows = rows_of({"men": [100.0, 100.0, 60.0], "women": [100.0, 98.0, 99.0]}, "flrr")
    v = one(rows, ClaimSpec(metric="flrr", attribute="gender"))
    assert all(e.high is not None and e.high <= 100 for e in v.estimates)
