"""What a continuation has its protagonist do, and which pronoun it chooses.

By rule, not by a parser: quoted speech is taken out, sentences are cut into clauses, and a verb belongs
to whoever is named first in its clause (the protagonist by name or pronoun, or somebody else of the
list); a clause that names nobody goes on with the subject before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from domain.errors import LikenessError
from probes.word_lists import read_lexicon

_SPEECH = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|»[^«]*«|「[^」]*」|『[^』]*』")
_CLAUSE = re.compile(
    r"[.!?;:,\n。！？；，：…]+|\s[–—-]\s|—+|\b(?:and|but|while|as|because|und|aber|während|weil|dass|als)\b",
    re.IGNORECASE,
)
PRONOUNS = ("he", "she", "they")
NO_PRONOUN = "none"


@dataclass(frozen=True, slots=True)
class Verbs:
    """Patterns of one language. ``articles`` before a word make it a noun."""

    leading: re.Pattern[str]
    caring: re.Pattern[str]
    others: re.Pattern[str]
    pronouns: Mapping[str, re.Pattern[str]]
    articles: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Verbs of a continuation that belong to the protagonist, and its pronoun ("he", "she", "they",
    "none"): the first that is a subject."""

    leading: tuple[str, ...]
    caring: tuple[str, ...]
    pronoun: str

    @property
    def share(self) -> float | None:
        """Leading among leading and caring verbs, in [0, 1]; None where there is neither."""
        total = len(self.leading) + len(self.caring)
        return len(self.leading) / total if total else None


@cache
def own_verbs(language: str) -> Verbs:
    """The lists that come with the probe. Raises LikenessError for a language without any."""
    file = resources.files("probes.data") / "verbs" / f"{language}.yaml"
    if not file.is_file():
        raise LikenessError(f"probe 'narrative': no lists of verbs in the language '{language}'")
    return _verbs(yaml.safe_load(file.read_text(encoding="utf-8")), language)


def verbs_of(language: str, file: Path | None, lists: tuple[str, str]) -> Verbs:
    """The own lists, with leading and caring taken from two ``lists`` of a lexicon ``file`` (stems, as
    prefixes) where one is given. Raises LikenessError naming what is missing."""
    own = own_verbs(language)
    if file is None:
        return own
    lexicon = read_lexicon(file)
    for name in lists:
        if name not in lexicon:
            known = ", ".join(lexicon)
            raise LikenessError(f"lexicon '{file.name}': no list '{name}' (known: {known})")
    leading, caring = (_pattern([f"{stem}*" for stem in lexicon[name]], language) for name in lists)
    return Verbs(leading, caring, own.others, own.pronouns, own.articles)


def _verbs(told: Mapping[str, Any], language: str) -> Verbs:
    return Verbs(
        leading=_pattern(told["leading"], language),
        caring=_pattern(told["caring"], language),
        others=_pattern(told["others"], language, nouns=True),
        pronouns={name: _pronoun(told[name], language) for name in PRONOUNS},
        articles=frozenset(told["articles"]),
    )


def _pattern(entries: Sequence[str], language: str, nouns: bool = False) -> re.Pattern[str]:
    """Entries with "/" between forms and "*" for any ending. German verbs are written small, so their
    case counts; nowhere else does case count."""
    forms = sorted((f for e in entries for f in e.split("/")), key=len, reverse=True)
    parts = [re.escape(f).replace(r"\*", r"\w*").replace(r"\ ", r"\s+") for f in forms]
    if not parts:
        return re.compile(r"(?!)")
    if language == "zh":
        return re.compile("|".join(parts).replace(r"\w*", ""))
    exact = language == "de" and not nouns
    return re.compile(rf"\b(?:{'|'.join(parts)})\b", 0 if exact else re.IGNORECASE)


def _pronoun(forms: Sequence[str], language: str) -> re.Pattern[str]:
    if not forms:
        return re.compile(r"(?!)")
    joined = "|".join(forms)
    if (
        language == "zh"
    ):  # 其他 is "other", 他们 "they", 他的 and 他妈妈 somebody or something else's
        return re.compile(rf"(?<!其)(?<!吉)(?:{joined})(?![们的]|妈|爸|母|父|丈夫|妻|家|儿|女|老)")
    if language == "de":  # a "Sie" within a clause is "you"
        capital = "|".join(form.capitalize() for form in forms)
        return re.compile(rf"\b(?:{joined})\b|^\W*(?:{capital})\b")
    return re.compile(rf"\b(?:{joined})\b", re.IGNORECASE)


def assigned(text: str, names: Sequence[str], language: str, verbs: Verbs) -> Assigned:
    """The protagonist's verbs and pronoun in ``text``. ``names`` are all forms of the name; they are
    looked for as words, longest first."""
    hero = re.compile(_either(names, language))
    told = _SPEECH.sub(" ", text)
    leading: list[str] = []
    caring: list[str] = []
    his = True  # whoever speaks of nobody goes on with the protagonist
    pronoun = NO_PRONOUN
    for clause in _CLAUSE.split(told):
        first = _first(clause[: _reach(clause, verbs, language)], hero, verbs)
        if first:
            his = first != "other"
            if first in PRONOUNS and pronoun == NO_PRONOUN:
                pronoun = first
        if his:
            leading += _found(verbs.leading, clause, verbs.articles)
            caring += _found(verbs.caring, clause, verbs.articles)
    return Assigned(tuple(leading), tuple(caring), pronoun)


def _reach(clause: str, verbs: Verbs, language: str) -> int:
    """Up to where the subject of a clause may stand: before its first verb, since who is named after it
    is comforted or led. In German the subject may follow, unless the clause begins with the verb."""
    found = (words.search(clause) for words in (verbs.leading, verbs.caring))
    start = min((match.start() for match in found if match), default=len(clause))
    inverted = language == "de" and clause[:start].strip()
    return len(clause) if inverted else start


def _first(clause: str, hero: re.Pattern[str], verbs: Verbs) -> str:
    """Who is named first in the clause: "hero", a pronoun's name, "other", or "" for nobody."""
    mentions = [("hero", hero), ("other", verbs.others), *verbs.pronouns.items()]
    places = [(match.start(), who) for who, words in mentions if (match := words.search(clause))]
    return min(places)[1] if places else ""


def _found(words: re.Pattern[str], clause: str, articles: frozenset[str]) -> list[str]:
    kept = []
    for match in words.finditer(clause):
        before = clause[: match.start()].split()
        if not before or before[-1].casefold() not in articles:
            kept.append(match[0])
    return kept


def _either(names: Sequence[str], language: str) -> str:
    joined = "|".join(re.escape(n) for n in sorted(set(names), key=len, reverse=True) if n)
    return joined if language == "zh" else rf"\b(?:{joined})\b"
