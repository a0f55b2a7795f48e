"""The numbers of the occupation association: log-odds by occupation and template, and what pools them.

A cell is one occupation in one template. Its log-odds (natural logarithm, men against women) less
those of the neutral word in the same template are its leaning; tanh of half of it is P(men) - P(women)
for someone to whom the neutral word gives one half each: in [-1, 1], plus towards men.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from probes.analysis.bootstrap import FEW, cluster_bootstrap
from probes.calls import Reading, Status
from probes.results import Interval

Floats = npt.NDArray[np.float64]
EDGE = 0.005
"""A stated share counts as no nearer to 0 or 1 than this: log-odds of "100 %" are not infinite."""
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Grid:
    """``raw`` (occupations, templates) and ``neutral`` (templates): log-odds in nats, NaN where
    there are none."""

    raw: Floats
    neutral: Floats

    @property
    def leaning(self) -> Floats:
        """Log-odds less those of the neutral word."""
        return self.raw - self.neutral

    @property
    def index(self) -> Floats:
        """Leaning in [-1, 1]."""
        return np.tanh(self.leaning / 2)


def grid(
    readings: Sequence[Reading],
    occupations: Sequence[str],
    templates: Sequence[str],
    neutral: str,
    arms: tuple[str, str],
) -> Grid:
    """Cells from readings of one stage. Where arms are compared a cell needs both of them."""
    held: dict[tuple[str, str], list[Reading]] = defaultdict(list)
    for reading in readings:
        if reading.status is Status.ANSWERED:
            facts = reading.call.facts
            held[facts["occupation"], facts["template"]].append(reading)
    rows = [*occupations, neutral]
    cells = np.array([[cell_log_odds(held[o, t], arms) for t in templates] for o in rows], float)
    return Grid(cells[:-1], cells[-1])


def cell_log_odds(answered: Sequence[Reading], arms: tuple[str, str]) -> float:
    """Log-odds of one cell from its answers, NaN where they do not suffice.

    Log-odds are averaged. Stated shares are averaged within each arm, then over both arms, so that a
    liking for high numbers cancels. Choices give (x + 1/2) / (n + 1) within each arm, so that a
    liking for the first word cancels.
    """
    if not answered:
        return math.nan
    mode = answered[0].call.facts["mode"]
    if mode == "next_token":
        return float(np.mean([r.value for r in answered if r.value is not None]))
    by_arm = [[r for r in answered if r.call.arm == arm] for arm in arms]
    if not all(by_arm):
        return math.nan
    if mode == "choice":
        rates = [(sum(r.label == "men" for r in a) + 0.5) / (len(a) + 1) for a in by_arm]
    else:
        rates = [float(np.mean([r.value for r in a if r.value is not None])) for a in by_arm]
    return logit(float(np.mean(rates)))


def logit(share: float) -> float:
    """log(share / (1 - share)) in nats, with ``share`` held within [EDGE, 1 - EDGE]."""
    held = min(1 - EDGE, max(EDGE, share))
    return math.log(held / (1 - held))


def mean_of(cells: Floats) -> float | None:
    """Mean of the cells that there are; None where there are none."""
    known = cells[np.isfinite(cells)]
    return float(known.mean()) if known.size else None


def pooled(cells: Floats, seed: int) -> tuple[float | None, Interval | None]:
    """Mean over occupations and templates, with an interval for others of both kinds.

    From ``FEW`` of each on: occupations and templates are drawn independently (the pigeonhole
    bootstrap of Owen 2007, on the wide side by design), with expanded percentiles as in
    ``analysis.bootstrap``. With fewer: t with the variances of both sets of means added up. With
    one of either kind: clusters of the other alone, unless several were asked about and one is left:
    how these differ is not known then, and there is no interval.
    """
    known = np.isfinite(cells)
    table = cells[known.any(axis=1)][:, known.any(axis=0)]
    value = mean_of(table)
    rows, columns = table.shape
    least = min(rows, columns)
    left_alone = (rows == 1 < cells.shape[0]) or (columns == 1 < cells.shape[1])
    if value is None or max(rows, columns) < 2 or left_alone:
        return value, None
    if least == 1:
        return cluster_bootstrap([[v] for v in table.ravel() if math.isfinite(v)], seed)
    t = float(stats.t.ppf(0.975, least - 1))
    if least < FEW:
        half = t * math.sqrt(_variance(table, 0) + _variance(table, 1))
        method = f"t, variance over {rows} occupations plus that over {columns} templates"
        return value, Interval(max(-1.0, value - half), min(1.0, value + half), method)
    drawn = _pigeonhole(table, seed)
    tail = float(stats.norm.sf(t * math.sqrt(least / (least - 1))))
    low, high = np.quantile(drawn[np.isfinite(drawn)], [tail, 1 - tail])
    method = f"bootstrap over {rows} occupations and {columns} templates, expanded percentiles"
    return value, Interval(float(low), float(high), method)


def _variance(table: Floats, axis: int) -> float:
    means = np.nanmean(table, axis=axis)
    return float(means.var(ddof=1) / len(means))


def _pigeonhole(table: Floats, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    rows, columns = table.shape
    by_row = rng.multinomial(rows, np.full(rows, 1 / rows), DRAWS).astype(float)
    by_column = rng.multinomial(columns, np.full(columns, 1 / columns), DRAWS).astype(float)
    known = np.isfinite(table)
    total = ((by_row @ np.where(known, table, 0.0)) * by_column).sum(axis=1)
    weight = ((by_row @ known.astype(float)) * by_column).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / weight, float)


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r with Fisher's interval and Spearman's rho over ``n`` occupations; ``reason`` says
    why there is none."""

    r: float | None
    interval: Interval | None
    p_value: float | None
    rho: float | None
    n: int
    reason: str = ""


def correlation(leaning: Mapping[str, float | None], shares: Mapping[str, float]) -> Correlation:
    """Leaning towards women (the log-odds turned round) against shares of women."""
    pairs = [
        (-value, shares[name])
        for name, value in leaning.items()
        if value is not None and name in shares
    ]
    if not shares:
        return Correlation(None, None, None, None, 0, "no reference shares are known for these")
    if len(pairs) < 4:
        return Correlation(None, None, None, None, len(pairs), "fewer than 4 occupations have both")
    xs, ys = (np.array(side, float) for side in zip(*pairs, strict=True))
    if np.ptp(xs) < 1e-12 or np.ptp(ys) < 1e-12:
        return Correlation(None, None, None, None, len(pairs), "one of the two does not vary")
    found = stats.pearsonr(xs, ys)
    span = found.confidence_interval(0.95)
    return Correlation(
        float(found.statistic),
        Interval(float(span.low), float(span.high), "Fisher z"),
        float(found.pvalue),
        float(stats.spearmanr(xs, ys).statistic),
        len(pairs),
    )
