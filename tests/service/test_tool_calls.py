"""What a tool's calls came to, counted from the ledger against answers known beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from service.report.model import ToolCalls
from service.tool_calls import UNCHANGED, is_unchanged, skew_lines, tool_calls


def item(name: str, outcome: str = "measured", **changes: Any) -> dict[str, Any]:
    row = {"item_id": name, "tool": "t", "outcome": outcome, "model": "m", "warnings": []}
    return row | {"original": "aa", "edited": "bb" if outcome == "measured" else None} | changes


def call(item_id: str, result: str = "edited", **changes: Any) -> dict[str, Any]:
    row = {"item_id": item_id, "kind": "item", "ended": "then", "result": result, "meta": {}}
    return row | {"seconds": None, "request_id": None} | changes


def test_calls_items_and_retries_add_up() -> None:
    items = [item("a"), item("b", "refused"), item("c", "failed"), item("d", "failed")]
    calls = [
        call("a", kind="warm_up"), call("a", kind="warm_up", result="failed"),
        call("a", "failed"), call("a"), call("b", "refused"),
        call("c", "failed"), call("c", "failed"), call("c", "failed"),
    ]  # fmt: skip
    [facts] = tool_calls(["t"], items, calls)
    assert (facts.calls, facts.items_called, facts.retries, facts.warm_ups) == (6, 3, 3, 2)
    assert (facts.failed, facts.refused) == (2, 1), "an item never sent failed all the same"
    assert facts.items_called + facts.retries == facts.calls


def test_what_was_cut_off_or_not_received_may_have_been_billed() -> None:
    calls = [
        call("a", ended=None), call("a", "failed", meta={"maybe_billed": True}),
        call("a", "failed", meta={"maybe_billed": False}), call("a", kind="warm_up", ended=None),
        call("a", meta=None),
    ]  # fmt: skip
    assert tool_calls(["t"], [item("a")], calls)[0].maybe_billed == 3


def test_time_counts_only_where_a_picture_came() -> None:
    calls = [
        call("a", seconds=2.0), call("a", seconds=4.0), call("a", seconds=9.0),
        call("a", "failed", seconds=60.0), call("a", kind="warm_up", seconds=90.0),
    ]  # fmt: skip
    assert tool_calls(["t"], [item("a")], calls)[0].seconds_median == 4.0
    assert tool_calls(["t"], [item("a")], [])[0].seconds_median is None


def test_costs_that_the_tool_names_add_up_by_currency_and_nothing_else_does() -> None:
    named = [
        {"amount": 0.25, "currency": "USD"}, {"amount": 0.5, "currency": "USD"},
        {"amount": 3, "currency": "credits"}, {"amount": "much"}, {"amount": float("nan")}, 7, None,
    ]  # fmt: skip
    calls = [call("a", meta={"cost": cost}) for cost in named]
    assert tool_calls(["t"], [item("a")], calls)[0].cost == {"USD": 0.75, "credits": 3.0}


def test_models_are_those_that_made_pictures() -> None:
    items = [item("a", model="m1"), item("b", model="m2"), item("c", model="m1")]
    items += [item("d", "failed", model="m"), item("e", "refused", model="m1")]
    assert tool_calls(["t"], items, [])[0].models == {"m1": 2, "m2": 1}


def test_unchanged_answers_are_counted_by_the_warning_on_their_items() -> None:
    items = [item("a", warnings=["dark", UNCHANGED]), item("b", warnings=["dark"]), item("c")]
    assert tool_calls(["t"], items, [])[0].unchanged == 1


@pytest.mark.parametrize(
    ("row", "same"),
    [
        ({"original": "aa", "edited": "aa", "evidence": {}}, True),
        ({"original": "aa", "edited": "bb", "evidence": {"unchanged": True}}, True),
        ({"original": "aa", "edited": "bb", "evidence": {}}, False),
        ({"original": None, "edited": None, "evidence": {}}, False),
    ],
    ids=["same bytes", "same pixels", "edited", "no answer"],
)
def test_an_answer_is_unchanged_by_its_bytes_or_its_pixels(row: dict[str, Any], same: bool) -> None:
    assert is_unchanged(row) is same


def test_every_tool_has_its_own_in_the_order_asked_for() -> None:
    items = [item("a"), item("b", tool="u")]
    found = tool_calls(["u", "t", "idle"], items, [call("a"), call("b"), call("b", "failed")])
    assert [(f.tool, f.calls) for f in found] == [("u", 2), ("t", 1), ("idle", 0)]


def test_a_few_request_ids_are_kept_once_each() -> None:
    calls = [call("a", request_id=name) for name in ("r1", None, "r1", "r2", "r3", "r4")]
    assert tool_calls(["t"], [item("a")], calls)[0].first_request_ids == ("r1", "r2", "r3")
    doubtful = call("a", "failed", request_id="r9", meta={"maybe_billed": True})
    found = tool_calls(["t"], [item("a")], [*calls, doubtful])[0]
    assert found.first_request_ids == ("r9", "r1", "r2"), "the ones to ask the maker about"


@pytest.mark.parametrize(
    ("skews", "said"),
    [
        ([-600.0, -601.0, 2.0], "t: its server's clock is 600 s behind this machine's"),
        ([45.0], "t: its server's clock is 45 s ahead of this machine's"),
        ([0.4, -0.5, 3600.0], None),
        ([None, "soon"], None),
        ([], None),
    ],
)
def test_a_clock_far_from_ours_is_said_and_one_odd_answer_is_not(
    skews: list[Any], said: str | None
) -> None:
    calls = [call("a", meta={"clock_skew_s": skew}) for skew in skews]
    lines = skew_lines(tool_calls(["t"], [item("a")], calls))
    assert len(lines) == (1 if said else 0)
    assert said is None or lines[0].startswith(said)


def test_a_tool_that_told_no_time_has_no_skew() -> None:
    assert tool_calls(["t"], [], []) == [ToolCalls("t")]


def test_remarks_that_differ_in_their_numbers_alone_count_as_one() -> None:
    notes = ["kept 6% (25% needed)", "kept 12.5% (25% needed)", "asked for 64x64, got 32x32", None]
    items = [
        item(str(i)) | {"meta": {"note": note} if note else {}} for i, note in enumerate(notes)
    ]
    [found] = tool_calls(["t"], items, [])
    assert found.notes == {"kept 6% (25% needed)": 2, "asked for 64x64, got 32x32": 1}
