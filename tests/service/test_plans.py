"""An audit plan is read, and every mistake is told with file, line, key and near miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import PlanError
from service.plans import load_plan

GOOD = """\
name: a plan
portraits:
  manifest: manifest.csv
tools:
  - id: identity
groups: [gender]
claims:
  - {metric: flrr, attribute: gender}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(PlanError) as caught:
        load_plan(write(folder, text))
    return str(caught.value)


def test_a_good_plan_is_read_with_its_defaults(tmp_path: Path) -> None:
    loaded = load_plan(write(tmp_path, GOOD))
    assert loaded.plan.min_score == 85.0
    assert loaded.plan.perturbations == ["none"]
    assert loaded.manifest == tmp_path / "manifest.csv"
    assert len(loaded.sha256) == 64


def test_an_unknown_key_names_line_and_near_miss(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD + "perturbation: [none]\n")
    assert f"{tmp_path}/plan.yaml:9: perturbation: unknown key" in said
    assert "did you mean 'perturbations'?" in said


def test_a_nested_unknown_key_names_its_own_line(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace("  manifest: manifest.csv", "  manifset: manifest.csv"))
    assert ":3: portraits.manifset: unknown key; did you mean 'manifest'?" in said
    assert "portraits.manifest: this key is required" in said


def test_a_wrong_value_names_the_nearest_right_one(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD + "perturbations: [nois]\n")
    assert ":9: perturbations.0:" in said
    assert "did you mean 'noise'?" in said


def test_an_unknown_tool_names_its_line_and_the_near_miss(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace("id: identity", "id: identiti"))
    assert ":5: tools.0.id: unknown tool 'identiti'; did you mean 'identity'?" in said


def test_an_unknown_metric_in_a_claim_names_the_near_miss(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace("metric: flrr", "metric: flr"))
    assert ":8: claims.0.metric: unknown metric 'flr'; did you mean 'flrr'?" in said


def test_a_claim_about_an_attribute_outside_groups_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace("attribute: gender", "attribute: age"))
    assert "'age' is not among groups (gender)" in said


def test_a_margin_or_region_that_is_none_names_the_near_miss(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD + "margins: {flr: 5}\n")
    assert ":9: margins.flr: unknown metric 'flr'; did you mean 'flrr'?" in said
    said = refusal(tmp_path, GOOD.replace("attribute: gender}", "attribute: gender, region: brd}"))
    assert ":8: claims.0.region: unknown region 'brd'; did you mean 'beard'?" in said


def test_two_tools_of_one_name_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace("  - id: identity", "  - id: identity\n  - id: identity"))
    assert ":6: tools.1: two tools are called 'identity'" in said


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    assert ":9: 'name' stands twice (first in line 1)" in refusal(tmp_path, GOOD + "name: b\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [", "not valid YAML"),
        ("- a list", "a plan is a mapping of keys"),
        ("", "a plan is a mapping of keys"),
        ("name: x\n", "portraits: this key is required"),
        (GOOD + "alpha: 0.7\n", ":9: alpha:"),
        (GOOD + "seed: -1\n", ":9: seed:"),
    ],
)
def test_other_mistakes_are_one_clear_line(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, text)


def test_a_plan_that_is_absent_or_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no such plan"):
        load_plan(tmp_path / "none.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(PlanError, match="cannot be read as UTF-8"):
        load_plan(bad)


def test_the_sample_plan_is_good(samples_dir: Path) -> None:
    assert load_plan(samples_dir / "audit.yaml").plan.controls


def test_a_claim_of_a_tool_that_the_plan_lacks_names_the_near_miss(tmp_path: Path) -> None:
    said = refusal(
        tmp_path, GOOD.replace("attribute: gender}", "attribute: gender, tools: [identiti]}")
    )
    assert "claims.0.tools: no tool of this plan is called 'identiti'" in said
