"""The page as text: self-contained, escaped, and worded as a report of harm has to be."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from domain.measurements import Outcome
from metrics.contract import MetricSpec
from service.report.groups import grouping
from service.report.html import render
from service.report.model import ControlFinding, RunData
from service.report.wording import FORBIDDEN, visible

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202egnp.\u2066"
SLOT = re.compile(r'<script type="application/json" id="(report-\w+)">(.*?)</script>', re.S)


def page(data: RunData, specs: Mapping[str, MetricSpec]) -> str:
    return render(data, grouping(data), specs)


def without_pictures(data: RunData) -> RunData:
    return replace(data, items=[replace(i, original=None) for i in data.items])


@pytest.fixture(scope="module")
def html(run_data: RunData, specs: Mapping[str, MetricSpec]) -> str:
    return page(without_pictures(run_data), specs)


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    assert re.findall(r"<(?:link|iframe|object|embed|base)\b", html) == []
    assert re.findall(r"\b(?:src|action)\s*=\s*[\"']?https?:", html) == []
    assert re.findall(r"@import|url\((?!#)", html) == []
    assert "default-src &#39;none&#39;" in html


def test_the_policy_allows_this_style_and_script_and_no_other(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    for kind, tag in (("style-src", "style"), ("script-src", "script")):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
        assert len(text) == 1
        digest = base64.b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
        assert f"{kind} &#39;sha256-{digest}&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    assert re.findall(r"<[a-z][^>]*\sstyle=", html) == []
    assert re.findall(r"<[a-z][^>]*\son[a-z]+=", html) == []


def test_hostile_names_stay_text_everywhere(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    items = [
        replace(
            i, item_id=HOSTILE + str(n), portrait_id=HOSTILE + str(n), tool=HOSTILE, model=HOSTILE,
            reason=HOSTILE, warnings=[HOSTILE], attributes={"gender": HOSTILE, HOSTILE: str(n % 2)},
            original=None, outcome=Outcome.FAILED, control=False,
        )
        for n, i in enumerate(run_data.items[:4])
    ]  # fmt: skip
    data = replace(
        run_data, items=items, measurements=[], instrument=[], plan_text=HOSTILE, run_id=HOSTILE,
        plan=run_data.plan.model_copy(update={"name": HOSTILE, "purpose": HOSTILE}),
        versions={HOSTILE: HOSTILE}, inputs={HOSTILE: "00"},
        verdicts=[replace(v, tool=HOSTILE, sentence=HOSTILE, groups=(HOSTILE, "b")) for v in run_data.verdicts[:2]],
        controls=[ControlFinding(HOSTILE, HOSTILE, HOSTILE, False)],
    )  # fmt: skip
    text = page(data, specs)
    assert len(re.findall(r"<script\b", text)) == 3
    assert len(re.findall(r"</script", text)) == 3
    assert "<img" not in text
    assert "\u202e" not in text
    assert "\u2066" not in text
    parsed = {name: json.loads(body) for name, body in SLOT.findall(text)}
    assert parsed["report-data"]["items"][0]["tool"] == visible(HOSTILE)
    assert "<script>alert(1)" in parsed["report-data"]["items"][0]["tool"]


def test_harms_are_named_and_no_one_is_judged(html: str) -> None:
    assert [m.group(0) for m in FORBIDDEN.finditer(html)] == []
    assert "Fine facial detail lost: masculine-presenting" in html


def test_it_says_at_once_when_a_control_failed(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    failed = [ControlFinding("identity", "every figure perfect", "csi 3.1", False)]
    text = page(replace(without_pictures(run_data), controls=failed), specs)
    assert "A control failed: do not rely on the findings below" in text
    assert text.index("A control failed") < text.index("In short")
    assert "passed its controls" not in text


def test_it_holds_what_those_who_file_it_need(html: str) -> None:
    for section in ("instrument", "controls", "verdicts", "outcomes", "explore", "diagnosis",
                    "exclusions", "method", "provenance"):  # fmt: skip
        assert f'id="{section}"' in html
    for words in ("Audit date", "Source of the portraits", "Impact ratio", "Face lost", "Refused", "Face found",
                  "set for this example", "Apache-2.0", "12 months", "no official pass threshold", "Seed"):  # fmt: skip
        assert words in html


def test_people_of_unknown_group_are_counted(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    portraits = {r.portrait_id for r in run_data.instrument[:3]}
    items = [
        replace(i, attributes={}) if i.portrait_id in portraits else i
        for i in without_pictures(run_data).items
    ]
    text = page(replace(run_data, items=items, instrument=[], measurements=[]), specs)
    drawn = json.loads(dict(SLOT.findall(text))["report-data"])
    gender = next(a for a in drawn["attributes"] if a["name"] == "gender")
    assert gender["values"] == ["feminine-presenting", "masculine-presenting", "unknown"]
    assert sum(i["groups"]["gender"] == "unknown" for i in drawn["items"]) == 3 * 5
    assert "<td><bdi>unknown</bdi></td>" in text


def test_a_run_without_a_single_item_still_makes_a_page(run_data: RunData) -> None:
    empty = replace(run_data, items=[], measurements=[], instrument=[], verdicts=[], controls=[])
    text = page(empty, {})
    assert "No controls were run" in text
    assert "No comparison between groups could be made" in text


def test_a_long_list_of_comparisons_is_cut_and_says_so(
    run_data: RunData, specs: Mapping[str, MetricSpec]
) -> None:
    many = list(run_data.verdicts) * 20
    text = page(replace(without_pictures(run_data), verdicts=many), specs)
    assert text.count('<tbody class="v"') < len(many)
    assert "report.json holds them all" in text
