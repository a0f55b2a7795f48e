"""How much of a difference is the instrument's own, and how much goes with the pictures' facts.

Net: the same figures of a benign copy (the control that only re-encodes) are taken off, subject by
subject. Adjusted: a regression on source luminance, inter-eye distance, pose or baseline detail,
whose group coefficient stands beside the raw difference, never in its place.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from domain.verdicts import Verdict
from metrics.statistics.columns import ClaimSpec
from metrics.statistics.facts import facts
from metrics.statistics.permutation import Bools
from metrics.statistics.table import Floats, StatisticsError, Table, read
from metrics.statistics.verdicts import analyse_table


def net_of_instrument(
    rows: Any,
    *,
    control: str = "reencode",
    attributes: Sequence[str],
    claims: Sequence[ClaimSpec] = (),
    margins: Mapping[str, float] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[Verdict]:
    """Verdicts on figures less what the benign copy measures for the same subject.

    ``rows`` as for ``analyse``, with rows of the tool ``control`` among them. The figure keeps its
    scale: value - (copy - perfect). Events are counted on the net figure. A subject without a copy
    keeps no figure. details["raw_effect"] is the difference before. Raises StatisticsError where
    the control has no rows.
    """
    table = read(rows, [*dict.fromkeys([*attributes, *(c.attribute for c in claims)])])
    of_control = np.array([tool == control for tool, _ in table.arms])
    if not of_control.any():
        raise StatisticsError(f"no rows of the benign control '{control}'")
    ours = ~of_control[table.arm]
    net = _less_copy(table, ours)
    raw = analyse_table(
        _only(table, table.value, of_control), attributes, claims, margins, alpha, seed, False
    )
    after = analyse_table(
        _only(table, net, of_control), attributes, claims, margins, alpha, seed, False
    )
    before = {_key(v): v.effect for v in raw}
    return [
        dataclasses.replace(
            v, details={**v.details, "raw_effect": before.get(_key(v)), "net_of": control}
        )
        for v in after
    ]


def _less_copy(table: Table, ours: Bools) -> Floats:
    figures = max(len(table.figures), 1)
    cell = np.where(table.figure >= 0, table.subject.codes * figures + table.figure, 0)
    size = (int(table.subject.codes.max()) + 1) * figures
    copy = ~ours & np.isfinite(table.value) & (table.figure >= 0)
    count = np.bincount(cell[copy], minlength=size)
    total = np.bincount(cell[copy], table.value[copy], size)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    perfect = np.array([facts(metric).perfect for metric, _ in table.figures] or [0.0])
    return np.asarray(table.value - (mean[cell] - perfect[table.figure]))


def _only(table: Table, value: Floats, of_control: Bools) -> Table:
    """The table with other values and without the arms of the control."""
    keep = np.flatnonzero(~of_control)
    order = np.full(len(of_control), -1, dtype=np.int64)
    order[keep] = np.arange(len(keep))
    return dataclasses.replace(
        table, value=value, arm=order[table.arm], arms=[table.arms[i] for i in keep.tolist()]
    )


def _key(v: Verdict) -> tuple[Any, ...]:
    return v.tool, v.task, v.metric, v.details.get("region"), v.event, v.attribute, v.groups


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A group difference (first minus second) with covariates held equal, 95 %."""

    effect: float
    low: float
    high: float
    p: float
    raw: float
    n: int
    covariates: tuple[str, ...]


def adjusted_difference(
    rows: Any, *, tool: str, task: str = "", attribute: str, groups: tuple[str, str],
    metric: str, region: str = "face", covariates: Sequence[str],
) -> Adjusted:  # fmt: skip
    """Least squares of subject means on the group and ``covariates``, HC3 errors (MacKinnon and
    White 1985, statsmodels). Raises StatisticsError where too few subjects have everything."""
    from statsmodels.api import OLS, add_constant

    table = read(rows, [attribute], covariates)
    absent = [c for c in covariates if c not in table.extra]
    if absent:
        raise StatisticsError(f"no covariate column '{absent[0]}'")
    by = table.attributes[attribute]
    places = [by.names.index(g) if g in by.names else -2 for g in groups]
    if (metric, region) not in table.figures or (tool, task) not in table.arms:
        raise StatisticsError(f"no rows of '{metric}' ({region}) for tool '{tool}'")
    at = (
        (table.arm == table.arms.index((tool, task)))
        & (table.figure == table.figures.index((metric, region)))
        & np.isin(by.codes, places) & np.isfinite(table.value)
    )  # fmt: skip
    for c in covariates:
        at &= np.isfinite(table.extra[c])
    found, place = np.unique(table.subject.codes[at], return_inverse=True)
    if len(found) < len(covariates) + 4:
        raise StatisticsError(
            f"{len(found)} subjects are too few to adjust for {len(covariates)} covariates"
        )

    def mean(x: Floats) -> Floats:
        return np.asarray(np.bincount(place, x) / np.bincount(place))

    first = mean((by.codes[at] == places[0]).astype(np.float64))
    y = mean(table.value[at])
    design = add_constant(
        np.column_stack([first, *(mean(table.extra[c][at]) for c in covariates)]),
        has_constant="add",
    )
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise StatisticsError("group and covariates cannot be told apart in these rows")
    fit = OLS(y, design).fit(cov_type="HC3", use_t=True)
    reach = float(stats.t.ppf(0.975, len(y) - design.shape[1])) * float(fit.bse[1])
    effect = float(fit.params[1])
    raw = (
        float(y[first > 0.5].mean() - y[first <= 0.5].mean())
        if 0 < first.sum() < len(first)
        else math.nan
    )
    return Adjusted(
        effect,
        effect - reach,
        effect + reach,
        float(fit.pvalues[1]),
        raw,
        len(y),
        tuple(covariates),
    )
