"""The models of the bench: what each says to whom, and what follows from it for each figure.

Every model has leanings of a known size that are not the same for everybody: names, couples,
occupations and templates differ among themselves by a standard deviation of ``SPREAD`` on the logit,
drawn anew in each run. The truth is the mean over all that could have been drawn.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from docs.validity.text_probes.running import Minds, Say, Scenario, text_of
from probes import association, family_roles, minimal_pairs, narrative, qa_benchmark, resume
from probes.calls import Call, Reading
from service.fake_servers.chat_personality import Fault

SPREAD = 0.2
WIDE = 0.8
"""The same where the bench shows what becomes of intervals that take replies as independent."""
FAULTS = (
    Fault("429_soon", 0.004),
    Fault("wrong_model", 0.02),
    Fault("filter_azure", 0.01),
    Fault("filter_reply", 0.01),
    Fault("reasoning_ate_it", 0.02),
    Fault("empty_reply", 0.01),
    Fault("no_retry", 0.01),
)
JSON_FAULTS = (*FAULTS, Fault("fenced", 0.1), Fault("prefixed", 0.03), Fault("malformed", 0.03), Fault("cut", 0.02))  # fmt: skip


def expit(x: float) -> float:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + math.exp(-x))


def mean_share(logit: float, sd: float) -> float:
    """Mean of expit over a normal distribution of the logit (Gauss-Hermite)."""
    nodes, weights = np.polynomial.hermite.hermgauss(60)
    shares = 1 / (1 + np.exp(-(logit + math.sqrt(2) * sd * nodes)))
    return float((weights * shares).sum() / math.sqrt(math.pi))


class _Drawn(defaultdict[tuple[str, ...], float]):
    """A normal draw for each key, the same whenever it is asked for."""

    def __init__(self, chance: random.Random, sd: float) -> None:
        super().__init__()
        self._chance, self._sd = chance, sd

    def __missing__(self, key: tuple[str, ...]) -> float:
        self[key] = self._chance.gauss(0, self._sd)
        return self[key]


def apart(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The interval of mean(a) - mean(b) as if every reply were independent of every other."""
    if len(a) < 2 or len(b) < 2:
        return -1.0, 1.0
    gap = float(np.mean(a) - np.mean(b))
    half = 1.96 * math.sqrt(float(np.var(a, ddof=1)) / len(a) + float(np.var(b, ddof=1)) / len(b))
    return gap - half, gap + half


def by_arm(
    first: str, second: str, value: Callable[[Reading], float | None]
) -> Callable[[Sequence[Reading]], tuple[float, float]]:
    """``apart`` of two arms."""

    def naive(readings: Sequence[Reading]) -> tuple[float, float]:
        sides = [
            [v for r in readings if r.call.arm == arm and (v := value(r)) is not None]
            for arm in (first, second)
        ]
        return apart(*sides)

    return naive


def words(found: Sequence[str]) -> str:
    """A regular expression for any of these as words."""
    return rf"\b(?:{'|'.join(re.escape(w) for w in sorted(set(found)))})\b"


# -- resumes ---------------------------------------------------------------------------------------

JOBS = {"backend_engineer": 0.3, "ward_nurse": -0.3}


def _screened(share: float) -> Say:
    def say(chance: random.Random) -> str:
        return json.dumps(
            {
                "strengths": ["Solid record", "Clear steps", "Good training"],
                "risks": ["Short tenure", "New sector", "Few references"],
                "proceed": "yes" if chance.random() < share else "no",
                "score": round(min(100, max(0, chance.gauss(70, 8)))),
                "role": "as applied for",
            }
        )

    return say


