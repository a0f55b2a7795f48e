"""A batch's manifest: one CSV row a picture, told to the pictures by their names."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from domain.errors import ManifestError, did_you_mean
from service.intake.names import same, stored_name

FILE = "file"
BASE = "pair_base_file"
"""The column that names another picture of the batch."""
MAX_COLUMNS = 100
MAX_VALUE = 500
"""Characters of one value that are accepted."""

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sent:
    """A picture as it was sent: its number, the name given with it and the name it is kept under."""

    seq: int
    given: str
    name: str


@dataclass(frozen=True, slots=True)
class Matched:
    """``attributes`` by the picture's number; ``faults`` are rows that fit no picture, each with
    its name, a code and one reason; ``without_row`` counts pictures that no row names."""

    attributes: Mapping[int, Row]
    faults: Sequence[tuple[str, str, str]]
    without_row: int


def read_rows(data: bytes, max_rows: int) -> list[Row]:
    """The rows of a manifest, empty values left out. Raises ManifestError, naming the line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"manifest: not UTF-8 text (byte {error.start})") from None
    if "\0" in text:
        raise ManifestError("manifest: holds null characters; it is no CSV text")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = _columns(next(reader, []))
        rows: list[Row] = list(_rows(reader, columns, max_rows))
    except csv.Error as error:
        raise ManifestError(f"manifest: line {reader.line_num}: {error}") from None
    if not rows:
        raise ManifestError("manifest: has no rows")
    return rows


def _columns(head: Sequence[str]) -> list[str]:
    columns = [c.strip() for c in head]
    if FILE not in columns:
        hint = did_you_mean(FILE, columns)
        found = ", ".join(stored_name(c, 40) for c in columns[:10])
        raise ManifestError(f"manifest: line 1: column 'file' is missing (found: {found}){hint}")
    if len(columns) > MAX_COLUMNS:
        raise ManifestError(f"manifest: {len(columns)} columns, limit {MAX_COLUMNS}")
    for name in columns:
        if stored_name(name, 60) != name:
            raise ManifestError(
                f"manifest: line 1: a column's name is empty, longer than 60 or not plain: "
                f"'{stored_name(name, 60)}'"
            )
        if columns.count(name) > 1:
            raise ManifestError(f"manifest: line 1: column '{name}' stands twice")
    return columns


def _rows(
    reader: Iterator[list[str]], columns: Sequence[str], max_rows: int
) -> Iterator[dict[str, str]]:
    seen: dict[str, int] = {}
    for count, cells in enumerate((c for c in reader if any(v.strip() for v in c)), 1):
        line = getattr(reader, "line_num", count)
        if count > max_rows:
            raise ManifestError(f"manifest: more than {max_rows} rows")
        if len(cells) > len(columns):
            raise ManifestError(f"manifest: line {line}: more values than columns")
        row = {c: v.strip() for c, v in zip(columns, cells, strict=False) if v.strip()}
        for column, value in row.items():
            if len(value) > MAX_VALUE:
                raise ManifestError(
                    f"manifest: line {line}: '{column}' is longer than {MAX_VALUE} characters"
                )
        name = row.get(FILE, "")
        if not name:
            raise ManifestError(f"manifest: line {line}: 'file' is empty")
        if _path(name) in seen:
            raise ManifestError(
                f"manifest: line {line}: '{stored_name(name)}' stands twice "
                f"(first in line {seen[_path(name)]})"
            )
        seen[_path(name)] = line
        yield {c: stored_name(v, MAX_VALUE) for c, v in row.items()}


def match(rows: Sequence[Row], pictures: Sequence[Sent]) -> Matched:
    """Which row belongs to which picture: by the whole name as given, else by the last part of it
    where only one picture and one row have it. A row never goes to a picture by guesswork: a wrong
    one would put a person into a wrong group."""
    whole, last = _index(pictures)
    rivals: dict[str, int] = defaultdict(int)
    for row in rows:
        rivals[_last(row[FILE])] += 1
    found: dict[int, Row] = {}
    faults = []
    names: dict[str, str] = {}
    for row in rows:
        candidates = whole.get(_path(row[FILE]), [])
        if not candidates and rivals[_last(row[FILE])] == 1:
            candidates = last.get(_last(row[FILE]), [])
        if len(candidates) == 1:
            found[candidates[0].seq] = row
            names[_path(row[FILE])] = candidates[0].name
        else:
            faults.append((row[FILE], *_fault(len(candidates))))
    attributes = {seq: _with_base(row, names) for seq, row in found.items()}
    return Matched(attributes, faults, len(pictures) - len(found))


def _index(
    pictures: Sequence[Sent],
) -> tuple[Mapping[str, list[Sent]], Mapping[str, list[Sent]]]:
    whole: dict[str, list[Sent]] = defaultdict(list)
    last: dict[str, list[Sent]] = defaultdict(list)
    for picture in pictures:
        whole[_path(picture.given)].append(picture)
        last[_last(picture.given)].append(picture)
    return whole, last


def _fault(candidates: int) -> tuple[str, str]:
    if not candidates:
        return "no_picture", "a row of the manifest names a picture that was not sent"
    return "ambiguous_row", f"a row of the manifest fits {candidates} pictures of one name"


def _with_base(row: Row, names: Mapping[str, str]) -> Row:
    """A pair's base is named as the batch names it, so that whoever reads the row finds it."""
    base = row.get(BASE)
    return row if base is None else {**row, BASE: names.get(_path(base), base)}


def _path(name: str) -> str:
    text = same(name.strip().replace("\\", "/"))
    while text.startswith("./"):
        text = text[2:]
    return text


def _last(name: str) -> str:
    return _path(name).rpartition("/")[2]
