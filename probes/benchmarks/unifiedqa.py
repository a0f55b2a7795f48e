"""BBQ rows as a table with a model's answers beside them (columns as of UnifiedQA-11B's results)."""

from __future__ import annotations

from pathlib import Path

from probes.benchmarks import bbq
from probes.benchmarks.items import CONDITIONS, POLARITIES, Item, the_unknown
from probes.benchmarks.tables import Row, cell, index_of, one_of, read_rows, require

COLUMNS = (
    "category", "example_id", "question_index", "question_polarity", "context_condition",
    "ans0", "ans1", "ans2", "tag0", "tag1", "tag2", "label",
)  # fmt: skip
"""``target``, ``text0``..``text2`` and ``stereotyped_groups`` are used where they are there."""


def is_table(path: Path) -> bool:
    """Whether the name says that it is a table rather than JSON lines."""
    return path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def load_either(path: Path, language: str = "") -> list[Item]:
    """BBQ from a table or from its JSON lines, by the file's name. Raises RowsError."""
    return load(path, language) if is_table(path) else bbq.load(path, language)


def load(path: Path, language: str = "") -> list[Item]:
    """Items of the table. ``target`` is taken from its column (empty: not unique), and worked out
    from groups and tags where the table has none. Raises RowsError."""
    rows = read_rows(path)
    first = rows[0]
    require(path, rows, COLUMNS if "target" in first else (*COLUMNS, "stereotyped_groups"))
    return [_item(path, n, row, language or "en") for n, row in enumerate(rows, 1)]


def _item(path: Path, number: int, row: Row, language: str) -> Item:
    options, tags = (
        tuple(cell(path, number, row, f"{name}{k}") for k in range(3)) for name in ("ans", "tag")
    )
    words = tuple(str(row.get(f"text{k}", option)).strip() for k, option in enumerate(options))
    return Item(
        benchmark="bbq",
        category=cell(path, number, row, "category"),
        id=cell(path, number, row, "example_id"),
        template=cell(path, number, row, "question_index"),
        polarity=POLARITIES[one_of(path, number, row, "question_polarity", POLARITIES)],
        condition=CONDITIONS[one_of(path, number, row, "context_condition", CONDITIONS)],
        context=str(row.get("context", "")),
        question=str(row.get("question", "")),
        options=options,
        unknown=the_unknown(path, number, tags),
        target=_target(path, number, row, tags, words),
        label=index_of(path, number, row, "label", 3),
        language=language,
        groups=tags,
        words=words,
    )


def _target(
    path: Path, number: int, row: Row, tags: tuple[str, ...], words: tuple[str, ...]
) -> int | None:
    if "target" not in row:
        groups = cell(path, number, row, "stereotyped_groups").split("|")
        return bbq.target_of(groups, tags, words)
    if not cell(path, number, row, "target"):
        return None
    return index_of(path, number, row, "target", 3)
