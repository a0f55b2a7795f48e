"""Drift outside the mask: what a tool changed where it was told not to touch.

A mask is no promise: a tool may answer with success and have redrawn every pixel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2

from domain.measurements import Measurement
from metrics.contract import Direction, MetricSpec
from metrics.difference import CHANGED_LEVELS, MIN_COMPARED, compared, difference

if TYPE_CHECKING:
    from metrics.pair import FacePair

SPECS = (
    MetricSpec(
        id="outside_mask_drift",
        name="mean change where the tool was told not to touch",
        unit="levels",
        low=0.0,
        high=255.0,
        direction=Direction.LOWER_IS_BETTER,
        perfect=0.0,
        reference="mean absolute difference of 8-bit sRGB values",
        margin=1.0,
        harm="protected parts of the picture changed",
    ),
    MetricSpec(
        id="outside_mask_changed",
        name="share of protected pixels changed",
        unit="share",
        low=0.0,
        high=1.0,
        direction=Direction.LOWER_IS_BETTER,
        perfect=0.0,
        reference=f"pixels that move by more than {CHANGED_LEVELS} levels in any channel",
        margin=0.05,
        harm="protected parts of the picture changed",
    ),
)
NO_MASK = "the tool was given no mask"


def measure(pair: FacePair) -> list[Measurement]:
    """Both figures over the pixels where the mask is 0; missing where there was no mask."""
    sides = compared(pair)
    if sides.protect is None:
        return _missing(NO_MASK)
    if cv2.countNonZero(sides.protect) < MIN_COMPARED:
        return _missing("the mask protects nothing that both pictures show")
    figures = difference(sides, sides.protect)
    return [
        Measurement(spec.id, value, spec.unit) for spec, value in zip(SPECS, figures, strict=True)
    ]


def _missing(reason: str) -> list[Measurement]:
    return [Measurement.missing(spec.id, spec.unit, reason) for spec in SPECS]
