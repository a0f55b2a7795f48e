"""From the probes of a plan to the calls that are sent, and back to readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.errors import LikenessError
from domain.probe_plan import ProbePlan
from probes.asking.abilities import Abilities
from probes.calls import Call, Reading, Reply, Sampling
from probes.mitigation import Condition
from service.probe_plans import LoadedProbePlan, Part


@dataclass(frozen=True, slots=True)
class Question:
    """One call of one probe under one condition. ``plain`` is the call as the probe built it,
    ``call`` the same under the condition, ``asked`` what is sent and kept: two parts of a plan that
    are the same probe with other settings differ in ``probe`` there. ``usual`` is the sampling that
    most calls of the part have."""

    part: Part
    condition: Condition
    plain: Call
    call: Call
    asked: Call
    usual: Sampling


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with what came back and what its probe read in it."""

    question: Question
    reply: Reply
    reading: Reading


def able(parts: Iterable[Part], abilities: Abilities) -> tuple[list[Part], list[str]]:
    """The parts that the endpoint can answer, and a sentence for each that it cannot."""
    can, notices = [], []
    for part in parts:
        lacks = [need for need in part.spec.needs if getattr(abilities, need, None) is False]
        if lacks:
            what = " and ".join(lacks)
            notices.append(f"{part.label} was not run: the endpoint does not offer {what}.")
        else:
            can.append(part)
    return can, notices


def questions(loaded: LoadedProbePlan, parts: Iterable[Part]) -> list[Question]:
    """Every call of every part in each of its languages under each condition. Raises LikenessError
    where a probe builds one call twice: its replies could not be told apart."""
    found: list[Question] = []
    places: set[object] = set()
    for part in parts:
        for language in part.languages:
            plain = list(part.probe.calls(language, loaded.plan.seed))
            usual = _usual(plain)
            for condition in loaded.conditions(language):
                for call in plain:
                    question = _question(part, condition, call, usual, loaded.plan)
                    if question.asked.place in places:
                        where = f"item '{call.item}', arm '{call.arm}', repeat {call.repeat}"
                        raise LikenessError(f"probe '{part.label}': builds a call twice ({where})")
                    places.add(question.asked.place)
                    found.append(question)
    return found


def follow_ups(answers: Iterable[Answer], plan: ProbePlan) -> list[Question]:
    """The second questions that probes ask because of how the first ended, under the same
    condition. A probe is handed the plain call, so that nothing is put before it twice."""
    found = []
    for answer in answers:
        asked = answer.question
        reading = replace(answer.reading, call=asked.plain)
        second = asked.part.probe.follow_up(reading, plan.seed)
        if second is not None:
            found.append(_question(asked.part, asked.condition, second, asked.usual, plan))
    return found


def read(asked: Sequence[Question], endpoint: str, replies: Mapping[str, Reply]) -> list[Answer]:
    """What each probe makes of the replies, which are by the calls' keys."""
    found = []
    for question in asked:
        reply = replies[question.asked.key(endpoint)]
        found.append(Answer(question, reply, question.part.probe.read(question.call, reply)))
    return found


def _usual(calls: Sequence[Call]) -> Sampling:
    return Counter(c.sampling for c in calls).most_common(1)[0][0] if calls else Sampling()


def _question(
    part: Part, condition: Condition, call: Call, usual: Sampling, plan: ProbePlan
) -> Question:
    """The plan's sampling stands in for the probe's usual one: a call that asks for something else
    on purpose (a diagnosis at a low temperature), or reads log-probabilities, keeps its own."""
    changes = {
        name: value
        for name, value in plan.sampling.changes().items()
        if getattr(call.sampling, name) == getattr(usual, name)
    }
    if changes and not call.sampling.top_logprobs:
        call = replace(call, sampling=replace(call.sampling, **changes))
    under = condition.put(call)
    asked = under if under.probe == part.label else replace(under, probe=part.label)
    return Question(part, condition, call, under, asked, usual)
