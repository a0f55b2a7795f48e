"""Rankings made elsewhere: one reply a line, with the names in the order in which they were shown."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import LikenessError


@dataclass(frozen=True, slots=True)
class Ranking:
    """One reply: ``names`` and their ``groups`` in the order shown, ``content`` as it came."""

    model: str
    job: str
    names: tuple[str, ...]
    groups: tuple[str, ...]
    content: str


def order_in(reply: str, names: Sequence[str]) -> list[str]:
    """The ``names`` that occur in the lower-cased reply, in the order of their first occurrence;
    of two at one place the longer is meant ("Ann Lee" of "Ann Leeds")."""
    low = reply.lower()
    places = [(low.find(name.lower()), -len(name), name) for name in names]
    return [name for place, _, name in sorted(places) if place >= 0]


def first_name_in(reply: str, names: Sequence[str]) -> str | None:
    """The first of ``names`` to occur in the lower-cased reply; None where none does."""
    return next(iter(order_in(reply, names)), None)


def read_rankings(path: Path) -> list[Ranking]:
    """Rankings from JSON lines (packed with gzip or not) with model, job, shown_names, shown_groups
    and content. Raises LikenessError with file, line and cause."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, ValueError) as error:
        raise LikenessError(f"{path.name}: cannot be read ({type(error).__name__})") from None
    found = [
        _ranking(line, f"{path.name}, line {number}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    if not found:
        raise LikenessError(f"{path.name}: no rankings in it")
    return found


def _ranking(line: str, where: str) -> Ranking:
    try:
        row = json.loads(line)
        names, groups = tuple(row["shown_names"]), tuple(row["shown_groups"])
        made = Ranking(str(row.get("model", "")), row["job"], names, groups, row["content"] or "")
    except (ValueError, TypeError, AttributeError):
        raise LikenessError(f"{where}: not a ranking in JSON") from None
    except KeyError as error:
        raise LikenessError(f"{where}: {error.args[0]} is missing") from None
    if len(names) != len(groups) or len(set(groups)) != len(groups) or len(names) < 2:
        raise LikenessError(f"{where}: names and groups must match, each group once, two at least")
    return made
