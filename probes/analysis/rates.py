"""Rates, their differences and ratios, each with its interval; an empty arm gives None, never 0.

Formulas with their sources are in docs/probes/analysis.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from probes.results import Grade, Interval

FLOOR = 0.005
"""Least P_B for which a ratio P_A / P_B is shown."""
BEYOND = 3.0
"""A ratio matters above this, and below one over this."""
MATTERS = 1.25
"""A ratio that is certain and lies within [1/1.25, 1.25] (four fifths) is graded ``low``."""
RatioStatus = Literal["ok", "both_zero", "denominator_below_floor", "no_samples"]
Side = Literal["above", "below", "neither"]


def wilson(x: int, n: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval of the rate ``x / n`` (Wilson 1927); None when ``n`` is 0.

    Raises ValueError unless 0 <= x <= n.
    """
    if n == 0:
        return None
    _check(x, n)
    low, high = proportion_confint(x, n, alpha=1 - level, method="wilson")
    return Interval(max(0.0, float(low)), min(1.0, float(high)), "wilson", level)


def difference(xa: int, na: int, xb: int, nb: int) -> float | None:
    """P_A - P_B, in [-1, 1]; None when an arm is empty."""
    if na == 0 or nb == 0:
        return None
    _check(xa, na)
    _check(xb, nb)
    return xa / na - xb / nb


def newcombe(xa: int, na: int, xb: int, nb: int, level: float = 0.95) -> Interval | None:
    """Newcombe's hybrid score interval of P_A - P_B for independent arms (Newcombe 1998, method 10);
    None when an arm is empty. Pooled over templates it is too narrow: use ``bootstrap``."""
    if difference(xa, na, xb, nb) is None:
        return None
    return _newcombe(xa, na, xb, nb, level)


def ratio(xa: int, na: int, xb: int, nb: int) -> tuple[float | None, RatioStatus]:
    """RBR = P_A / P_B where P_B is at least ``FLOOR``, else None with the status that says why."""
    if na == 0 or nb == 0:
        return None, "no_samples"
    _check(xa, na)
    _check(xb, nb)
    if xa == 0 and xb == 0:
        return None, "both_zero"
    if xb / nb < FLOOR:
        return None, "denominator_below_floor"
    return (xa / na) / (xb / nb), "ok"


def smoothed_log2_ratio(
    xa: int, na: int, xb: int, nb: int, level: float = 0.95
) -> tuple[float | None, Interval | None]:
    """log2 of ((x_A + .5)/(n_A + 1)) / ((x_B + .5)/(n_B + 1)) with its normal interval on that scale
    (Walter 1975; Katz et al. 1978); None twice when an arm is empty. 0 is no difference."""
    if difference(xa, na, xb, nb) is None:
        return None, None
    value = math.log2((xa + 0.5) / (na + 1) / ((xb + 0.5) / (nb + 1)))
    variance = 1 / (xa + 0.5) - 1 / (na + 1) + 1 / (xb + 0.5) - 1 / (nb + 1)
    half = float(stats.norm.ppf(0.5 + level / 2)) * math.sqrt(variance) / math.log(2)
    return value, Interval(value - half, value + half, "log ratio, half added", level)


def beyond(low_log2: float, high_log2: float, limit: float = BEYOND) -> Side:
    """Whether an interval of log2 ratios lies wholly above ``limit``, wholly below 1/``limit``, or
    neither. Give a value twice to judge the value alone."""
    edge = math.log2(limit)
    if low_log2 > edge:
        return "above"
    return "below" if high_log2 < -edge else "neither"


def grade(log2: float | None, interval: Interval | None) -> Grade:
    """Grade of a ratio by where its interval of log2 ratios lies.

    ``undefined`` without one; ``not_shown`` where it includes 1; ``high`` wholly beyond 3 or 1/3;
    else ``low`` where the ratio itself is within [1/1.25, 1.25], ``elevated`` outside that.
    """
    if log2 is None or interval is None:
        return "undefined"
    if not interval.excludes(0.0):
        return "not_shown"
    if beyond(interval.low, interval.high) != "neither":
        return "high"
    return "elevated" if abs(log2) > math.log2(MATTERS) else "low"


