"""The section "Calls and cost": every count of a tool's calls, and a notice where one is due."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, replace

import pytest

from adapters.over_http.wire import SKEW_WORTH_SAYING
from domain.plan import ToolPrice
from domain.verdicts import GroupEstimate, Verdict, VerdictKind
from metrics.contract import MetricSpec
from service.report.calls import CLOCK_OFF, calls_json, calls_rows, money, notices
from service.report.cards import tool_card
from service.report.files import report_json, to_json
from service.report.groups import grouping
from service.report.html import render
from service.report.model import RunData, ToolCalls
from service.report.wording import FORBIDDEN

HOSTILE = "</section><script>alert(1)</script><img src=x>\u202e"
LABEL = "super-resolution"
PLAIN = ToolCalls(
    LABEL, calls=20, items_called=20, seconds_median=1.25, models={"esrgan 1.2": 20}, clock_skew_s=0.4,
)  # fmt: skip
TROUBLED = ToolCalls(
    LABEL, calls=31, items_called=20, retries=11, failed=2, refused=3, maybe_billed=4, warm_ups=2,
    seconds_median=7.5, models={"m-2026-01": 14, "m-2026-02": 3}, clock_skew_s=-95.0,
    cost={"USD": 1.36}, unchanged=5, first_request_ids=("req_a", "req_b"),
)  # fmt: skip


def with_calls(data: RunData, *calls: ToolCalls) -> RunData:
    items = [replace(i, original=None, edited=None) for i in data.items]
    return replace(data, items=items, calls=calls)


def section(data: RunData, specs: Mapping[str, MetricSpec]) -> str:
    page = render(data, grouping(data), specs)
    found = re.search(r'<section id="calls".*?</section>', page, re.S)
    return found[0] if found else ""


def test_a_run_without_recorded_calls_has_no_section(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    page = render(with_calls(run_data), grouping(run_data), specs)
    assert 'id="calls"' not in page and 'href="#calls"' not in page


def test_every_count_stands_in_its_row(run_data: RunData, specs: Mapping[str, MetricSpec]) -> None:
    text = section(with_calls(run_data, TROUBLED), specs)
    for label, count in (
        ("Items called", 20), ("Calls", 31), ("Retries", 11), ("Refused", 3), ("Failed", 2),
        ("May be billed", 4), ("Unchanged", 5),
    ):  # fmt: skip
        assert re.search(rf'data-label="{label}"[^>]*>{count}\b', text), label
    assert "+ 2 to warm up" in text
    assert "7.5 s" in text and "1.36 USD" in text
    assert "m-2026-01: 14 items" in text and "m-2026-02: 3 items" in text


def test_calls_that_went_plainly_give_no_notice(run_data: RunData) -> None:
    data = with_calls(run_data, PLAIN)
    assert notices(data) == []
    assert tool_card(data, LABEL).warnings == []


def test_two_model_strings_are_told_on_the_first_screen_too(run_data: RunData) -> None:
    data = with_calls(run_data, replace(PLAIN, models={"a": 12, "b": 8}))
    (said,) = notices(data)
    assert said.grave and "2 different models (a: 12 items, b: 8 items)" in said.text
    assert "may mix" in tool_card(data, LABEL).warnings[0]
    assert tool_card(data, "style transfer, strong").warnings == []


@pytest.mark.parametrize(
    ("skew", "said"),
    [
        (31.0, "clock is 31.0 s behind"),
        (-95.0, "clock is 1 min 35 s ahead of"),
        (29.0, None),
        (None, None),
    ],
)
def test_a_clock_that_is_off_by_more_than_half_a_minute_is_told(
    run_data: RunData, skew: float | None, said: str | None
) -> None:
    found = notices(with_calls(run_data, replace(PLAIN, clock_skew_s=skew)))
    assert [said in n.text for n in found if said] == ([True] if said else [])
    assert len(found) == (1 if said else 0)


def test_the_report_and_the_adapters_agree_on_what_a_skewed_clock_is() -> None:
    assert CLOCK_OFF == SKEW_WORTH_SAYING


def test_pictures_that_came_back_unchanged_are_told_as_touching_the_figures(
    run_data: RunData,
) -> None:
    (said,) = notices(with_calls(run_data, replace(PLAIN, unchanged=1)))
    assert said.grave and "1 picture back unchanged" in said.text


def test_calls_that_may_be_billed_are_told_with_the_ids_to_quote(run_data: RunData) -> None:
    (said,) = notices(
        with_calls(run_data, replace(PLAIN, maybe_billed=2, first_request_ids=("req_a", "req_b")))
    )
    assert not said.grave
    assert (
        "may have billed 2 calls" in said.text
        and "to quote to its maker: req_a, req_b" in said.text
    )


def test_the_plans_price_is_set_beside_what_the_tool_said(run_data: RunData) -> None:
    tools = [
        t.model_copy(update={"price": ToolPrice(per_call=0.04, currency="EUR")})
        for t in run_data.plan.tools
    ]
    data = replace(run_data, plan=run_data.plan.model_copy(update={"tools": tools}))
    (row,) = calls_rows(with_calls(data, TROUBLED))
    assert row.cost == ["1.36 USD", "at most 1.32 EUR by the plan's price"]  # 31 + 2 warm-ups


def test_a_cost_that_no_one_named_is_not_0(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    text = section(with_calls(run_data, PLAIN), specs)
    assert "not said" in text and "0.00" not in text


@pytest.mark.parametrize(
    ("amount", "said"), [(0.00312, "0.00312 USD"), (1234.5, "1,234.50 USD"), (0.0, "0.00 USD")]
)
def test_money_is_written_to_be_read(amount: float, said: str) -> None:
    assert money(amount, "USD") == said


def test_hostile_strings_of_a_server_stay_text(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    bad = replace(
        TROUBLED, tool=HOSTILE, models={HOSTILE: 2, HOSTILE + "2": 3}, first_request_ids=(HOSTILE,),
        cost={HOSTILE: 1.0},
    )  # fmt: skip
    text = section(with_calls(run_data, bad), specs)
    assert text.count("</section") == 1
    assert "<script" not in text and "<img" not in text and "\u202e" not in text


def test_report_json_holds_every_field_and_the_notices(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    data = with_calls(run_data, TROUBLED, replace(PLAIN, tool="coordinate network"))
    parsed = json.loads(to_json(report_json(data, grouping(data), specs)))["calls"]
    assert parsed == json.loads(json.dumps(calls_json(data)))
    assert set(parsed[0]) == {f.name for f in fields(ToolCalls)} | {"notices"}
    assert parsed[0]["models"] == {"m-2026-01": 14, "m-2026-02": 3}
    assert len(parsed[0]["notices"]) == 4 and parsed[1]["notices"] == []


def test_the_section_judges_no_one(run_data: RunData, specs: Mapping[str, MetricSpec]) -> None:
    text = section(with_calls(run_data, TROUBLED), specs)
    assert [m[0] for m in FORBIDDEN.finditer(text)] == []


def test_refusals_of_one_group_stand_on_the_card_beside_another_harm(run_data: RunData) -> None:
    sentence = f"{LABEL}, restyle: requests refused: 60 % of women, 4 % of men. Harmed more: women"
    refused = Verdict(
        LABEL, "outcome:refused", "gender", ("women", "men"), VerdictKind.DISPARITY, 0.56,
        (0.3, 0.8), 0.001, 0.003, {"women": 20, "men": 20}, margin=0.05, unit="rate",
        sentence=sentence, event="refused", task="restyle", details={"family": "exploratory"},
        estimates=(GroupEstimate("women", 20, 20, 0.6, 0.4, 0.8),),
    )  # fmt: skip
    detail = replace(
        refused, metric="detail_change", event=None, unit="log2", details={"family": "named"},
        sentence=f"{LABEL}, restyle: fine detail lost: men more.",
    )  # fmt: skip
    card = tool_card(replace(run_data, verdicts=[detail, refused]), LABEL)
    assert card.line == "Fine detail lost: men more."
    assert card.outcome_line.startswith("Requests refused: 60 % of women")
    assert tool_card(replace(run_data, verdicts=[refused]), LABEL).outcome_line == ""


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "–"), (0.000194, "under 0.01 s"), (2.6909, "2.69 s")]
)
def test_the_time_a_picture_takes_is_written_to_be_read(
    run_data: RunData, seconds: float | None, said: str
) -> None:
    (row,) = calls_rows(with_calls(run_data, replace(PLAIN, seconds_median=seconds)))
    assert row.seconds == said
