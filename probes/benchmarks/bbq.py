"""BBQ (Parrish et al. 2022, CC BY 4.0): JSON lines, one item each; and the Norwegian set in its form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from probes.benchmarks.items import CONDITIONS, POLARITIES, Item, only, the_unknown
from probes.benchmarks.tables import Row, RowsError, cell, index_of, one_of, read_rows

KEYS = ("ans0", "ans1", "ans2")
_GENDER = {"man": "f_or_m:M", "boy": "f_or_m:M", "m": "f_or_m:M"}
_GENDER |= {"woman": "f_or_m:F", "girl": "f_or_m:F", "f": "f_or_m:F"}
"""Gender items write one group as "F", "woman" or "girl"."""


def load(path: Path, language: str = "") -> list[Item]:
    """Items of BBQ's JSON lines. Raises RowsError."""
    return [
        _item(path, n, row, language or "en", "bbq") for n, row in enumerate(read_rows(path), 1)
    ]


def load_norwegian(path: Path, language: str = "") -> list[Item]:
    """Items of the Norwegian gender set (naie-no/NoBBQ, CC BY 4.0), whose rows have BBQ's fields.

    Raises RowsError.
    """
    return [
        _item(path, n, row, language or "no", "nobbq") for n, row in enumerate(read_rows(path), 1)
    ]


def target_of(groups: Sequence[str], tags: Sequence[str], words: Sequence[str]) -> int | None:
    """The one option in the stereotyped groups, by its tag or its words; None for none or several.

    "trans women", "transgender men", "trans" stand for the tags trans, trans_F, trans_M and
    non_binary; "F" also for woman and girl, "M" for man and boy.
    """
    wanted = {_plain(group) for group in groups}
    found = [
        i
        for i, tag in enumerate(tags)
        if tag.lower() != "unknown" and {_plain(tag), _plain(words[i])} & wanted
    ]
    return only(found)


def _plain(group: str) -> str:
    text = group.strip().lower()
    if text.startswith("trans") or text == "non_binary":
        return "trans"
    return _GENDER.get(text, text)


def _item(path: Path, number: int, row: Row, language: str, benchmark: str) -> Item:
    extra = row.get("additional_metadata")
    extra = extra if isinstance(extra, dict) else row
    info, groups = row.get("answer_info"), extra.get("stereotyped_groups")
    if not isinstance(info, dict) or not all(_is_pair(info.get(key)) for key in KEYS):
        raise RowsError(
            f"{path}, row {number}, column 'answer_info': [text, group] for each answer"
        )
    if not isinstance(groups, list):
        raise RowsError(f"{path}, row {number}, column 'stereotyped_groups': a list is expected")
    tags = tuple(str(info[key][1]) for key in KEYS)
    words = tuple(str(info[key][0]) for key in KEYS)
    return Item(
        benchmark=benchmark,
        category=str(row.get("category", "Gender_identity")),
        id=cell(path, number, row, "example_id"),
        template=cell(path, number, row, "question_index"),
        polarity=POLARITIES[one_of(path, number, row, "question_polarity", POLARITIES)],
        condition=CONDITIONS[one_of(path, number, row, "context_condition", CONDITIONS)],
        context=cell(path, number, row, "context"),
        question=cell(path, number, row, "question"),
        options=tuple(cell(path, number, row, key) for key in KEYS),
        unknown=the_unknown(path, number, tags),
        target=target_of([str(group) for group in groups], tags, words),
        label=index_of(path, number, row, "label", len(KEYS)),
        language=language,
        groups=tags,
        words=words,
    )


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2
