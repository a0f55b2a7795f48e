"""Names as the units of a probe: many a group, balanced, matched in pairs, and never words as well.

One pair of names proves nothing: single names differ from each other by more than groups do. So
lists are long, both groups have equally many, and the two names of a pair share what is known of them
(surname, rank by frequency, ethnicity, length) so that the group alone is what differs.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import model_validator

from domain.errors import LikenessError
from probes.contract import Settings
from probes.name_files import Entry, read_entries

Axis = Literal["gender", "race_ethnicity", "race_ethnicity_x_gender"]
GENDERS = {"M": "men", "W": "women"}
UNISEX = 50
"""A name that the other group bears too counts for a group only if this many times as common there."""


class NameSource(Settings):
    """Which names. Without a file: the lists that come with the probe, by gender.

    ``men`` and ``women`` are files of one gender each (US census 1990, or JSON of full names by group);
    ``both`` one CSV file with a column of genders. ``axis`` says what the two ``arms`` differ in: "men"
    and "women" for gender, two groups of the file ("W", "B") for race_ethnicity, two of group and gender
    ("W_M", "B_W") for both. The index is positive in favour of the first arm.
    """

    axis: Axis = "gender"
    arms: tuple[str, str] = ("men", "women")
    men: str | None = None
    women: str | None = None
    both: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.men is None) != (self.women is None):
            raise ValueError(
                "a file of men's names needs one of women's names, and the other way round"
            )
        if self.both and self.men:
            raise ValueError("give 'both', or 'men' and 'women', not all of them")
        if self.axis == "gender":
            if self.arms != ("men", "women"):
                raise ValueError("the arms of the axis gender are men and women, in that order")
        elif self.men is None and self.both is None:
            raise ValueError(f"the axis {self.axis} needs files of names by group")
        if self.arms[0] == self.arms[1]:
            raise ValueError("the two arms must differ")
        return self


OWN_LISTS = NameSource()
"""The lists that come with the probes, by gender."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it is shown. ``given`` is the part that differs within a pair."""

    text: str
    given: str
    group: str


@dataclass(frozen=True, slots=True)
class NamePair:
    """The same place in both groups. ``stratum`` is what the two share, "" where nothing is known."""

    index: int
    first: Name
    second: Name
    stratum: str = ""

    def of(self, arm: str) -> Name:
        """The name of that arm."""
        return self.first if self.first.group == arm else self.second


@dataclass(frozen=True, slots=True)
class NameLists:
    """Balanced lists: ``pairs``, and the names that were not taken with the reason for each."""

    axis: str
    arms: tuple[str, str]
    pairs: tuple[NamePair, ...]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Own:
    """What comes with the probe in one language."""

    men: tuple[str, ...]
    women: tuple[str, ...]
    surnames: tuple[str, ...]
    neutral: tuple[str, ...]
    words: frozenset[str]


@cache
def own_names(language: str) -> Own:
    """The lists of ``language``; LikenessError where there are none."""
    file = resources.files("probes.data") / "names" / f"{language}.yaml"
    if not file.is_file():
        raise LikenessError(f"no names in the language '{language}': give files of names")
    told = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Own(
        men=texts(told["men"], f"names, {language}, men"),
        women=texts(told["women"], f"names, {language}, women"),
        surnames=texts(told["surnames"], f"names, {language}, surnames"),
        neutral=texts(told["neutral"], f"names, {language}, neutral"),
        words=frozenset(_plain(w) for w in texts(told["words"], f"names, {language}, words")),
    )


def texts(entries: Sequence[Any], where: str) -> tuple[str, ...]:
    """The entries if all of them are texts: YAML reads No, On and True as truth values unless they
    are quoted. Raises LikenessError naming the entry."""
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, str) or not entry.strip():
            raise LikenessError(
                f"{where}: entry {number} is {entry!r}, no text; write it in quotes"
            )
    return tuple(entry.strip() for entry in entries)


def refused_as_word(name: str, language: str) -> str:
    """Why ``name`` may not be used, "" where it may: a part of it is a word of the language as well
    ("Go", "You", "True", "Do"), so that looking for it finds what is no name."""
    words = own_names(language).words | own_names("en").words
    parts = [name] if language == "zh" else [name, *name.replace("-", " ").split()]
    for part in parts:
        if _plain(part) in words:
            return f"'{part}' is a word as well as a name"
    return ""


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().strip()


