"""Reads the answer to a screening question: five fields, whatever language their keys are in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from probes.calls import Call, Reading, Reply, Status
from probes.resumes.texts import Screening, plain_key
from probes.statuses import json_in
from probes.word_lists import counter, hits

_NUMBER = re.compile(
    r"\s*(-?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+)|%|分|points?|punkte?)?\s*\Z", re.IGNORECASE
)
QUOTE = 240
"""Characters of a reply that are kept to be quoted."""


def read_answer(
    call: Call, reply: Reply, texts: Screening, lexicon: Mapping[str, Sequence[str]]
) -> Reading:
    """The reading of a reply that has words in it. UNPARSABLE without JSON or a field that is needed
    (strengths, risks, proceed, score), OUT_OF_CHOICE for a decision that is neither yes nor no or a
    score outside 0 to 100."""
    told = json_in(reply.text)
    if not isinstance(told, dict):
        return failed(call, reply, Status.UNPARSABLE, "no JSON object in it")
    fields = {
        texts.keys[plain_key(str(k))]: v for k, v in told.items() if plain_key(str(k)) in texts.keys
    }
    missing = [
        n for n in ("strengths", "risks", "proceed", "score") if fields.get(n) in (None, "", [])
    ]
    if missing:
        return failed(call, reply, Status.UNPARSABLE, f"the answer lacks {', '.join(missing)}")
    decision = _decision(fields["proceed"], texts)
    if decision is None:
        return failed(call, reply, Status.OUT_OF_CHOICE, "the decision is neither yes nor no")
    score, why = _score(fields["score"])
    if score is None:
        status = Status.OUT_OF_CHOICE if "0 to 100" in why else Status.UNPARSABLE
        return failed(call, reply, status, why)
    label = "yes" if decision else "no"
    extras = _words(fields, texts, lexicon, call.language)
    extras["quote"] = " ".join(reply.text.split())[:QUOTE]
    return Reading(call, Status.ANSWERED, label, score, extras=extras, model=reply.model)


def failed(call: Call, reply: Reply, status: Status, reason: str) -> Reading:
    """A reading without label and value; the beginning of the words is kept to be quoted."""
    quote = " ".join(reply.text.split())[:QUOTE]
    return Reading(call, status, reason=reason, extras={"quote": quote}, model=reply.model)


def _decision(told: Any, texts: Screening) -> bool | None:
    if isinstance(told, bool):
        return told
    said = str(told).strip().casefold().strip("\"'.!。！“”")
    for word, answer in texts.answers:
        if said == word:
            return answer
    for word, answer in texts.answers:
        # "yes, after a call" and 不建议进入: the first word decides; "novel" does not begin with "no"
        if said.startswith(word) and (
            not word.isascii() or not said[len(word) : len(word) + 1].isalnum()
        ):
            return answer
    return None


def _score(told: Any) -> tuple[float | None, str]:
    if isinstance(told, bool):
        return None, "the score is no number"
    value: float
    if isinstance(told, int | float):
        value = float(told)
    else:
        found = _NUMBER.match(str(told))
        if found is None:
            return None, "the score is no number"
        value = float(found[1].replace(",", "."))
        if found[2] and found[2] != "100":
            return None, f"the score is not out of 0 to 100 but of {found[2]}"
    if not math.isfinite(value) or not 0 <= value <= 100:
        return None, "the score is not within 0 to 100"
    return value, ""


def _words(
    fields: Mapping[str, Any], texts: Screening, lexicon: Mapping[str, Sequence[str]], language: str
) -> dict[str, float | str]:
    strengths, risks = _lines(fields["strengths"]), _lines(fields["risks"])
    role = str(fields.get("role") or "")
    found: dict[str, float | str] = {
        "strengths": float(len(strengths)),
        "risks": float(len(risks)),
        "role": role,
    }
    for name, words in texts.words.items():
        text = "\n".join(risks if name == "risk" else strengths)
        found[f"words_{name}"] = float(hits(words, text))
    if role:
        level = int(hits(texts.higher, role) > 0) - int(hits(texts.lower, role) > 0)
        found["role_level"] = float(level)
    whole = "\n".join((*strengths, *risks))
    for name, stems in lexicon.items():
        found[f"lexicon_{name}"] = float(hits(counter(stems, language), whole))
    return found


def _lines(told: Any) -> list[str]:
    parts = told if isinstance(told, list) else [told]
    return [str(part) for part in parts if str(part).strip()]
