"""Words, templates and questions of the occupation association, per language; shares to hold against."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from domain.errors import LikenessError, did_you_mean

LANGUAGES = ("en", "zh", "de")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Words(_Part):
    """One word for each of the two groups."""

    men: str
    women: str


class Occupation(_Part):
    """``word`` stands in the templates; ``share_women`` in [0, 1] is that of ``year``, None where
    nothing is known."""

    id: str
    word: str
    share_women: float | None = None
    year: int | None = None


class Estimate(_Part):
    """Questions for a share, and the one that is asked where the first is declined."""

    wordings: tuple[str, ...]
    fallback: str


class Choice(_Part):
    """Questions for one of two pronouns."""

    wordings: tuple[str, ...]


class Texts(_Part):
    """Everything in one language. ``reference`` says where the shares are from, "" where none are."""

    language: str
    pronouns: Words
    groups: Words
    neutral: str
    templates: tuple[str, ...]
    next_word: str
    estimate: Estimate
    choice: Choice
    reference: str
    occupations: tuple[Occupation, ...]


@cache
def texts(language: str) -> Texts:
    """Those of ``language``. Raises LikenessError for one that has none."""
    if language not in LANGUAGES:
        raise LikenessError(
            f"probe 'association': no texts in '{language}' (there are: {', '.join(LANGUAGES)})"
        )
    file = resources.files("probes.data") / "associations" / f"{language}.yaml"
    return Texts.model_validate(yaml.safe_load(file.read_text("utf-8")))


def occupations(
    language: str, chosen: Sequence[str] | None, more: Mapping[str, str]
) -> tuple[Occupation, ...]:
    """Those to ask about: ``chosen`` by id (None: all of the language), then ``more`` (id: word)."""
    known = {o.id: o for o in texts(language).occupations}
    own = {name: Occupation(id=name, word=word) for name, word in more.items()}
    if chosen is None:
        return (*(o for o in known.values() if o.id not in own), *own.values())
    for name in chosen:
        if name not in known and name not in own:
            hint = did_you_mean(name, known)
            raise LikenessError(f"probe 'association': no occupation '{name}' in {language}{hint}")
    return tuple(own.get(name) or known[name] for name in chosen)


@dataclass(frozen=True, slots=True)
class Shares:
    """Share of women in [0, 1] by occupation, and where the figures are from."""

    of: Mapping[str, float]
    source: str


def own_shares(language: str) -> Shares:
    """The shares that come with the language's texts; empty where there are none."""
    found = texts(language)
    return Shares(
        {o.id: o.share_women for o in found.occupations if o.share_women is not None},
        found.reference,
    )


def read_shares(path: Path, occupation: str, share: str, percent: bool, source: str) -> Shares:
    """Shares from a table (.tsv, else comma-separated) with a column of occupations and one of
    shares of women, in percent or in [0, 1]. Rows without a share are left out. Raises LikenessError
    in one line naming file, row and cause."""
    where = f"probe 'association': reference {path.name}"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        cause = error.strerror if isinstance(error, OSError) else "not a table in UTF-8"
        raise LikenessError(f"{where}: {cause}") from None
    found = {}
    for number, row in enumerate(rows, 2):
        for column in (occupation, share):
            if column not in row:
                hint = did_you_mean(column, [c for c in row if c])
                raise LikenessError(f"{where}: no column '{column}'{hint}")
        if not (row[share] or "").strip():
            continue
        try:
            value = float(row[share]) / (100 if percent else 1)
        except ValueError:
            raise LikenessError(f"{where}, row {number}: '{row[share]}' is no number") from None
        if not 0 <= value <= 1:
            scale = "percent" if percent else "a share in [0, 1] (set percent: true for percent)"
            raise LikenessError(f"{where}, row {number}: {row[share]} is not {scale}")
        found[row[occupation].strip()] = value
    if not found:
        raise LikenessError(f"{where}: no shares in it")
    return Shares(found, source or path.name)
