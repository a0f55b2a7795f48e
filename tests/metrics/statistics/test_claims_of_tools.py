"""A claim may be put to some tools only: they alone share its correction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from domain.verdicts import Verdict
from metrics.statistics import ClaimSpec, analyse
from tests.metrics.statistics.making_rows import rows_of


def figures(seed: int, gap: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"men": rng.normal(gap, 1, 30), "women": rng.normal(0, 1, 30)}


@pytest.fixture
def three_tools() -> pd.DataFrame:
    return pd.concat(
        [rows_of(figures(i, 0.8 if tool == "a" else 0.0), tool=tool) for i, tool in enumerate("abc")],
        ignore_index=True,
    )  # fmt: skip


def families(found: list[Verdict]) -> dict[str, str]:
    return {v.tool: str(v.details["family"]) for v in found}


def claim(*tools: str) -> ClaimSpec:
    return ClaimSpec(metric="m", attribute="gender", margin=0.5, tools=list(tools))


def test_the_other_tools_are_explored_and_none_is_asked_twice(three_tools: pd.DataFrame) -> None:
    found = analyse(three_tools, attributes=["gender"], claims=[claim("a")])
    assert families(found) == {"a": "named", "b": "exploratory", "c": "exploratory"}
    assert len(found) == 3


def test_a_claim_of_one_tool_is_not_corrected_for_the_others(three_tools: pd.DataFrame) -> None:
    rows = three_tools
    alone = analyse(rows[rows.tool == "a"], attributes=["gender"], claims=[claim()], explore=False)
    [named] = analyse(rows, attributes=["gender"], claims=[claim("a")], explore=False)
    every = analyse(rows, attributes=["gender"], claims=[claim()], explore=False)
    assert named.p_adjusted == alone[0].p_adjusted
    of_a = next(v for v in every if v.tool == "a")
    assert named.p_adjusted is not None and of_a.p_adjusted is not None
    assert named.p_adjusted < of_a.p_adjusted


def test_a_question_asked_of_all_and_of_one_is_one_question(three_tools: pd.DataFrame) -> None:
    both = analyse(three_tools, attributes=["gender"], claims=[claim(), claim("a")], explore=False)
    every = analyse(three_tools, attributes=["gender"], claims=[claim()], explore=False)
    assert both == every
