"""Corrections for many questions. None (no test) stays None and does not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from probes.analysis.tests import EXACT_UP_TO, all_signs, random_signs

HOLM = "Holm"
BENJAMINI_HOCHBERG = "Benjamini-Hochberg"
MAX_T = "max-T, step-down"
Floats = npt.NDArray[np.float64]


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """p values that keep the chance of any false alarm (Holm 1979), for named questions."""
    return _adjusted(ps, _holm)


def over_families(ps: Sequence[float | None], share: float) -> list[float | None]:
    """Corrected p values of one family of several that a probe has. ``share`` (over 0 to 1) of the
    error is this family's; with shares that add up to 1 the chance of any false alarm is kept for
    the probe as a whole (weighted Bonferroni, Holm 1979)."""
    return [None if p is None else min(1.0, p / share) for p in ps]


def of_share(correction: str, share: float) -> str:
    """The name of a correction within a family that has that share of the error."""
    return correction if share == 1 else f"{correction}, at {share:.0%} of the error"


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """p values that keep the share of false ones among alarms (Benjamini, Hochberg 1995), for maps."""
    return _adjusted(ps, stats.false_discovery_control)


def _holm(ps: Floats) -> Floats:
    # statsmodels has this, and sweeps the interpreter's memory at each call: 60 ms, too much for maps
    order = np.argsort(ps, kind="stable")
    left = np.arange(len(ps), 0, -1)
    found = np.empty(len(ps))
    found[order] = np.maximum.accumulate(ps[order] * left)
    return found


def _adjusted(
    ps: Sequence[float | None], correct: Callable[[Floats], Floats]
) -> list[float | None]:
    known = np.array([p for p in ps if p is not None], float)
    if not ((known >= 0) & (known <= 1)).all():
        raise ValueError("p values lie between 0 and 1")
    if not known.size:
        return [None] * len(ps)
    corrected = iter(np.minimum(correct(known), 1.0))
    return [None if p is None else float(next(corrected)) for p in ps]


def max_t(
    diffs: Sequence[Sequence[float]] | Floats, seed: int, draws: int = 10_000
) -> list[float | None]:
    """p values over many labels at once, by flipping the arms of whole units (Westfall and Young
    1993, step-down): it keeps the chance of any false alarm and uses that labels go together.

    ``diffs[u][l]`` is the difference A - B of unit ``u`` (a pair, a template, a name) in label
    ``l``, NaN where the unit has none. All patterns of signs up to 16 units, else ``draws`` seeded
    ones with (b + 1) / (m + 1). A label without any value gets None.
    """
    values = np.asarray(diffs, float)
    if values.size == 0:
        return [None] * (values.shape[1] if values.ndim == 2 else 0)
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    # flipping signs leaves the sum of squares alone, so this ranks labels as |t| does
    scale = np.sqrt((filled**2).sum(axis=0))
    scale[scale == 0] = np.inf
    standard = filled / scale
    observed = np.abs(standard.sum(axis=0))
    exact = len(values) <= EXACT_UP_TO
    signs = (
        all_signs(len(values))
        if exact
        else random_signs(np.random.default_rng(seed), draws, len(values))
    )
    flipped = np.abs(signs @ standard)
    order = np.argsort(-observed, kind="stable")
    # the largest of the labels that are left, from the last to the first
    most = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]
    hits = (most >= observed[order] - 1e-9).sum(axis=0)
    ps = hits / len(signs) if exact else (hits + 1) / (len(signs) + 1)
    ps = np.maximum.accumulate(ps)
    found: list[float | None] = [None] * values.shape[1]
    for place, label in enumerate(order):
        if known[:, label].any():
            found[label] = min(1.0, float(ps[place]))
    return found
