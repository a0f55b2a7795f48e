"""Groups and counts: every item in exactly one group, small groups without a ratio."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.measurements import Decision, Health, Outcome
from service.report.groups import grouping, heat_axes, order_key, ordered, ordinal
from service.report.model import InstrumentRow, RunData
from service.report.tables import exclusions, group_summaries, originals, outcomes, worst_first
from service.report.wording import MINUS, figure, percent, tool_line, visible


def test_outcomes_of_the_groups_add_up_to_the_tools_total(run_data: RunData) -> None:
    rows = outcomes(run_data, grouping(run_data), "skin_tone")
    for tool in {r.tool for r in rows}:
        total, *parts = [r for r in rows if r.tool == tool]
        assert total.group == "all"
        assert sum(r.items for r in parts) == total.items
        for outcome in Outcome:
            assert sum(r.counts.get(outcome, 0) for r in parts) == total.counts.get(outcome, 0)


def test_the_impact_ratio_is_the_pass_rate_over_the_highest(run_data: RunData) -> None:
    template = next(i for i in run_data.items if not i.control)
    good, bad = (
        Health("document", s, d, 85.0) for s, d in ((95.0, Decision.PASS), (40.0, Decision.FAIL))
    )
    items = [
        replace(
            template, item_id=f"{group}{n}", portrait_id=f"{group}{n}", subject_id=f"{group}{n}",
            attributes={"gender": group}, health={"document": good if n < passes else bad},
        )
        for group, people, passes in (("a", 10, 8), ("b", 10, 4), ("c", 3, 3))
        for n in range(people)
    ]  # fmt: skip
    data = replace(run_data, items=items, instrument=[], measurements=[])
    rows = {r.group: r for r in outcomes(data, grouping(data), "gender") if r.tool == template.tool}
    assert rows["a"].impact_ratio == pytest.approx(1.0)
    assert rows["b"].impact_ratio == pytest.approx(0.5)
    assert rows["c"].impact_ratio is None
    assert rows["c"].ratio_note == "fewer than 5 people"
    assert rows["all"].items == 23


def test_the_instrument_check_counts_faces_not_found_by_group(run_data: RunData) -> None:
    rows = originals(run_data, grouping(run_data), "gender")
    assert rows[0].originals == len(run_data.instrument)
    assert sum(r.found for r in rows[1:]) == rows[0].found < rows[0].originals
    assert rows[0].retest["flrr"] > 99


def test_a_rejected_original_is_an_exclusion_with_its_reason(run_data: RunData) -> None:
    broken = InstrumentRow(
        "x.jpg", "x", {"gender": "feminine-presenting"}, False, False, "truncated image"
    )
    data = replace(run_data, instrument=[*run_data.instrument, broken])
    rows = exclusions(data, grouping(data), "gender")
    row = next(r for r in rows if r.reason == "truncated image")
    assert row.kind == "original rejected"
    assert row.by_group == {"feminine-presenting": 1}


def test_every_lost_face_comes_before_every_other_item(run_data: RunData) -> None:
    items = [replace(run_data.items[0], outcome=Outcome.FACE_LOST), *run_data.items[1:]]
    assert worst_first(replace(run_data, items=items))[0].outcome is Outcome.FACE_LOST


def test_group_summaries_count_people_and_pictures_apart(run_data: RunData) -> None:
    rows = group_summaries(run_data, grouping(run_data))
    assert rows
    assert all(0 < int(str(r["people"])) <= int(str(r["n"])) for r in rows)
    assert all(r["min"] <= r["median"] <= r["max"] for r in rows)  # type: ignore[operator]


def test_groups_are_read_in_their_natural_order() -> None:
    assert ordered(["VI", "unknown", "I", "IV", "V"]) == ["I", "IV", "V", "VI", "unknown"]
    assert ordered(["56-75", "8-12", "20-35"]) == ["8-12", "20-35", "56-75"]
    assert ordered(["dark", "very light", "tan"]) == ["very light", "tan", "dark"]
    assert ordinal(["I", "II", "unknown"])
    assert not ordinal(["men", "women"])


@given(st.lists(st.text(max_size=8)))
def test_any_names_can_be_ordered(names: list[str]) -> None:
    assert sorted(ordered(names)) == sorted(set(names))
    assert [order_key(n) for n in ordered(names)] == sorted(order_key(n) for n in set(names))


def test_the_heat_map_is_skin_tone_by_age_where_both_are_declared() -> None:
    assert heat_axes(["gender", "age_group", "skin_tone"]) == ("skin_tone", "age_group")
    assert heat_axes(["gender", "glasses"]) == ("gender", "glasses")
    assert heat_axes(["gender"]) is None


def test_columns_about_the_file_are_no_groups(run_data: RunData) -> None:
    names = grouping(run_data).names
    assert names[:3] == ("gender", "skin_tone", "age_group")
    assert "measured_ita_group" in names
    assert not {"source", "licence", "age"} & set(names) - {"age"}


@given(st.text())
def test_no_hidden_character_survives(text: str) -> None:
    assert not set(visible(text)) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2069\u0000\u001b\n")


def test_figures_are_written_for_people() -> None:
    assert figure(-0.4567) == f"{MINUS}0.457"
    assert figure(0.5, sign=True) == "+0.5"
    assert figure(12345.6) == "12,346"
    assert figure(None) == "–"
    assert "e" not in figure(1.2e-6)
    assert percent(1, 0) == "–"


def test_a_tool_without_comparisons_is_not_called_harmless() -> None:
    assert "No comparison" in tool_line([], ["gender"])
