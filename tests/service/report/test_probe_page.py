"""The page of a run of text probes: complete, safe, and the same section inside an audit's report."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from domain.errors import LikenessError
from domain.verdicts import VerdictKind
from metrics.contract import MetricSpec
from probes.calls import Status
from probes.results import (
    BeforeAfter,
    Cell,
    Composite,
    CompositePart,
    CostLine,
    Figure,
    GateLine,
    HeatMap,
    Interval,
    ProbeResult,
    Table,
    Tally,
    TestResult,
)
from service.report.groups import grouping
from service.report.html import render
from service.report.model import RunData
from service.report.probe_files import probe_files, write_probe_files
from service.report.probe_html import render_probes
from service.report.probe_json import PROBE_SCHEMA, probe_json
from service.report.probe_marks import shade
from service.report.probe_model import CallStats, ProbeRun
from service.report.probe_reading import read_probe_report
from service.report.wording import FORBIDDEN

HOSTILE = "</script><script>alert(1)</script>\u202e<b>&"


def fig(value: float | None, low: float = 0.0, high: float = 0.0, **more: Any) -> Figure:
    interval = None if value is None else Interval(low, high, "cluster bootstrap")
    reason = "" if value is not None else "no reply could be read"
    return Figure("f", "A figure", value, interval, n=12, units="templates", reason=reason, **more)


def cell(row: str, label: str, x_a: int, x_b: int, grade: Any = "not_shown", **more: Any) -> Cell:
    delta = (x_a - x_b) / 50
    bounds = Interval(delta - 0.15, delta + 0.15, "Newcombe")
    return Cell(
        row, label, x_a, 50, x_b, 50, delta, bounds, abs(delta), None, "denominator_below_floor",
        0.5, Interval(-1, 2, "log"), None, "the interval of delta includes 0", grade, 0.03, 0.2, 0.1, **more,
    )  # fmt: skip


def empty_cell(row: str, label: str) -> Cell:
    return Cell(
        row, label, 0, 0, 0, 50, None, None, None, None, "no_samples", None, None, None,
        "no samples", "undefined",
    )  # fmt: skip


def question_of(sentence: str, verdict: VerdictKind = VerdictKind.DISPARITY) -> TestResult:
    effect = fig(0.2, 0.1, 0.3, unit="share")
    question = "Are applicants named like women asked to the next round less often?"
    return TestResult(
        "proceed", question, ("men", "women"), effect, verdict, 0.001, 0.004, "exact McNemar", "Holm",
        sentence=sentence,
    )  # fmt: skip


def result(**changes: Any) -> ProbeResult:
    heat = HeatMap(
        "map", "Labels by occupation", ("men", "women"), ("nurse", "engineer"),
        ("technical ability", "emotional labour"),
        (
            cell("nurse", "technical ability", 30, 5, "high"),
            cell("nurse", "emotional labour", 5, 31, "elevated", flags=("rare in life",)),
            cell("engineer", "technical ability", 25, 24),
            empty_cell("engineer", "emotional labour"),
        ),
    )  # fmt: skip
    made = ProbeResult(
        probe="resume",
        title="Same resume, other name",
        question="Does the name on a resume change what is said of it?",
        language="en",
        arms=("men", "women"),
        index=fig(0.2, 0.1, 0.3, sd=0.04),
        index_means=("men are favoured", "women are favoured"),
        tallies=(
            Tally("men", {Status.ANSWERED: 48, Status.REFUSED: 2}),
            Tally("women", {Status.ANSWERED: 40, Status.REFUSED: 8, Status.TRUNCATED: 2}),
        ),
        figures=(fig(0.5, 0.4, 0.6), fig(None)),
        tests=(
            question_of("Asked on less often: women, by 20 points (10 to 30)."),
            replace(question_of("Nothing shown."), id="x", verdict=VerdictKind.INCONCLUSIVE),
        ),
        heat_maps=(heat,),
        tables=(
            Table("t", "By occupation", ("occupation", "value"), (("nurse", 0.25), ("x", None))),
        ),
        notices=("The label “other” has 7 % of the replies.",),
        by_repeat=(0.1, None, 0.3),
        examples=(("women", "She is a careful engineer."),),
    )
    return replace(made, **changes)


def run(**changes: Any) -> ProbeRun:
    composite = Composite(
        "en", "plain", (CompositePart("resume", 1, 1.0, 0.2, None),), fig(0.2, 0.1, 0.3), fig(0.2), "towards men"
    )  # fmt: skip
    made = ProbeRun(
        run_id="p1", name="Release 7", purpose="Before the release", started="2026-11-30T01:00:00+00:00",
        finished="2026-11-30T01:02:00+00:00", seconds=120.0, seed=7, alpha=0.05, plan_text="name: Release 7\n",
        plan={"name": "Release 7"}, endpoint="https://llm.example/v1", model="model-x",
        abilities={"temperature": True, "notes": ["seed was ignored"]},
        results=(
            result(),
            result(language="zh", index=fig(None)),
            result(condition="guarded"),
            result(
                probe="qa_benchmark", title="Questions with options", tests=(), heat_maps=(), usable=False,
                why_not="unusable for multiple choice: the answer followed the order of the options in 80 of 80 items.",
            ),
        ),
        composites=(composite, replace(composite, language="zh", mean=fig(None), rms=fig(None))),
        before_after=(
            BeforeAfter("resume", "en", "guarded", "index", fig(0.2, 0.1, 0.3), fig(0.1, 0, 0.2),
                        fig(-0.1, -0.2, 0), 0.04, "The gap in favour of men shrank by 0.1."),
        ),
        gate=(GateLine("max_abs_index", "fail", "resume: 0.2 is beyond 0.1.", 0.2, 0.1),),
        costs=(CostLine("Applicants lost", fig(14, 4, 24, unit="people"), "Of 200, 14 fewer."),),
        stats=CallStats(
            asked=102, attempts=110, statuses={Status.ANSWERED: 90, Status.REFUSED: 10, Status.TRUNCATED: 2},
            reasons={"it declined in words": 10}, models={"model-x-0913": 100}, dropped={"seed": 102},
            prompt_tokens=9000, completion_tokens=1200, latency_median_s=0.4, cost={"EUR": 0.12},
        ),
        notices=("The replies name another model than was asked for.",),
        versions={"likeness": "0.1.0"},
    )  # fmt: skip
    return replace(made, **changes)


def text_of(page: str) -> str:
    return re.sub(
        r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(style|script).*?</\1>", "", page))
    )


def test_the_first_screen_tells_the_difference_and_what_cannot_be_used() -> None:
    said = text_of(render_probes(run()))
    first = said[: said.index("Text probes Prompts that differ")]
    assert "Asked on less often: women, by 20 points (10 to 30)." in first
    assert "unusable for multiple choice" in first
    assert "composite index +0.2" in first
    assert "Chinese, composite index: none, no reply could be read." in first


def test_an_unusable_probe_has_no_verdict_to_read() -> None:
    bad = result(usable=False, why_not="unusable for multiple choice: order decides.")
    said = text_of(render_probes(run(results=(bad,))))
    assert "not to be read" in said
    assert "Difference found" not in said.partition("Method")[0]


def test_every_way_to_end_is_counted_by_arm() -> None:
    report = probe_json(run())
    women = report["results"][0]["tallies"][1]
    assert women["counts"] == {
        "answered": 40, "refused": 8, "filtered": 0, "truncated": 2, "unparsable": 0,
        "out_of_choice": 0, "errored": 0,
    }  # fmt: skip
    assert women["rates"]["refused"] == 0.16
    assert "8 16.0 %" in text_of(render_probes(run()))


def test_a_missing_figure_is_null_with_its_reason_and_never_0() -> None:
    report = probe_json(run())
    index = report["results"][1]["index"]
    assert (index["value"], index["reason"]) == (None, "no reply could be read")
    assert "Index: none, no reply could be read" in text_of(render_probes(run()))


def test_nothing_is_loaded_and_no_style_or_script_of_strangers_runs() -> None:
    page = render_probes(run(name=HOSTILE, notices=(HOSTILE,), model=HOSTILE))
    assert "<script>alert" not in page and "\u202e" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert " style=" not in page and " onclick=" not in page
    assert "script-src &#39;sha256-" in page


def test_hostile_replies_and_labels_stay_text() -> None:
    hostile = result(examples=((HOSTILE, HOSTILE),), why_not=HOSTILE, question=HOSTILE)
    page = render_probes(run(results=(hostile,)))
    assert "<script>alert" not in page and "\u202e" not in page


def test_harms_are_named_and_no_one_is_judged() -> None:
    assert not FORBIDDEN.search(text_of(render_probes(run())))


@pytest.mark.parametrize(
    ("delta", "name"), [(0.0, "even"), (0.049, "even"), (-0.06, "b1"), (0.3, "a3"), (0.9, "a4"), (None, "none")]
)  # fmt: skip
def test_a_cell_is_shaded_by_size_and_by_whose_it_is(delta: float | None, name: str) -> None:
    assert shade(delta) == name


def test_the_cells_of_the_map_have_their_figures_for_the_script() -> None:
    page = render_probes(run())
    found = re.search(r'id="probe-cells">(.*?)</script>', page)
    assert found is not None
    cells = json.loads(found[1])
    assert len(cells) == len(re.findall("data-probe-cell=", page))
    assert ["men", "30 of 50"] in cells[0]


def test_junit_has_the_limits_of_the_plan_else_the_questions() -> None:
    limits = ET.fromstring(probe_files(run())["junit.xml"])
    assert [c.get("name") for c in limits.iter("testcase")] == ["max_abs_index: resume"]
    assert len(list(limits.iter("failure"))) == 1
    asked = ET.fromstring(probe_files(run(gate=()))["junit.xml"])
    assert len(list(asked.iter("error"))) == 1
    assert {c.get("name") for c in asked.iter("testcase")} >= {"Questions with options"}


def test_a_run_with_nothing_to_decide_is_skipped_and_not_passed() -> None:
    root = ET.fromstring(probe_files(run(gate=(), results=()))["junit.xml"])
    assert len(list(root.iter("skipped"))) == 1


def test_the_manifest_holds_the_hash_of_every_file(tmp_path: Path) -> None:
    paths = write_probe_files(run(), tmp_path, {"replies.jsonl": b"{}\n"})
    manifest = json.loads(paths["manifest.json"].read_text())
    assert set(manifest["outputs"]) == {"report.html", "report.json", "junit.xml", "replies.jsonl"}
    assert json.loads(paths["report.json"].read_text())["schema"] == PROBE_SCHEMA


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LikenessError, match="cannot make folder"):
        write_probe_files(run(), tmp_path / "file" / "in")


def test_an_audits_report_has_the_same_section(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    without = render(run_data, grouping(run_data), specs)
    data = replace(run_data, probes=probe_json(run()))
    page = render(data, grouping(data), specs)
    assert 'id="probes"' not in without and 'id="probes"' in page
    assert '<a href="#probes">' in page
    assert "Asked on less often: women" in text_of(page)


def test_a_report_of_probes_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_probe_files(run(), tmp_path)
    assert read_probe_report(tmp_path) == read_probe_report(tmp_path / "report.json")
    assert read_probe_report(tmp_path)["run"]["id"] == "p1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "names no schema"),
        ('{"schema": "likeness-report/1"}', "likeness-report/1"),
        ('{"schema": "likeness-probe-report/1", "results": 3}', "not whole"),
    ],
)
def test_what_is_no_report_of_probes_is_said_in_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(LikenessError, match=said):
        read_probe_report(tmp_path)
    with pytest.raises(LikenessError, match="no such report"):
        read_probe_report(tmp_path / "absent")
