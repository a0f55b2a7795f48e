"""Reads rows of published files: CSV, TSV or JSON lines, gzip or plain, with or without a BOM."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from domain.errors import LikenessError, did_you_mean

Row = Mapping[str, Any]
MOST_BYTES = 256 * 2**20
"""Unpacked size up to which a file is read; every published set is far smaller."""


class RowsError(LikenessError):
    """Rows that cannot be read as what they should be; the message names file, row and column."""


def read_rows(path: Path) -> list[Row]:
    """The rows of ``path`` in file order. The form is told from the name (.csv, .tsv, .jsonl, .json,
    with or without .gz). Raises RowsError."""
    text = _text(path)
    name = path.name.removesuffix(".gz").lower()
    if name.endswith((".jsonl", ".ndjson")):
        return _json_lines(path, text)
    if name.endswith(".json"):
        found = parse_json(path, text)
        if not isinstance(found, list) or not all(isinstance(r, dict) for r in found):
            raise RowsError(f"{path}: a list of objects is expected, one for each row")
        return _some(path, found)
    if name.endswith((".csv", ".tsv")):
        return _table(path, text, "\t" if name.endswith(".tsv") else ",")
    raise RowsError(f"{path}: rows are read from .csv, .tsv, .jsonl or .json (also with .gz)")


def read_json(path: Path) -> Any:
    """The JSON in ``path``, gzip or plain. Raises RowsError."""
    return parse_json(path, _text(path))


def parse_json(path: Path, text: str) -> Any:
    """``text`` as JSON; RowsError naming ``path`` and the line where it stops being so."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RowsError(f"{path}: not JSON ({error})") from None


def cell(path: Path, number: int, row: Row, column: str) -> str:
    """The text of one cell without blanks around it; ``number`` counts rows from 1. Raises RowsError
    where the column is missing, with the nearest name."""
    if column not in row:
        raise RowsError(f"{path}, row {number}: no column '{column}'{near(column, row)}")
    value = row[column]
    return "" if value is None else str(value).strip()


def near(column: str, row: Row) -> str:
    """What a message about a missing column ends with: the nearest name, or all names."""
    return did_you_mean(column, row) or f" (columns: {', '.join(map(str, row))})"


def one_of(path: Path, number: int, row: Row, column: str, allowed: Mapping[str, str]) -> str:
    """The cell of ``column`` by what it stands for in ``allowed``. Raises RowsError naming both."""
    value = cell(path, number, row, column)
    if value not in allowed:
        known = ", ".join(repr(a) for a in allowed)
        raise RowsError(f"{path}, row {number}, column '{column}': {value!r} is none of {known}")
    return allowed[value]


def index_of(path: Path, number: int, row: Row, column: str, options: int) -> int:
    """The cell of ``column`` as the index of an option (0 for the first). Raises RowsError."""
    value = cell(path, number, row, column)
    if not value.isdecimal() or int(value) >= options:
        raise RowsError(
            f"{path}, row {number}, column '{column}': {value!r} is not an option from 0 to "
            f"{options - 1}"
        )
    return int(value)


def require(path: Path, rows: Iterable[Row], columns: Iterable[str]) -> None:
    """Raise RowsError naming the first of ``columns`` that the first row lacks."""
    first = next(iter(rows))
    for column in columns:
        if column not in first:
            raise RowsError(f"{path}: no column '{column}'{near(column, first)}")


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                raw = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError) as error:
        cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise RowsError(f"{path}: cannot be read ({cause})") from None
    except Exception as error:  # zlib.error for a damaged archive
        raise RowsError(f"{path}: damaged gzip file ({error})") from None
    if len(raw) > MOST_BYTES:
        raise RowsError(f"{path}: more than {MOST_BYTES // 2**20} MiB of rows")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise RowsError(f"{path}, line {line}: not UTF-8") from None


def _table(path: Path, text: str, delimiter: str) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    try:
        for number, row in enumerate(reader, 1):
            if None in row:
                raise RowsError(f"{path}, row {number}: more cells than columns")
            if None in row.values():
                raise RowsError(f"{path}, row {number}: fewer cells than columns")
            rows.append(row)
    except csv.Error as error:
        raise RowsError(f"{path}, line {reader.line_num}: {error}") from None
    return _some(path, rows)


def _json_lines(path: Path, text: str) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RowsError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise RowsError(f"{path}, line {number}: an object is expected")
        rows.append(row)
    return _some(path, rows)


def _some(path: Path, rows: list[Row]) -> list[Row]:
    if not rows:
        raise RowsError(f"{path}: no rows")
    return rows
