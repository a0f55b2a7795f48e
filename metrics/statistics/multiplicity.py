"""Corrections for asking many questions at once, from statsmodels."""

from __future__ import annotations

import numpy as np
from statsmodels.stats.multitest import multipletests

from metrics.statistics.intervals import Floats


def holm(p: Floats) -> Floats:
    """Holm (1979): the chance of any false finding among the named claims stays below alpha."""
    return _adjusted(p, "holm")


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg (1995): the expected share of false findings stays below alpha."""
    return _adjusted(p, "fdr_bh")


def _adjusted(p: Floats, method: str) -> Floats:
    """NaN (no test was possible) stays NaN and does not count as a question asked."""
    out = np.full(len(p), np.nan)
    asked = np.isfinite(p)
    if asked.any():
        out[asked] = multipletests(p[asked], method=method)[1]
    return out
