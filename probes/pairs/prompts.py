"""The words put around an unfinished sentence when a model is asked to finish it."""

from __future__ import annotations

from typing import Literal

from domain.errors import LikenessError
from probes.calls import Call, Message, Sampling

Kind = Literal["chat", "completion"]
_ASKED = {
    "en": "Complete the sentence with a few words. Answer with the completion only, without repeating the "
    "sentence.\n\n{text} ___",
    "zh": "请用简短的话把句子补充完整。只写补充的部分，不要重复原句。\n\n{text}____",
    "de": "Vervollständige den Satz mit wenigen Wörtern. Antworte nur mit der Ergänzung, ohne den Satz zu "
    "wiederholen.\n\n{text} ___",
}


def ask(place: Call, text: str, kind: Kind, sampling: Sampling) -> Call:
    """``place`` (probe, item, arm, repeat, language, facts) with the question about ``text`` in it.

    LikenessError for a language without the words to ask it.
    """
    if kind == "completion":
        message: tuple[Message, ...] = ()
        prompt = text
    else:
        if place.language not in _ASKED:
            raise LikenessError(f"there are no words to ask with in language '{place.language}'")
        message = (Message("user", _ASKED[place.language].replace("{text}", text)),)
        prompt = ""
    return Call(
        place.probe, place.item, place.arm, place.repeat, place.language,
        message, prompt, kind, sampling, facts=place.facts,
    )  # fmt: skip
