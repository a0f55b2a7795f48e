"""Files of names as others publish them: census lists, full names by group, tables with a gender."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import LikenessError

_GENDERS = {
    "m": "M", "male": "M", "man": "M", "men": "M", "f": "W", "female": "W", "w": "W", "women": "W",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of a list. ``gender`` is "M", "W" or "" (both); ``group`` the race or ethnicity where
    the file has one; ``frequency`` in the file's own unit, 0 where unknown; ``stratum`` what else is
    known and must be shared by a pair; ``full`` says that the surname is in it."""

    name: str
    gender: str
    group: str = ""
    frequency: float = 0.0
    stratum: str = ""
    full: bool = False


def read_entries(men: str | None, women: str | None, both: str | None, folder: Path) -> list[Entry]:
    """All names of the files, which are relative to ``folder``. Raises LikenessError naming the file
    and the cause."""
    if both:
        return _table(_existing(folder / both))
    if not men or not women:
        raise LikenessError("no file of names is given")
    return [*_of_one(_existing(folder / men), "M"), *_of_one(_existing(folder / women), "W")]


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise LikenessError(f"file of names '{file.name}' is not there")
    return file


def _of_one(file: Path, gender: str) -> list[Entry]:
    try:
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix == ".json":
            told = json.loads(text)
            return [
                Entry(str(name).title(), gender, str(group), full=True)
                for group, names in told.items()
                for name in names
            ]
        lines = [line.split() for line in text.splitlines() if line.strip()]
        return [
            Entry(parts[0].title(), gender, frequency=float(parts[1]) if len(parts) > 1 else 0.0)
            for parts in lines
        ]
    except (ValueError, AttributeError, TypeError):
        raise LikenessError(
            f"file of names '{file.name}': neither JSON of names by group nor lines of name and share"
        ) from None


def _table(file: Path) -> list[Entry]:
    """CSV with name and gender, and ethnicity, count or strength where it has them."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = list(csv.DictReader(opened))
    except (ValueError, csv.Error):
        raise LikenessError(f"file of names '{file.name}': no CSV in UTF-8") from None
    if not rows or not {"name", "gender"} <= set(rows[0]):
        raise LikenessError(f"file of names '{file.name}': needs the columns name and gender")
    return [_row(row, number, file.name) for number, row in enumerate(rows, 2)]


def _row(row: dict[str, str], line: int, file: str) -> Entry:
    name = (row["name"] or "").strip()
    try:
        frequency = float(row.get("count") or 0)
    except ValueError:
        raise LikenessError(
            f"file of names '{file}', line {line}: the count is no number"
        ) from None
    if not name:
        raise LikenessError(f"file of names '{file}', line {line}: the name is empty")
    latin = name.isascii()
    strength = row.get("strength") or ""
    return Entry(
        name=name.title() if latin else name,
        gender=_GENDERS.get((row["gender"] or "").strip().lower(), ""),
        group=(row.get("ethnicity") or "").strip(),
        frequency=frequency,
        stratum=_joined([strength, "" if latin else f"{len(name)} character(s)"]),
    )


def _joined(parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part)
