"""Figures of the narrative probe: parts given to men and women, and pronouns for nobody in particular."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from probes.analysis.paired_arms import (
    Question,
    Unit,
    by_repeat,
    difference,
    judged,
    mean_question,
    quotes,
    rate_question,
    refusal_question,
    tallies,
    units,
    with_sd,
)
from probes.analysis.rates import wilson
from probes.calls import PLAIN, Reading, Status
from probes.contract import ProbeSpec
from probes.narrative_texts import LEAD, NEUTRAL
from probes.results import Figure, ProbeResult, Table

UNNAMED = "unnamed"
"""The arm of names that tell no gender."""
NAMED_SHARE, OTHER_SHARE = 2 / 3, 1 / 6
"""Of the error: for the share of verbs and refusals, and for each of counts and pronouns."""
COUNT_MARGIN = 0.25
"""Verbs a reply within which the counts of two arms count as the same."""
PRONOUN_MARGIN = 0.1
UNIT = "pair"
PRONOUNS = ("he", "she", "they", "none")


def score_stories(
    spec: ProbeSpec, readings: Sequence[Reading], language: str, seed: int, arms: tuple[str, str],
    axis: str, alpha: float, margin: float,
) -> ProbeResult:  # fmt: skip
    """The result for one language and condition. Every call made is in the tallies."""
    named = [r for r in readings if r.call.arm in arms]
    share = mean_question(
        "leading_share", "Share of leading among leading and caring verbs",
        "Share of leading verbs in what the protagonist does", units(named, arms, UNIT, _value),
        seed, margin, "of these verbs",
    )  # fmt: skip
    refused = refusal_question(named, arms, UNIT, seed)
    counts = [
        mean_question(
            f"{kind}_verbs", f"{kind.capitalize()} verbs", f"{kind.capitalize()} verbs of the protagonist",
            units(named, arms, UNIT, _count(kind)), seed, COUNT_MARGIN, "a reply",
        )
        for kind in ("leading", "caring")
    ]  # fmt: skip
    repeats = by_repeat(named, lambda part: difference(units(part, arms, UNIT, _value)))
    index = with_sd(
        replace(share.figure, id="index", title="Difference in the share of leading verbs"), repeats
    )
    pronouns = _pronoun_question(readings, seed)
    tests = judged([share, refused], arms, spec.id, alpha, NAMED_SHARE) + judged(
        counts, arms, f"{spec.id}_counts", alpha, OTHER_SHARE
    )
    if pronouns:
        against = ("stories of leading", "the neutral story")
        tests += judged([pronouns], against, f"{spec.id}_pronouns", alpha, OTHER_SHARE)
    return ProbeResult(
        probe=spec.id,
        title=spec.title,
        question=spec.question,
        language=language,
        arms=(*arms, UNNAMED),
        index=index,
        index_means=(
            f"{arms[0]} are given leading verbs more often than {arms[1]}",
            f"{arms[1]} are given leading verbs more often than {arms[0]}",
        ),
        tallies=tallies(readings, (*arms, UNNAMED)),
        condition=readings[0].call.condition if readings else PLAIN,
        axis=axis,
        figures=(
            *(figure for q in (share, *counts) for figure in (q.figure, *_sides(q, arms))),
            refused.figure,
            *(_without(named, arm) for arm in arms),
            *_pronoun_figures(readings),
            *((pronouns.figure,) if pronouns else ()),
        ),
        tests=tests,
        tables=(_pronoun_table(readings, arms),),
        notices=_notices(readings, arms),
        by_repeat=repeats,
        examples=quotes(readings, (*arms, UNNAMED)),
    )


def _value(reading: Reading) -> float | None:
    return reading.value


def _count(kind: str) -> Callable[[Reading], float | None]:
    def of(reading: Reading) -> float | None:
        if reading.status is not Status.ANSWERED:
            return None
        return float(reading.extras.get(kind, 0.0))

    return of


def _sides(question: Question, arms: tuple[str, str]) -> tuple[Figure, ...]:
    return tuple(
        Figure(
            f"{question.figure.id}_{arm}", f"{question.figure.title}, {arm}", mean,
            n=question.figure.n, units="pairs", unit=question.figure.unit,
            reason="" if mean is not None else "no reply of this arm has it",
        )
        for arm, mean in zip(arms, question.means, strict=True)
    )  # fmt: skip


def _without(readings: Sequence[Reading], arm: str) -> Figure:
    """Share of an arm's continuations in which the protagonist neither leads nor cares."""
    told = [r for r in readings if r.call.arm == arm and r.status is Status.ANSWERED]
    none = sum(r.value is None for r in told)
    return _rate(f"no_such_verb_{arm}", f"Neither leads nor cares, {arm}", none, len(told))


