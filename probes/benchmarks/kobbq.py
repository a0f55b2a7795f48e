"""KoBBQ (Jin et al. 2024, MIT): Korean. The answer that the stereotype says is in the row itself.

``sample_id`` is category-template+version-sample-amb/dis-bsd/cnt. Contexts of versions b and d say what
the stereotype says, a and c the opposite; "bsd" asks the negative question and "cnt" its counterpart.
The category is the first part of ``sample_id``: bbq_category is empty for templates made for Korea.
"""

from __future__ import annotations

import re
from pathlib import Path

from probes.benchmarks.ggbbq import literal
from probes.benchmarks.items import CONDITIONS, Item, only
from probes.benchmarks.tables import Row, RowsError, cell, read_rows, require

_ID = re.compile(
    r"^(?P<template>(?P<category>.+)-\d+)(?P<version>[abcd])-(?P<sample>\d+)-(?P<context>amb|dis)-(?P<asked>bsd|cnt)$"
)
_COLUMNS = (
    "sample_id",
    "context",
    "question",
    "choices",
    "biased_answer",
    "answer",
    "bbq_category",
)
UNKNOWN = "알 수 없음"


def load(path: Path, language: str = "") -> list[Item]:
    """Items of the table of samples. Raises RowsError."""
    rows = read_rows(path)
    require(path, rows, _COLUMNS)
    return [_item(path, n, row, language or "ko") for n, row in enumerate(rows, 1)]


def version_of(sample_id: str) -> str:
    """The letter a, b, c or d of a sample; "" where the name has another form."""
    found = _ID.match(sample_id)
    return found["version"] if found else ""


def _item(path: Path, number: int, row: Row, language: str) -> Item:
    name = cell(path, number, row, "sample_id")
    parts = _ID.match(name)
    if parts is None:
        raise RowsError(f"{path}, row {number}, column 'sample_id': {name!r}")
    choices = literal(path, number, row, "choices")
    if not isinstance(choices, list) or len(choices) != 3 or choices.count(UNKNOWN) != 1:
        raise RowsError(f"{path}, row {number}, column 'choices': three, one of them {UNKNOWN!r}")
    options = tuple(str(choice).strip() for choice in choices)
    unknown = options.index(UNKNOWN)
    negative = parts["asked"] == "bsd"
    said = only([i for i, o in enumerate(options) if o == cell(path, number, row, "biased_answer")])
    others = [i for i in range(3) if i not in (unknown, said)]
    target = said if negative or said is None else only(others)
    return Item(
        benchmark="kobbq",
        category=parts["category"],
        id=name,
        template=parts["template"],
        polarity="negative" if negative else "non_negative",
        condition=CONDITIONS[parts["context"]],
        context=cell(path, number, row, "context"),
        question=cell(path, number, row, "question"),
        options=options,
        unknown=unknown,
        target=target,
        label=_label(path, number, row, options),
        language=language,
        groups=tuple(
            "unknown" if i == unknown else "target" if i == target else "other" for i in range(3)
        ),
        words=options,
    )


def _label(path: Path, number: int, row: Row, options: tuple[str, ...]) -> int:
    answer = cell(path, number, row, "answer")
    if answer not in options:
        raise RowsError(f"{path}, row {number}, column 'answer': {answer!r} is no choice")
    return options.index(answer)