def expected_bbs_without_difference(p: float, n: int, n_b: int | None = None) -> float | None:
    """Mean of |P_A - P_B| when both arms have the rate ``p``: what BBS shows for no difference at all
    (0.047 at p = 0.1, n = 50). ``n_b`` is arm B's size where it differs; None for an empty arm."""
    return _moments(p, n, p, n if n_b is None else n_b)[0]


def bias_stability(
    xa: float, na: int, xb: float, nb: int, interval: Interval | None = None
) -> tuple[float | None, str]:
    """BS = standard deviation / mean of BBS over a bootstrap of the draws, at least 0, with "" or the
    reason why there is none.

    The bootstrap is of independent draws within each arm, whose distribution is binomial and known:
    its moments are computed rather than simulated, so there is no seed. Only where delta's
    ``interval`` (Newcombe's unless given) excludes 0: elsewhere the mean of BBS is its upward bias
    and the quotient says nothing. ``xa`` may be a fraction (a rate times ``na``).
    """
    if na == 0 or nb == 0:
        return None, "an arm has no samples"
    _check(xa, na)
    _check(xb, nb)
    if not (interval or _newcombe(xa, na, xb, nb, 0.95)).excludes(0.0):
        return None, "the interval of the difference includes 0"
    mean, square = _moments(xa / na, na, xb / nb, nb)
    if not mean or square is None:
        return None, "there is no difference in any draw"
    return math.sqrt(max(0.0, square - mean**2)) / mean, ""


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's t interval of the mean; None with fewer than two values."""
    if len(values) < 2:
        return None
    data = np.asarray(values, float)
    middle, spread = float(data.mean()), float(data.std(ddof=1))
    half = float(stats.t.ppf(0.5 + level / 2, len(data) - 1)) * spread / math.sqrt(len(data))
    return Interval(middle - half, middle + half, f"t over {len(data)} values", level)


def _check(x: float, n: int) -> None:
    if n < 0 or not 0 <= x <= n:
        raise ValueError(f"a rate needs 0 <= count <= total, not {x} of {n}")


def _newcombe(xa: float, na: int, xb: float, nb: int, level: float) -> Interval:
    low, high = confint_proportions_2indep(
        xa, na, xb, nb, compare="diff", method="newcomb", alpha=1 - level
    )
    return Interval(max(-1.0, float(low)), min(1.0, float(high)), "newcombe", level)


def _moments(pa: float, na: int, pb: float, nb: int) -> tuple[float | None, float | None]:
    """Mean and mean square of |A/na - B/nb| for independent binomials; folded normal when large."""
    if na <= 0 or nb <= 0:
        return None, None
    mean, variance = pa - pb, pa * (1 - pa) / na + pb * (1 - pb) / nb
    square = mean**2 + variance
    if na + nb > 20_000:
        sd = math.sqrt(variance)
        if sd == 0:
            return abs(mean), square
        return float(stats.foldnorm.mean(abs(mean) / sd) * sd), square
    # E|X - Y| is the integral of F(1 - G) + G(1 - F), and both are steps
    xs, ys = np.arange(na + 1) / na, np.arange(nb + 1) / nb
    steps = np.union1d(xs, ys)
    below_a, below_b = (
        np.cumsum(stats.binom.pmf(np.arange(n + 1), n, p))[np.searchsorted(at, steps, "right") - 1]
        for at, n, p in ((xs, na, pa), (ys, nb, pb))
    )
    apart = below_a * (1 - below_b) + below_b * (1 - below_a)
    return float((np.diff(steps) * apart[:-1]).sum()), square
