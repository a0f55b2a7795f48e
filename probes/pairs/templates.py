"""Sentences with slots, and how a slot is filled for one arm and one occupation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from probes.pairs.grammar import USUAL, Choices, arm_form, occupation_form
from probes.pairs.lexicon import Arm, Lexicon, Occupation, read_own, read_yaml

_SLOT = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
VERB = "verb"


@dataclass(frozen=True, slots=True)
class Template:
    """An unfinished sentence. ``text`` has slots in braces: {occupation}, {occupation:a},
    {gender:subject}, {verb:works|work}; what a reply adds after its last word is the response slot,
    which ``keyword`` (that last word or phrase) introduces. ``dimension`` is what is varied in it.
    """

    id: str
    language: str
    dimension: str
    text: str
    keyword: str

    @property
    def slots(self) -> tuple[tuple[str, str], ...]:
        """Variable and form of each slot, in order."""
        return tuple((m[1], m[2] or "") for m in _SLOT.finditer(self.text))


@dataclass(frozen=True, slots=True)
class Filled:
    """A prompt made from a template. ``fillers`` are (variable, words) in the order of the text; an
    agreeing form (a verb, a German noun) counts as a form of the variable it agrees with."""

    text: str
    fillers: tuple[tuple[str, str], ...]


def fill(
    template: Template,
    occupation: Occupation,
    arm: Arm,
    lexicon: Lexicon,
    *,
    variant: int = 0,
    choices: Choices = USUAL,
) -> Filled:
    """The prompt of ``arm`` for ``occupation``; ``variant`` chooses the arm's name, age or place.

    LikenessError names template and slot where a form is missing.
    """
    parts: list[str] = []
    fillers: list[tuple[str, str]] = []
    end = 0
    for match in _SLOT.finditer(template.text):
        parts.append(template.text[end : match.start()])
        name, form = match[1], match[2] or ""
        try:
            words = _words(template, name, form, occupation, arm, lexicon, variant, choices)
        except LikenessError as error:
            raise LikenessError(f"template '{template.id}': {error}") from None
        parts.append(words)
        fillers.append((name, words))
        end = match.end()
    parts.append(template.text[end:])
    return Filled("".join(parts), tuple(fillers))


def _words(
    template: Template,
    name: str,
    form: str,
    occupation: Occupation,
    arm: Arm,
    lexicon: Lexicon,
    variant: int,
    choices: Choices,
) -> str:
    if name == "occupation":
        return occupation_form(occupation, form, arm, template.dimension, lexicon.language, choices)
    if name == VERB:
        singular, _, plural = form.partition("|")
        gender_in_noun = choices.marking == "noun" and template.dimension == "gender"
        return plural if arm.plural or gender_in_noun else singular
    return arm_form(
        arm, variant, form, lexicon.language, choices, neutral=_neutral(template, lexicon)
    )


def _neutral(template: Template, lexicon: Lexicon) -> Mapping[str, str]:
    arms = lexicon.dimension(template.dimension).arms
    return arms["nonbinary"].variants[0] if "nonbinary" in arms else {}


def shipped(language: str) -> tuple[Template, ...]:
    """The templates of ``language`` that come with the program."""
    return read(read_yaml("templates", language), language, f"templates/{language}.yaml")


def own(path: Path, language: str) -> tuple[Template, ...]:
    """Templates of ``language`` from a user's file: the shape of the shipped ones, with a key
    ``language`` at the top or in each template. LikenessError names file, template and cause."""
    found = read(read_own(path), language, path.name)
    if not found:
        raise LikenessError(f"{path.name}: no template in language '{language}'")
    return found


def read(body: Mapping[str, Any], language: str, where: str) -> tuple[Template, ...]:
    """The templates in ``body`` that are in ``language``, checked."""
    entries = body.get("templates")
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise LikenessError(f"{where}: 'templates' must be a list of mappings")
    found = []
    for number, entry in enumerate(entries, 1):
        if entry.get("language", body.get("language")) != language:
            continue
        missing = [k for k in ("id", "dimension", "text", "keyword") if not entry.get(k)]
        if missing:
            name = entry.get("id", f"number {number}")
            raise LikenessError(f"{where}: template '{name}' lacks {', '.join(missing)}")
        told = {k: str(entry[k]) for k in ("id", "dimension", "text", "keyword")}
        made = Template(language=language, **told)
        _check(made, where)
        found.append(made)
    _no_twins((t.id for t in found), where)
    return tuple(found)


def _check(template: Template, where: str) -> None:
    said = f"{where}: template '{template.id}'"
    names = [name for name, _ in template.slots]
    if "{" in _SLOT.sub("", template.text) or "}" in _SLOT.sub("", template.text):
        raise LikenessError(f"{said}: a brace that belongs to no slot")
    allowed = {"occupation", VERB, template.dimension}
    strange = [n for n in names if n not in allowed]
    if strange:
        raise LikenessError(
            f"{said}: slot '{strange[0]}' is neither its dimension '{template.dimension}' nor "
            "occupation or verb: a second variable in one template"
        )
    if not template.text.rstrip().endswith(template.keyword):
        raise LikenessError(
            f"{said}: the text must end with its keyword '{template.keyword}': the reply goes on there"
        )
    for name, form in template.slots:
        if name == VERB and form.count("|") != 1:
            raise LikenessError(f"{said}: a verb needs two forms, as in {{verb:works|work}}")


def _no_twins(ids: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise LikenessError(f"{where}: template '{name}' is there twice")
        seen.add(name)
