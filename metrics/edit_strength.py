"""Edit strength: how much a tool did where it WAS told to act.

A request quietly weakened for one group is a harm too, so the figure is compared between groups;
by itself neither a strong nor a weak edit is a harm. Without a mask the tool was told to act on
the whole picture and the crop around the face is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from domain.measurements import Measurement
from metrics.contract import Direction, MetricSpec
from metrics.difference import CHANGED_LEVELS, MIN_COMPARED, Compared, compared, difference
from metrics.lab import ciede2000, rgb_to_lab

if TYPE_CHECKING:
    from metrics.pair import FacePair

SAMPLES = 2000
"""CIEDE2000 of a pixel is dear: the mean is taken over this many, spread evenly."""
ACT = 128

SPECS = (
    MetricSpec(
        id="edit_strength",
        name="mean CIEDE2000 where the tool was told to act",
        unit="CIEDE2000",
        low=0.0,
        high=None,
        direction=Direction.HIGHER_IS_BETTER,
        perfect=0.0,
        reference=f"Sharma, Wu and Dalal 2005, mean over about {SAMPLES} evenly spread pixels",
        margin=1.0,
        harm="requested edit done less strongly",
    ),
    MetricSpec(
        id="edit_changed",
        name="share of pixels changed where the tool was told to act",
        unit="share",
        low=0.0,
        high=1.0,
        direction=Direction.HIGHER_IS_BETTER,
        perfect=0.0,
        reference=f"pixels that move by more than {CHANGED_LEVELS} levels in any channel",
        margin=0.05,
        harm="requested edit done on less of the picture",
    ),
)


def measure(pair: FacePair) -> list[Measurement]:
    """Both figures over the mask's white part, or over the face's crop without a mask."""
    sides = compared(pair)
    acted = sides.real if sides.mask is None else (sides.mask >= ACT) & sides.real
    if np.count_nonzero(acted) < MIN_COMPARED:
        reason = "the mask asks for nothing that both pictures show"
        return [Measurement.missing(spec.id, spec.unit, reason) for spec in SPECS]
    _, changed = difference(sides, acted)
    return [
        Measurement("edit_strength", _mean_difference(sides, acted), "CIEDE2000"),
        Measurement("edit_changed", changed, "share"),
    ]


def _mean_difference(
    sides: Compared, acted: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> float:
    step = max(1, int((np.count_nonzero(acted) / SAMPLES) ** 0.5))
    thin = (slice(step // 2, None, step), slice(step // 2, None, step))
    few = acted[thin]
    if not few.any():
        thin, few = (slice(None), slice(None)), acted
    first, second = (
        rgb_to_lab(np.ascontiguousarray(side[thin][few][:, None]))
        for side in (sides.original, sides.edited)
    )
    return float(ciede2000(first, second).mean())
