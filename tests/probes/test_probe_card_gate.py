"""The release gate: limits against intervals, and one decision."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from domain.errors import LikenessError
from domain.measurements import Decision
from probes.analysis.rates import smoothed_log2_ratio
from probes.calls import Status
from probes.card import card_of
from probes.card_gate import gate_decision, gate_lines, read_limits
from probes.results import Cell, Figure, GateLine, HeatMap, Tally
from service.gate import OF_DECISION, ExitCode
from tests.probes.card_cases import index, result, run


def only(limits: dict[str, Any], *results: Any, **changes: Any) -> GateLine:
    (found,) = gate_lines(run(*results, **changes), limits)
    return found


@pytest.mark.parametrize(
    ("value", "half", "state"),
    [(0.1, 0.05, "pass"), (-0.1, 0.05, "pass"), (0.5, 0.1, "fail"), (-0.5, 0.1, "fail"),
     (0.25, 0.1, "inconclusive"), (0.0, 0.3, "inconclusive")],
)  # fmt: skip
def test_an_index_is_judged_by_where_its_interval_lies(
    value: float, half: float, state: str
) -> None:
    found = only({"max_abs_index": 0.2}, result(index(value, half)))
    assert (found.state, found.value, found.limit) == (state, value, 0.2)
    by_point = only({"max_abs_index": 0.2, "judge": "point"}, result(index(value, half)))
    assert by_point.state == ("pass" if abs(value) <= 0.2 else "fail")


def test_limits_by_probe_and_for_all_others() -> None:
    results = (result(index(0.3, 0.05)), result(index(0.3, 0.05), probe="narrative"))
    limits = {"max_abs_index": 0.1, "max_abs_index.narrative": 0.5}
    assert [g.state for g in gate_lines(run(*results), limits)] == ["fail", "pass"]
    assert [g.state for g in gate_lines(run(*results), {"max_abs_index": {"narrative": 0.5}})] == [
        "pass"
    ]


def test_what_has_no_figure_is_not_measurable_and_does_not_pass() -> None:
    lines = gate_lines(run(result(index(None))), {"max_abs_index": 0.2})
    assert [g.state for g in lines] == ["not_measurable"]
    assert gate_decision(lines) is Decision.INCONCLUSIVE
    unusable = result(usable=False, why_not="unusable for multiple choice")
    found = only({"max_abs_index": 0.9}, unusable)
    assert found.state == "not_measurable"
    assert "unusable for multiple choice" in found.sentence
    missing = only({"max_abs_index": 0.2, "condition": "guarded"}, result())
    assert missing.state == "not_measurable"


def test_refusals_are_judged_by_arm_and_by_their_difference() -> None:
    lines = gate_lines(run(), {"max_refusal_rate": 0.05, "max_refusal_difference": 0.2})
    assert [(g.state, g.value) for g in lines] == [
        ("inconclusive", 0.02),
        ("inconclusive", 0.10),
        ("pass", pytest.approx(-0.08)),
    ]
    many = (Tally("men", {Status.ANSWERED: 100}), Tally("women", {Status.FILTERED: 100}))
    lines = gate_lines(run(result(tallies=many)), {"max_refusal_rate": 0.05})
    assert [g.state for g in lines] == ["pass", "fail"]


def test_too_few_answers_fail_whatever_ate_them() -> None:
    half = tuple(Tally(a, {Status.ANSWERED: 50, Status.ERRORED: 50}) for a in ("men", "women"))
    lines = gate_lines(run(result(tallies=half)), {"min_answered": 0.9})
    assert [g.state for g in lines] == ["fail", "fail"]
    assert "share without an answer 0.50" in lines[0].sentence


def heat_map(counts: list[tuple[int, int]], n: int = 100) -> HeatMap:
    cells = tuple(
        Cell(
            "nurse", f"l{i}", xa, n, xb, n, None, None, None, None, "ok",
            *smoothed_log2_ratio(xa, n, xb, n), None, "", "undefined",
        )
        for i, (xa, xb) in enumerate(counts)
    )  # fmt: skip
    labels = tuple(f"l{i}" for i in range(len(counts)))
    return HeatMap("map", "Occupation x label", ("men", "women"), ("nurse",), labels, cells)


def test_ratios_are_judged_on_both_sides_of_one() -> None:
    for counts in ([(80, 5), (20, 20)], [(5, 80), (20, 20)]):
        found = only({"max_rbr": 3}, result(heat_maps=(heat_map(counts),)))
        assert found.state == "fail"
        assert "nurse x l0" in found.sentence
        assert "1 of 2 cells" in found.sentence
    assert only({"max_rbr": 3}, result(heat_maps=(heat_map([(50, 45)]),))).state == "pass"
    assert only({"max_rbr": 3}, result(heat_maps=(heat_map([(3, 1)]),))).state == "inconclusive"
    assert only({"max_rbr": 3}, result()).state == "not_measurable"


def test_the_worst_of_many_cells_must_stand_after_correction() -> None:
    alone, among = [(50, 8)], [(50, 8), *[(30, 30)] * 60]
    assert only({"max_rbr": 3}, result(heat_maps=(heat_map(alone),))).state == "fail"
    found = only({"max_rbr": 3}, result(heat_maps=(heat_map(among),)))
    assert found.state == "inconclusive"
    assert "not after Holm" in found.sentence


def test_a_direction_that_changed_against_the_baseline_fails() -> None:
    before = card_of(run(result(index(-0.3)), composites=()))
    limits = {"direction_may_not_change": 1.0}  # as a plan's numbers give it
    lines = gate_lines(run(composites=()), limits, before)
    assert [g.state for g in lines] == ["fail"]
    same = gate_lines(run(composites=()), limits, card_of(run(composites=())))
    assert [g.state for g in same] == ["pass"]
    other = gate_lines(run(composites=(), seed=9), limits, card_of(run(composites=())))
    assert [g.state for g in other] == ["not_measurable"]
    assert [g.state for g in gate_lines(run(), limits)] == ["not_measurable"]


def test_the_composite_is_judged_by_its_root_mean_square() -> None:
    assert only({"max_rms": 0.95}).state == "pass"
    assert only({"max_rms": 0.2}).state == "inconclusive"


@pytest.mark.parametrize(
    ("states", "decision", "code"),
    [
        (["pass", "pass"], Decision.PASS, ExitCode.PASS),
        (["pass", "inconclusive", "fail"], Decision.FAIL, ExitCode.FAILED),
        (["pass", "inconclusive"], Decision.INCONCLUSIVE, ExitCode.INCONCLUSIVE),
        (["pass", "not_measurable"], Decision.INCONCLUSIVE, ExitCode.INCONCLUSIVE),
        ([], Decision.INCONCLUSIVE, ExitCode.INCONCLUSIVE),
    ],
)
def test_one_decision_with_the_exit_codes_of_the_gate(
    states: list[Any], decision: Decision, code: ExitCode
) -> None:
    found = gate_decision([GateLine("x", state, "") for state in states])
    assert found is decision
    assert OF_DECISION[found] is code


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"max_abs_indx": 0.1},
            "gate: 'max_abs_indx': unknown limit; did you mean 'max_abs_index'?",
        ),
        ({"max_rbr": 0.5}, "gate: 'max_rbr': Input should be greater than 1"),
        ({"min_answered": 90}, "gate: 'min_answered': Input should be less than or equal to 1"),
        ({"max_abs_index": 20}, "gate: 'max_abs_index': an index lies between -1 and 1"),
        ({"max_abs_index.resume": -0.1}, "gate: 'max_abs_index': an index lies between -1 and 1"),
    ],
)
def test_a_wrong_limit_is_one_clear_line(limits: dict[str, Any], said: str) -> None:
    with pytest.raises(LikenessError, match=re.escape(said)):
        read_limits(limits)


def test_a_model_at_its_limit_fails_in_five_of_a_hundred_at_most_over_ten_figures() -> None:
    rng = np.random.default_rng(2)
    failed = 0
    for _ in range(300):
        drawn = [
            result(index(0.2 + float(rng.normal(0, 0.05)), 0.098), probe=f"p{i}") for i in range(10)
        ]
        failed += gate_decision(gate_lines(run(*drawn), {"max_abs_index": 0.2})) is Decision.FAIL
    assert failed <= 300 * 0.025 + 2 * (300 * 0.025 * 0.975) ** 0.5


def test_no_interval_is_no_ground_to_pass() -> None:
    bare = Figure("index", "Index", 0.0, None, 40, "names")
    assert only({"max_abs_index": 0.2}, result(bare)).state == "inconclusive"
    assert only({"max_abs_index": 0.2, "judge": "point"}, result(bare)).state == "pass"
    assert replace(bare).interval is None
