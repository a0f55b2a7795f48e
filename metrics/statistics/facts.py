"""What the statistics know of a metric: words, direction, perfect value, range and margin.

Taken from the metric's own spec; the table below fills what a spec leaves open, and serves where
a measurements file was made elsewhere. Each margin is the smallest difference between groups that
is worth a person's attention, with where that size comes from (docs/statistics.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from metrics import contract
from metrics.contract import Direction

OUTCOME = "outcome:"
RATE_MARGIN = 0.10
"""Default margin of an event's rate: ten percentage points."""
OUTCOME_MARGIN = 0.05
"""Default margin of an outcome's rate (lost faces, refusals): five percentage points."""

OUTCOME_WORDS = {
    "face_lost": "faces lost altogether",
    "refused": "requests refused",
    "failed": "edits failed",
    "not_measurable": "pictures the instrument could not judge",
    "blank": "blank pictures returned",
    "edited_unreadable": "unreadable pictures returned",
    "original_unreadable": "unreadable originals",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """``low`` and ``high`` bound the figure (None: open). ``margin`` is None where none is known."""

    name: str
    unit: str
    harm: str
    direction: Direction
    perfect: float
    low: float | None = None
    high: float | None = None
    margin: float | None = None


_UP, _DOWN, _SIGNED = Direction.HIGHER_IS_BETTER, Direction.LOWER_IS_BETTER, Direction.SIGNED

_TABLE = {
    # 2 of 68 points; the benign edits stay above 99.5
    "flrr": Facts("landmark retention", "%", "facial landmarks lost", _UP, 100, 0, 100, 3.0),
    # a fifth of the alarm at 150
    "pdl": Facts("perceptual detail loss", "Laplacian variance", "fine detail lost", _DOWN, 0, 0, None, 30.0),
    "pdl_signed": Facts("signed detail loss", "Laplacian variance", "fine detail changed", _SIGNED, 0, None, None, 30.0),
    # a JPEG 60 moves it by 0.22-0.42: half of the smaller is hard to see
    "detail_change": Facts("detail change", "log2", "fine facial detail changed", _SIGNED, 0, None, None, 0.2),
    # noise of a good sensor alone costs 0.02
    "texture_coherence": Facts("texture coherence", "", "skin texture replaced", _UP, 1, 0, 1, 0.05),
    # a fifth of the alarm at 8.5, near the 1.5-2 that the ICC step leaves
    "csi": Facts("chrominance shift", "Lab units", "skin colour shifted", _DOWN, 0, 0, None, 1.7),
    # one just noticeable difference
    "delta_e00": Facts("skin colour difference", "CIEDE2000", "skin colour shifted", _DOWN, 0, 0, None, 1.0),
    "delta_l": Facts("skin lightness change", "L*", "skin lightness changed", _SIGNED, 0, -100, 100, 1.5),
    # half the narrowest of the ITA classes is 6.5 degrees
    "delta_ita": Facts("ITA change", "degrees", "skin tone changed", _SIGNED, 0, -180, 180, 5.0),
    "delta_hue": Facts("skin hue change", "degrees", "skin hue changed", _SIGNED, 0, -180, 180, 3.0),
    # the instrument's own wobble is 0.002-0.006 IED
    "nme": Facts("landmark displacement", "IED", "facial points displaced", _DOWN, 0, 0, None, 0.01),
    "health": Facts("health score", "points", "face harmed as a whole", _UP, 100, 0, 100, 5.0),
}  # fmt: skip


@cache
def facts(metric: str) -> Facts:
    """The facts of ``metric``; an unknown one gets its id as its name and no margin."""
    known = _TABLE.get(metric.split(":", maxsplit=1)[0])
    spec = _specs().get(metric)
    if spec is None:
        if metric.startswith("health"):
            return _TABLE["health"]
        return known or Facts(metric, "", f"{metric} changed", _SIGNED, 0.0)
    margin = spec.margin if spec.margin is not None else (known.margin if known else None)
    return Facts(
        spec.name, spec.unit, spec.harm or spec.name, spec.direction, spec.perfect,
        spec.low, spec.high, margin,
    )  # fmt: skip


def is_known(metric: str) -> bool:
    """Whether the perfect value of ``metric`` is known and not a guess."""
    return (
        metric in _specs()
        or metric.split(":", maxsplit=1)[0] in _TABLE
        or metric.startswith("health")
    )


@cache
def _specs() -> dict[str, contract.MetricSpec]:
    try:
        return contract.specs()
    except ImportError:  # a machine that has only the statistics' packages
        return {}


def badness(metric: str, value: float) -> float:
    """How harmed a face with ``value`` is: grows with harm whatever the metric's direction."""
    known = facts(metric)
    if known.direction is Direction.HIGHER_IS_BETTER:
        return -value
    if known.direction is Direction.LOWER_IS_BETTER:
        return value
    return abs(value - known.perfect)


def event_is_harm(metric: str, event: str, threshold: float) -> bool:
    """Whether ``below``/``above`` ``threshold`` is the harmful side; the other is favourable."""
    known = facts(metric)
    if known.direction is Direction.SIGNED:
        return threshold <= known.perfect if event == "below" else threshold >= known.perfect
    return (event == "below") == (known.direction is Direction.HIGHER_IS_BETTER)
