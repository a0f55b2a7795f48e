"""Two cards: what changed, what turned over, and what must not be passed off as equal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from domain.measurements import Decision
from domain.verdicts import VerdictKind
from probes.calls import Status
from probes.card import card_of
from probes.card_compare import CardLine, Comparison, compare_cards
from probes.results import Figure, ProbeResult, Tally
from service.report.probe_model import ProbeRun
from tests.probes.card_cases import PLAN, composite, index, result, run


def compared(before: ProbeRun, after: ProbeRun) -> Comparison:
    return compare_cards(card_of(before), card_of(after))


def line(found: Comparison, figure: str = "index") -> CardLine:
    return next(one for one in found.lines if one.figure == figure)


def quiet(*results: ProbeResult, **changes: Any) -> ProbeRun:
    """A run without a composite, so that only the probe's own figures are compared."""
    return run(*results, composites=(), **changes)


def test_the_same_card_twice_passes_and_still_says_equal_of_nothing() -> None:
    found = compared(run(), run())
    assert found.decision is Decision.PASS
    assert {one.state for one in found.lines} == {"no_change_shown"}
    assert "has no change beyond its interval: 0.30 (0.20 to 0.40) then" in line(found).sentence
    assert not any("equal" in one.sentence for one in found.lines)


@pytest.mark.parametrize(
    ("before", "after", "state", "said"),
    [
        ((0.3, 0.1), (-0.3, 0.1), "alarm", "turned over, from towards men to towards women"),
        ((0.3, 0.1), (0.7, 0.1), "alarm", "grew towards men"),
        ((0.0, 0.1), (0.5, 0.1), "alarm", "now shows a direction: towards men"),
        ((0.5, 0.1), (0.0, 0.1), "alarm", "no longer shows a direction (it was towards men)"),
        ((0.3, 0.28), (0.25, 0.28), "open", "no longer shows a direction"),
        ((0.25, 0.28), (0.3, 0.28), "open", "now shows a direction: towards men, and no change"),
        ((-0.7, 0.1), (-0.3, 0.1), "changed", "is nearer to no difference"),
        ((0.3, 0.1), (0.32, 0.1), "no_change_shown", "has no change beyond its interval"),
    ],
)
def test_an_index_is_judged_by_its_direction_and_its_change(
    before: tuple[float, float], after: tuple[float, float], state: str, said: str
) -> None:
    found = compared(quiet(result(index(*before))), quiet(result(index(*after))))
    assert line(found).state == state
    assert said in line(found).sentence
    decided = {"alarm": Decision.FAIL, "open": Decision.INCONCLUSIVE}
    assert found.decision is decided.get(state, Decision.PASS)


def test_a_turn_that_lies_inside_the_intervals_is_no_turn() -> None:
    found = compared(quiet(result(index(0.05))), quiet(result(index(-0.05))))
    assert line(found).state == "no_change_shown"


def test_another_model_is_told_first_and_compared() -> None:
    stats = replace(run().stats, models={"model-2": 199, "model-1-2026": 1})
    found = compared(run(), run(model="model-2", stats=stats))
    assert found.notices[0] == "Another model was asked: model-1 then, model-2 now."
    assert "Replies name another model: model-1-2026 then" in found.notices[1]
    assert any("its figures mix them" in notice for notice in found.notices)
    assert line(found).state == "no_change_shown"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"seed": 8}, "the seed changed (7 then, 8 now)"),
        ({"plan": {**PLAN, "repeats": 50}}, "the number of repeats changed (5 then, 50 now)"),
        (
            {"plan": {**PLAN, "sampling": {"temperature": 0.2}}},
            "sampling 'temperature' changed (0.7 then, 0.2 now)",
        ),
        (
            {"plan": {**PLAN, "probes": [{"id": "resume", "settings": {"names": 5}}]}},
            "setting 'names' changed (20 then, 5 now)",
        ),
        (
            {"stats": replace(run().stats, dropped={"temperature": 200, "seed": 200})},
            "the parameters that the server did not take changed (seed then, seed, temperature now)",
        ),
        (
            {"results": (result(versions={"resumes": "2 (def)"}),)},
            "version 'resumes' changed (1 (abc) then, 2 (def) now)",
        ),
        (
            {"results": (result(usable=False, why_not="unusable for multiple choice"),)},
            "now the model cannot be probed like this (unusable for multiple choice)",
        ),
    ],
)
def test_what_was_asked_otherwise_is_not_comparable_and_says_why(
    changes: dict[str, Any], reason: str
) -> None:
    found = compared(run(), run(**changes))
    assert line(found).state == "not_comparable"
    assert f"cannot be compared: {reason}" in line(found).sentence
    assert line(found, "mean").state == "not_comparable"
    assert found.decision is Decision.INCONCLUSIVE


