"""Differences told in people and in money, and nothing told where nothing is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from domain.errors import LikenessError
from domain.verdicts import VerdictKind
from probes.calls import Status
from probes.costs import cost_lines, read_costs
from probes.results import CostLine, Figure, Interval, ProbeResult, Tally, TestResult


def figure(name: str, value: float, low: float, high: float) -> Figure:
    return Figure(name, name, value, Interval(low, high, "newcombe"), 40, "names")


SHOWN = figure("advance", 0.07, 0.02, 0.12)
TURNED = figure("turned", -0.10, -0.15, -0.05)
NOT_SHOWN = figure("near", 0.03, -0.02, 0.08)
RATIO = figure("ratio", 1.85, 1.2, 2.8)


def result(**changes: Any) -> ProbeResult:
    test = TestResult(
        "round", "?", ("names like men", "names like women"), figure("round", 0.2, 0.1, 0.3),
        VerdictKind.DISPARITY, 0.01, 0.01, "sign-flip", "Holm",
    )  # fmt: skip
    kept: dict[str, Any] = {
        "figures": (
            SHOWN,
            TURNED,
            NOT_SHOWN,
            RATIO,
            Figure("none", "none", None, reason="no calls"),
        ),
        "tests": (test,),
        "index": figure("index", 0.4, 0.3, 0.5),
        **changes,
    }
    return ProbeResult(
        "resume", "Resume screening", "?", "en", ("men", "women"), kept.pop("index"),
        ("towards men", "towards women"), (Tally("men", {Status.ANSWERED: 9}),), **kept,
    )  # fmt: skip


def one(rule: dict[str, Any], *results: ProbeResult) -> CostLine:
    (found,) = cost_lines(results or (result(),), [{"probe": "resume", **rule}])
    return found


def test_people_are_told_with_their_interval_and_their_group() -> None:
    found = one({"figure": "advance", "applicants": 200})
    assert found.sentence.startswith(
        "Of 200 applicants named like women, 14 (4 to 24) fewer would be asked to the next round"
    )
    assert found.amount.interval is not None
    assert (found.amount.value, found.amount.interval.low) == (pytest.approx(14), pytest.approx(4))


def test_a_difference_the_other_way_names_the_other_group() -> None:
    found = one({"figure": "turned", "applicants": 100, "event": "invited"})
    assert "Of 100 applicants named like men, 10 (5 to 15) fewer would be invited" in found.sentence


def test_a_test_may_give_the_difference_with_its_groups() -> None:
    found = one({"figure": "round", "applicants": 10})
    assert "named like names like women, 2 (1 to 3)" in found.sentence
    own = one({"figure": "round", "applicants": 10, "groups": ["men", "women"]})
    assert "named like women, 2" in own.sentence


def test_a_cost_is_posts_times_difference_times_cost() -> None:
    posts = [
        {"name": "engineer", "open": 10, "cost": 8000},
        {"name": "nurse", "open": 5, "cost": 4000},
    ]
    found = one({"figure": "advance", "posts": posts, "currency": "CHF"})
    assert found.amount.value == pytest.approx(0.07 * 100_000)
    assert found.amount.interval is not None
    # posts that share one difference move together: the interval scales with the sum
    assert found.amount.interval.low == pytest.approx(0.02 * 100_000)
    assert found.amount.unit == "CHF"
    assert "10 open for engineer x 0.070 x 8,000" in found.sentence


def test_posts_with_differences_of_their_own_add_up_as_independent_ones() -> None:
    posts = [{"open": 10, "cost": 1000}, {"open": 10, "cost": 1000, "figure": "turned"}]
    found = one({"figure": "advance", "posts": posts})
    assert found.amount.value == pytest.approx(10_000 * (0.07 + 0.10))
    assert found.amount.interval is not None
    half = 10_000 * (0.05**2 + 0.05**2) ** 0.5
    assert found.amount.interval.low == pytest.approx(1700 - half)
    assert "not to the same group's cost in every post" in found.sentence


@pytest.mark.parametrize(
    ("figure_name", "said"),
    [
        ("near", "no difference between men and women is shown (0.030, -0.020 to 0.080)"),
        ("none", "no calls"),
        ("advnce", "probe 'resume' has no figure 'advnce'; did you mean 'advance'?"),
        ("ratio", "ratio is no difference of rates"),
    ],
)
def test_where_no_difference_is_shown_there_is_no_cost(figure_name: str, said: str) -> None:
    for rule in ({"applicants": 200}, {"posts": [{"open": 1, "cost": 1}]}):
        found = one({"figure": figure_name, **rule})
        assert (found.amount.value, found.amount.reason) == (None, said)
        assert found.sentence == f"No cost is given: {said}."


def test_a_model_that_cannot_be_probed_costs_nothing_known() -> None:
    found = one({"applicants": 9}, result(usable=False, why_not="unusable for multiple choice"))
    assert found.amount.reason == "unusable for multiple choice"


def test_the_published_formula_is_offered_with_what_it_counts_without_a_difference() -> None:
    rule = {
        "probe": "resume", "figure": "advance", "posts": [{"open": 10, "cost": 1000}],
        "by_ratio": True, "ratio_figure": "ratio",
    }  # fmt: skip
    difference, by_ratio = cost_lines([result()], [rule])
    assert difference.amount.value == pytest.approx(700)
    assert by_ratio.amount.value == pytest.approx(18_500)
    assert "of which 10,000 EUR would stand there with a ratio of 1" in by_ratio.sentence


def test_a_rule_meets_every_language_of_its_condition_and_no_other() -> None:
    results = [
        result(),
        ProbeResult(
            "resume", "Resume screening", "?", "de", ("men", "women"), SHOWN,
            ("towards men", "towards women"), (),
        ),
        result(condition="guarded"),
    ]  # fmt: skip
    assert len(cost_lines(results, [{"probe": "resume", "applicants": 10}])) == 2
    assert len(cost_lines(results, [{"probe": "resume", "language": "de", "applicants": 10}])) == 1
    (none,) = cost_lines(results, [{"probe": "story", "applicants": 10}])
    assert none.amount.reason == "there is no result of probe 'story' to take a difference from"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"probe": "resume"}, "costs, rule 1: give applicants, posts, or both"),
        (
            {"probe": "resume", "aplicants": 3},
            "'aplicants': unknown key; did you mean 'applicants'?",
        ),
        ({"probe": "resume", "posts": [{"open": 0, "cost": 1}]}, "'posts.0.open': Input should be"),
        (
            {"probe": "resume", "applicants": 3, "by_ratio": True},
            "by_ratio needs a ratio_figure",
        ),
    ],
)
def test_a_wrong_rule_is_one_clear_line(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(LikenessError, match=re.escape(said)):
        read_costs([rule])
