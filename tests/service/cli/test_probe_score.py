"""``likeness probe score``: answers made elsewhere, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from domain.errors import LikenessError
from service.cli import probe_score

KEYS = {
    "acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb", "s_amb_pct", "s_disamb_pct",
    "bias_max_amb", "bias_range_disamb", "bias_max_disamb_published", "unmatched", "out_of_choice",
    "no_unique_target", "by_category", "intervals", "n",
}  # fmt: skip


def run(*words: str) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)
    probe_score.add(app)
    return CliRunner().invoke(app, ["score", *words])


def scored(*words: str) -> dict[str, Any]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_json_has_every_figure_with_its_interval(data_dir: Path) -> None:
    rows = data_dir / "text" / "bbq_unifiedqa" / "Age.csv.gz"
    found = scored("--benchmark", "bbq", "--rows", str(rows), "--predictions", "pred_race")
    assert set(found) >= KEYS
    assert found["acc_amb"] == pytest.approx(1006 / 1840)
    assert round(found["s_amb_pct"], 1) == 29.8
    assert round(found["s_disamb_pct"], 1) == 1.2
    assert found["bias_range_disamb"] == pytest.approx([-240 / 1840, 240 / 1840])
    for name in KEYS & set(found["intervals"]) - {"bias_range_disamb"}:
        low, high = found["intervals"][name]
        assert low <= found[name] <= high
    wide, plain = found["intervals"]["acc_amb"], found["intervals_wilson"]["acc_amb"]
    assert wide[1] - wide[0] > 1.9 * (plain[1] - plain[0])
    assert found["by_category"]["Age"]["acc_amb"] == found["acc_amb"]
    assert found["n"] == {"ambiguous": 1840, "disambiguated": 1840}


def test_unmatched_answers_and_rows_without_a_target_are_counted(data_dir: Path) -> None:
    folder = data_dir / "text" / "bbq_unifiedqa"
    words = [w for c in ("Age", "Physical_appearance") for w in ("--rows", f"{folder}/{c}.csv.gz")]
    found = scored("--benchmark", "bbq", *words, "--predictions", "pred_qonly")
    assert (found["unmatched"], found["out_of_choice"], found["no_unique_target"]) == (2, 0, 36)
    assert set(found["by_category"]) == {"Age", "Physical_appearance"}


def test_lists_in_a_json_file_are_scored(data_dir: Path) -> None:
    folder = data_dir / "text" / "ggbbq"
    rows = [f"{folder}/paper_75a5cd0/subset1_{c}.jsonl" for c in ("amb", "disamb")]
    lists = f"{folder}/known_answers/subset1_policies.json"
    words = ["--benchmark", "ggbbq", "--rows", rows[0], "--rows", rows[1], "--predictions", lists]
    found = scored(*words, "--key", "all_out_of_choice")
    assert found["out_of_choice"] == 968
    assert found["acc_amb"] is None and found["bias_range_disamb"] is None
    assert found["reasons"]["acc_amb"] == "no ambiguous item has an answer"
    assert scored(*words, "--key", "always_biased")["diff_bias_amb"] == 1.0
    with pytest.raises(LikenessError, match="name one of always_unknown"):
        raise run(*words).exception or AssertionError


@pytest.mark.parametrize(
    ("benchmark", "rows", "column", "figure", "value"),
    [
        ("kobbq", "kobbq/test_samples.tsv", "biased_answer", "diff_bias_amb", 1.0),
        ("cbbq", "cbbq_gender/ambiguous.csv", "ans1", "acc_amb", 0.0),
        ("esbbq", "esbbq_cabbq_gender/gender_ca.csv.gz", "label", "acc_disamb", 1.0),
    ],
)
def test_a_column_of_any_of_the_sets_is_scored(
    data_dir: Path, benchmark: str, rows: str, column: str, figure: str, value: float
) -> None:
    path = data_dir / "text" / rows
    found = scored("--benchmark", benchmark, "--rows", str(path), "--predictions", column)
    assert found[figure] == value
    assert found["unmatched"] == 0


def test_a_readable_table_is_the_default(data_dir: Path) -> None:
    rows = data_dir / "text" / "bbq_unifiedqa" / "Disability_status.csv.gz"
    result = run("--benchmark", "bbq", "--rows", str(rows), "--predictions", "pred_arc")
    assert result.exit_code == 0
    assert "32.6 %" in result.stdout
    assert "rows of 25 templates" in result.stdout


def test_rankings_of_resumes_are_scored_too(data_dir: Path) -> None:
    rows = data_dir / "text" / "bloomberg_resume_ranking" / "rankings_gpt-3.5-turbo.jsonl.gz"
    found = scored("--benchmark", "resume_ranking", "--rows", str(rows))
    assert len(found["rows"]) == 32
    assert len(found["disparities"]) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--benchmark", "bqb", "--predictions", "x"), "did you mean 'bbq'"),
        (("--benchmark", "bbq"), "--predictions is needed"),
        (("--benchmark", "bbq", "--predictions", "pred_rase"), "did you mean 'pred_race'"),
        (("--benchmark", "resume_ranking", "--rows", "b.jsonl"), "one file of rows at a time"),
    ],
)
def test_mistakes_are_one_line(data_dir: Path, words: tuple[str, ...], told: str) -> None:
    rows = data_dir / "text" / "bbq_unifiedqa" / "Age.csv.gz"
    result = run("--rows", str(rows), *words)
    assert isinstance(result.exception, LikenessError)  # the entry point prints it and exits 2
    assert told in str(result.exception)
    assert "\n" not in str(result.exception)
