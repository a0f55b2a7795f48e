"""Corrections for asking many questions at once.

The tests hold them against statsmodels' multipletests, which is not called here because it runs a
full garbage collection each time (a tenth of a second in a process that has loaded models).
"""

from __future__ import annotations

import numpy as np

from metrics.statistics.intervals import Floats


def holm(p: Floats) -> Floats:
    """Holm (1979): the chance of any false finding among the named claims stays below alpha."""
    out, order = _asked(p)
    m = len(order)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(m, 0, -1)), 1.0)
    return out


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg (1995): the expected share of false findings stays below alpha."""
    out, order = _asked(p)
    m = len(order)
    steps = (p[order] * m / np.arange(1, m + 1))[::-1]
    out[order] = np.minimum(np.minimum.accumulate(steps)[::-1], 1.0)
    return out


def _asked(p: Floats) -> tuple[Floats, np.ndarray[tuple[int, ...], np.dtype[np.intp]]]:
    """NaN (no test was possible) stays NaN and does not count as a question asked."""
    asked = np.flatnonzero(np.isfinite(p))
    return np.full(len(p), np.nan), asked[np.argsort(p[asked], kind="stable")]
