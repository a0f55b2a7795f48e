"""Tests of no difference between paired or independent arms. Each says its method, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.sparse.csgraph import connected_components
from statsmodels.stats.contingency_tables import mcnemar

EXACT_UP_TO = 16
"""Sign-flip patterns are all gone through up to this many differences (2^16), else drawn."""
_TIE = 1e-9
"""Statistics closer than this (relative) count as equal: sums in another order differ in last bits."""


@dataclass(frozen=True, slots=True)
class Tested:
    """Outcome of a test. ``p`` is two-sided and None exactly when ``reason`` is not "".

    ``statistic`` is in the unit that ``method`` implies; ``note`` tells what a reader should know
    (categories left out, the smallest p there can be).
    """

    p: float | None
    method: str
    statistic: float | None = None
    df: int | None = None
    reason: str = ""
    note: str = ""


def mcnemar_exact(b: int, c: int) -> Tested:
    """Exact McNemar test of binary pairs: ``b`` pairs yes/no, ``c`` pairs no/yes (McNemar 1947).

    The statistic is b / (b + c). No discordant pair gives p = 1, with a note.
    Raises ValueError for a negative count.
    """
    method = "exact McNemar"
    if b < 0 or c < 0:
        raise ValueError(f"counts of pairs cannot be negative: {b}, {c}")
    if b + c == 0:
        return Tested(1.0, method, note="no pair differs")
    p = float(mcnemar([[0, b], [c, 0]], exact=True).pvalue)
    note = "" if b + c > 5 else f"with {b + c} pairs that differ p cannot be below 0.05"
    return Tested(min(1.0, p), method, statistic=b / (b + c), note=note)


def fisher(xa: int, na: int, xb: int, nb: int) -> Tested:
    """Fisher's exact two-sided test of equal rates in independent arms (Fisher 1935); p is None when
    an arm is empty. The statistic is the difference of the rates."""
    method = "Fisher's exact"
    if na == 0 or nb == 0:
        return Tested(None, method, reason="an arm has no samples")
    if not (0 <= xa <= na and 0 <= xb <= nb):
        raise ValueError(f"a rate needs 0 <= count <= total: {xa} of {na}, {xb} of {nb}")
    p = float(stats.fisher_exact([[xa, na - xa], [xb, nb - xb]]).pvalue)
    return Tested(min(1.0, p), method, statistic=xa / na - xb / nb)


def stuart_maxwell(table: Sequence[Sequence[int]] | npt.NDArray[np.int_]) -> Tested:
    """Test that exclusive labels have the same margins in both arms of a pair (Stuart 1955; Maxwell
    1970). ``table[i][j]`` counts pairs with label i under arm A and j under arm B.

    Labels in which no pair changed are left out with a note. Groups of labels that exchange no pair
    make the covariance singular: each is then a test of its own, and the sum of the statistics has
    the sum of the degrees of freedom (the note says so). No pair at all gives None with a reason,
    no pair that changed p = 1. Raises ValueError unless square, whole and not negative.
    """
    method = "Stuart-Maxwell"
    counts = np.asarray(table, float)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"the table of pairs must be square, not {counts.shape}")
    if (counts < 0).any() or (counts != np.round(counts)).any():
        raise ValueError("the table of pairs needs whole counts")
    if counts.sum() == 0:
        return Tested(None, method, reason="no pair has a label in both arms")
    moved = counts + counts.T
    np.fill_diagonal(moved, 0)
    keep = moved.sum(axis=1) > 0
    if not keep.any():
        return Tested(1.0, method, statistic=0.0, df=0, note="no pair changed its label")
    parts, _ = connected_components(moved[np.ix_(keep, keep)] > 0, directed=False)
    gap = (counts.sum(axis=1) - counts.sum(axis=0))[keep]
    covariance = np.diag(moved.sum(axis=1)[keep]) - moved[np.ix_(keep, keep)]
    # the covariance is the Laplacian of who exchanges with whom: its rank is labels less parts
    chi2 = float(gap @ np.linalg.pinv(covariance, hermitian=True) @ gap)
    df = int(keep.sum()) - int(parts)
    return Tested(
        float(stats.chi2.sf(chi2, df)), method, chi2, df, note=_sm_note(keep, int(parts), moved)
    )


def _sm_note(keep: npt.NDArray[np.bool_], parts: int, moved: npt.NDArray[np.float64]) -> str:
    notes = []
    if left_out := int((~keep).sum()):
        notes.append(f"{left_out} label(s) in which no pair changed left out")
    if parts > 1:
        notes.append(f"{parts} groups of labels exchange no pair and were added up")
    if (changed := int(moved.sum() / 2)) < 10:
        notes.append(f"only {changed} pair(s) changed: the chi-squared law is a rough one")
    return "; ".join(notes)


def sign_flip(diffs: Sequence[float], seed: int, draws: int = 20_000) -> Tested:
    """Sign-flip permutation test that paired differences (means of templates, of names) are symmetric
    about 0 (Fisher 1935; Phipson and Smyth 2010 for the drawn version).

    All 2^n patterns up to ``EXACT_UP_TO`` differences; else ``draws`` seeded ones with
    p = (b + 1) / (m + 1). The statistic is the mean. Raises ValueError for a value that is not finite.
    """
    values = np.asarray(diffs, float)
    n = len(values)
    if n == 0:
        return Tested(None, "sign-flip", reason="no difference to test")
    if not np.isfinite(values).all():
        raise ValueError("differences must be finite; leave out what has no value, and count it")
    observed = abs(float(values.sum()))
    edge = observed - _TIE * (1 + float(np.abs(values).sum()))
    if n <= EXACT_UP_TO:
        p = float((np.abs(all_signs(n) @ values) >= edge).mean())
        least = 2 / 2**n
        note = f"with {n} differences p cannot be below {least:.2g}" if least > 0.05 else ""
        return Tested(p, "exact sign-flip", float(values.mean()), note=note)
    flips = random_signs(np.random.default_rng(seed), draws, n)
    hits = int((np.abs(flips @ values) >= edge).sum())
    p = (hits + 1) / (draws + 1)
    return Tested(p, f"sign-flip, {draws} draws", float(values.mean()))


def random_signs(rng: np.random.Generator, draws: int, n: int) -> npt.NDArray[np.float64]:
    """Matrix (draws, n) of independent -1 and +1."""
    return rng.integers(0, 2, (draws, n), dtype=np.int8).astype(float) * 2 - 1


def all_signs(n: int) -> npt.NDArray[np.float64]:
    """Matrix (2^n, n) of every pattern of -1 and +1."""
    patterns = np.arange(2**n)[:, None] >> np.arange(n) & 1
    return patterns.astype(float) * 2 - 1
