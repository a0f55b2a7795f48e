"""Groups: declared values, age bands, intersections, and which pairs of groups are compared.

Up to ``EVERY_PAIR`` groups each pair is compared; more are compared one against all others; beyond
``MOST_GROUPS`` no comparison is made at all: bands have to be named first. Inside a claim every
comparison counts as a question of its own for the correction (Holm), so the largest of many
differences is not mistaken for the only one looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metrics.statistics.samples import Block
from metrics.statistics.table import Coded

EVERY_PAIR = 10
MOST_GROUPS = 50
INTERSECTION_SUBJECTS = 5
REST = "all others"
_AGE_CUTS = (18, 30, 45, 60)
_AGE_BANDS = ("under 18", "18-29", "30-44", "45-59", "60 and over")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two groups of a block, by index; ``second`` None = everybody else."""

    first: int
    second: int | None

    def names(self, groups: Sequence[str]) -> tuple[str, str]:
        """The two groups in words."""
        return groups[self.first], REST if self.second is None else groups[self.second]


def with_age_bands(name: str, column: Coded) -> Coded:
    """Ages in years become bands; any other column, and ages given as bands, stay as they are."""
    if name != "age" or len(column.names) <= EVERY_PAIR:
        return column
    try:
        years = np.array([float(v) for v in column.names])
    except ValueError:
        return column
    if not np.isfinite(years).all():
        return column
    band = np.searchsorted(_AGE_CUTS, years, side="right")
    present = sorted(set(band.tolist()))
    place = np.array([present.index(b) for b in band] + [-1])
    return Coded(place[column.codes], [_AGE_BANDS[b] for b in present])


def intersections(attributes: Mapping[str, Coded]) -> dict[str, Coded]:
    """Every pair of attributes crossed: "gender x skin_tone" with groups "female, VI"."""
    crossed = {}
    for (a, first), (b, second) in itertools.combinations(attributes.items(), 2):
        if not (first.names and second.names):
            continue
        if max(len(first.names), len(second.names)) > MOST_GROUPS:
            continue
        width = len(second.names)
        both = (first.codes >= 0) & (second.codes >= 0)
        key = np.where(both, first.codes * width + second.codes, -1)
        names = [f"{x}, {y}" for x in first.names for y in second.names]
        crossed[f"{a} x {b}"] = Coded(key, names)
    return crossed


def comparisons(block: Block, least: int = 1) -> list[Comparison]:
    """The comparisons of a block's groups that have at least ``least`` subjects."""
    usable = [g for g, n in enumerate(block.sizes()) if n >= least]
    if len(usable) < 2 or len(usable) > MOST_GROUPS:
        return []
    if len(usable) <= EVERY_PAIR:
        return [Comparison(a, b) for a, b in itertools.combinations(usable, 2)]
    return [Comparison(a, None) for a in usable]
