"""The four files of a run: complete, stable, whole or absent, and safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import LikenessError
from domain.measurements import Outcome
from domain.verdicts import Verdict, VerdictKind
from metrics.contract import MetricSpec
from service.report.files import (
    CSV_HEAD,
    decimal,
    measurements_csv,
    neutral,
    to_json,
    write_all,
    write_atomically,
)
from service.report.groups import grouping
from service.report.model import MeasurementRow, RunData


def rows_of(data: RunData) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(measurements_csv(data, grouping(data)))))


def test_every_figure_is_a_row_and_so_is_every_item_without_figures(run_data: RunData) -> None:
    rows = rows_of(run_data)
    measured = {m.item_id for m in run_data.measurements}
    without = [i for i in run_data.items if i.item_id not in measured]
    assert without
    assert len(rows) == len(run_data.measurements) + len(without)
    bare = [r for r in rows if not r["metric"]]
    assert {r["item_id"] for r in bare} == {i.item_id for i in without}
    assert all(r["status"] == r["outcome"] and r["reason"] and r["value"] == "" for r in bare)


def test_a_missing_figure_is_an_empty_cell_with_its_reason_never_0(run_data: RunData) -> None:
    missing = [r for r in rows_of(run_data) if r["status"] == "not_measurable" and r["metric"]]
    assert missing
    assert all(r["value"] == "" and r["reason"] == "no beard in the original" for r in missing)


def test_the_order_in_which_items_finished_leaves_no_trace(run_data: RunData) -> None:
    shuffled = random.Random(3)
    items, figures = list(run_data.items), list(run_data.measurements)
    shuffled.shuffle(items)
    shuffled.shuffle(figures)
    other = replace(run_data, items=items, measurements=figures, finished="later", seconds=1.0)
    assert measurements_csv(other, grouping(other)) == measurements_csv(
        run_data, grouping(run_data)
    )


def test_the_documented_columns_come_first_and_the_plans_groups_follow(run_data: RunData) -> None:
    head = list(rows_of(run_data)[0])
    assert head[: len(CSV_HEAD)] == [name for name, _ in CSV_HEAD]
    assert head[len(CSV_HEAD) :][:3] == ["gender", "skin_tone", "age_group"]


@pytest.mark.parametrize("cell", ["=1+1", "+x", "-x", "@SUM(A1)", "\tx", "\nx"])
def test_no_cell_starts_a_formula(cell: str) -> None:
    assert neutral(cell) == "'" + cell
    assert neutral("plain") == "plain"
    assert neutral("\rx") == "'\nx"


def test_a_hostile_reason_and_attribute_are_neutral_in_the_csv(run_data: RunData) -> None:
    first = run_data.items[0]
    bad = replace(first, attributes={"gender": "=cmd|'/c calc'!A1"}, tool="@tool")
    figures = [MeasurementRow(bad.item_id, "flrr", "face", None, "%", "not_measurable", "-2+3")]
    data = replace(run_data, items=[bad], measurements=figures, instrument=[])
    (row,) = rows_of(data)
    assert row["gender"].startswith("'=")
    assert row["tool"] == "'@tool"
    assert row["reason"] == "'-2+3"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0"), (-0.0, "0"), (-1.5, "-1.5"), (1 / 3, "0.333333"), (1e-7, "1e-07")],
)
def test_figures_are_written_with_six_digits(value: float | None, text: str) -> None:
    assert decimal(value) == text


def test_all_four_files_are_written_and_the_manifest_holds_their_hashes(
    run_data: RunData, specs: Mapping[str, MetricSpec], tmp_path: Path
) -> None:
    small = replace(run_data, items=run_data.items[:6])
    files = write_all(small, tmp_path / "out", specs)
    assert set(files) == {
        "report.html",
        "report.json",
        "measurements.csv",
        "review.csv",
        "junit.xml",
        "manifest.json",
    }
    manifest = json.loads(files["manifest.json"].read_text())
    for name in ("report.html", "report.json", "measurements.csv"):
        assert (
            manifest["outputs"][name]["sha256"]
            == hashlib.sha256(files[name].read_bytes()).hexdigest()
        )
    assert manifest["seed"] == run_data.plan.seed
    assert manifest["inputs"]["audit.yaml"]["sha256"] == run_data.inputs["audit.yaml"]
    assert manifest["plan"]["name"] == run_data.plan.name
    report = json.loads(files["report.json"].read_text())
    assert report["controls_ok"] is True
    assert len(report["verdicts"]) == len(run_data.verdicts)
    counted = sum(r["items"] for r in report["outcomes"]["gender"] if r["group"] == "all")
    assert counted == sum(not i.control for i in small.items)
    assert list((tmp_path / "out").glob(".*")) == []


def test_a_full_disk_is_one_clear_line_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        LikenessError, match=r"cannot write .*report\.html: No space left on device"
    ):
        write_atomically(target, b"new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_cannot_be_made_is_named(run_data: RunData, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    empty = replace(run_data, items=[], measurements=[], verdicts=[])
    with pytest.raises(LikenessError, match="cannot make folder"):
        write_all(empty, tmp_path / "file" / "out", {})


def test_json_has_null_for_what_is_not_finite() -> None:
    verdict = Verdict(
        "t", "m", "a", ("x", "y"), VerdictKind.INCONCLUSIVE, None, None, None, None,
        details={"design_effect": float("nan")},
    )  # fmt: skip
    assert json.loads(to_json({"a": float("inf"), "b": [float("nan"), 1], "c": verdict.details})) == {
        "a": None, "b": [None, 1], "c": {"design_effect": None},
    }  # fmt: skip


def test_the_outcomes_of_report_json_name_every_way_to_end(
    run_data: RunData, tmp_path: Path
) -> None:
    small = replace(run_data, items=[replace(i, original=None) for i in run_data.items])
    report = json.loads(write_all(small, tmp_path, {})["report.json"].read_text())
    for row in report["outcomes"]["skin_tone"]:
        assert set(row["counts"]) == set(Outcome)
        assert sum(row["counts"].values()) == row["items"]
