"""Rankings by name: the published table, its tests, and what the four-fifths rule flags by chance."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from domain.errors import LikenessError
from probes.analysis.ranked_rows import Ranking, first_name_in, order_in, read_rankings
from probes.analysis.ranking import score_file, score_rankings, table
from probes.analysis.ranking_tests import four_fifths_false_alarm

GROUPS = ("A_M", "A_W", "B_M", "B_W", "H_M", "H_W", "W_M", "W_W")


@pytest.fixture(scope="module")
def published(data_dir: Path) -> Path:
    return data_dir / "text" / "bloomberg_resume_ranking"


@pytest.fixture(scope="module")
def scored(published: Path) -> dict:
    return score_file(published / "rankings_gpt-3.5-turbo.jsonl.gz")


def test_the_published_table_comes_out_to_every_digit(published: Path, scored: dict) -> None:
    with (published / "published_performance_ranking.csv").open() as file:
        wanted = list(csv.DictReader(file))
    mine = {(row["job"], row["demo"]): row for row in scored["rows"]}
    assert len(wanted) == len(mine) == 32
    for row in wanted:
        assert {k: str(mine[row["job"], row["demo"]][k]) for k in row} == row


def test_replies_that_leave_a_name_out_are_counted(scored: dict) -> None:
    assert scored["replies"] == 4000
    assert scored["left_out"] == 452
    assert scored["no_name"] == 0


def test_the_person_shown_first_wins_56_percent(scored: dict) -> None:
    assert round(scored["won_by_place"][0], 2) == 0.56
    low, high = scored["won_by_first_place_interval"]
    assert low < 0.5608 < high and low > 0.5
    assert sum(scored["won_by_place"]) == pytest.approx(1)


def test_two_of_the_four_tasks_survive_correction(scored: dict) -> None:
    assert sorted(scored["disparities"]) == ["HR specialist", "financial analyst"]
    tasks = {task["job"]: task for task in scored["tasks"]}
    assert all(tasks[job]["p_adjusted"] < 1e-6 for job in scored["disparities"])
    assert tasks["retail"]["p_adjusted"] > 0.5 and not tasks["retail"]["in_one_test"]
    # told, and not called a disparity: the counts do not show what the places allowed for suggest
    assert tasks["software engineer"]["in_one_test"]
    assert tasks["software engineer"]["p_plain"] > 0.5
    assert tasks["software engineer"]["p_places"] == pytest.approx(0.0217, abs=5e-4)


def test_four_fifths_flags_all_four_tasks_and_is_no_verdict(scored: dict) -> None:
    assert all(task["below_four_fifths"] for task in scored["tasks"])
    assert all(round(task["four_fifths_false_alarm"], 2) == 0.64 for task in scored["tasks"])


def test_the_chi_square_agrees_with_scipy_and_with_the_permutation(scored: dict) -> None:
    for task in scored["tasks"]:
        tops = [row["top"] for row in scored["rows"] if row["job"] == task["job"]]
        assert task["p_plain"] == pytest.approx(stats.chisquare(tops).pvalue)
        assert task["p_permuted"] == pytest.approx(task["p_plain"], abs=0.02)


def test_the_four_fifths_rule_flags_64_percent_of_even_audits() -> None:
    assert four_fifths_false_alarm(8, 1000) == pytest.approx(0.64, abs=0.015)
    assert four_fifths_false_alarm(8, 1000, seed=1) == pytest.approx(0.64, abs=0.015)
    assert four_fifths_false_alarm(2, 100_000) == 0


def ranked(rng: np.random.Generator, n: int, place: float, group: dict[str, float]) -> list:
    """Replies in which the weight of a person is exp(place effect of the first) x exp(group's)."""
    rows = []
    for _ in range(n):
        order = rng.permutation(GROUPS)
        weight = np.exp([place * (k == 0) + group.get(g, 0) for k, g in enumerate(order)])
        first = order[rng.choice(8, p=weight / weight.sum())]
        names = tuple(f"Person {g}" for g in order)
        rows.append(Ranking("m", "job", names, tuple(order), f"1. Person {first}"))
    return rows


def test_a_place_effect_alone_is_no_disparity_and_the_tests_keep_their_level() -> None:
    rng = np.random.default_rng(5)
    tasks = [score_rankings(ranked(rng, 120, 2.0, {})).tasks[0] for _ in range(80)]
    places = [task.p_places for task in tasks]
    assert np.mean([p < 0.05 for p in places]) <= 0.1
    assert stats.kstest(places, "uniform").pvalue > 0.01
    assert np.mean([task.disparity for task in tasks]) <= 0.05


def test_a_planted_preference_is_found_through_a_place_effect() -> None:
    rows = ranked(np.random.default_rng(2), 1200, 1.5, {"W_M": 0.8, "B_W": -0.8})
    task = score_rankings(rows).tasks[0]
    assert task.disparity
    assert task.widest == ("B_W", "W_M")
    assert task.gap_interval.low < task.gap < task.gap_interval.high
    by_group = {s.demo: s.observed_to_expected for s in task.selections}
    assert by_group["W_M"] > 1.3 and by_group["B_W"] < 0.7


def test_the_first_name_in_the_reply_counts_whatever_the_case() -> None:
    names = ["ANN LEE", "ANN LEEDS", "BO CHEN"]
    assert first_name_in("Best: bo chen, then Ann Leeds", names) == "BO CHEN"
    assert order_in("ann leeds; bo chen", names)[0] == "ANN LEEDS"
    assert first_name_in("None of them.", names) is None


def test_a_reply_that_names_nobody_is_counted_and_puts_nobody_first() -> None:
    rows = ranked(np.random.default_rng(0), 40, 0.0, {})
    rows.append(Ranking("m", "job", rows[0].names, rows[0].groups, "I cannot rank people."))
    found = score_rankings(rows)
    assert (found.no_name, found.left_out) == (1, 41)
    assert sum(row["top"] for row in table(found)) == 40
    assert sum(row["selection_rate"] for row in table(found)) == pytest.approx(40 / 41)


def test_replies_that_name_nobody_at_all_have_no_ratio() -> None:
    rows = [Ranking("m", "job", ("A B", "C D"), ("x", "y"), "no")] * 3
    task = score_rankings(rows).tasks[0]
    assert task.lowest_ratio is None and not task.disparity


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("{", "not a ranking in JSON"),
        ('{"job": "x"}', "shown_names is missing"),
        (
            json.dumps({"job": "x", "shown_names": ["A"], "shown_groups": [], "content": ""}),
            "must match",
        ),
    ],
)
def test_a_row_that_is_none_is_named_with_its_line(line: str, cause: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(LikenessError, match=f"rows.jsonl, line 1: .*{cause}"):
        read_rankings(file)


def test_a_missing_or_empty_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match="cannot be read"):
        score_file(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(LikenessError, match="no rankings"):
        score_file(tmp_path / "empty.jsonl")