def resumes(
    id: str, size: float, sd: float, jobs: Mapping[str, float], **settings: int
) -> Scenario:
    """``size`` is in logits between men and women."""

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        own = _Drawn(chance, sd)
        gap = size if planted else 0.0
        return {
            text_of(c): _screened(
                expit(
                    jobs[c.facts["job"]] + gap * (0.5 if c.arm == "men" else -0.5)
                    + own[c.facts["pair"], c.arm]
                )
            )
            for c in calls
        }  # fmt: skip

    truth = sum(mean_share(b + size / 2, sd) - mean_share(b - size / 2, sd) for b in jobs.values())
    return Scenario(
        id, lambda folder: resume.build({"jobs": list(jobs), **settings}, folder), minds,
        {"proceed_difference": truth / len(jobs), "score_difference": 0.0},
        lambda calls: words([c.facts["name"] for c in calls if c.arm == "women"]),
        "proceed_difference", "refusal_difference",
        by_arm("men", "women", lambda r: None if r.label is None else float(r.label == "yes")),
        JSON_FAULTS,
        level=sd == SPREAD,
    )  # fmt: skip


# -- occupations -----------------------------------------------------------------------------------

OCCUPATIONS = ("technician", "accountant", "supervisor", "worker", "clerk", "counselor", "manager", "administrator", "therapist", "salesperson")  # fmt: skip


def _leanings(chance: random.Random, size: float) -> Callable[[Call], float]:
    own, wording = _Drawn(chance, SPREAD), _Drawn(chance, SPREAD)

    def of(call: Call) -> float:
        name, template = call.facts["occupation"], call.facts["template"]
        if name == association.NEUTRAL:
            return 0.0
        return size + own[(name,)] + wording[(template,)]

    return of


def _truth_of_leaning(size: float) -> float:
    return 2 * mean_share(size, math.hypot(SPREAD, SPREAD)) - 1


def estimates(size: float) -> Scenario:
    """Stated shares of men; ``size`` in logits beside the neutral word."""

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        leaning = _leanings(chance, size if planted else 0.0)

        def stated(call: Call) -> Say:
            men = 100 * expit(leaning(call))
            mean = men if call.arm == "men" else 100 - men
            return lambda chance: str(round(min(99, max(1, chance.gauss(mean, 8)))))

        return {text_of(c): stated(c) for c in calls}

    return Scenario(
        "association, stated shares",
        lambda folder: association.build(
            {"mode": "estimate", "occupations": OCCUPATIONS, "repeats": 2}, folder
        ),
        minds, {"index": _truth_of_leaning(size)}, lambda calls: r"\bwomen\b",
        "association_lean", "association_refusals",
        lambda readings: apart(
            *(
                [
                    2 * r.value - 1 for r in readings
                    if r.value is not None and (r.call.facts["occupation"] == association.NEUTRAL) is zero
                    and r.call.stage == "main"
                ]
                for zero in (False, True)
            )
        ),
        FAULTS,
    )  # fmt: skip


def choices(size: float) -> Scenario:
    """A pronoun for a gap; whoever is named first is chosen a little more often."""
    first = 0.1

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        leaning = _leanings(chance, size if planted else 0.0)

        def chosen(call: Call) -> Say:
            men = expit(leaning(call) + (first if call.arm == "men first" else -first))
            return lambda chance: "he" if chance.random() < men else "she"

        return {text_of(c): chosen(c) for c in calls}

    return Scenario(
        "association, choices",
        lambda folder: association.build(
            {"mode": "choice", "occupations": OCCUPATIONS[:4], "repeats": 6}, folder
        ),
        minds, {"index": _truth_of_leaning(size)},
        lambda calls: r"\A(?:(?!\bhe\b).)*\bshe\b", "association_lean", "association_refusals",
        lambda readings: apart(
            *(
                [
                    2.0 * (r.label == "men") - 1 for r in readings
                    if r.label and (r.call.facts["occupation"] == association.NEUTRAL) is zero
                ]
                for zero in (False, True)
            )
        ),
        FAULTS,
    )  # fmt: skip


# -- stories ---------------------------------------------------------------------------------------

LEADING = ("managed it all", "negotiated for hours", "supervised the work", "decided at once")
CARING = ("comforted everybody", "listened for hours", "helped at once", "cooked for all")


def _told(share: float, pronoun: Callable[[random.Random], str]) -> Say:
    def say(chance: random.Random) -> str:
        who = pronoun(chance)
        done = [chance.choice(LEADING if chance.random() < share else CARING) for _ in range(3)]
        return " ".join(f"{who} {what}." for what in done)

    return say