def test_a_probe_whose_settings_stayed_is_comparable_beside_one_that_changed() -> None:
    other = result(probe="narrative", title="Narrative")
    plan = {**PLAN, "probes": [*PLAN["probes"], {"id": "narrative", "settings": {"stories": 3}}]}
    later = {**PLAN, "probes": [*PLAN["probes"], {"id": "narrative", "settings": {"stories": 9}}]}
    found = compared(quiet(result(), other, plan=plan), quiet(result(), other, plan=later))
    states = {one.probe: one.state for one in found.lines if one.figure == "index"}
    assert states == {"resume": "no_change_shown", "narrative": "not_comparable"}


def test_other_words_of_a_guard_are_another_question() -> None:
    guarded = result(condition="guarded")
    plan = {**PLAN, "conditions": ["plain", {"id": "guarded", "guard": "lending"}]}
    found = compared(quiet(guarded), quiet(guarded, plan=plan))
    assert "the words or parameters of the condition changed" in line(found).sentence


def test_a_probe_on_one_side_only_is_told() -> None:
    other = result(probe="narrative")
    gone = compared(quiet(result(), other), quiet(result()))
    assert [o.state for o in gone.lines if o.probe == "narrative"] == ["missing"]
    assert gone.decision is Decision.INCONCLUSIVE
    new = compared(quiet(result()), quiet(result(), other))
    assert [o.state for o in new.lines if o.probe == "narrative"] == ["added"]
    assert new.decision is Decision.PASS


def test_a_missing_figure_is_not_a_figure_of_nought() -> None:
    found = compared(quiet(result()), quiet(result(index(None))))
    assert line(found).state == "not_comparable"
    assert "the second has no figure: no pair was answered" in line(found).sentence


def test_a_figure_without_an_interval_stays_open() -> None:
    bare = Figure("index", "Index", 0.3, None, 40, "names")
    found = compared(quiet(result()), quiet(result(bare)))
    assert (line(found).state, found.decision) == ("open", Decision.INCONCLUSIVE)


def test_more_refusals_are_an_alarm_and_fewer_a_change() -> None:
    many = tuple(Tally(arm, {Status.ANSWERED: 60, Status.REFUSED: 40}) for arm in ("men", "women"))
    found = compared(quiet(result()), quiet(result(tallies=many)))
    assert line(found, "declined").state == "alarm"
    assert "Declined rose: 0.06" in line(found, "declined").sentence
    back = compared(quiet(result(tallies=many)), quiet(result()))
    assert line(back, "declined").state == "changed"
    assert back.decision is Decision.INCONCLUSIVE  # the arms' difference came and went at its edge


def test_a_verdict_that_changed_is_told() -> None:
    test = replace(result().tests[0], verdict=VerdictKind.INCONCLUSIVE)
    found = compared(quiet(result()), quiet(result(tests=(test,))))
    assert (
        "resume, en: the test 'advance' said disparity then and says inconclusive now."
        in found.notices
    )


def test_opposite_leanings_show_in_the_root_mean_square() -> None:
    found = compared(run(), run(composites=(composite(-0.3),)))
    assert line(found, "mean").state == "alarm"
    assert line(found, "rms").state == "no_change_shown"


def test_nothing_to_compare_is_not_a_pass() -> None:
    assert compared(quiet(result()), quiet(result())).decision is Decision.PASS
    empty = run(composites=(), results=())
    assert compared(empty, empty).decision is Decision.INCONCLUSIVE


def test_two_runs_of_one_model_raise_an_alarm_in_at_most_five_of_a_hundred() -> None:
    rng = np.random.default_rng(5)
    names = [f"p{i}" for i in range(6)]
    truth = dict(zip(names, (0.0, 0.0, 0.1, 0.3, -0.2, 0.05), strict=True))
    plan = {**PLAN, "probes": [{"id": name} for name in names]}

    def once() -> ProbeRun:
        drawn = [
            result(index(truth[n] + float(rng.normal(0, 0.05)), 0.098), probe=n) for n in names
        ]
        return quiet(*drawn, plan=plan)

    alarms = sum(bool(compared(once(), once()).alarms) for _ in range(100))
    assert alarms <= 0.05 * 100 + 2 * (100 * 0.05 * 0.95) ** 0.5
