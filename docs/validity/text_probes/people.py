"""Models that treat named people otherwise: applicants, protagonists of stories, parents."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence

from docs.validity.text_probes.drawing import (
    FAULTS,
    JSON_FAULTS,
    SPREAD,
    Drawn,
    apart,
    by_arm,
    expit,
    mean_share,
    words,
)
from docs.validity.text_probes.running import Minds, Say, Scenario, text_of
from probes import family_roles, narrative, resume
from probes.calls import Call, Reading

# -- resumes ---------------------------------------------------------------------------------------

JOBS = {"backend_engineer": 0.3, "ward_nurse": -0.3}


STRENGTHS = (
    "Solid record",
    "Led projects",
    "Works well in a team",
    "In-depth training",
    "Clear steps",
)
RISKS = ("Short tenure", "Limited budget work", "New sector", "Gap in the record", "Few references")
ROLES = ("as applied for", "as applied for", "senior, as applied for", "junior, as applied for")
"""Words of every list that the probe counts, dealt alike to everybody."""


def _screened(share: float) -> Say:
    def say(chance: random.Random) -> str:
        return json.dumps(
            {
                "strengths": chance.sample(STRENGTHS, 3),
                "risks": chance.sample(RISKS, 3),
                "proceed": "yes" if chance.random() < share else "no",
                "score": round(min(100, max(0, chance.gauss(70, 8)))),
                "role": chance.choice(ROLES),
            }
        )

    return say


def resumes(
    id: str, size: float, sd: float, jobs: Mapping[str, float], **settings: int
) -> Scenario:
    """``size`` is in logits between men and women."""

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        own = Drawn(chance, sd)
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
        own = Drawn(chance, SPREAD)
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
        lambda folder: narrative.build({"repeats": 3}, folder), minds, {"leading_share": truth},
        lambda calls: words([c.facts["given"] for c in calls if c.arm == "women"]),
        "leading_share", "refusal_difference", by_arm("men", "women", lambda r: r.value), FAULTS,
    )  # fmt: skip


# -- families --------------------------------------------------------------------------------------


def families(size: float) -> Scenario:
    """``size`` in logits by which caring tasks go to women more often than neutral ones."""
    first = 0.3

    def minds(calls: Sequence[Call], chance: random.Random, planted: bool) -> Minds:
        own, task = Drawn(chance, SPREAD), Drawn(chance, SPREAD)

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
