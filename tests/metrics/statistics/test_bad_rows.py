"""Rows that cannot carry a verdict: a stated reason or one clear line, never a verdict."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from domain.verdicts import Verdict, VerdictKind
from metrics.statistics import ClaimSpec, StatisticsError, analyse
from tests.metrics.statistics.making_rows import rows_of

CLAIMS = [
    ClaimSpec(metric="m", attribute="gender", margin=0.5),
    ClaimSpec(metric="m", attribute="gender", event="below", threshold=0),
]
RNG = np.random.default_rng(0)


def judged(rows: pd.DataFrame) -> list[Verdict]:
    return analyse(rows, attributes=["gender"], claims=CLAIMS)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (rows_of({"a": RNG.normal(0, 1, 30)}), "one group only"),
        (rows_of({"a": RNG.normal(0, 1, 30), "b": [5.0]}), "one subject only"),
        (rows_of({"a": [1.0], "b": [5.0]}), "one subject only"),
        (rows_of({"a": [7.0] * 30, "b": [7.0] * 30}), "all values are equal"),
        (rows_of({"a": [1.0, 2.0], "b": [1.0, 3.0]}), "with so few subjects no test"),
        (rows_of({"": RNG.normal(0, 1, 30)}), "no subject has a value of 'gender'"),
        (rows_of({f"g{i}": [float(i)] for i in range(10_000)}), "10,000 groups"),
    ],
    ids=[
        "one group",
        "a group of one",
        "two of one",
        "all equal",
        "tiny",
        "no attribute",
        "10,000 groups",
    ],
)
def test_it_is_inconclusive_and_says_why(rows: pd.DataFrame, reason: str) -> None:
    found = judged(rows)
    assert found
    assert {v.verdict for v in found} == {VerdictKind.INCONCLUSIVE}
    assert all(v.reason and v.sentence for v in found)
    assert any(reason in (v.reason or "") for v in found)


def test_all_missing_is_inconclusive() -> None:
    rows = rows_of({"a": [0.0] * 9, "b": [0.0] * 9}).assign(value=math.nan, status="not_measurable")
    found = judged(rows)
    assert {v.verdict for v in found if v.metric == "m"} == {VerdictKind.INCONCLUSIVE}
    assert "no figure was measured" in (found[0].reason or "")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "", "NaN", "inf", "abc", None])
def test_a_measured_row_without_a_finite_figure_is_an_error_that_names_its_line(
    value: object,
) -> None:
    rows = rows_of({"a": RNG.normal(0, 1, 9), "b": RNG.normal(0, 1, 9)}).astype({"value": object})
    rows.loc[3, "value"] = value
    with pytest.raises(
        StatisticsError, match=r"^line 5: value '.*' is not a .*status is 'measured'"
    ):
        judged(rows)


def test_a_missing_row_may_hold_anything_as_its_value() -> None:
    rows = rows_of({"a": RNG.normal(0, 1, 9), "b": RNG.normal(0, 1, 9)}).astype({"value": object})
    rows.loc[3, ["value", "status"]] = ["-", "not_measurable"]
    assert judged(rows)[0].n == {"a": 8, "b": 9}


def test_an_unknown_attribute_or_metric_gets_its_near_miss() -> None:
    rows = rows_of({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(StatisticsError, match="no attribute 'gendr'; did you mean 'gender'"):
        analyse(rows, attributes=["gendr"])
    with pytest.raises(StatisticsError, match="no row has this metric"):
        analyse(rows, attributes=["gender"], claims=[ClaimSpec(metric="flrr", attribute="gender")])


def test_no_rows_and_no_subject_are_errors() -> None:
    with pytest.raises(StatisticsError, match="no rows"):
        analyse([], attributes=["gender"])
    rows = rows_of({"a": [1.0, 2.0]})
    rows.loc[1, "subject_id"] = ""
    with pytest.raises(StatisticsError, match="line 3: subject_id is empty"):
        analyse(rows, attributes=["gender"])
    with pytest.raises(StatisticsError, match="no column 'value'"):
        analyse(rows.drop(columns="value"), attributes=["gender"])


def test_an_event_needs_its_threshold() -> None:
    rows = rows_of({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    claim = ClaimSpec(metric="m", attribute="gender", event="below")
    with pytest.raises(StatisticsError, match="go together"):
        analyse(rows, attributes=["gender"], claims=[claim])


def test_plain_rows_serve_as_well_as_a_frame() -> None:
    rows = rows_of({"a": RNG.normal(0, 1, 9), "b": RNG.normal(0, 1, 9)})
    assert judged(rows.to_dict("records")) == judged(rows)  # type: ignore[arg-type]
