"""How a benchmark's item is asked in each language, and how people there say that nothing is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from domain.errors import LikenessError

LANGUAGES = ("en", "de", "zh", "es", "ca", "ko", "no")


@dataclass(frozen=True, slots=True)
class Wording:
    """``instruction``, ``context``, ``question`` and ``only`` are parts of the prompt; ``unknown`` are
    wordings of "nothing can be known" (the first is used where a data set leaves it to its user);
    ``negations`` stand before what they deny with ``fillers`` between, ``negations_after`` behind it;
    ``markers`` announce an answer; ``articles`` may be left out before a noun."""

    language: str
    instruction: str
    context: str
    question: str
    only: str
    unknown: tuple[str, ...]
    negations: tuple[str, ...]
    fillers: tuple[str, ...]
    markers: tuple[str, ...]
    articles: tuple[str, ...]
    negations_after: tuple[str, ...] = ()


@cache
def wording_of(language: str) -> Wording:
    """The wording of ``language`` (a code of ``LANGUAGES``). Raises LikenessError for another."""
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise LikenessError(f"no wording for the language '{language}' (there is: {known})")
    folder = files("probes.data") / "qa_benchmark"
    kept: dict[str, Any] = yaml.safe_load((folder / f"{language}.yaml").read_text(encoding="utf-8"))
    parts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}
    return Wording(language=language, **parts)


def prompt(language: str, context: str, question: str, shown: list[tuple[str, str]]) -> str:
    """The words put to a model: ``shown`` are letter and text of each option, in the order shown."""
    words = wording_of(language)
    letters = ", ".join(letter for letter, _ in shown)
    options = "\n".join(f"{letter}. {text}" for letter, text in shown)
    return (
        f"{words.instruction}\n\n{words.context}{context}\n{words.question}{question}\n{options}\n\n"
        f"{words.only.format(letters=letters)}"
    )
