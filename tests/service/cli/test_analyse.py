"""``likeness analyse``: answers, exit codes, and what bad files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

from domain.errors import LikenessError
from service.cli import analyse

PLAN = """\
groups: [gender]
claims:
  - {metric: flrr, event: below, threshold: 95, attribute: gender}
margin: 0.1
alpha: 0.05
"""


def rows(men: int, women: int, n: int = 41) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "subject_id": f"{group}-{i}", "tool": "restyler", "perturbation": "none",
            "metric": "flrr", "value": 90.0 if i < below else 99.0, "status": "measured",
            "gender": group,
        }
        for group, below in (("men", men), ("women", women)) for i in range(n)
    )  # fmt: skip


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    analyse.register(app)

    def run(frame: pd.DataFrame | str, plan: str = PLAN, *flags: str) -> Result:
        table, path = tmp_path / "m.csv", tmp_path / "p.yaml"
        text = frame if isinstance(frame, str) else frame.to_csv(index=False)
        table.write_text(text, encoding="utf-8")
        path.write_text(plan, encoding="utf-8")
        return CliRunner().invoke(app, ["analyse", str(table), "--plan", str(path), *flags])

    return run


def refused(done: Result) -> str:
    assert isinstance(done.exception, LikenessError), done.output
    return str(done.exception)


def test_a_gap_is_a_disparity_and_exit_1(ask: Any) -> None:
    done = ask(rows(30, 18), PLAN, "--json")
    told = json.loads(done.stdout)
    (v,) = told["verdicts"]
    assert done.exit_code == 1
    assert (v["tool"], v["metric"], v["attribute"]) == ("restyler", "flrr", "gender")
    assert (v["groups"], v["verdict"], v["n"]) == (
        ["men", "women"],
        "disparity",
        {"men": 41, "women": 41},
    )
    assert v["effect"] == pytest.approx(12 / 41)
    assert 0 < v["interval"][0] < v["effect"] < v["interval"][1]
    assert v["p_adjusted"] < 0.05
    assert v["needed_n"] is None
    assert "73 % of men" in v["sentence"]


def test_the_text_says_the_same_and_exits_the_same(ask: Any) -> None:
    done = ask(rows(30, 18))
    assert done.exit_code == 1
    assert done.stdout.startswith("DISPARITY")
    assert "Harmed more: men" in done.stdout


def test_shown_equality_is_exit_0(ask: Any) -> None:
    done = ask(rows(200, 201, 400), PLAN, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["verdicts"][0]["verdict"] == "equivalent"


def test_an_open_question_is_exit_3_with_the_subjects_it_needs(ask: Any) -> None:
    done = ask(rows(5, 4, 10), PLAN, "--json")
    v = json.loads(done.stdout)["verdicts"][0]
    assert (done.exit_code, v["verdict"]) == (3, "inconclusive")
    assert 350 < v["needed_n"] < 420


def test_a_figure_claim_and_what_nobody_named_stand_apart(ask: Any) -> None:
    rng = np.random.default_rng(0)
    more = rows(20, 20).assign(metric="detail_change", value=rng.normal(-1, 0.2, 82))
    plan = "groups: [gender]\nclaims: [{metric: flrr, attribute: gender}]\n"
    told = json.loads(ask(pd.concat([rows(20, 20), more]), plan, "--json").stdout)
    assert [v["metric"] for v in told["verdicts"]] == ["flrr"]
    assert [v["metric"] for v in told["exploratory"]] == ["detail_change"]


def test_without_claims_the_default_set_is_used(ask: Any) -> None:
    done = ask(rows(41, 0), "groups: [gender]\n", "--json")
    assert [v["metric"] for v in json.loads(done.stdout)["verdicts"]] == ["flrr"]


def test_a_whole_audit_plan_serves_as_well(ask: Any) -> None:
    plan = f"name: x\nportraits: {{manifest: m.csv}}\ntools: [{{id: inr}}]\n{PLAN}"
    assert ask(rows(30, 18), plan).exit_code == 1


def test_the_controls_of_an_audit_are_left_out_and_lines_still_count_from_the_file(
    ask: Any,
) -> None:
    planted = rows(41, 0).assign(tool="control: group harm", control="1")
    both = pd.concat([planted, rows(20, 20).assign(control="0")], ignore_index=True)
    told = json.loads(ask(both, PLAN, "--json").stdout)
    assert {v["tool"] for v in told["verdicts"]} == {"restyler"}
    both.loc[90, "value"] = None
    assert "line 92: value ''" in refused(ask(both))


def test_only_rows_of_the_main_statistics_are_used_and_the_rest_is_counted(ask: Any) -> None:
    main = rows(20, 20).assign(standing="main")
    away = rows(41, 0).assign(standing="conflict", item_id="one").iloc[:10]
    failed = rows(1, 1, 1).assign(
        standing="excluded_1", status="failed", value="", outcome="failed"
    )
    table = pd.concat([main, away, failed]).fillna({"item_id": "", "outcome": "measured"})
    done = ask(table, PLAN, "--json")
    told = json.loads(done.stdout)
    assert told["left_out"] == {"conflict": 1}
    assert told["verdicts"][0]["n"] == {"men": 41, "women": 41}
    assert "left out of the main statistics: 1 conflict" in done.stderr
    assert json.loads(ask(rows(20, 20), PLAN, "--json").stdout)["left_out"] == {}


@pytest.mark.parametrize(
    ("standing", "message"),
    [("mian", "line 2: standing 'mian' is none of main"), ("adversarial", "no row stands in")],
)
def test_a_strange_standing_or_none_in_main_is_told(ask: Any, standing: str, message: str) -> None:
    assert message in refused(ask(rows(3, 3).assign(standing=standing)))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("groups: [gender]\nclaimz: []\n", "p.yaml:2: claimz: unknown key; did you mean 'claims'?"),
        ("groups: [gender]\nalpha: 7\n", "p.yaml:2: alpha: Input should be less than 0.5 (here: 7)"),
        ("claims:\n  - {metric: flrr}\n", "p.yaml:2: claims.0.attribute: this key is required"),
        ("claims:\n  - metric: flrr\n    atribute: g\n    attribute: g\n", "p.yaml:3: claims.0.atribute: unknown key; did you mean 'attribute'?"),
        ("groups: [gender]\nmargin: -1\n", "p.yaml:2: margin"),
        ("alpha: 0.05\n", "name the attributes to compare"),
        ("- a\n", "p.yaml:1: a plan is a mapping"),
        ("groups: [a\n", "not valid YAML"),
        ("", "a plan is a mapping"),
        ("claims: [{metric: flrr, attribute: gender, event: below}]\n", "'event' and 'threshold' go together"),
    ],
)  # fmt: skip
def test_a_wrong_plan_is_told_with_file_line_and_key(ask: Any, plan: str, message: str) -> None:
    assert message in refused(ask(rows(3, 3), plan))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "the file is empty"),
        ("subject_id,tool,metric,value,status,gender\n", "no rows under the header"),
        ("subject_id,tool,metric,valu,status,gender\na,t,flrr,1,measured,m\n", "no column 'value'; did you mean 'valu'?"),
        ("subject_id,tool,metric,value,status,gendre\na,t,flrr,1,measured,m\n", "no attribute 'gender'; did you mean 'gendre'?"),
        ("subject_id,tool,metric,value,status,gender\na,t,flrr,nan,measured,m\n", "line 2: value 'nan' is not a finite figure"),
        ("subject_id,tool,metric,value,status,gender\na,t,flrr,1e400,measured,m\n", "line 2: value '1e400' is not a"),
        ("subject_id,tool,metric,value,status,gender\na,t,flrr,many,measured,m\n", "line 2: value 'many' is not a number"),
        ("subject_id,tool,metric,value,status,gender\na,t,csi,1,measured,m\n", "no row has this metric"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_told_with_file_and_cause(ask: Any, table: str, message: str) -> None:
    said = refused(ask(table))
    assert message in said
    assert "m.csv" in said
    assert "\n" not in said


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match="no such file"):
        analyse.load_measurements(tmp_path / "none.csv")
    with pytest.raises(LikenessError, match="no such plan"):
        analyse.load_analysis_plan(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "frame",
    [
        rows(5, 5).query("gender == 'men'"),
        pd.concat([rows(5, 5).query("gender == 'men'"), rows(1, 1, 1).query("gender == 'women'")]),
        rows(41, 41),
        rows(5, 5).assign(status="not_measurable", value=""),
        rows(5, 5).assign(gender=[f"g{i}" for i in range(82)]),
    ],
    ids=["one group", "a group of one", "all equal", "all missing", "too many groups"],
)
def test_rows_that_cannot_carry_a_verdict_are_exit_3(ask: Any, frame: pd.DataFrame) -> None:
    done = ask(frame, PLAN, "--json")
    assert done.exit_code == 3
    told = json.loads(done.stdout)["verdicts"]
    assert told
    assert {v["verdict"] for v in told} == {"inconclusive"}
    assert all(v["reason"] for v in told)