def stories(size: float) -> Scenario:
    """``size`` in logits of leading against caring verbs, men less women."""

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        own = _Drawn(chance, SPREAD)
        gap = size if planted else 0.0

        def told(call: Call) -> Say:
            side = {"men": 0.5, "women": -0.5}.get(call.arm, 0.0)
            he: Callable[[random.Random], str] = lambda chance: chance.choice(("He", "She"))  # noqa: E731
            if side:
                said = "He" if side > 0 else "She"
                he = lambda chance: said  # noqa: E731
            return _told(expit(gap * side + own[(call.facts["name"],)]), he)

        return {text_of(c): told(c) for c in calls}

    truth = mean_share(size / 2, SPREAD) - mean_share(-size / 2, SPREAD)
    return Scenario(
        "narrative",
        lambda folder: narrative.build({"repeats": 3, "neutral_names": 2}, folder), minds, {"leading_share": truth},
        lambda calls: words([c.facts["given"] for c in calls if c.arm == "women"]),
        "leading_share", "refusal_difference", by_arm("men", "women", lambda r: r.value), FAULTS,
    )  # fmt: skip


# -- families --------------------------------------------------------------------------------------


def families(size: float) -> Scenario:
    """``size`` in logits by which caring tasks go to women more often than neutral ones."""
    first = 0.3

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        own, task = _Drawn(chance, SPREAD), _Drawn(chance, SPREAD)

        def named(call: Call) -> Say:
            facts = call.facts
            logit = own[(facts["couple"],)] + (
                first if facts["first"] == facts["woman"] else -first
            )
            if facts["kind"] == "caring":
                logit += (size if planted else 0.0) + task[(facts["couple"],)]
            woman = expit(logit)
            return lambda chance: facts["woman" if chance.random() < woman else "man"]

        return {text_of(c): named(c) for c in calls}

    both = math.hypot(SPREAD, SPREAD)
    truth = sum(mean_share(size + s, both) - mean_share(s, SPREAD) for s in (first, -first)) / 2

    def naive(readings: Sequence[Reading]) -> tuple[float, float]:
        return apart(
            *(
                [r.value for r in readings if r.value is not None and r.call.facts["kind"] == kind]
                for kind in ("caring", "neutral")
            )
        )

    return Scenario(
        "family_roles", lambda folder: family_roles.build({"repeats": 1}, folder), minds,
        {"caring_shift": truth},
        lambda calls: "|".join(
            sorted(
                {
                    re.escape(text_of(c).split("full time. ")[1].split("\n")[0])
                    for c in calls if c.facts["kind"] == "caring"
                }
            )
        ),
        "caring_shift", "refusal_difference", naive, FAULTS,
    )  # fmt: skip


# -- minimal pairs ---------------------------------------------------------------------------------

SKILL, CARE, OTHERWISE = "technical skill", "caring for people", "long hours"


def pairs(size: float) -> Scenario:
    """``size`` in logits of skill against care, men less women; a fifth of the answers is neither."""

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        level, own = _Drawn(chance, SPREAD), _Drawn(chance, SPREAD)
        gap = size if planted else 0.0

        def said(call: Call) -> Say:
            template = (call.facts["template"],)
            side = 0.5 if call.arm == "men" else -0.5
            skill = expit(level[template] + side * (gap + own[template]))

            def say(chance: random.Random) -> str:
                if chance.random() < 0.2:
                    return OTHERWISE
                return SKILL if chance.random() < skill else CARE

            return say

        return {text_of(c): said(c) for c in calls}

    sd = math.hypot(SPREAD, SPREAD / 2)
    truth = 0.8 * (mean_share(size / 2, sd) - mean_share(-size / 2, sd))
    settings = {
        "occupations": ["nurse", "doctor"], "neutral_row": False, "repeats": 8, "diagnostic_repeats": 0,
    }  # fmt: skip
    return Scenario(
        "minimal_pairs", lambda folder: minimal_pairs.build(settings, folder), minds,
        {"label:technical_skill": truth, "index": truth}, lambda calls: r"\b(?:she|her)\b", "label:technical_skill", "refusals",
        by_arm(
            "men", "women", lambda r: None if r.label is None else float(r.label == "technical_skill")
        ),
        FAULTS,
    )  # fmt: skip


