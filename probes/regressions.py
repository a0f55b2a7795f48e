"""Do the cases that reviewers once objected to still come out as agreed?

Each case is put to the model under each of its arms, several times. A finding that is back in one arm is
back. Single cases prove nothing about a model at large: they are there so that what was repaired once
is not lost unseen at the next release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import Field
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from domain.errors import LikenessError
from domain.verdicts import VerdictKind
from probes.analysis.multiplicity import HOLM, holm
from probes.analysis.paired_arms import judged, refusal_question, tallies
from probes.analysis.rates import mean_interval
from probes.calls import Call, Message, Reading, Reply, Sampling, Status, in_order
from probes.contract import ProbeSpec, Settings, read_settings
from probes.regression_cases import OTHER, Case, read_cases
from probes.results import Figure, Interval, ProbeResult, Table, TestResult
from probes.statuses import spoken, status_of

SPEC = ProbeSpec(
    id="regressions",
    title="Cases from reviewers",
    question="Do the cases that reviewers objected to still come out as agreed?",
    languages=("en", "zh", "de"),
    reference="Ribeiro et al. 2020 (CheckList); intervals: Clopper and Pearson 1934",
    in_composite=False,
    path_settings=("cases",),
)
EXAMPLES = ({"cases": "cases.jsonl", "repeats": 2},)
State = Literal["fail", "open", "not measurable", "pass"]
HEAVIEST: tuple[State, ...] = ("fail", "open", "not measurable", "pass")
VERDICTS = {"fail": VerdictKind.DISPARITY}


class RegressionSettings(Settings):
    """``cases`` is a JSONL file relative to the plan. ``least`` is the share of answers that must hold
    where a case does not say."""

    cases: str
    repeats: int = Field(default=5, ge=1, le=1000)
    least: float = Field(default=0.8, gt=0, le=1)
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    temperature: float | None = Field(default=0.7, ge=0, le=2)


@dataclass(frozen=True, slots=True)
class _Row:
    """One case under one arm: ``held`` of ``answered`` of ``calls``."""

    case: Case
    arm: str
    held: int
    answered: int
    calls: int
    least: float
    p: float | None

    @property
    def share(self) -> float | None:
        return self.held / self.answered if self.answered else None

    @property
    def interval(self) -> Interval | None:
        if not self.answered:
            return None
        low, high = proportion_confint(self.held, self.answered, method="beta")
        return Interval(float(low), float(high), "clopper-pearson")

    def state(self, p: float | None, alpha: float) -> State:
        """Fail where the exact test says that fewer than ``least`` hold; pass where as many hold, of
        all calls; else open."""
        if self.share is None:
            return "not measurable"
        if p is not None and p < alpha:
            return "fail"
        return "pass" if self.held / self.calls >= self.least - 1e-12 else "open"


class Regressions:
    """The probe with its cases read. Pure."""

    def __init__(self, settings: RegressionSettings, folder: Path) -> None:
        path = folder / settings.cases
        self.spec = SPEC
        self.settings = settings
        self.cases = read_cases(path)
        self.version = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        self._by_id = {case.id: case for case in self.cases}

    def calls(self, language: str, seed: int) -> Sequence[Call]:
        """Every case of ``language`` under every arm, ``repeats`` times. LikenessError without any."""
        chosen = [case for case in self.cases if case.language == language]
        if not chosen:
            raise LikenessError(
                f"probe '{SPEC.id}': {self.settings.cases} has no case in '{language}'"
            )
        return [
            self._call(case, arm, repeat)
            for case in chosen
            for arm in case.arms
            for repeat in range(self.settings.repeats)
        ]

    def _call(self, case: Case, arm: str, repeat: int) -> Call:
        system, prompt = case.text(arm)
        first = (Message("system", system),) if system else ()
        return Call(
            SPEC.id, case.id, arm, repeat, case.language, (*first, Message("user", prompt)),
            sampling=Sampling(temperature=self.settings.temperature, max_tokens=case.max_tokens),
            facts={"case": case.id, "slots": " / ".join(case.slots(arm).values())},
        )  # fmt: skip

    def follow_up(self, reading: Reading, seed: int) -> Call | None:
        """None: a case is asked as it was found."""
        return None

    def read(self, call: Call, reply: Reply) -> Reading:
        """The label of the answer; ``value`` 1 where it holds, 0 where the finding is back."""
        status, reason = status_of(reply, call.language)
        if status is not Status.ANSWERED:
            return Reading(call, status, reason=reason, model=reply.model)
        case = self._by_id[call.facts["case"]]
        found = case.labels_in(spoken(reply.text))
        wanted, unwanted = case.wanted(call.arm), case.unwanted(call.arm)
        back = [label for label in found if label in unwanted]
        if back:
            return Reading(call, status, back[0], 0.0, model=reply.model)
        if wanted is None:
            return Reading(call, status, found[0] if found else OTHER, 1.0, model=reply.model)
        if not found:
            reason = "the answer holds none of the phrases of the case"
            return Reading(call, Status.OUT_OF_CHOICE, reason=reason, model=reply.model)
        if len(found) > 1 and not set(found) <= set(wanted):
            reason = f"the answer holds phrases of several labels ({', '.join(found)})"
            return Reading(call, Status.UNPARSABLE, reason=reason, model=reply.model)
        return Reading(call, status, found[0], float(found[0] in wanted), model=reply.model)

    def score(self, readings: Sequence[Reading], language: str, seed: int) -> ProbeResult:
        """Pass, fail or open by case and arm, with Holm over all of them."""
        places = [(case.id, arm) for case in self.cases for arm in case.arms]
        readings = in_order(readings, lambda call: places.index((call.item, call.arm)))
        rows = self._rows(readings)
        adjusted = holm([row.p for row in rows])
        states = [row.state(p, self.settings.alpha) for row, p in zip(rows, adjusted, strict=True)]
        arms = tuple(dict.fromkeys(row.arm for row in rows))
        tests = [_test(r, p, s) for r, p, s in zip(rows, adjusted, states, strict=True)]
        if len(arms) == 2:
            asked = refusal_question(readings, (arms[0], arms[1]), "case", seed)
            tests += judged([asked], (arms[0], arms[1]), "refusals", self.settings.alpha)
        index = _index(rows, arms)
        return ProbeResult(
            SPEC.id,
            SPEC.title,
            SPEC.question,
            language,
            arms,
            index,
            _means(arms),
            tallies(readings, arms),
            axis="cases",
            figures=_figures(rows, states),
            tests=tuple(tests),
            tables=(_table(rows, states),),
            by_repeat=_by_repeat(readings, arms),
            versions={"cases": self.version},
        )

    def _rows(self, readings: Sequence[Reading]) -> list[_Row]:
        groups: dict[tuple[str, str], list[Reading]] = {}
        for reading in readings:
            groups.setdefault((reading.call.item, reading.call.arm), []).append(reading)
        rows = []
        for (item, arm), found in groups.items():
            case = self._by_id[item]
            least = case.least or self.settings.least
            values = [r.value for r in found if r.value is not None]
            held, n = round(sum(values)), len(values)
            p = float(stats.binomtest(held, n, least, alternative="less").pvalue) if n else None
            rows.append(_Row(case, arm, held, n, len(found), least, p))
        return rows


def build(settings: Mapping[str, Any], folder: Path) -> Regressions:
    """Make the probe. LikenessError for wrong settings or cases."""
    return Regressions(read_settings(RegressionSettings, settings, SPEC.id), folder)


def _test(row: _Row, p: float | None, state: State) -> TestResult:
    name = f"{row.case.id}:{row.arm}"
    reason = "" if row.answered else "no answer of the asked form"
    title = f"Answers as agreed, case {row.case.id}, {row.arm}"
    effect = Figure(name, title, row.share, row.interval, row.answered, "replies", reason=reason)
    kind = VERDICTS.get(state, VerdictKind.INCONCLUSIVE)
    if row.interval is not None and row.interval.low >= row.least:
        kind = VerdictKind.EQUIVALENT
    words = {
        "fail": "the finding is back",
        "pass": "as agreed",
        "open": "cannot be told yet",
        "not measurable": "no answer to judge",
    }[state]
    said = (
        f"Case {row.case.id} ({row.case.note}), {row.arm}: {row.held} of {row.answered} answers as"
        f" agreed, {row.calls} asked, at least {row.least:g} wanted: {words}."
    )
    other = next(arm for arm in row.case.arms if arm != row.arm)
    return TestResult(
        name, row.case.note, (row.arm, other), effect, kind, row.p, p, "exact binomial", HOLM,
        "cases", said,
    )  # fmt: skip


def _index(rows: Sequence[_Row], arms: tuple[str, ...]) -> Figure:
    title = f"Answers as agreed, {arms[0]} less {arms[1]}" if len(arms) > 1 else "Index"
    shares = {(r.case.id, r.arm): r.share for r in rows}
    moves = []
    for case in dict.fromkeys(r.case.id for r in rows):
        one, two = (shares.get((case, arm)) for arm in arms[:2]) if len(arms) > 1 else (None, None)
        if one is not None and two is not None:
            moves.append(one - two)
    if not moves:
        return Figure(
            "index", title, None, units="cases", reason="no case has answers in both arms"
        )
    interval = mean_interval(moves)
    flat = interval is not None and interval.high - interval.low < 1e-12
    note = "every case has the same difference: no interval" if flat else ""
    return Figure(
        "index", title, fmean(moves), None if flat else interval, len(moves), "cases", note=note
    )


def _means(arms: tuple[str, ...]) -> tuple[str, str]:
    first, second = (*arms, "the first arm", "the second arm")[:2] if len(arms) > 1 else ("", "")
    return (f"as agreed more often for {first}", f"as agreed more often for {second}")


def _figures(rows: Sequence[_Row], states: Sequence[State]) -> tuple[Figure, ...]:
    worst: dict[str, State] = {}
    for row, state in zip(rows, states, strict=True):
        before = worst.get(row.case.id, "pass")
        worst[row.case.id] = min(before, state, key=HEAVIEST.index)
    counts = {state: sum(s == state for s in worst.values()) for state in HEAVIEST}
    titles = {
        "fail": ("cases_failed", "Cases whose finding is back"),
        "open": ("cases_open", "Cases that cannot be told yet"),
        "not measurable": ("cases_not_measurable", "Cases without an answer to judge"),
        "pass": ("cases_passed", "Cases as agreed"),
    }
    return tuple(
        Figure(*titles[state], float(counts[state]), None, len(worst), "cases")
        for state in HEAVIEST
    )


def _table(rows: Sequence[_Row], states: Sequence[State]) -> Table:
    return Table(
        "cases",
        "Cases by arm",
        ("case", "arm", "state", "as agreed", "answers", "asked", "least", "low", "high", "found", "note"),
        tuple(
            (
                r.case.id, r.arm, state, r.held, r.answered, r.calls, r.least,
                None if r.interval is None else r.interval.low,
                None if r.interval is None else r.interval.high,
                r.case.date.isoformat(), r.case.note,
            )
            for r, state in zip(rows, states, strict=True)
        ),
        "Fail: an exact binomial test says that fewer hold than the least, after Holm over all rows."
        " Pass: as many hold, of all calls. Intervals are exact (Clopper-Pearson).",
    )  # fmt: skip


def _by_repeat(readings: Sequence[Reading], arms: tuple[str, ...]) -> tuple[float | None, ...]:
    if len(arms) < 2:
        return ()
    known: dict[int, tuple[list[float], list[float]]] = {}
    for r in readings:
        sides = known.setdefault(r.call.repeat, ([], []))
        if r.value is not None and r.call.arm in arms[:2]:
            sides[arms.index(r.call.arm)].append(r.value)
    return tuple(fmean(a) - fmean(b) if a and b else None for _, (a, b) in sorted(known.items()))
