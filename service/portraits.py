"""Reads a portrait manifest: one CSV row a picture, attributes as declared, nothing guessed."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from domain.errors import ManifestError, did_you_mean
from domain.portraits import Portrait

REQUIRED = ("file", "subject_id")
BOOKKEEPING = frozenset(
    {
        "file",
        "subject_id",
        "pair_id",
        "pair_base_file",
        "varied_attribute",
        "width",
        "height",
        "landmarks",
        "notes",
        "source",
        "licence",
    }
)
"""Columns about the file, not about the person: never an attribute to group by."""


def read_manifest(path: Path) -> list[Portrait]:
    """Every row of ``path`` (UTF-8 CSV). Picture paths are relative to the manifest's folder.

    Raises ManifestError, naming file and line, for a missing column, an empty or repeated
    ``file``, an empty ``subject_id`` or a manifest without rows. Whether a picture exists or can
    be read is not asked here: that is a per-portrait outcome, counted by group.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ManifestError(f"{path}: no such manifest") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = [c for c in (reader.fieldnames or []) if c]
    _require_columns(path, columns)
    seen: dict[str, int] = {}
    portraits = []
    for row in reader:
        portraits.append(_portrait(path, reader.line_num, row, seen))
    if not portraits:
        raise ManifestError(f"{path}: the manifest has no rows")
    return portraits


def _require_columns(path: Path, columns: Sequence[str]) -> None:
    for name in REQUIRED:
        if name in columns:
            continue
        close = difflib.get_close_matches(name, columns, n=1, cutoff=0.6)
        hint = f"; did you mean to call '{close[0]}' so?" if close else ""
        raise ManifestError(
            f"{path}: line 1: column '{name}' is missing (found: {', '.join(columns)}){hint}"
        )
    doubled = {c for c in columns if columns.count(c) > 1}
    if doubled:
        raise ManifestError(f"{path}: line 1: column '{sorted(doubled)[0]}' stands twice")


def _portrait(
    manifest: Path, line: int, row: Mapping[str, str | None], seen: dict[str, int]
) -> Portrait:
    name = (row.get("file") or "").strip()
    subject = (row.get("subject_id") or "").strip()
    if not name or not subject:
        empty = "file" if not name else "subject_id"
        raise ManifestError(f"{manifest}: line {line}: '{empty}' is empty")
    if name in seen:
        raise ManifestError(
            f"{manifest}: line {line}: duplicate id '{name}' (first in line {seen[name]})"
        )
    seen[name] = line
    attributes = {
        key: value.strip()
        for key, value in row.items()
        if key and key not in BOOKKEEPING and isinstance(value, str) and value.strip()
    }
    return Portrait(
        portrait_id=name,
        path=manifest.parent / name,
        subject_id=subject,
        attributes=attributes,
        pair_base_file=(row.get("pair_base_file") or "").strip(),
        varied_attribute=(row.get("varied_attribute") or "").strip(),
    )


def select(
    portraits: Iterable[Portrait], where: Mapping[str, Sequence[str]], limit: int | None
) -> list[Portrait]:
    """The portraits whose declared values are among ``where``'s, the first ``limit`` of them.

    ``varied_attribute`` and ``subject_id`` can be asked for too. Raises ManifestError when a
    column is unknown to every portrait, with the near miss, or when nothing is left.
    """
    rows = list(portraits)
    known = {k for p in rows for k in p.attributes} | {"varied_attribute", "subject_id"}
    for key in where:
        if key not in known:
            hint = did_you_mean(key, sorted(known))
            raise ManifestError(f"portraits.where: no portrait has an attribute '{key}'{hint}")
    kept = [p for p in rows if all(_value(p, k) in v for k, v in where.items())]
    if not kept:
        raise ManifestError(f"portraits.where: no portrait is left of {len(rows)}")
    return kept[:limit] if limit else kept


def _value(portrait: Portrait, key: str) -> str:
    if key == "varied_attribute":
        return portrait.varied_attribute
    if key == "subject_id":
        return portrait.subject_id
    return portrait.attributes.get(key, "")
