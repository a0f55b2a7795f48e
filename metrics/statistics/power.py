"""How many subjects a group would settle a question: 80 % power, two-sided alpha."""

from __future__ import annotations

import math

from scipy import stats

POWER = 0.80


def needed_n_means(var_a: float, var_b: float, gap: float, alpha: float = 0.05) -> int | None:
    """Subjects a group to find a true ``gap`` of means, from the variances of subject means.

    Normal approximation, then one correction for Student's t (Guenther 1981). None where there is
    no spread to plan with.
    """
    spread = var_a + var_b
    if not math.isfinite(spread) or spread <= 0 or not gap > 0:
        return None
    correction = float(stats.norm.ppf(1 - alpha / 2)) ** 2 / 4
    return max(math.ceil(_z2(alpha) * spread / gap**2 + correction), 2)


def needed_n_rates(
    rate_a: float, rate_b: float, alpha: float = 0.05, gap: float | None = None
) -> int:
    """Subjects a group to tell two rates apart (unpooled normal formula, Fleiss).

    50 % against 60 % needs 385. ``gap`` overrides the rates' own distance.
    """
    distance = abs(rate_a - rate_b) if gap is None else gap
    if not distance > 0:
        raise ValueError("two equal rates cannot be told apart by any number of subjects")
    spread = rate_a * (1 - rate_a) + rate_b * (1 - rate_b)
    return max(math.ceil(_z2(alpha) * spread / distance**2), 2)


def power_means(gap: float, se: float, alpha: float = 0.05) -> float:
    """Chance that a test at ``alpha`` finds a true ``gap`` when its standard error is ``se``."""
    if not se > 0:
        return math.nan
    cut, shift = stats.norm.ppf(1 - alpha / 2), abs(gap) / se
    return float(stats.norm.sf(cut - shift) + stats.norm.cdf(-cut - shift))


def _z2(alpha: float) -> float:
    return float((stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(POWER)) ** 2)