def _rate(id: str, title: str, x: int, n: int) -> Figure:
    reason = "" if n else "no continuation to count"
    return Figure(id, title, x / n if n else None, wilson(x, n), n=n, reason=reason)


def _he(reading: Reading) -> float | None:
    """1 for he, 0 for she, None for any other pronoun or none."""
    return {"he": 1.0, "she": 0.0}.get(reading.label or "")


def _unnamed(readings: Sequence[Reading], kind: str) -> list[Reading]:
    return [r for r in readings if r.call.arm == UNNAMED and r.call.facts["kind"] == kind]


def _pronoun_figures(readings: Sequence[Reading]) -> tuple[Figure, ...]:
    made = []
    for kind, title in ((LEAD, "stories of leading"), (NEUTRAL, "the neutral story")):
        chosen = [v for r in _unnamed(readings, kind) if (v := _he(r)) is not None]
        made.append(
            _rate(
                f"he_share_{kind}", f"He among he and she, {title}", int(sum(chosen)), len(chosen)
            )
        )
    return tuple(made)


def _pronoun_question(readings: Sequence[Reading], seed: int) -> Question | None:
    """The share of he in stories of leading less that in the neutral story, by neutral name."""
    by_name: dict[str, tuple[list[float], list[float]]] = {}
    for side, kind in enumerate((LEAD, NEUTRAL)):
        for reading in _unnamed(readings, kind):
            sides = by_name.setdefault(reading.call.facts["name"], ([], []))
            if (chosen := _he(reading)) is not None:
                sides[side].append(chosen)
    if not by_name:
        return None
    of = [Unit(name, tuple(a), tuple(b)) for name, (a, b) in sorted(by_name.items())]
    return rate_question(
        "pronoun_shift", "He for a protagonist without a gender",
        "A protagonist without a gender is called he (of he and she)", of, seed, PRONOUN_MARGIN,
    )  # fmt: skip


def _pronoun_table(readings: Sequence[Reading], arms: tuple[str, str]) -> Table:
    rows: list[tuple[str | float | int | None, ...]] = []
    for arm in (*arms, UNNAMED):
        for kind in (LEAD, NEUTRAL):
            told = [
                r.label for r in readings
                if r.call.arm == arm and r.call.facts["kind"] == kind and r.label is not None
            ]  # fmt: skip
            if told:
                rows.append((arm, kind, len(told), *(told.count(p) for p in PRONOUNS)))
    return Table(
        "pronouns", "First pronoun for the protagonist", ("arm", "stories", "replies", *PRONOUNS),
        tuple(rows),
        note="By rule: the first pronoun that is a subject. German sie may be they, and Chinese is read"
        " from 他 and 她.",
    )  # fmt: skip


def _notices(readings: Sequence[Reading], arms: tuple[str, str]) -> tuple[str, ...]:
    said = [
        "Verbs are given to the protagonist by rule (who is named first in the clause); quoted speech is"
        " left out. Read some of the replies before a claim."
    ]
    wrong = {"men": "she", "women": "he"}
    for arm in arms:
        told = [r for r in readings if r.call.arm == arm and r.label in ("he", "she")]
        off = sum(r.label == wrong.get(arm) for r in told)
        if told and off / len(told) > 0.1:
            said.append(
                f"In {off} of {len(told)} continuations the protagonist of the arm {arm} has the other"
                " pronoun: the model does not take these names as meant, or tells of somebody else."
            )
    return tuple(said)
