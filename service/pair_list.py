"""A CSV of pairs for the gate. A bad row is a row with its reason, named by its line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from domain.errors import LikenessError, did_you_mean
from service.measuring import PROFILES

NEEDED = ("original", "edited")
OPTIONAL = ("mask", "name", "profile", "min_score")
SEPARATOR_HINT = ";"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for rows that say nothing: engine, profile, and the least score (0 to 100)."""

    engine: str = "mediapipe"
    profile: str = "document"
    min_score: float = 85.0


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row. ``line`` counts from 1, the header included; ``original`` and ``edited`` are as
    written, ``folder`` is what they are relative to; ``problem`` is a sentence where the row cannot
    be measured."""

    line: int
    name: str
    folder: Path
    original: str = ""
    edited: str = ""
    mask: str = ""
    engine: str = "mediapipe"
    profile: str = "document"
    min_score: float = 85.0
    problem: str = ""


def read_pair_list(path: Path, defaults: Defaults) -> list[PairRow]:
    """Every row of the file, good or bad, in its order.

    Raises LikenessError, one line naming file, line and column, where the file as a whole is no
    list of pairs: unreadable, not UTF-8, without a needed column or without rows.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LikenessError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
    lines = _lines(text)
    first = next(lines, None)
    head = [] if first is None or isinstance(first[1], str) else first[1]
    names = [cell.strip().casefold() for cell in head]
    _check_head(path, names, 1 if first is None else first[0])
    rows = [_row(path.parent, line, names, cells, defaults) for line, cells in lines]
    if not rows:
        raise LikenessError(f"{path}: no pairs under the header")
    return rows


def _lines(text: str) -> Iterator[tuple[int, list[str] | str]]:
    """(first line of the row, its cells or what is wrong with them); empty rows are left out."""
    reader = csv.reader(io.StringIO(text, newline=""))
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, f"cannot be read as CSV: {error}"
            continue
        if any(cell.strip() for cell in cells):
            yield line, cells


def _check_head(path: Path, names: list[str], line: int) -> None:
    known = (*NEEDED, *OPTIONAL)
    for column in NEEDED:
        if column not in names:
            listed = ", ".join(names) or "none"
            hint = " (cells are separated by commas)" if SEPARATOR_HINT in listed else ""
            raise LikenessError(
                f"{path}: line {line}: column '{column}' is missing (found: {listed}){hint}"
            )
    for name in names:
        if name in known and names.count(name) > 1:
            raise LikenessError(f"{path}: line {line}: column '{name}' is there twice")
        # any other column is the user's own; a misspelt threshold would be a gate left open
        meant = "" if name in known else did_you_mean(name, known, 0.75)
        if meant:
            raise LikenessError(f"{path}: line {line}: column '{name}' is unknown{meant}")


def _row(
    folder: Path, line: int, names: list[str], cells: list[str] | str, defaults: Defaults
) -> PairRow:
    if isinstance(cells, str):
        return PairRow(line, f"line {line}", folder, problem=cells)
    got = {n: c.strip() for n, c in zip(names, cells, strict=False)}
    said = {name: got.get(name, "") for name in (*NEEDED, *OPTIONAL)}
    name = said["name"] or said["edited"] or f"line {line}"
    score, problem = _score(said["min_score"], defaults.min_score)
    if len(cells) > len(names):
        problem = f"{len(cells)} cells where the header has {len(names)}"
    problem = problem or _profile_problem(said["profile"]) or _file_problem(folder, said)
    return PairRow(
        line, name, folder, said["original"], said["edited"], said["mask"],
        defaults.engine, said["profile"] or defaults.profile, score, problem,
    )  # fmt: skip


def _score(text: str, default: float) -> tuple[float, str]:
    if not text:
        return default, ""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if 0 <= score <= 100:
        return score, ""
    return default, f"min_score: '{text}' is not a number from 0 to 100"


def _profile_problem(text: str) -> str:
    if not text or text in PROFILES:
        return ""
    hint = did_you_mean(text, PROFILES)
    return f"profile: '{text}' is not one of {', '.join(PROFILES)}{hint}"


def _file_problem(folder: Path, said: Mapping[str, str]) -> str:
    for column in NEEDED:
        if not said[column]:
            return f"{column}: the cell is empty"
    for column in (*NEEDED, "mask"):
        if said[column] and not (folder / said[column]).is_file():
            what = "a folder, not a file" if (folder / said[column]).is_dir() else "no such file"
            return f"{column}: {said[column]}: {what}"
    return ""