def name_pairs(
    language: str, count: int, seed: int, source: NameSource = OWN_LISTS, folder: Path = Path()
) -> NameLists:
    """``count`` pairs of names, the same for the same arguments.

    Where frequencies are known the pairs are matched by rank from the most common on; else the order
    is the list's own, or drawn by ``seed`` for files without order. Every given name is used once.
    Raises LikenessError naming the group that has too few.
    """
    own = own_names(language)
    refused: dict[str, str] = {}
    entries = _own_entries(own) if source.men is None and source.both is None else []
    if not entries:
        entries = read_entries(source.men, source.women, source.both, folder)
        random.Random(seed).shuffle(entries)
        entries.sort(key=lambda e: -e.frequency)
    entries = _usable(entries, language, refused)
    matched = _matched(entries, source)
    if len(matched) < count:
        raise LikenessError(
            f"only {len(matched)} pairs of names for {source.arms[0]} and {source.arms[1]} "
            f"({len(refused)} names refused), {count} are needed"
        )
    pairs = tuple(
        _shown(index, a, b, s, language, source) for index, (a, b, s) in enumerate(matched[:count])
    )
    return NameLists(source.axis, source.arms, pairs, refused)


def _own_entries(own: Own) -> list[Entry]:
    return [
        Entry(name, gender, stratum=str(place))
        for gender, names in (("M", own.men), ("W", own.women))
        for place, name in enumerate(names)
    ]


def _usable(entries: Sequence[Entry], language: str, refused: dict[str, str]) -> list[Entry]:
    """Without names that are words, and without those that both genders bear."""
    share: dict[tuple[str, str], float] = {}
    for entry in entries:
        key = (_plain(entry.name), entry.gender)
        share[key] = max(share.get(key, 0.0), entry.frequency or 1.0)
    kept, seen = [], set()
    for entry in entries:
        plain = _plain(entry.name)
        other = share.get((plain, "W" if entry.gender == "M" else "M"), 0.0)
        if reason := refused_as_word(entry.name, language):
            refused[entry.name] = reason
        elif entry.gender not in GENDERS:
            refused[entry.name] = "borne by all genders"
        elif other and share[plain, entry.gender] < UNISEX * other:
            refused[entry.name] = "borne by women and men"
        elif (plain, entry.gender, entry.group) not in seen:
            seen.add((plain, entry.gender, entry.group))
            kept.append(entry)
    return kept


def _matched(entries: Sequence[Entry], source: NameSource) -> list[tuple[Entry, Entry, str]]:
    """Pairs within what the axis leaves equal, one stratum after the other in turn."""
    sides: dict[str, tuple[list[Entry], list[Entry]]] = {}
    for entry in entries:
        group = {
            "gender": GENDERS[entry.gender],
            "race_ethnicity": entry.group,
            "race_ethnicity_x_gender": f"{entry.group}_{entry.gender}",
        }[source.axis]
        if group in source.arms:
            shared = {"gender": entry.group, "race_ethnicity": entry.gender}.get(source.axis, "")
            stratum = ", ".join(part for part in (shared, entry.stratum) if part)
            sides.setdefault(stratum, ([], []))[source.arms.index(group)].append(entry)
    rows = [
        [(a, b, stratum) for a, b in zip(first, second, strict=False)]
        for stratum, (first, second) in sides.items()
    ]
    longest = max((len(row) for row in rows), default=0)
    return [row[place] for place in range(longest) for row in rows if place < len(row)]


def _shown(
    index: int, a: Entry, b: Entry, stratum: str, language: str, source: NameSource
) -> NamePair:
    """Given names get one surname for both, so that the pair differs in the given name alone."""
    surnames = own_names(language).surnames
    for step in range(len(surnames)):
        surname = surnames[(index + step) % len(surnames)]
        whole = [e.name if e.full else _joined(e.name, surname, language) for e in (a, b)]
        if not any(refused_as_word(text, language) for text in whole):
            break
    first, second = (
        Name(text, entry.name, arm)
        for text, entry, arm in zip(whole, (a, b), source.arms, strict=True)
    )
    known = "" if source.men is None and source.both is None else stratum
    return NamePair(index, first, second, known)


def _joined(given: str, surname: str, language: str) -> str:
    return surname + given if language == "zh" else f"{given} {surname}"


def neutral_names(language: str, count: int) -> tuple[str, ...]:
    """``count`` names that tell no gender (in Chinese: a familiar form of the surname)."""
    known = own_names(language).neutral
    if count > len(known):
        raise LikenessError(f"only {len(known)} neutral names in '{language}', {count} are needed")
    return known[:count]
