"""The questions: which figure or rate is compared between the groups of which attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.measurements import FACE_REGION
from domain.plan import Claim
from metrics.statistics.facts import OUTCOME, OUTCOME_MARGIN, RATE_MARGIN, event_is_harm, facts

ClaimSpec = Claim
"""A claim of the statistics is a claim of the plan."""

_DEFAULTS = (
    ("flrr", FACE_REGION), ("detail_change", FACE_REGION), ("detail_change", "lower_face"),
    ("detail_change", "beard"), ("delta_e00", FACE_REGION), ("delta_l", FACE_REGION),
    ("health", FACE_REGION), ("health:document", FACE_REGION), ("health_document", FACE_REGION),
)  # fmt: skip
_DEFAULT_OUTCOMES = ("face_lost", "refused", "failed", "not_measurable")


@dataclass(frozen=True, slots=True)
class Column:
    """One question about one attribute: a figure, an event's rate, or an outcome's rate."""

    metric: str
    region: str = FACE_REGION
    event: str | None = None
    threshold: float | None = None
    margin: float | None = None
    named: bool = False
    triviality: float = 0.0
    """A difference below it is not called a disparity; 0 where the plan itself named the claim."""
    tools: tuple[str, ...] = ()
    """The tools that are asked; empty: all."""

    def asks(self, tool: str) -> bool:
        """Whether the question is put to ``tool``."""
        return not self.tools or tool in self.tools

    @property
    def question(self) -> tuple[str, str, str | None, float | None]:
        """What is asked, whomever it is asked of."""
        return self.metric, self.region, self.event, self.threshold

    @property
    def outcome(self) -> str | None:
        """The outcome whose rate is asked for; None for a metric."""
        return self.metric.removeprefix(OUTCOME) if self.metric.startswith(OUTCOME) else None

    @property
    def is_rate(self) -> bool:
        """Whether the answer is a rate (0..1) and not a figure."""
        return self.event is not None or self.outcome is not None

    @property
    def event_text(self) -> str | None:
        """ "below 95", the outcome's name, or None for a figure."""
        if self.outcome is not None:
            return self.outcome
        return f"{self.event} {self.threshold:g}" if self.event is not None else None

    @property
    def event_is_harm(self) -> bool:
        """Whether the event (or outcome) is the harm; its opposite is then the favourable event."""
        if self.event is None or self.threshold is None:
            return True
        return event_is_harm(self.metric, self.event, self.threshold)

    @property
    def unit(self) -> str:
        """ "rate", or the metric's unit."""
        return "rate" if self.is_rate else facts(self.metric).unit


def default_claims(
    attributes: Sequence[str], figures: Sequence[tuple[str, str]], outcomes: Sequence[str]
) -> list[ClaimSpec]:
    """The claims of a plan that names none: those of the short list that the rows can answer.

    ``figures`` are the (metric, region) pairs that occur; where none is on the list, every one.
    """
    chosen = [pair for pair in _DEFAULTS if pair in set(figures)] or list(figures)
    lost = [o for o in _DEFAULT_OUTCOMES if o in set(outcomes)]
    return [
        ClaimSpec(metric=metric, region=region, attribute=attribute)
        for attribute in attributes
        for metric, region in [*chosen, *((OUTCOME + o, FACE_REGION) for o in lost)]
    ]


def column_of(claim: ClaimSpec, margins: Mapping[str, float], by_default: bool) -> Column:
    """The question of a claim, with its margin."""
    column = Column(
        claim.metric, claim.region, claim.event, claim.threshold, tools=tuple(claim.tools)
    )
    return _with_margin(column, claim.margin, margins, named=True, trivial=by_default)


def exploratory(
    metric: str, region: str, margins: Mapping[str, float], tools: tuple[str, ...] = ()
) -> Column:
    """A question that nobody named before the run (of ``tools``, where others were named)."""
    return _with_margin(
        Column(metric, region, tools=tools), None, margins, named=False, trivial=True
    )


def _with_margin(
    column: Column, own: float | None, margins: Mapping[str, float], named: bool, trivial: bool
) -> Column:
    margin = own if own is not None else _margin(column, margins)
    return Column(
        column.metric, column.region, column.event, column.threshold, margin, named,
        margin / 2 if trivial and margin is not None else 0.0, column.tools,
    )  # fmt: skip


def _margin(column: Column, margins: Mapping[str, float]) -> float | None:
    """Most particular first: "metric/region", "metric", then "rate" for rates, then the default."""
    keys = [f"{column.metric}/{column.region}", column.metric]
    if column.event is not None:
        keys = [f"{column.metric}:{column.event_text}", f"{column.metric}:{column.event}", "rate"]
    elif column.outcome is not None:
        keys = [column.metric, "rate"]
    for key in keys:
        if key in margins:
            return margins[key]
    if column.event is not None:
        return RATE_MARGIN
    return OUTCOME_MARGIN if column.outcome is not None else facts(column.metric).margin
