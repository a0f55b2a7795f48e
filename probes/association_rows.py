"""Tables of the occupation association: a row for each occupation, a row for each template."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probes.analysis.multiplicity import BENJAMINI_HOCHBERG, benjamini_hochberg
from probes.analysis.rates import mean_interval
from probes.analysis.tests import sign_flip
from probes.association_figures import Grid, mean_of
from probes.results import Table

if TYPE_CHECKING:
    from probes.association_score import Question

HEAD = (
    "occupation", "leaning", "low", "high", "log-odds", "sd over templates", "templates",
    "towards women in", "share of women", "p", "p adjusted", "direction",
)  # fmt: skip


def by_occupation(asked: Question, found: Grid) -> Table:
    """Sorted from the one that leans most towards women to the one that leans most towards men."""
    known = [row[np.isfinite(row)] for row in found.leaning]
    ps = [sign_flip(list(row), asked.seed).p if len(row) > 1 else None for row in known]
    adjusted = benjamini_hochberg(ps)
    rows = []
    for name, row, p, q in zip(asked.occupations, known, ps, adjusted, strict=True):
        leaning = np.tanh(row / 2)
        value, interval = mean_of(leaning), mean_interval(list(leaning))
        rows.append(
            (
                name,
                value,
                None if interval is None else max(-1.0, interval.low),
                None if interval is None else min(1.0, interval.high),
                mean_of(row),
                float(row.std(ddof=1)) if len(row) > 1 else None,
                len(row),
                int((row < 0).sum()),
                asked.shares.of.get(name),
                p,
                q,
                _direction(value, q, asked.alpha),
            )
        )
    rows.sort(key=lambda r: (r[1] is None, r[1] or 0.0, r[0]))
    return Table(
        "association_by_occupation", "Leaning by occupation", HEAD, tuple(rows),
        note="Leaning in [-1, 1], plus towards men, beside the neutral word; intervals are t over"
        f" templates, p from sign flips of templates, adjusted over occupations ({BENJAMINI_HOCHBERG})."
        f" Shares of women: {asked.shares.source or 'none known'}.",
    )  # fmt: skip


def _direction(value: float | None, p: float | None, alpha: float) -> str:
    if value is None:
        return "no answer"
    if p is None or p > alpha:
        return "not shown"
    return "towards men" if value > 0 else "towards women"


def by_template(asked: Question, found: Grid) -> Table:
    """What each wording does by itself: the leaning of the neutral word, and of the occupations."""
    rows = []
    for column, name in enumerate(asked.templates):
        cells = found.index[:, column]
        zero = float(found.neutral[column])
        rows.append(
            (
                name,
                zero if np.isfinite(zero) else None,
                mean_of(cells),
                int(np.isfinite(cells).sum()),
            )
        )
    return Table(
        "association_by_template", "Leaning by template",
        ("template", "log-odds of the neutral word", "mean leaning", "occupations"), tuple(rows),
        note="A model that leans in one wording only leans little: compare the rows.",
    )  # fmt: skip
