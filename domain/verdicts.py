"""Findings: a named harm, the groups it falls on, its size and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class VerdictKind(StrEnum):
    """A difference beyond the margin, one shown to lie within it, or neither shown."""

    DISPARITY = "disparity"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


NAMED = ("named", "paired")
"""Families of verdicts (``details["family"]``) that the plan named before the run."""


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """A group's mean (or rate) with its 95 % interval. ``n`` counts subjects, ``items`` pictures."""

    group: str
    n: int
    items: int
    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim about one tool: does ``metric`` differ between the groups of ``attribute``?

    ``groups`` are the two groups compared. ``effect`` is first minus second with ``interval`` (95 %).
    ``needed_n`` is subjects a group for 80 % power at the margin, where inconclusive.
    ``sentence`` names the harm, the groups, the size and the interval.
    """

    tool: str
    metric: str
    attribute: str
    groups: tuple[str, str]
    verdict: VerdictKind
    effect: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    p_adjusted: float | None
    n: Mapping[str, int] = field(default_factory=dict)
    needed_n: int | None = None
    margin: float | None = None
    unit: str = ""
    sentence: str = ""
    reason: str | None = None
    estimates: tuple[GroupEstimate, ...] = ()
    event: str | None = None
    task: str = ""
    details: Mapping[str, float | str | None] = field(default_factory=dict)
