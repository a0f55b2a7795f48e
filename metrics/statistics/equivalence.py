"""Two one-sided tests: is the difference shown to lie within the margin? (Schuirmann 1987)"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from metrics.statistics.intervals import Floats, Summary, newcombe, welch_df


def tost_means(a: Summary, b: Summary, margin: Floats) -> Floats:
    """Welch TOST p-value a column; as statsmodels' ttost_ind with usevar="unequal"."""
    return tost_t(a.mean - b.mean, np.sqrt(a.se2 + b.se2), welch_df(a, b), margin)


def tost_t(effect: Floats, se: Floats, df: Floats, margin: Floats) -> Floats:
    """TOST p-value from an effect, its standard error and degrees of freedom."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = stats.t.sf((effect + margin) / se, df)
        upper = stats.t.cdf((effect - margin) / se, df)
    return np.asarray(np.maximum(lower, upper))


def tost_rates(rate_a: float, n_a: float, rate_b: float, n_b: float, margin: float) -> float:
    """The smallest alpha whose 1 - 2 alpha Newcombe interval lies inside the margin; 1 if none."""
    if not math.isfinite(margin) or abs(rate_a - rate_b) >= margin:
        return 1.0
    low, high = 1e-9, 0.5 - 1e-9
    for _ in range(24):  # bisection on a logarithmic scale: p to four digits
        middle = math.sqrt(low * high)
        left, right = newcombe(rate_a, n_a, rate_b, n_b, 2 * middle)
        if -margin < left and right < margin:
            high = middle
        else:
            low = middle
    return high
