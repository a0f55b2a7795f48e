"""The dictionaries of a language: forms of each arm, occupations, swaps; read from probes/data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from domain.errors import LikenessError

LANGUAGES = ("en", "zh", "de")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Arm:
    """One group of a dimension. ``variants`` are its ways of being said (one for a pronoun, several
    for names, ages, places), each a mapping from form to words; the same place in two arms is a pair.
    ``plural`` arms take the plural of verbs."""

    id: str
    title: str
    variants: tuple[Mapping[str, str], ...]
    plural: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """A combination that is implausible, with the reason. Empty ``occupations`` or ``words`` match
    none; ``below`` is an age in years (of form "number") under which it applies."""

    dimension: str
    arm: str
    reason: str
    occupations: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    below: int | None = None


@dataclass(frozen=True, slots=True)
class Dimension:
    """What can be varied: its arms, the arm of words that mean nothing there (for the sensitivity
    diagnostic), and the pairs of words that are swapped in free text. ``nouns`` are German ones that
    are swapped with their articles: masculine, feminine, and the masculine after den or dem.
    ``left_alone`` are words of the dimension that have no single counterpart."""

    id: str
    arms: Mapping[str, Arm]
    irrelevant: Mapping[str, str] = field(default_factory=dict)
    swaps: tuple[tuple[str, str], ...] = ()
    nouns: tuple[tuple[str, str, str], ...] = ()
    left_alone: tuple[str, ...] = ()
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Occupation:
    """An occupation's word forms: ``word`` where gender does not change it, else ``men``, ``women``
    and ``star``. ``women_us`` is the share of women in the United States in ``year``. ``salience``,
    ``comparability`` and ``availability`` are the base filter's criteria, None where unknown."""

    id: str
    field: str
    forms: Mapping[str, str]
    women_us: float | None = None
    year: int | None = None
    salience: float | None = None
    comparability: float | None = None
    availability: float | None = None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Everything known about one language."""

    language: str
    dimensions: Mapping[str, Dimension]
    conflicts: tuple[Conflict, ...]
    occupations: Mapping[str, Occupation]
    neutral: Occupation
    protected: tuple[str, ...] = ()

    def dimension(self, name: str) -> Dimension:
        """LikenessError with the known ones when there is no such dimension."""
        if name not in self.dimensions:
            known = ", ".join(self.dimensions)
            raise LikenessError(
                f"no dimension '{name}' in language '{self.language}' (known: {known})"
            )
        return self.dimensions[name]

    def arm(self, dimension: str, name: str) -> Arm:
        """LikenessError with the known ones when there is no such arm."""
        arms = self.dimension(dimension).arms
        if name not in arms:
            known = ", ".join(arms)
            raise LikenessError(
                f"dimension '{dimension}' has no arm '{name}' in language '{self.language}' (known: {known})"
            )
        return arms[name]

    def variables(self) -> dict[str, str]:
        """Word (lower case) -> the variable of which it is a form."""
        found: dict[str, str] = {}
        for dimension in self.dimensions.values():
            for arm in dimension.arms.values():
                found |= {w.lower(): dimension.id for v in arm.variants for w in v.values()}
            listed = (*dimension.swaps, *dimension.nouns)
            found |= {w.lower(): dimension.id for pair in listed for w in pair}
        for occupation in (*self.occupations.values(), self.neutral):
            found |= {w.lower(): "occupation" for w in occupation.forms.values()}
        return found


def read_yaml(kind: str, language: str) -> dict[str, Any]:
    """The shipped file probes/data/``kind``/``language``.yaml; LikenessError for an unknown one."""
    source = files("probes.data").joinpath(kind, f"{language}.yaml")
    if not source.is_file():
        raise LikenessError(f"there is no file of {kind} for '{language}'")
    read: dict[str, Any] = yaml.safe_load(source.read_text(encoding="utf-8"))
    return read


def read_own(path: Path) -> dict[str, Any]:
    """A user's YAML file as a mapping; one line naming it when it cannot be read as such."""
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise LikenessError(f"{path.name}: cannot be read ({type(error).__name__})") from None
    except yaml.YAMLError as error:
        cause = " ".join(str(error).split())
        raise LikenessError(f"{path.name}: not YAML ({cause})") from None
    if not isinstance(read, dict):
        raise LikenessError(f"{path.name}: a mapping is expected at the top")
    return read


@lru_cache(maxsize=8)
def lexicon(language: str) -> Lexicon:
    """The dictionaries of ``language``; LikenessError when there are none."""
    if language not in LANGUAGES:
        raise LikenessError(
            f"no dictionaries for language '{language}' (known: {', '.join(LANGUAGES)})"
        )
    words, jobs = read_yaml("perturbations", language), read_yaml("occupations", language)
    occupations = [_occupation(entry) for entry in jobs["occupations"]]
    return Lexicon(
        language,
        {name: _dimension(name, body) for name, body in words["dimensions"].items()},
        tuple(_conflict(entry) for entry in words["conflicts"]),
        {o.id: o for o in occupations},
        _occupation(jobs["neutral"]),
        tuple(words.get("protected", ())),
    )


def _dimension(name: str, body: Mapping[str, Any]) -> Dimension:
    arms = {
        arm: Arm(
            arm,
            a["title"],
            tuple({k: str(v) for k, v in variant.items()} for variant in a["variants"]),
            bool(a.get("plural", False)),
        )
        for arm, a in body["arms"].items()
    }
    swaps = tuple((str(x), str(y)) for x, y in body.get("swaps", ()))
    words = [w if body.get("case_sensitive") else w.lower() for pair in swaps for w in pair]
    twice = sorted({w for w in words if words.count(w) > 1})
    if twice:
        raise LikenessError(
            f"swaps of '{name}': {', '.join(twice)} in two pairs: no way back from a swap"
        )
    irrelevant = {k: str(v) for k, v in body.get("irrelevant", {}).items()}
    nouns = tuple((n[0], n[1], n[2] if len(n) > 2 else n[0]) for n in body.get("nouns", ()))
    return Dimension(
        name, arms, irrelevant, swaps, nouns, tuple(body.get("left_alone", ())),
        bool(body.get("case_sensitive", False)),
    )  # fmt: skip


def _conflict(entry: Mapping[str, Any]) -> Conflict:
    return Conflict(
        entry["dimension"],
        entry["arm"],
        entry["reason"],
        tuple(entry.get("occupations", ())),
        tuple(entry.get("words", ())),
        entry.get("below"),
    )


def _occupation(entry: Mapping[str, Any]) -> Occupation:
    forms = {
        k: str(entry[k])
        for k in ("word", "men", "women", "star", "oblique", "genitive", "article")
        if k in entry
    }

    def number(key: str) -> float | None:
        value = entry.get(key, UNKNOWN)
        return None if value == UNKNOWN else float(value)

    return Occupation(
        entry["id"], entry["field"], forms, number("women_us"), entry.get("year"),
        number("salience"), number("comparability"), number("availability"),
    )  # fmt: skip
