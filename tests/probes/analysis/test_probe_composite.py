"""The composite index: signs and weights, what cancels, what is missing, which way it goes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.analysis.composite import composites, sign_of
from probes.calls import PLAIN
from probes.results import Composite, Figure, Interval, ProbeResult

MEN = ("towards men", "towards women")


def found(
    probe: str,
    value: float | None,
    half: float | None = 0.05,
    means: tuple[str, str] = MEN,
    **more: Any,
) -> ProbeResult:
    interval = None
    if value is not None and half is not None:
        interval = Interval(value - half, value + half, "given")
    reason = "" if value is not None else "all declined"
    index = Figure("index", "Index", value, interval, 10, reason=reason)
    facts = {"language": "en", "condition": PLAIN, "arms": ("men", "women"), "tallies": ()} | more
    return ProbeResult(probe, probe, "?", index=index, index_means=means, **facts)


def one(*results: ProbeResult, **weights: float) -> Composite:
    (composite,) = composites(results, weights)
    return composite


def test_opposite_leanings_cancel_in_the_mean_and_not_in_the_root_mean_square() -> None:
    both = one(found("resume", 0.4), found("narrative", -0.4))
    assert both.mean.value == pytest.approx(0.0)
    assert both.rms.value == pytest.approx(0.4)
    assert both.direction == "both ways"


def test_leanings_of_one_kind_add_up_with_their_weights() -> None:
    together = one(found("a", 0.1), found("b", 0.4), a=2.0)
    assert together.mean.value == pytest.approx((2 * 0.1 + 0.4) / 3)
    assert together.rms.value == pytest.approx(math.sqrt((2 * 0.01 + 0.16) / 3))
    assert together.direction == "towards men"
    assert [(p.probe, p.weight) for p in together.parts] == [("a", 2.0), ("b", 1.0)]


def test_a_probe_whose_plus_is_womens_is_turned_round_with_its_interval() -> None:
    turned = found("b", 0.3, means=("in favour of women", "in favour of men"))
    together = one(found("a", -0.3), turned)
    part = together.parts[1]
    assert (part.sign, part.value) == (-1, -0.3)
    assert part.interval is not None
    assert (part.interval.low, part.interval.high) == pytest.approx((-0.35, -0.25))
    assert together.direction == "towards women"


@pytest.mark.parametrize(
    ("means", "sign"),
    [
        (MEN, 1),
        (("men's names do better", "women's names do better"), 1),
        (("women's names do better", "men's names do better"), -1),
        (("stereotyped", "against the stereotype"), 1),
    ],
)
def test_the_sign_is_what_a_probe_says_of_its_ends(means: tuple[str, str], sign: int) -> None:
    assert sign_of(means) == sign


def test_a_probe_without_an_index_leaves_no_composite_and_says_why() -> None:
    none = one(found("a", 0.3), found("b", None))
    assert none.mean.value is None and none.rms.value is None
    assert none.mean.reason == "b: all declined"
    assert none.direction == "not shown"


def test_an_unusable_probe_leaves_no_composite_and_says_why() -> None:
    unusable = found("qa", 0.0, usable=False, why_not="unusable for multiple choice")
    none = one(found("a", 0.3), unusable)
    assert none.mean.value is None
    assert "qa: unusable for multiple choice" in none.mean.reason


def test_a_planned_probe_without_a_result_leaves_no_composite() -> None:
    (none,) = composites([found("a", 0.3)], {}, {"en": ["a", "narrative"]})
    assert none.mean.reason == "narrative: no result in en, plain"
    (weighted,) = composites([found("a", 0.3)], {"narrative": 1.0})
    assert weighted.mean.value is None


def test_a_probe_missing_under_one_condition_leaves_only_that_without_composite() -> None:
    results = [found("a", 0.3), found("b", 0.2), found("a", 0.1, condition="guarded")]
    plain, guarded = composites(results, {})
    assert plain.mean.value == pytest.approx(0.25)
    assert guarded.condition == "guarded"
    assert guarded.mean.reason == "b: no result in en, guarded"


def test_languages_have_a_composite_each_of_the_probes_asked_in_them() -> None:
    results = [found("a", 0.3), found("b", 0.1), found("a", -0.2, language="zh")]
    english, chinese = composites(results, {}, {"en": ["a", "b"], "zh": ["a"]})
    assert english.mean.value == pytest.approx(0.2)
    assert chinese.mean.value == pytest.approx(-0.2)


def test_another_attribute_and_a_weight_of_nothing_stay_outside() -> None:
    origin = found("resume_origin", 0.9, axis="race_ethnicity")
    together = one(found("a", 0.1), found("b", 0.9), origin, b=0.0)
    assert together.mean.value == pytest.approx(0.1)
    assert composites([origin], {}) == ()
    (planned,) = composites([found("a", 0.1), origin], {}, {"en": ["a", "resume_origin"]})
    assert planned.mean.value == pytest.approx(0.1)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        composites([found("a", 0.1)], {"a": weight})


@pytest.mark.parametrize(
    ("values", "halves", "direction"),
    [
        ((0.3, 0.2), (0.1, 0.1), "towards men"),
        ((-0.3, -0.2), (0.1, 0.1), "towards women"),
        ((0.02, -0.02), (0.1, 0.1), "not shown"),
        ((0.3, -0.3), (0.1, 0.1), "both ways"),
        # one part alone is shown: the other side may be chance
        ((0.3, -0.25), (0.1, 0.6), "not shown"),
        # shown each by itself, but not when two are looked at
        ((0.105, -0.105), (0.1, 0.1), "not shown"),
    ],
)
def test_the_direction_follows_from_figures_and_intervals(
    values: tuple[float, float], halves: tuple[float, float], direction: str
) -> None:
    together = one(found("a", values[0], halves[0]), found("b", values[1], halves[1]))
    assert together.direction == direction


def test_without_an_interval_of_every_part_no_direction_is_claimed() -> None:
    together = one(found("a", 0.3), found("b", 0.3, half=None))
    assert together.mean.value == pytest.approx(0.3)
    assert together.mean.interval is None and together.rms.interval is None
    assert together.direction == "not shown"


def test_the_spread_over_repeats_is_that_of_the_mean_made_of_one_repeat_each() -> None:
    together = one(
        found("a", 0.2, by_repeat=(0.1, 0.3)),
        found("b", 0.4, by_repeat=(0.5, 0.3)),
        found("c", 0.6, by_repeat=(0.6,)),
    )
    assert together.mean.sd == pytest.approx(np.std([1.2 / 3, 1.2 / 3], ddof=1), abs=1e-12)
    apart = one(found("a", 0.2, by_repeat=(0.0, 0.4)), found("b", 0.4, by_repeat=(0.2, 0.6)))
    assert apart.mean.sd == pytest.approx(np.std([0.1, 0.5], ddof=1))
    assert one(found("a", 0.2, by_repeat=(0.2,))).mean.sd is None


def test_the_interval_of_the_mean_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    truth, errors, held, rounds = np.array([0.2, -0.1, 0.05]), np.array([0.1, 0.05, 0.2]), 0, 400
    for _ in range(rounds):
        seen = truth + rng.normal(0, errors)
        parts = [found(str(i), float(v), 1.959964 * e) for i, (v, e) in enumerate(zip(seen, errors, strict=True))]  # fmt: skip
        span = one(*parts).mean.interval
        assert span is not None
        held += not span.excludes(float(truth.mean()))
    assert held >= 0.92 * rounds


@given(
    st.lists(
        st.tuples(st.floats(-1, 1), st.floats(0.001, 0.5), st.floats(0.1, 5)),
        min_size=1,
        max_size=5,
    )
)
def test_the_mean_is_never_beyond_the_root_mean_square_and_turns_with_its_parts(
    drawn: list[tuple[float, float, float]],
) -> None:
    weights = {str(i): w for i, (_, _, w) in enumerate(drawn)}
    ahead = one(*(found(str(i), v, h) for i, (v, h, _) in enumerate(drawn)), **weights)
    back = one(*(found(str(i), -v, h) for i, (v, h, _) in enumerate(drawn)), **weights)
    assert ahead.mean.value is not None and ahead.rms.value is not None
    assert abs(ahead.mean.value) <= ahead.rms.value + 1e-9 <= 1 + 2e-9
    assert back.mean.value == pytest.approx(-ahead.mean.value)
    turned = {"towards men": "towards women", "towards women": "towards men"}
    assert back.direction == turned.get(ahead.direction, ahead.direction)
