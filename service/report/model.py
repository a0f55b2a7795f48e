"""What a report is made from: one run, flat and complete, read from the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from domain.measurements import Health, Outcome
from domain.plan import AuditPlan
from domain.verdicts import Verdict

SET_COLUMN = "set"
ADVERSARIAL = "adversarial"
"""Portraits whose column ``set`` says so are boundary cases: run and measured, never averaged."""


def is_adversarial(attributes: Mapping[str, str]) -> bool:
    """Whether a portrait's declared columns put it into the adversarial set."""
    return str(attributes.get(SET_COLUMN, "")).strip().casefold() == ADVERSARIAL


class Place(StrEnum):
    """Where an item stands in the statistics; docs/cleaning.md has the rules."""

    MAIN = "main"
    NO_ANSWER = "excluded_1"
    """Level 1, mechanical: nothing came back that could be measured."""
    NOT_JUDGED = "excluded_2"
    """Level 2, instrument: it could not judge the pair."""
    CONFLICT = "conflict"
    """Level 2, instrument: its two engines contradict each other."""
    REVIEWED_OUT = "excluded_3"
    """Level 3, human: people who looked at it said that it is not to count."""
    ADVERSARIAL = "adversarial"
    """A boundary case by declaration: a set of its own."""


COUNTED = frozenset({Place.MAIN, Place.NO_ANSWER, Place.NOT_JUDGED})
"""Items of the main statistics. Those without figures count in the rates of outcomes, in pass rates
and as missing items in worst-case bounds; a figure they do not have."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An item's place with its cleaning level (1 to 3, None for ``main`` and ``adversarial``) and
    the rule that put it there, a sentence without group or person in it."""

    place: Place
    level: int | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """An item for people to look at. ``original`` and ``edited`` are paths of pictures relative to
    the run's folder, named by their hash; "" where there is none."""

    item_id: str
    rule: str
    look_at: str
    original: str = ""
    edited: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """What one person decided on one item; ``keep`` False excludes it."""

    item_id: str
    reviewer: str
    keep: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The standing of every item, the list for review, and the reviews that came back.
    ``reviews_text`` is their file as it was read, "" where there is none."""

    standings: Mapping[str, Standing] = field(default_factory=dict)
    review: Sequence[ReviewRow] = ()
    reviews: Sequence[Review] = ()
    reviews_text: str = ""

    def of(self, item_id: str) -> Standing:
        """The item's standing; ``main`` where no rule has spoken."""
        return self.standings.get(item_id, Standing(Place.MAIN))

    def counted(self, item_id: str) -> bool:
        """Whether the item is in the main statistics."""
        return self.of(item_id).place in COUNTED


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One portrait x perturbation x task x tool, however it ended.

    ``tool`` is the label in the plan. ``original`` and ``edited`` are keys for
    ``RunData.load_picture``; None where there is no such picture. ``evidence`` is PairResult's.
    """

    item_id: str
    portrait_id: str
    subject_id: str
    attributes: Mapping[str, str]
    tool: str
    tool_id: str
    control: bool
    task: str
    perturbation: str
    outcome: Outcome
    reason: str | None
    seconds: float | None = None
    model: str = ""
    attempts: int = 0
    health: Mapping[str, Health] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    original: str | None = None
    edited: str | None = None
    pair_base: str = ""
    """portrait_id of the base picture, where this portrait is a counterfactual partner."""
    varied_attribute: str = ""


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One figure of one item; ``value`` is None exactly when ``status`` is not "measured"."""

    item_id: str
    metric: str
    region: str
    value: float | None
    unit: str
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class InstrumentRow:
    """What the instrument saw on one untouched portrait.

    ``attributes`` also holds the computed "measured_ita_group". ``facts`` are figures of the
    original (ied, luminance, detail energy), None with the reason in ``reason`` where no face was
    found or the file was rejected.
    """

    portrait_id: str
    subject_id: str
    attributes: Mapping[str, str]
    accepted: bool
    face_found: bool
    reason: str | None
    facts: Mapping[str, float | None] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ControlFinding:
    """What one control had to show, and what the instrument found. ``ok`` is None where the
    portraits were too few to show anything."""

    control: str
    expected: str
    found: str
    ok: bool | None


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """What the calls of one tool came to. ``tool`` is its label in the plan.

    ``calls`` are those made for items, retries among them, without ``warm_ups``; ``items_called``
    the items for which at least one was made; ``retries`` the calls after an item's first.
    ``failed`` and ``refused`` count items by their last outcome. ``maybe_billed`` counts calls that
    were cut off, or whose work was not received. ``seconds_median`` is over calls that brought a
    picture. ``models`` maps each model string to its items. ``clock_skew_s`` is the median of the
    server's clock minus ours, None where no answer told its time. ``cost`` adds up, by currency,
    the amounts that the tool itself named. ``unchanged`` counts items whose answer was the picture
    that was sent. ``first_request_ids`` are a few to quote to the tool's maker, those of calls that
    may have been billed first.
    """

    tool: str
    calls: int = 0
    items_called: int = 0
    retries: int = 0
    failed: int = 0
    refused: int = 0
    maybe_billed: int = 0
    warm_ups: int = 0
    seconds_median: float | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    clock_skew_s: float | None = None
    cost: Mapping[str, float] = field(default_factory=dict)
    unchanged: int = 0
    notes: Mapping[str, int] = field(default_factory=dict)
    first_request_ids: tuple[str, ...] = ()


def controls_ok(controls: Sequence[ControlFinding]) -> bool | None:
    """False when a control came out otherwise than planted, None when none was run or one could
    not show anything, True when all came out as planted."""
    states = {c.ok for c in controls}
    if False in states:
        return False
    return None if None in states or not states else True


@dataclass(frozen=True)
class RunData:
    """The whole run. ``inputs`` maps each file (plan, manifest, portraits) to its sha256."""

    run_id: str
    plan: AuditPlan
    plan_text: str
    started: str
    finished: str
    items: Sequence[ItemRow]
    measurements: Sequence[MeasurementRow]
    instrument: Sequence[InstrumentRow]
    verdicts: Sequence[Verdict]
    controls: Sequence[ControlFinding]
    versions: Mapping[str, str]
    inputs: Mapping[str, str]
    seconds: float
    load_picture: Callable[[str], bytes]
    paired: Sequence[Verdict] = ()
    """Counterfactual pairs: the same face with one attribute changed."""
    cleaning: Cleaning = Cleaning()
    calls: Sequence[ToolCalls] = ()
    """What the calls of each of the plan's tools came to, in the plan's order."""
    probes: Mapping[str, Any] | None = None
    """report.json of a run of text probes that belongs to this audit."""

    @property
    def counted(self) -> list[ItemRow]:
        """The items of the main statistics, in their order."""
        return [i for i in self.items if self.cleaning.counted(i.item_id)]
