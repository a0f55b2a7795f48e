"""The exclusions of a report: every item in one row, a level that took nothing out says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from domain.measurements import Outcome
from metrics.contract import MetricSpec
from service.cleaning import clean
from service.report.exclusions import LEVELS, NOTHING, SET_ASIDE, standing_rows
from service.report.files import write_all
from service.report.groups import grouping
from service.report.model import Place, Review, RunData
from service.report.tables import exclusions, group_summaries, originals, outcomes


@pytest.fixture(scope="module")
def cleaned(run_data: RunData) -> RunData:
    """The made-up run with an adversarial portrait, a conflict and an item that people excluded."""
    apart = run_data.items[0].portrait_id
    items = [
        replace(i, attributes={**i.attributes, "set": "adversarial"}, original=None)
        if i.portrait_id == apart
        else replace(i, original=None)
        for i in run_data.items
    ]
    instrument = [
        replace(r, attributes={**r.attributes, "set": "adversarial"})
        if r.portrait_id == apart
        else r
        for r in run_data.instrument
    ]
    usual = [i for i in items if i.portrait_id != apart and i.outcome is Outcome.MEASURED]
    plain = [i for i in usual if not i.control]
    second = {"engine": "dlib", "flrr": 99.0, "reason": None}
    items = [
        replace(i, evidence={**i.evidence, "second_engine": second}) if i is plain[0] else i
        for i in items
    ]
    figures = [
        replace(m, value=10.0) if m.metric == "flrr" and m.item_id == plain[0].item_id else m
        for m in run_data.measurements
    ]
    reviews = [Review(plain[1].item_id, "ann", False, "another person")]
    text = f"item_id,reviewer,decision,reason\n{plain[1].item_id},ann,exclude,another person\n"
    cleaning = clean(items, figures, run_data.plan, reviews, text)
    return replace(
        run_data, items=items, instrument=instrument, measurements=figures, cleaning=cleaning
    )


def test_rows_of_the_cleaning_add_up_to_the_items_outside_main(cleaned: RunData) -> None:
    aside = [i for i in cleaned.items if cleaned.cleaning.of(i.item_id).place is not Place.MAIN]
    for attribute in ("gender", "skin_tone"):
        rows = standing_rows(cleaned, grouping(cleaned), attribute)
        assert sum(r.total for r in rows) == len(aside)
        assert all(sum(r.by_group.values()) == r.total for r in rows)
        assert {r.level for r in rows} == {LEVELS[p] for p in SET_ASIDE}
    (human,) = [r for r in rows if r.level == "level 3, human"]
    assert (human.reason, human.total) == ("reviewed: another person", 1)


def test_a_level_that_took_nothing_out_has_a_row_of_0(run_data: RunData) -> None:
    rows = [r for r in exclusions(run_data, grouping(run_data), "gender") if r.level]
    assert [(r.level, r.reason, r.total) for r in rows] == [
        (LEVELS[p], NOTHING, 0) for p in SET_ASIDE
    ]


def test_tables_of_the_report_rest_on_the_counted_items(cleaned: RunData) -> None:
    groups = grouping(cleaned)
    counted = [i for i in cleaned.counted if not i.control]
    total = sum(r.items for r in outcomes(cleaned, groups, "gender") if r.group == "all")
    assert total == len(counted) < sum(not i.control for i in cleaned.items)
    assert originals(cleaned, groups, "gender")[0].originals == len(cleaned.instrument) - 1
    conflict = next(
        i for i in cleaned.items if cleaned.cleaning.of(i.item_id).place is Place.CONFLICT
    )
    rows = group_summaries(cleaned, groups)
    lowest = [r["min"] for r in rows if r["metric"] == "flrr" and r["tool"] == conflict.tool]
    assert 10.0 not in lowest


def test_the_files_tell_the_cleaning_and_list_what_people_should_see(
    cleaned: RunData, specs: Mapping[str, MetricSpec], tmp_path: Path
) -> None:
    files = write_all(cleaned, tmp_path, specs)
    report = json.loads(files["report.json"].read_text())
    told = report["cleaning"]
    assert sum(told["items"].values()) == len(cleaned.items)
    assert told["items"]["conflict"] == told["items"]["excluded_3"] == 1
    assert set(told["leaves"]) == set(Place)
    assert told["reviews"][0]["standing"] == "excluded_3"
    assert {i["standing"] for i in report["items"]} >= {"main", "conflict", "adversarial"}
    outputs = json.loads(files["manifest.json"].read_text())["outputs"]
    assert {"review.csv", "reviews.csv"} <= set(outputs)
    assert len(files["review.csv"].read_text().splitlines()) == told["review"]["listed"] + 1
    page = files["report.html"].read_text()
    assert "level 2, conflict" in page and "reviewed: another person" in page
