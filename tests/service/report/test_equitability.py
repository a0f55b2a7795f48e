"""Error rates by group with GARBE: counted right, small groups named and left out, chance shown."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from domain.measurements import Decision, Health, Outcome
from metrics.contract import MetricSpec
from service.report.equitability import (
    ErrorRate,
    equitability,
    equitability_json,
    equitability_tables,
)
from service.report.groups import grouping
from service.report.html import render
from service.report.model import InstrumentRow, ItemRow, RunData

HEALTHY, ILL, UNKNOWN = (
    Health("document", score, decision, 85.0)
    for score, decision in (
        (95.0, Decision.PASS),
        (40.0, Decision.FAIL),
        (None, Decision.INCONCLUSIVE),
    )
)


def made_of(
    data: RunData, people: dict[str, int], outcomes: dict[str, Sequence[Outcome]], repeats: int = 1
) -> RunData:
    """One request a person and repeat of the run's first tool; ``outcomes`` first, then measured."""
    template = next(i for i in data.items if not i.control)
    items: list[ItemRow] = []
    for group, count in people.items():
        ended = list(outcomes.get(group, ()))
        for n in range(count * repeats):
            person = f"{group}{n % count}"
            outcome = ended[n] if n < len(ended) else Outcome.MEASURED
            items.append(
                replace(
                    template, item_id=f"{group}{n}", portrait_id=person, subject_id=person,
                    attributes={"gender": group}, outcome=outcome,
                    health={"document": HEALTHY if outcome is Outcome.MEASURED else UNKNOWN},
                )
            )  # fmt: skip
    originals = [
        InstrumentRow(i.portrait_id, i.subject_id, i.attributes, True, True, None) for i in items
    ]
    return replace(data, items=items, instrument=originals, measurements=[])


def row(data: RunData, error: str) -> ErrorRate:
    rows = equitability(data, grouping(data), "gender")
    return next(r for r in rows if r.error == error)


def test_rates_count_requests_and_the_gap_names_both_groups(run_data: RunData) -> None:
    refused = {"men": [Outcome.REFUSED] * 2, "women": [Outcome.REFUSED] * 6}
    found = row(made_of(run_data, {"men": 10, "women": 10}, refused), "refused")
    assert [(g.group, g.errors, g.of, g.people) for g in found.groups] == [
        ("men", 2, 10, 10),
        ("women", 6, 10, 10),
    ]
    assert found.gap == pytest.approx(0.4)
    assert (found.highest, found.lowest) == ("women", "men")
    # two groups: GARBE is the difference over the sum of the rates
    assert found.garbe == pytest.approx((0.6 - 0.2) / (0.6 + 0.2))


def test_equal_rates_are_zero_and_one_group_alone_is_one(run_data: RunData) -> None:
    people = {"men": 10, "women": 20, "others": 10}
    alike = {"men": [Outcome.FACE_LOST], "women": [Outcome.FACE_LOST] * 2,
             "others": [Outcome.FACE_LOST]}  # fmt: skip
    assert row(made_of(run_data, people, alike), "face_lost").garbe == pytest.approx(0)
    alone = row(made_of(run_data, people, {"women": [Outcome.FACE_LOST] * 2}), "face_lost")
    assert alone.garbe == pytest.approx(1)


def test_a_single_error_is_within_chance_and_a_whole_group_is_beyond_it(run_data: RunData) -> None:
    people = {"men": 30, "women": 30}
    single = row(made_of(run_data, people, {"men": [Outcome.FAILED]}), "failed")
    assert (single.garbe, single.chance, single.beyond_chance) == (1.0, 1.0, False)
    all_men = row(made_of(run_data, people, {"men": [Outcome.FAILED] * 30}), "failed")
    assert all_men.garbe == 1.0 and all_men.chance is not None
    assert all_men.chance < 0.5 and all_men.beyond_chance


