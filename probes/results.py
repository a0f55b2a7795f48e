"""What a probe found, in one shape for every probe: report, card, gate and REST read nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from domain.verdicts import VerdictKind
from probes.calls import PLAIN, Status

Grade = Literal["high", "elevated", "low", "not_shown", "undefined"]
"""Of a cell: ``high`` and ``elevated`` where the ratio's interval lies wholly beyond 3 (1/3) or 1;
``not_shown`` where it includes 1; ``low`` where it excludes 1 by less than matters; ``undefined``
where there is no ratio. docs/probes/analysis.md has the rule."""


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % unless ``level`` says otherwise. ``method`` is its name in the literature."""

    low: float
    high: float
    method: str
    level: float = 0.95

    def excludes(self, value: float) -> bool:
        """Whether ``value`` lies outside."""
        return not self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. ``value`` is None exactly when ``reason`` is not "": an empty denominator has no
    figure. ``n`` counts what it is over, ``units`` says what those are ("templates", "names",
    "replies"). ``sd`` is the standard deviation over repeats, where the figure has one."""

    id: str
    title: str
    value: float | None
    interval: Interval | None = None
    n: int = 0
    units: str = "replies"
    unit: str = ""
    sd: float | None = None
    reason: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """How the replies of one arm ended. Every call asked for is in it, whatever became of it."""

    arm: str
    counts: Mapping[Status, int]

    @property
    def total(self) -> int:
        """Calls of the arm."""
        return sum(self.counts.values())

    def rate(self, status: Status) -> float | None:
        """Share of the arm's calls that ended so; None for an arm without calls."""
        return self.counts.get(status, 0) / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class TestResult:
    """A question with its answer. ``family`` names the set within which ``p_adjusted`` was corrected
    by ``correction``. ``sentence`` names the harm, the groups, the size and the interval."""

    __test__: ClassVar[bool] = False
    """pytest takes every class of such a name for a test."""

    id: str
    question: str
    groups: tuple[str, str]
    effect: Figure
    verdict: VerdictKind
    p_value: float | None
    p_adjusted: float | None
    method: str
    correction: str
    family: str = ""
    sentence: str = ""
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One label under one row (an occupation), arm A against arm B.

    ``delta`` is P_A - P_B with its interval (Newcombe; cluster bootstrap where pooled), ``bbs`` its
    magnitude, ``rbr`` P_A / P_B or None with ``rbr_status`` ("ok", "both_zero",
    "denominator_below_floor", "no_samples"), ``log2_rbr`` of the smoothed ratio with its interval,
    ``bs`` None with ``bs_reason`` unless delta's interval excludes 0. ``bbs_by_chance`` is the BBS
    that no difference at all would show on average with these counts.
    """

    row: str
    label: str
    x_a: int
    n_a: int
    x_b: int
    n_b: int
    delta: float | None
    delta_interval: Interval | None
    bbs: float | None
    rbr: float | None
    rbr_status: str
    log2_rbr: float | None
    log2_rbr_interval: Interval | None
    bs: float | None
    bs_reason: str
    grade: Grade
    p_value: float | None = None
    p_adjusted: float | None = None
    template_sd: float | None = None
    flags: tuple[str, ...] = ()
    bbs_by_chance: float | None = None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows (occupations) x labels, A against B, which ``arms`` name in that order."""

    id: str
    title: str
    arms: tuple[str, str]
    rows: tuple[str, ...]
    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people and machines: ``head`` names the columns of ``rows``."""

    id: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Everything that one probe found in one language under one condition.

    ``index`` is the probe's part of the composite: in [-1, 1], 0 for no difference; ``index_means``
    says in words what its positive and negative ends are, ``axis`` along which attribute (only one
    attribute's go into a composite). ``usable`` False says that this model
    cannot be probed like this, and ``why_not`` in what way ("unusable for multiple choice"): then
    there are no verdicts, whatever the figures. ``examples`` are a few replies to quote, arm first.
    """

    probe: str
    title: str
    question: str
    language: str
    arms: tuple[str, ...]
    index: Figure
    index_means: tuple[str, str]
    tallies: tuple[Tally, ...]
    condition: str = PLAIN
    axis: str = "gender"
    figures: tuple[Figure, ...] = ()
    tests: tuple[TestResult, ...] = ()
    heat_maps: tuple[HeatMap, ...] = ()
    tables: tuple[Table, ...] = ()
    notices: tuple[str, ...] = ()
    usable: bool = True
    why_not: str = ""
    by_repeat: tuple[float | None, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def figure(self, name: str) -> Figure | None:
        """The figure of that id, None where the probe has none."""
        return next((f for f in self.figures if f.id == name), None)


@dataclass(frozen=True, slots=True)
class CompositePart:
    """One probe's part: its index turned by ``sign`` so that plus means the same for every part.
    ``value`` is None with a ``reason`` where the probe has no index."""

    probe: str
    sign: int
    weight: float
    value: float | None
    interval: Interval | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Composite:
    """All probes of one language and condition in one number, and what that number hides.

    ``mean`` is the weighted signed mean in [-1, 1], ``rms`` the weighted root of the mean square:
    opposite leanings cancel in the first and not in the second. Both are None with a reason when a
    part is missing. ``direction`` is a function of the figures and their intervals.
    """

    language: str
    condition: str
    parts: tuple[CompositePart, ...]
    mean: Figure
    rms: Figure
    direction: str
    means: tuple[str, str] = ("towards men", "towards women")


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """What a condition (a guard in the prompt) changed of one figure against the plain one."""

    probe: str
    language: str
    condition: str
    figure: str
    before: Figure
    after: Figure
    change: Figure
    p_value: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class GateLine:
    """One limit of the plan held against one figure. ``state`` is inconclusive where the figure's
    interval reaches over the limit, and not_measurable where there is no figure."""

    id: str
    state: Literal["pass", "fail", "inconclusive", "not_measurable"]
    sentence: str
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class CostLine:
    """A difference in the words of a business: ``amount`` in ``unit`` (a currency, or people), with
    the sentence that says what was multiplied by what. None with a reason where it has no figure."""

    title: str
    amount: Figure
    sentence: str
