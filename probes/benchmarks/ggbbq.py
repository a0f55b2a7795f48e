"""GG-BBQ (Satheesh et al. 2025, CC BY 4.0): German, gender identity; group words and first names.

Both releases are read: the one of the paper with the columns joined to it (choice_tags, target), and
the later one (choice_info). A file has one condition; its name or column tells which.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probes.benchmarks.bbq import target_of
from probes.benchmarks.items import CONDITIONS, POLARITIES, Condition, Item, the_unknown
from probes.benchmarks.tables import Row, RowsError, cell, index_of, one_of, read_rows

OPTIONS = ("choice_0", "choice_1", "choice_2")


def load(path: Path, language: str = "") -> list[Item]:
    """Items of one file. Rows 2k and 2k + 1 are the negative and the non-negative question of one
    context; upstream numbers no templates, so the negative question's words are the template.
    Raises RowsError."""
    rows = read_rows(path)
    templates = _templates(rows)
    items = []
    for n, row in enumerate(rows, 1):
        tags = _tags(path, n, row)
        options = tuple(cell(path, n, row, name) for name in OPTIONS)
        question = cell(path, n, row, "question")
        items.append(
            Item(
                benchmark="ggbbq",
                category="Gender_identity",
                id=cell(path, n, row, "index"),
                template=templates.get(question, question),
                polarity=POLARITIES[one_of(path, n, row, "question_type", POLARITIES)],
                condition=_condition(path, n, row),
                context=cell(path, n, row, "context"),
                question=question,
                options=options,
                unknown=the_unknown(path, n, tags),
                target=_target(path, n, row, tags, options),
                label=index_of(path, n, row, "label", 3),
                language=language or "de",
                groups=tags,
                words=options,
            )
        )
    return items


def _templates(rows: list[Row]) -> Mapping[str, str]:
    """The negative question for each question, from neighbours that share a context."""
    found: dict[str, str] = {}
    for first, second in zip(rows[::2], rows[1::2], strict=False):
        if first.get("context") == second.get("context"):
            asked = str(first.get("question", "")).strip()
            for row in (first, second):
                found.setdefault(str(row.get("question", "")).strip(), asked)
    return found


def _tags(path: Path, number: int, row: Row) -> tuple[str, ...]:
    if isinstance(row.get("choice_tags"), list):
        tags = tuple(str(tag) for tag in row["choice_tags"])
    else:
        info = literal(path, number, row, "choice_info")
        try:
            tags = tuple(str(info[k][1]) for k in range(3))
        except (KeyError, IndexError, TypeError):
            tags = ()
    if len(tags) != len(OPTIONS):
        raise RowsError(f"{path}, row {number}, column 'choice_tags': a tag for each choice")
    return tags


def _condition(path: Path, number: int, row: Row) -> Condition:
    if "context_type" in row:
        return CONDITIONS[one_of(path, number, row, "context_type", CONDITIONS)]
    name = path.name.lower()
    if "disamb" in name:
        return "disambiguated"
    if "amb" in name:
        return "ambiguous"
    raise RowsError(
        f"{path}: neither a column 'context_type' nor 'amb' or 'disamb' in the file's name tells "
        "the condition"
    )


def _target(
    path: Path, number: int, row: Row, tags: tuple[str, ...], options: tuple[str, ...]
) -> int | None:
    if "target" in row:
        return None if row["target"] is None else index_of(path, number, row, "target", 3)
    groups = row.get("known_stereotyped_groups")
    try:
        named = json.loads(groups) if isinstance(groups, str) else groups
    except ValueError:
        named = None
    if not isinstance(named, list):
        raise RowsError(f"{path}, row {number}, column 'known_stereotyped_groups': a list")
    return target_of([str(g) for g in named], tags, options)


def literal(path: Path, number: int, row: Row, column: str) -> Any:
    """A cell that is written as a Python list or dictionary. Raises RowsError."""
    text = cell(path, number, row, column)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise RowsError(f"{path}, row {number}, column '{column}': {text[:60]!r}") from None
