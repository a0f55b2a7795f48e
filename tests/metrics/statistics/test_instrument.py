"""What the instrument adds by itself is taken off; what goes with the pictures is adjusted for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from domain.verdicts import VerdictKind
from metrics.statistics import ClaimSpec, StatisticsError, adjusted_difference, net_of_instrument
from tests.metrics.statistics.making_rows import rows_of

CLAIM = ClaimSpec(metric="flrr", attribute="gender", margin=2.0)


def test_a_gap_that_benign_copies_show_as_well_is_not_the_tools() -> None:
    rng = np.random.default_rng(0)
    own = {"men": rng.normal(-8, 3, 40), "women": rng.normal(0, 3, 40)}
    copies = rows_of({g: 100 + v for g, v in own.items()}, "flrr", "reencode")
    edited = rows_of({g: 95 + v + rng.normal(0, 1, 40) for g, v in own.items()}, "flrr", "tool")
    found = net_of_instrument(pd.concat([copies, edited]), attributes=["gender"], claims=[CLAIM])
    assert [v.tool for v in found] == ["tool"]
    assert found[0].verdict is VerdictKind.EQUIVALENT
    assert found[0].details["raw_effect"] == pytest.approx(-8, abs=2)
    assert found[0].estimates[0].estimate == pytest.approx(95, abs=0.5)


def test_without_copies_there_is_nothing_to_take_off() -> None:
    with pytest.raises(StatisticsError, match="no rows of the benign control 'reencode'"):
        net_of_instrument(rows_of({"a": [1.0, 2.0], "b": [2.0, 3.0]}), attributes=["gender"])


def test_the_adjusted_difference_is_the_regressions_group_coefficient() -> None:
    rng = np.random.default_rng(1)
    light = np.concatenate([rng.normal(40, 5, 60), rng.normal(60, 5, 60)])
    groups = np.repeat(["dark", "light"], 60)
    value = 0.1 * light + rng.normal(0, 0.5, 120)
    rows = rows_of({"dark": value[:60], "light": value[60:]}).assign(luminance=light)
    found = adjusted_difference(
        rows,
        tool="t",
        attribute="gender",
        groups=("dark", "light"),
        metric="m",
        covariates=["luminance"],
    )
    frame = pd.DataFrame({"y": value, "g": (groups == "dark").astype(float), "x": light})
    fit = smf.ols("y ~ g + x", frame).fit(cov_type="HC3", use_t=True)
    assert found.effect == pytest.approx(fit.params["g"])
    assert (found.low, found.high) == pytest.approx(tuple(fit.conf_int().loc["g"]))
    assert found.raw == pytest.approx(-2, abs=0.4)
    assert found.low < 0 < found.high


def test_adjusting_needs_enough_subjects_and_known_columns() -> None:
    rows = rows_of({"a": [1.0, 2.0], "b": [2.0, 3.0]}).assign(x=[1, 2, 3, 4])
    with pytest.raises(StatisticsError, match="too few"):
        adjusted_difference(
            rows, tool="t", attribute="gender", groups=("a", "b"), metric="m", covariates=["x"]
        )
    with pytest.raises(StatisticsError, match="no covariate column 'y'"):
        adjusted_difference(
            rows, tool="t", attribute="gender", groups=("a", "b"), metric="m", covariates=["y"]
        )
