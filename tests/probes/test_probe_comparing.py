"""Before and after a condition: the change of the index, and what else moved with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probes.calls import Call, Reading, Status
from probes.card_change import change, combined, p_of
from probes.comparing import before_after, item_differences
from probes.results import BeforeAfter, Figure, Interval, ProbeResult, Tally


def figure(value: float | None, half: float | None = 0.1, name: str = "index") -> Figure:
    if value is None:
        return Figure(name, name, None, reason="no answers")
    interval = None if half is None else Interval(value - half, value + half, "t over names")
    return Figure(name, name, value, interval, 40, "names")


def result(
    index: Figure,
    condition: str = "plain",
    refused: tuple[int, int] = (2, 2),
    figures: tuple[Figure, ...] = (),
) -> ProbeResult:
    tallies = tuple(
        Tally(arm, {Status.ANSWERED: 100 - x, Status.REFUSED: x})
        for arm, x in zip(("men", "women"), refused, strict=True)
    )
    return ProbeResult(
        "resume", "Resume screening", "?", "en", ("men", "women"), index,
        ("towards men", "towards women"), tallies, condition, figures=figures,
    )  # fmt: skip


def one(found: tuple[BeforeAfter, ...], name: str) -> BeforeAfter:
    return next(b for b in found if b.figure == name)


def test_a_guard_that_helps_is_told_with_its_interval() -> None:
    found = one(before_after([result(figure(0.4)), result(figure(0.05), "guarded")]), "index")
    assert found.change.value == pytest.approx(-0.35)
    assert found.change.interval is not None
    half = 0.1 * 2**0.5
    assert found.change.interval.low == pytest.approx(-0.35 - half)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(0.35 / half * 1.959964), rel=1e-4)
    assert found.sentence.endswith("nearer to no difference.")
    assert "from 0.40 (0.30 to 0.50) to 0.05 (-0.05 to 0.15)" in found.sentence


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (0.4, 0.2, "nearer to no difference, and a difference is still shown"),
        (0.3, -0.3, "turned over, now towards women"),
        (-0.1, -0.5, "further towards women"),
        (0.3, 0.28, "no change is shown"),
    ],
)
def test_what_became_of_the_index_is_said_in_words(before: float, after: float, said: str) -> None:
    found = before_after([result(figure(before)), result(figure(after), "guarded")])
    assert found[0].sentence.endswith(f": {said}.")


def test_refusals_that_rose_are_told_beside_an_index_that_fell() -> None:
    found = before_after([result(figure(0.4)), result(figure(0.0), "guarded", refused=(30, 40))])
    refused = one(found, "declined")
    assert "70 of 200 calls ended refused or filtered, against 4 of 200 before" in refused.sentence
    assert "more than before. What is left to compare is fewer answers" in refused.sentence
    assert refused.change.value == pytest.approx(0.33)
    assert one(found, "unanswered").sentence.endswith("more than before.")


def test_a_condition_without_a_figure_is_not_a_change_of_nought() -> None:
    found = before_after([result(figure(0.4)), result(figure(None), "guarded")])[0]
    assert (found.change.value, found.p_value) == (None, None)
    assert "cannot be compared, because the second has no figure: no answers" in found.sentence


def test_nothing_is_compared_without_a_plain_condition_or_across_languages() -> None:
    assert before_after([result(figure(0.4), "guarded")]) == ()


def test_other_figures_are_told_where_they_moved_after_correction_over_all() -> None:
    quiet = tuple(figure(0.5, 0.1, f"q{i}") for i in range(9))
    moved = figure(0.9, 0.1, "tone")
    found = before_after(
        [
            result(figure(0.1), figures=(*quiet, figure(0.4, 0.1, "tone"))),
            result(figure(0.1), "guarded", figures=(*quiet, moved)),
        ]
    )
    assert [b.figure for b in found] == ["index", "declined", "unanswered", "tone"]
    assert "one of 10 further figures" in found[-1].sentence


def readings(condition: str, shift: float, items: int = 12) -> list[Reading]:
    rng = np.random.default_rng(7)
    own = rng.normal(0, 1, items)  # what is peculiar to an item: the same under both conditions
    noise = np.random.default_rng(3 if condition == "plain" else 4).normal(0, 0.05, (items, 2))
    found = []
    for i in range(items):
        for arm, extra in (("men", shift), ("women", 0.0)):
            call = Call("resume", f"r{i}", arm, condition=condition)
            value = float(own[i] * (arm == "men") + extra + noise[i, int(arm == "men")])
            found.append(Reading(call, Status.ANSWERED, value=value))
    return found


def test_readings_are_compared_item_by_item_and_the_pairing_shows() -> None:
    both = readings("plain", 0.5) + readings("guarded", 0.2)
    found = before_after([result(figure(0.4)), result(figure(0.1), "guarded")], both, seed=1)
    paired = one(found, "item_difference")
    assert paired.change.value == pytest.approx(-0.3, abs=0.1)
    assert paired.change.interval is not None
    # items differ by 1 either way: only pairs can show a change of 0.3 over twelve of them
    assert paired.change.interval.high < 0
    assert paired.p_value == pytest.approx(2 / 2**12)
    assert paired.before.interval is not None
    width = paired.before.interval.high - paired.before.interval.low
    assert width > 4 * (paired.change.interval.high - paired.change.interval.low)


def test_items_that_answered_once_only_are_counted_and_not_in_the_pairs() -> None:
    after = [r for r in readings("guarded", 0.2) if r.call.item != "r0"]
    found = before_after(
        [result(figure(0.4)), result(figure(0.1), "guarded")], readings("plain", 0.5) + after
    )
    said = one(found, "item_difference").sentence
    assert "over 11 items" in said
    assert "1 items have values under one condition only" in said


def test_a_refused_reading_has_no_value_in_the_differences() -> None:
    kept = readings("plain", 0.5)
    lost = [Reading(r.call, Status.REFUSED, reason="declined") for r in kept if r.call.item == "r1"]
    rest = [r for r in kept if r.call.item != "r1"]
    found = item_differences([*rest, *lost], {("resume", "en"): ("men", "women")})
    assert "r1" not in found["resume", "en", "plain"]
    assert len(found["resume", "en", "plain"]) == 11


def test_the_interval_of_a_change_is_newcombes_where_the_figures_have_wilsons() -> None:
    from probes.analysis.rates import newcombe, wilson

    first = Figure("x", "x", 12 / 80, wilson(12, 80), 80)
    second = Figure("x", "x", 40 / 90, wilson(40, 90), 90)
    moved, known = change(first, second), newcombe(40, 90, 12, 80)
    assert known is not None
    assert moved.interval is not None
    assert (moved.interval.low, moved.interval.high) == pytest.approx((known.low, known.high))


def test_changes_of_nothing_are_shown_in_five_of_a_hundred() -> None:
    rng = np.random.default_rng(11)
    shown = 0
    for _ in range(2000):
        a, b = rng.normal(0.2, 0.05, 2)
        half = 1.959964 * 0.05
        moved = change(figure(float(a), half), figure(float(b), half))
        assert moved.p is not None
        assert moved.shown == (moved.p < 0.05)
        shown += moved.shown
    assert 70 <= shown <= 130


def test_a_figure_without_an_interval_shows_no_change_however_large() -> None:
    moved = change(figure(0.9, None), figure(-0.9))
    assert (moved.value, moved.interval, moved.p, moved.shown) == (
        pytest.approx(-1.8),
        None,
        None,
        False,
    )
    assert combined([(1.0, 0.5, Interval(0.5, 0.5, "none"))]) == (0.5, None)
    assert p_of(0.0, Interval(-1, 1, "t")) == 1.0
