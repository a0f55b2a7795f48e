"""Weights on labels: the published formula, its example recomputed, and what weighing does to BBS."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import LikenessError
from probes.results import Cell, HeatMap
from probes.reweighting import REST, of_heat_map, reweight, weight

ARMS = ("men", "women")
MEN = {"technical": 720, "communication": 243, "other": 37}
WOMEN = {"technical": 310, "communication": 450, "other": 240}


@pytest.mark.parametrize(
    ("rbr", "by_formula", "published"), [(1.85, 0.4032, 0.35), (2.32, 0.3501, 0.30)]
)
def test_the_published_weights_do_not_follow_from_the_published_formula(
    rbr: float, by_formula: float, published: float
) -> None:
    assert weight(rbr, 0.8) == pytest.approx(by_formula, abs=5e-5)
    assert abs(weight(rbr, 0.8) - published) > 0.04


def test_a_worked_example_brings_the_arms_together() -> None:
    found = reweight(MEN, WOMEN, ARMS)
    technical = found.labels[0]
    assert technical.rbr == pytest.approx(0.72 / 0.31)
    # men have "technical" too often: theirs is weighed by the ratio, that of women by a ratio of 1
    assert (technical.weight_a, technical.weight_b) == pytest.approx((0.3499, 0.5556), abs=1e-4)
    # independently, by hand: men 0.72 x 0.34990, 0.243 x 0.55556, 0.037 x 0.55556
    total = 0.72 * 0.349887 + 0.28 * 0.555556
    assert technical.after_a == pytest.approx(0.72 * 0.349887 / total, abs=1e-5)
    assert (found.distance_before, found.distance_after) == pytest.approx((0.41, 0.1793), abs=1e-4)
    assert found.sentence.startswith(
        "With lambda 0.8 the labels of men and women would differ in 18"
    )


def test_as_published_a_label_that_is_too_seldom_is_hardly_touched() -> None:
    found = reweight(MEN, WOMEN, ARMS, mode="first_arm")
    seldom = found.labels[1]
    assert seldom.rbr < 1
    assert (seldom.weight_a, seldom.weight_b) == pytest.approx((0.6983, 0.5556), abs=1e-4)


def test_weighing_both_arms_alike_makes_labels_rare_and_leaves_the_ratio() -> None:
    found = reweight(MEN, WOMEN, ARMS, mode="two_sided")
    for row in found.labels:
        assert row.weight_a == row.weight_b
        if row.rbr > 0:
            assert row.weight_a == pytest.approx(weight(max(row.rbr, 1 / row.rbr)))


def test_a_label_that_one_arm_never_gets_is_pressed_down_and_not_removed() -> None:
    found = reweight({"a": 50, "b": 0}, {"a": 25, "b": 25}, ARMS)
    assert 0 < found.labels[1].after_b < 0.5
    assert found.labels[1].smoothed


def test_a_label_that_weighing_turns_over_is_told() -> None:
    found = reweight({"a": 1, "b": 25, "c": 51}, {"a": 55, "b": 53, "c": 57}, ARMS)
    assert [r.turned for r in found.labels] == [False, True, False]
    assert found.sentence.endswith("turned over to the other arm: b.")


@given(st.floats(1, 1000), st.floats(0.1, 5))
def test_no_ratio_is_left_above_one_over_lambda_plus_one(rbr: float, lam: float) -> None:
    left = rbr * weight(rbr, lam) / weight(1, lam)
    assert 1 - 1e-9 <= left <= (1 + lam) / lam


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=2, max_size=6),
    st.floats(0, 5),
)
def test_shares_stay_shares_and_alike_arms_stay_alike(
    counts: list[tuple[int, int]], lam: float
) -> None:
    a = {str(i): x + 1 for i, (x, _) in enumerate(counts)}
    b = {str(i): y + 1 for i, (_, y) in enumerate(counts)}
    found = reweight(a, b, ARMS, lam)
    assert sum(r.after_a for r in found.labels) == pytest.approx(1)
    assert sum(r.after_b for r in found.labels) == pytest.approx(1)
    same = reweight(a, a, ARMS, lam)
    assert same.distance_after == pytest.approx(0)
    assert [r.after_a for r in same.labels] == pytest.approx([r.before_a for r in same.labels])


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0.01, 5))
def test_a_larger_ratio_never_weighs_more(one: float, other: float, lam: float) -> None:
    low, high = sorted((one, other))
    assert weight(low, lam) >= weight(high, lam)


def test_a_heat_map_row_counts_answers_without_any_of_its_labels() -> None:
    def cell(row: str, label: str, xa: int, xb: int) -> Cell:
        return Cell(
            row, label, xa, 50, xb, 50, None, None, None, None, "ok", None, None, None, "",
            "undefined",
        )  # fmt: skip

    cells = (cell("nurse", "care", 20, 10), cell("nurse", "skill", 20, 35), cell("cook", "x", 1, 1))
    heat = HeatMap("h", "h", ARMS, ("nurse", "cook"), ("care", "skill", "x"), cells)
    found = of_heat_map(heat, "nurse")
    assert [(r.label, r.before_a, r.before_b) for r in found.labels] == [
        ("care", 0.4, 0.2),
        ("skill", 0.4, 0.7),
        (REST, 0.2, 0.1),
    ]
    table = found.table("reweighted")
    assert len(table.rows) == 3
    assert len(table.head) == len(table.rows[0])
    with pytest.raises(LikenessError, match="has no row 'pilot'"):
        of_heat_map(heat, "pilot")


def test_an_empty_arm_and_wrong_settings_are_said() -> None:
    with pytest.raises(LikenessError, match="no label was given to women"):
        reweight({"a": 1}, {}, ARMS)
    with pytest.raises(LikenessError, match="lambda is not negative"):
        reweight({"a": 1}, {"a": 1}, ARMS, lam=-1)
    with pytest.raises(LikenessError, match="unknown way of weighing 'hard'"):
        reweight({"a": 1}, {"a": 1}, ARMS, mode="hard")  # type: ignore[arg-type]
