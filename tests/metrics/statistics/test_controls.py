"""The controls' verdicts on instruments that work, and on instruments that do not."""

from __future__ import annotations

import numpy as np
import pandas as pd

from metrics.statistics import ControlCheck, check_controls
from tests.metrics.statistics.making_rows import rows_of

N = 30


def figures(
    tool: str, men: float, women: float, noise: float, metric: str = "detail_change"
) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    groups = {"men": men + noise * rng.normal(size=N), "women": women + noise * rng.normal(size=N)}
    return rows_of(groups, metric, tool)


def checked(*parts: pd.DataFrame) -> dict[str, ControlCheck]:
    found = check_controls(pd.concat(parts), attributes=["gender"], planted=("gender", "men"))
    return {c.control: c for c in found}


def test_a_working_instrument_finds_what_was_planted_and_nothing_else() -> None:
    found = checked(
        figures("identity", 0, 0, 0),
        figures("identity", 100, 100, 0, "flrr"),
        figures("reencode", -0.02, -0.03, 0.02),
        figures("uniform_harm", -1.2, -1.25, 0.3),
        figures("group_harm", -1.2, 0, 0.1),
    )
    assert set(found) == {"identity", "reencode", "uniform_harm", "group_harm"}
    assert all(c.ok for c in found.values()), found


def test_an_identity_that_is_not_perfect_is_named() -> None:
    rows = figures("identity", 0, 0, 0)
    rows.loc[7, "value"] = -0.01
    check = checked(rows)["identity"]
    assert not check.ok
    assert "1 of 60 figures are not perfect" in check.found
    assert "men-7" in check.found


def test_an_identity_that_loses_a_face_fails() -> None:
    rows = figures("identity", 0, 0, 0).assign(outcome="measured")
    rows.loc[0, "outcome"] = "face_lost"
    assert "face_lost" in checked(rows)["identity"].found


def test_an_instrument_that_sees_a_gap_in_mere_copies_fails() -> None:
    check = checked(figures("reencode", -0.6, 0, 0.1))["reencode"]
    assert not check.ok
    assert "men minus women" in check.found


def test_a_harm_that_was_planted_but_not_seen_fails() -> None:
    assert not checked(figures("uniform_harm", 0.0, 0.0, 0.05))["uniform_harm"].ok
    assert not checked(figures("group_harm", 0.0, 0.0, 0.05))["group_harm"].ok


def test_a_harm_seen_in_the_wrong_group_fails() -> None:
    assert not checked(figures("group_harm", 0.0, -1.2, 0.1))["group_harm"].ok


def test_labels_may_differ_from_the_controls_names_and_tools_are_passed_over() -> None:
    rows = pd.concat([figures("control: copy", 0, 0, 0.01), figures("a tool", -2, 0, 0.1)])
    found = check_controls(rows, attributes=["gender"], kinds={"control: copy": "reencode"})
    assert [(c.control, c.ok) for c in found] == [("control: copy", True)]


def test_three_faces_are_too_few_for_a_test_but_not_to_see_a_planted_harm() -> None:
    rows = figures("group_harm", -2.4, 0, 0.05)
    few = rows[rows.subject_id.str.endswith(("-0", "-1", "-2"))]
    few = few.groupby("gender").head(3)
    assert checked(few)["group_harm"].ok
    assert not checked(few.assign(value=few.value * 0.01))["group_harm"].ok


def test_with_one_subject_a_group_nothing_is_shown_and_nothing_failed() -> None:
    rows = figures("group_harm", -2.4, 0, 0.05)
    one = rows[rows.subject_id.str.endswith("-0")]
    check = checked(one)["group_harm"]
    assert check.ok is None and "one subject only" in check.found
