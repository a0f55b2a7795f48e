"""CBBQ (Huang and Xiong 2024, CC BY-SA 4.0), gender part: Chinese, CSV with a byte order mark.

The unknown answer is always the last one, so that it must be moved before a model is asked.
"""

from __future__ import annotations

from pathlib import Path

from probes.benchmarks.items import CONDITIONS, POLARITIES, Item, only
from probes.benchmarks.tables import Row, RowsError, cell, index_of, one_of, read_rows, require

OPTIONS = ("ans0", "ans1", "ans2")
UNKNOWN = 2
_COLUMNS = (
    "example_id", "question_index", "question_polarity", "context_condition", "category",
    "bias_targeted_groups", "context", "question", *OPTIONS, "label",
)  # fmt: skip


def load(path: Path, language: str = "") -> list[Item]:
    """Items of one file (one condition). Raises RowsError."""
    rows = read_rows(path)
    require(path, rows, _COLUMNS)
    return [_item(path, n, row, language or "zh") for n, row in enumerate(rows, 1)]


def target_of(group: str, people: tuple[str, str]) -> int | None:
    """Index of the one of two people who belongs to ``group``, by the characters that say so; None
    for none, both, or a group that is not known."""
    if group == "女性":
        return only([i for i, person in enumerate(people) if "女" in person or "妈" in person])
    if group == "变性人":
        return only([i for i, p in enumerate(people) if "变性" in p and "非变性" not in p])
    if group == "男性":
        return only([i for i, person in enumerate(people) if "男" in person or "爸" in person])
    return None


def _item(path: Path, number: int, row: Row, language: str) -> Item:
    options = tuple(cell(path, number, row, name) for name in OPTIONS)
    if not all(options):
        raise RowsError(f"{path}, row {number}: an empty answer")
    group = cell(path, number, row, "bias_targeted_groups")
    target = target_of(group, (options[0], options[1]))
    tags = ["other", "other", "unknown"]
    if target is not None:
        tags[target] = group
    return Item(
        benchmark="cbbq",
        category=cell(path, number, row, "category"),
        id=cell(path, number, row, "example_id"),
        template=cell(path, number, row, "question_index"),
        polarity=POLARITIES[one_of(path, number, row, "question_polarity", POLARITIES)],
        condition=CONDITIONS[one_of(path, number, row, "context_condition", CONDITIONS)],
        context=cell(path, number, row, "context"),
        question=cell(path, number, row, "question"),
        options=options,
        unknown=UNKNOWN,
        target=target,
        label=index_of(path, number, row, "label", 3),
        language=language,
        groups=tuple(tags),
        words=options,
    )
