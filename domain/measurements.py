"""Figures with unit, status and reason. A figure that could not be measured is never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """Whether there is a figure."""

    MEASURED = "measured"
    NOT_MEASURABLE = "not_measurable"


class Outcome(StrEnum):
    """How an item of an audit (or a pair given to ``measure``) ended."""

    MEASURED = "measured"
    FACE_LOST = "face_lost"
    """A face in the original, none in the edited picture: the worst harm."""
    NOT_MEASURABLE = "not_measurable"
    """The instrument could not judge (no face in the original, a soft original, ...)."""
    BLANK = "blank"
    """The tool returned a plain one-colour picture."""
    EDITED_UNREADABLE = "edited_unreadable"
    ORIGINAL_UNREADABLE = "original_unreadable"
    REFUSED = "refused"
    FAILED = "failed"


FACE_REGION = "face"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure of one face, or the reason why there is none.

    ``value`` is None exactly when ``status`` is not ``measured``. ``region`` is "face" for the
    whole face. ``evidence`` is JSON-able detail (per-point flags, displacement).
    """

    metric: str
    value: float | None
    unit: str
    status: Status = Status.MEASURED
    reason: str | None = None
    region: str = FACE_REGION
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.value is None) == (self.status is Status.MEASURED):
            raise ValueError(f"{self.metric}: a value and status {self.status} contradict")
        if self.value is not None and not (-1e300 < self.value < 1e300):
            raise ValueError(f"{self.metric}: {self.value} is not a finite figure")
        if self.status is Status.NOT_MEASURABLE and not self.reason:
            raise ValueError(f"{self.metric}: a missing figure needs its reason")

    @classmethod
    def missing(cls, metric: str, unit: str, reason: str, region: str = FACE_REGION) -> Measurement:
        """The absence of a figure, with its reason in a sentence for people."""
        return cls(metric, None, unit, Status.NOT_MEASURABLE, reason, region)


class Decision(StrEnum):
    """What a gate says; inconclusive means that the figures do not suffice for either."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Health:
    """The 0-100 score of one profile with its decision. ``score`` is None when a part is missing.
    ``reasons`` are sentences: which term cost what, which hard rule fired."""

    profile: str
    score: float | None
    decision: Decision
    threshold: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairResult:
    """Everything measured on one (original, edited) pair.

    ``health`` holds the profiles by name; ``profile`` is the one that decides. ``warnings`` are
    sentences ("heavily compressed edit"). ``evidence`` feeds the three-part diagnosis: points of
    both faces, displaced flags, the registration.
    """

    outcome: Outcome
    reason: str | None
    engine: str
    measurements: tuple[Measurement, ...] = ()
    health: Mapping[str, Health] = field(default_factory=dict)
    profile: str = "document"
    warnings: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def figure(self, metric: str, region: str = FACE_REGION) -> Measurement | None:
        """The measurement of ``metric`` in ``region``, None when nobody tried to take it."""
        for m in self.measurements:
            if m.metric == metric and m.region == region:
                return m
        return None
