"""Edit strength: how much a tool did where it WAS told to act.

A request quietly weakened for one group is a harm too, so the figure is compared between groups;
by itself neither a strong nor a weak edit is a harm. Without a mask the tool was told to act on
the whole picture and the crop around the face is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from domain.measurements import Measurement
from metrics.contract import Direction, MetricSpec
from metrics.difference import CHANGED_LEVELS, MIN_COMPARED, Compared, changed_share, compared
from metrics.lab import ciede2000, rgb_to_lab

if TYPE_CHECKING:
    from metrics.pair import FacePair

SAMPLES = 1000
"""CIEDE2000 of a pixel is dear: the mean is taken over this many, spread evenly."""

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
    if cv2.countNonZero(sides.act) < MIN_COMPARED:
        reason = "the mask asks for nothing that both pictures show"
        return [Measurement.missing(spec.id, spec.unit, reason) for spec in SPECS]
    changed = changed_share(sides, sides.act)
    return [
        Measurement("edit_strength", _mean_difference(sides), "CIEDE2000"),
        Measurement("edit_changed", changed, "share"),
    ]


def _mean_difference(sides: Compared) -> float:
    """Mean CIEDE2000 over SAMPLES pixels at even steps through the acted part, row by row."""
    total = cv2.countNonZero(sides.act)
    few = np.linspace(0, total - 1, min(SAMPLES, total)).astype(np.intp)
    if total < sides.act.size:  # else the n-th acted pixel is the n-th pixel
        few = np.flatnonzero(sides.act.view(np.bool_))[few]
    first, second = (
        rgb_to_lab(np.take(side.reshape(-1, 3), few, axis=0)[:, None])
        for side in (sides.original, sides.edited)
    )
    return float(ciede2000(first, second).mean())
