import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import SquareTable

from probes.analysis import tests


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> dict[str, Any]:
    text = (data_dir / "text" / "metrics_cases" / "cases.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("number", range(5))
def test_every_mcnemar_case_on_disk_comes_out_the_same(cases: dict[str, Any], number: int) -> None:
    assert len(cases["mcnemar"]) == 5
    case = cases["mcnemar"][number]
    assert tests.mcnemar_exact(case["b"], case["c"]).p == pytest.approx(case["exact_p"])


@pytest.mark.parametrize("number", range(2))
def test_every_stuart_maxwell_case_on_disk_comes_out_the_same(
    cases: dict[str, Any], number: int
) -> None:
    assert len(cases["stuart_maxwell"]) == 2
    case = cases["stuart_maxwell"][number]
    found = tests.stuart_maxwell(case["table"])
    assert found.statistic == pytest.approx(case["chi2"])
    assert found.df == case["df"]
    assert found.p == pytest.approx(case["p"])


@pytest.mark.parametrize("number", range(3))
def test_every_sign_flip_case_on_disk_comes_out_the_same(
    cases: dict[str, Any], number: int
) -> None:
    assert len(cases["sign_flip"]) == 3
    case = cases["sign_flip"][number]
    found = tests.sign_flip(case["diffs"], seed=1)
    assert found.statistic == pytest.approx(case["mean"])
    assert found.p == pytest.approx(case["exact_two_sided_p"])


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 8])
def test_every_fisher_case_on_disk_comes_out_the_same(cases: dict[str, Any], number: int) -> None:
    case = cases["proportion_pairs"][number]
    found = tests.fisher(case["xa"], case["na"], case["xb"], case["nb"])
    assert found.p == pytest.approx(case["fisher_exact_p"])


def test_fisher_with_an_empty_arm_has_a_reason_and_no_p() -> None:
    assert tests.fisher(0, 0, 3, 50).p is None
    assert tests.fisher(0, 0, 3, 50).reason


def test_counts_that_cannot_be_are_mistakes() -> None:
    with pytest.raises(ValueError, match="5 of 4"):
        tests.fisher(5, 4, 0, 4)
    with pytest.raises(ValueError, match="negative"):
        tests.mcnemar_exact(-1, 2)
    with pytest.raises(ValueError, match="square"):
        tests.stuart_maxwell([[1, 2, 3], [1, 2, 3]])
    with pytest.raises(ValueError, match="whole"):
        tests.stuart_maxwell([[1, -2], [1, 2]])
    with pytest.raises(ValueError, match="finite"):
        tests.sign_flip([0.1, float("nan")], seed=1)


def test_few_discordant_pairs_are_told() -> None:
    assert "cannot be below 0.05" in tests.mcnemar_exact(5, 0).note
    assert tests.mcnemar_exact(6, 0).note == ""


def test_labels_nobody_uses_leave_stuart_maxwell_as_it_is() -> None:
    small = tests.stuart_maxwell([[20, 10, 5], [3, 30, 15], [0, 5, 40]])
    wide = tests.stuart_maxwell([[20, 10, 0, 5], [3, 30, 0, 15], [0, 0, 0, 0], [0, 5, 0, 40]])
    assert (wide.p, wide.df) == (pytest.approx(small.p), small.df)
    assert "1 label(s)" in wide.note


def test_a_label_only_ever_kept_is_left_out_like_an_empty_one() -> None:
    found = tests.stuart_maxwell([[10, 4, 0], [1, 15, 0], [0, 0, 9]])
    assert found.statistic == pytest.approx(1.8)
    assert found.df == 1


def test_no_pair_that_changed_is_no_evidence_and_no_pair_is_no_test() -> None:
    assert tests.stuart_maxwell([[5, 0], [0, 3]]).p == 1.0
    nothing = tests.stuart_maxwell([[0, 0], [0, 0]])
    assert nothing.p is None
    assert nothing.reason


def test_two_groups_of_labels_that_exchange_nothing_add_up() -> None:
    first, second = [[1, 9], [2, 1]], [[4, 12], [3, 2]]
    both = np.zeros((4, 4), int)
    both[:2, :2], both[2:, 2:] = first, second
    found = tests.stuart_maxwell(both)
    parts = [tests.stuart_maxwell(t).statistic for t in (first, second)]
    assert found.statistic == pytest.approx(sum(p for p in parts if p is not None))
    assert found.df == 2
    assert "2 groups" in found.note


def test_random_tables_agree_with_statsmodels() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        table = rng.integers(1, 30, (4, 4))
        reference = SquareTable(table, shift_zeros=False).homogeneity(method="stuart_maxwell")
        assert tests.stuart_maxwell(table).p == pytest.approx(float(reference.pvalue))


def test_sign_flips_agree_with_scipys_permutation_test() -> None:
    diffs = np.random.default_rng(4).normal(0.3, 1, 9)
    reference = stats.permutation_test(
        (diffs,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert tests.sign_flip(list(diffs), seed=1).p == pytest.approx(float(reference.pvalue))


def test_many_differences_are_drawn_with_the_seed_and_come_near_the_exact_p() -> None:
    diffs = list(np.random.default_rng(5).normal(0.4, 1, 17))
    drawn = tests.sign_flip(diffs, seed=1)
    assert drawn == tests.sign_flip(diffs, seed=1)
    every = tests.all_signs(17) @ np.array(diffs)
    exact = float((np.abs(every) >= abs(sum(diffs)) - 1e-9).mean())
    assert drawn.p == pytest.approx(exact, abs=0.01)
    assert drawn.p is not None
    assert drawn.p > 0


def test_nothing_to_flip_has_a_reason_and_few_differences_a_note() -> None:
    assert tests.sign_flip([], seed=1).p is None
    assert tests.sign_flip([0.4], seed=1).p == 1.0
    assert "cannot be below" in tests.sign_flip([0.2, 0.3, 0.4], seed=1).note


def test_with_no_difference_the_tests_alarm_at_most_five_times_in_a_hundred() -> None:
    rng = np.random.default_rng(12)
    alarms = np.zeros(4)
    rounds = 400
    for seed in range(rounds):
        xa, xb = rng.binomial(50, 0.3, 2)
        pairs = rng.multinomial(60, np.outer([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]).ravel())
        table = pairs.reshape(3, 3)
        found = [
            tests.fisher(int(xa), 50, int(xb), 50),
            tests.mcnemar_exact(int(table[0, 1]), int(table[1, 0])),
            tests.stuart_maxwell(table),
            tests.sign_flip(list(rng.standard_t(3, 8)), seed),
        ]
        alarms += [t.p is not None and t.p <= 0.05 for t in found]
    # 1.96 standard errors of 0.05 over 400 rounds are 0.021
    assert (alarms / rounds <= 0.05 + 0.021).all(), alarms / rounds