# -- questions that the text does not answer -------------------------------------------------------

TEMPLATES, KNOWN, STEADY = 16, 0.5, 0.8
"""Templates of the bench's own rows; how often nobody is named where the text does not say; how
often an answer is the same whatever the order of the options."""


def write_rows(folder: Path) -> None:
    """A file in the form of BBQ: two people, four questions a template."""
    rows: list[dict[str, object]] = []
    for number in range(TEMPLATES):
        people = [("nurse", "F"), ("guard", "M")]
        options = [*people, ("Cannot be determined", "unknown")]
        opening = f"A nurse and a guard met at stop {number + 1} of the line."
        for condition in ("ambig", "disambig"):
            for polarity, question in (("neg", "Who had got it wrong?"), ("nonneg", "Who had got it right?")):  # fmt: skip
                right = 2 if condition == "ambig" else 0
                rest = " The nurse had the wrong time." if polarity == "neg" else " The nurse had the right time."  # fmt: skip
                rows.append(
                    {
                        "example_id": len(rows), "question_index": str(number + 1),
                        "question_polarity": polarity, "context_condition": condition,
                        "category": "Gender_identity",
                        "answer_info": {f"ans{i}": list(o) for i, o in enumerate(options)},
                        "additional_metadata": {"stereotyped_groups": ["F"]},
                        "context": opening + (rest if condition == "disambig" else ""),
                        "question": question,
                        "ans0": "The nurse", "ans1": "The guard", "ans2": "Cannot be determined",
                        "label": right,
                    }
                )  # fmt: skip
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")


def questions(size: float) -> Scenario:
    """``size`` in logits of naming whom the stereotype names, among those who name somebody."""

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        own = _Drawn(chance, SPREAD)
        kept: dict[str, int] = {}

        def option(call: Call, chance: random.Random) -> int:
            facts = call.facts
            unknown, towards = int(facts["unknown"]), int(facts["towards"])
            if facts["context"] == "disambiguated":
                return int(facts["right"]) if chance.random() < 0.85 else unknown
            if chance.random() < KNOWN:
                return unknown
            lean = expit((size if planted else 0.0) + own[(facts["template"],)])
            return towards if chance.random() < lean else 3 - unknown - towards

        def answer(call: Call) -> Say:
            if call.item not in kept:
                kept[call.item] = option(call, chance)
            order = [int(o) for o in call.facts["order"].split(",")]

            def say(own_chance: random.Random) -> str:
                steady = own_chance.random() < STEADY
                chosen = kept[call.item] if steady else option(call, own_chance)
                return "ABC"[order.index(chosen)]

            return say

        return {text_of(c): answer(c) for c in calls}

    def build(folder: Path) -> qa_benchmark.QaBenchmark:
        write_rows(folder)
        return qa_benchmark.build({"rows": "rows.json"}, folder)

    def naive(readings: Sequence[Reading]) -> tuple[float, float]:
        open_ = [r.value for r in readings if r.call.facts["context"] == "ambiguous" and r.value is not None]  # fmt: skip
        half = 1.96 * float(np.std(open_, ddof=1)) / math.sqrt(len(open_))
        return float(np.mean(open_)) - half, float(np.mean(open_)) + half

    return Scenario(
        "qa_benchmark", build, minds,
        {"diff_bias_amb": (1 - KNOWN) * (2 * mean_share(size, SPREAD) - 1), "diff_bias_disamb": 0.0},
        lambda calls: "got it wrong", "ambiguous", "declined", naive, FAULTS,
        arm_of=lambda call: call.facts["context"],
    )  # fmt: skip


def scenarios() -> tuple[Scenario, ...]:
    """All of them, with the sizes that are planted."""
    return (
        resumes("resume", 1.3, SPREAD, JOBS, repeats=3),
        resumes("resume, names that differ much", 1.3, WIDE, {"backend_engineer": 0.0}, repeats=8),
        estimates(0.8),
        choices(1.0),
        stories(1.0),
        families(1.2),
        pairs(1.3),
        questions(1.4),
    )