def test_chance_deals_people_not_requests(run_data: RunData) -> None:
    people = {"men": 10, "women": 10}
    apart = {"men": [Outcome.REFUSED] * 10}
    once = row(made_of(run_data, people, apart), "refused").chance
    # the same ten errors, all of them two people's
    few = made_of(run_data, people, {}, repeats=5)
    items = [
        replace(i, outcome=Outcome.REFUSED) if i.subject_id in {"men0", "men1"} else i
        for i in few.items
    ]
    clustered = row(replace(few, items=items), "refused").chance
    assert once is not None and clustered is not None and clustered > once


def test_small_and_unknown_groups_are_named_and_take_no_part(run_data: RunData) -> None:
    people = {"men": 10, "women": 10, "others": 4, "": 7}
    found = row(made_of(run_data, people, {"others": [Outcome.FAILED] * 4}), "failed")
    assert [g.group for g in found.groups] == ["men", "women"]
    assert dict(found.left_out) == {"others": 4, "unknown": 7}
    assert (found.garbe, found.gap) == (0.0, 0.0)


def test_one_group_is_no_figure_but_a_reason(run_data: RunData) -> None:
    data = made_of(run_data, {"men": 10, "women": 3}, {"men": [Outcome.FAILED]})
    found = row(data, "failed")
    assert (found.garbe, found.gap, found.chance) == (None, None, None)
    assert found.reason == "fewer than two groups with 5 people or more"


def test_the_gate_counts_only_what_it_judged(run_data: RunData) -> None:
    data = made_of(run_data, {"men": 10, "women": 10}, {"men": [Outcome.REFUSED] * 4})
    items = [
        replace(i, health={"document": ILL}) if i.item_id in {"men8", "men9"} else i
        for i in data.items
    ]
    found = row(replace(data, items=items), "gate_failed")
    assert [(g.group, g.errors, g.of) for g in found.groups] == [("men", 2, 6), ("women", 0, 10)]


def test_failure_to_acquire_is_the_instruments_own_and_comes_first(run_data: RunData) -> None:
    data = made_of(run_data, {"men": 10, "women": 10}, {})
    originals = [
        replace(r, face_found=r.portrait_id not in {"women0", "women1"}) for r in data.instrument
    ]
    first = equitability(replace(data, instrument=originals), grouping(data), "gender")[0]
    assert (first.error, first.tool) == ("failure_to_acquire", "")
    assert [g.errors for g in first.groups] == [0, 2]


def test_controls_take_no_part(run_data: RunData) -> None:
    controls = {i.tool for i in run_data.items if i.control}
    rows = equitability(run_data, grouping(run_data), "gender")
    assert controls and not controls & {r.tool for r in rows}


def test_the_json_is_plain_and_says_null_where_there_is_no_figure(run_data: RunData) -> None:
    data = made_of(run_data, {"men": 10, "women": 3}, {})
    entries = json.loads(json.dumps(equitability_json(data, grouping(data))))["gender"]
    failed = next(e for e in entries if e["error"] == "failed")
    assert failed["garbe"] is None and failed["reason"] and failed["beyond_chance"] is None
    assert failed["groups"] == [{"group": "men", "people": 10, "errors": 0, "of": 10, "rate": 0.0}]


def test_the_page_shows_rates_and_lists_what_nobody_met(
    run_data: RunData, specs: dict[str, MetricSpec]
) -> None:
    data = made_of(run_data, {"men": 10, "wo<b>men": 10}, {"men": [Outcome.REFUSED] * 5})
    groups = grouping(data)
    [_, rows, unmet] = equitability_tables(data, groups)[0]
    assert [r.error for r in rows] == ["refused"]
    assert "no face acquired (originals)" in unmet
    page = render(data, groups, specs)
    part = re.search(r'<details class="fold" id="equitability">.*?</details>', page, re.S)
    assert part is not None
    assert "50.0 %" in part[0] and "5 of 10" in part[0] and "50.0 points" in part[0]
    assert "wo&lt;b&gt;men" in part[0]
