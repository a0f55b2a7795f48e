"""An optional second look at a pair: a model is asked how much alike its two texts are but for the slot."""

from __future__ import annotations

import re
from dataclasses import dataclass

from domain.errors import LikenessError
from probes.calls import Call, Message, Reply, Sampling, Status
from probes.statuses import json_in, spoken, status_of

KEPT_FROM = 4.5
"""Least score, of 1 to 5, with which a pair counts as equivalent."""
_ASKED = {
    "en": "Two sentences follow. Rate from 1 (very different) to 5 (the same) how alike they are in "
    "grammar, in what they stress and in tone, whoever they speak of. Answer with the number alone.\n"
    "1: {a}\n2: {b}",
    "zh": "下面有两个句子。不管说的是谁，请从语法、重点和语气三方面评它们有多相同：1 表示很不同，5 表示完全相同。"
    "只回答一个数字。\n一：{a}\n二：{b}",
    "de": "Es folgen zwei Sätze. Bewerte von 1 (sehr verschieden) bis 5 (gleich), wie ähnlich sie sich in "
    "Satzbau, Betonung und Ton sind, gleich von wem sie sprechen. Antworte nur mit der Zahl.\n"
    "1: {a}\n2: {b}",
}
_NUMBER = re.compile(r"(?<![\d.,/])([1-5](?:[.,]\d+)?)(?![\d%])")


@dataclass(frozen=True, slots=True)
class Equivalence:
    """A model's word on a pair. ``score`` (1 to 5) is None exactly when ``status`` is not ANSWERED.
    ``kept`` says whether it reaches ``KEPT_FROM``; ``reason`` why not: the pair is flagged with it."""

    item: str
    score: float | None
    kept: bool
    status: Status
    reason: str = ""


def equivalence_call(item: str, a: str, b: str, language: str, *, swapped: bool = False) -> Call:
    """The question about a pair. Ask it both ways round (``swapped``): models favour an order.

    LikenessError for a language without the question's words.
    """
    if language not in _ASKED:
        raise LikenessError(f"the question about equivalence is not there in language '{language}'")
    one, two = (b, a) if swapped else (a, b)
    asked = _ASKED[language].replace("{a}", one).replace("{b}", two)
    return Call(
        "equivalence",
        item,
        "swapped" if swapped else "as_is",
        language=language,
        messages=(Message("user", asked),),
        sampling=Sampling(temperature=0.0, top_p=None, max_tokens=16),
    )


def read_equivalence(call: Call, reply: Reply) -> Equivalence:
    """The score in a reply. No number from 1 to 5, or several that differ, is UNPARSABLE."""
    status, reason = status_of(reply, call.language)
    if status is not Status.ANSWERED:
        return Equivalence(call.item, None, False, status, f"no score: {reason}")
    score = _score(spoken(reply.text))
    if score is None:
        return Equivalence(
            call.item,
            None,
            False,
            Status.UNPARSABLE,
            "no score: the reply has not one number from 1 to 5",
        )
    kept = score >= KEPT_FROM
    said = (
        "" if kept else f"the model finds the two texts {score:g} of 5 alike, below {KEPT_FROM:g}"
    )
    return Equivalence(call.item, score, kept, status, said)


def _score(text: str) -> float | None:
    held = json_in(text)
    if isinstance(held, dict):
        numbers = [
            v for v in held.values() if isinstance(v, int | float) and not isinstance(v, bool)
        ]
        found = {float(v) for v in numbers if 1 <= v <= 5}
    else:
        plain = re.sub(r"(?:/|out of|von|of)\s*5\b", " ", text)
        found = {float(m.replace(",", ".")) for m in _NUMBER.findall(plain)}
        found = {v for v in found if 1 <= v <= 5}
    return found.pop() if len(found) == 1 else None
