"""Answers made elsewhere: a column of the rows, or lists in a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from domain.errors import did_you_mean
from probes.benchmarks.counting import Answer
from probes.benchmarks.items import Condition, Item, load
from probes.benchmarks.matching import match, unifiedqa_rule
from probes.benchmarks.tables import RowsError, near, read_json, read_rows
from probes.calls import Status
from probes.loose_json import json_in

Rule = Literal["auto", "index", "unifiedqa", "words"]
"""How an answer becomes an option: ``index`` 0, 1 or 2 in the order of the row; ``unifiedqa`` the rule
of the published strings; ``words`` by letter, text and wording. ``auto`` takes index where every
answer is a number, unifiedqa for rows with group texts, else words."""
LISTS: Mapping[str, Condition] = {"pred_amb": "ambiguous", "pred_disamb": "disambiguated"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """``answers`` in the order of the rows; ``rule`` the one that was used."""

    answers: tuple[Answer, ...]
    rule: Rule


def load_answers(
    benchmark: str,
    files: Sequence[Path],
    predictions: str,
    *,
    key: str = "",
    language: str = "",
    rule: Rule = "auto",
) -> Loaded:
    """Items of all ``files`` with their answers.

    ``predictions`` is a column of the rows, or a JSON file: a list in the order of the rows, or lists
    "pred_amb" and "pred_disamb" in the order of the rows of each condition; ``key`` names one entry
    of a file that has several. Raises RowsError naming file, row and column.
    """
    items = [(path, load(benchmark, path, language)) for path in files]
    if predictions.endswith((".json", ".json.gz")):
        everything = [item for _, some in items for item in some]
        found = _from_json(Path(predictions), everything, key)
    elif Path(predictions).is_file():
        raise RowsError(f"{predictions}: answers are read from a column of the rows, or from .json")
    else:
        found = [pair for path, some in items for pair in _from_column(path, some, predictions)]
    chosen = _rule(rule, found, tables=benchmark == "bbq" and _with_words(files))
    return Loaded(tuple(_answer(item, raw, chosen) for item, raw in found), chosen)


def _with_words(files: Sequence[Path]) -> bool:
    return all("text0" in read_rows(path)[0] for path in files)


def _rule(rule: Rule, found: Sequence[tuple[Item, Any]], tables: bool) -> Rule:
    if rule != "auto":
        return rule
    given = [raw for _, raw in found if raw is not None and raw != ""]
    if all(_is_index(raw) for raw in given):
        return "index"
    return "unifiedqa" if tables else "words"


def _is_index(raw: Any) -> bool:
    if isinstance(raw, bool):
        return False
    return isinstance(raw, int) or (isinstance(raw, str) and raw.lstrip("-").isdecimal())


def _from_column(path: Path, items: Sequence[Item], column: str) -> list[tuple[Item, Any]]:
    rows = read_rows(path)
    found = []
    for number, (item, row) in enumerate(zip(items, rows, strict=True), 1):
        if column not in row:
            raise RowsError(f"{path}, row {number}: no column '{column}'{near(column, row)}")
        raw = row[column]
        if not (raw is None or isinstance(raw, str) or _is_index(raw)):
            raise RowsError(
                f"{path}, row {number}, column '{column}': text or a number is expected"
            )
        found.append((item, raw.strip() if isinstance(raw, str) else raw))
    return found


def _from_json(path: Path, items: Sequence[Item], key: str) -> list[tuple[Item, Any]]:
    data = read_json(path)
    if key:
        data = _entry(path, data, key)
    if isinstance(data, list):
        return _joined(path, "the list", items, data)
    if not isinstance(data, dict) or not set(data) & set(LISTS):
        some = ", ".join(data) if isinstance(data, dict) else ""
        hint = f"; name one of {some} with --key" if some else ""
        raise RowsError(f"{path}: a list, or lists 'pred_amb' and 'pred_disamb', expected{hint}")
    left = set(data) - set(LISTS) - {"expected"}
    if left:
        word = sorted(left)[0]
        raise RowsError(f"{path}: unknown key '{word}'{did_you_mean(word, LISTS)}")
    found: list[tuple[Item, Any]] = []
    for name, condition in LISTS.items():
        some_items = [item for item in items if item.condition == condition]
        if name in data or some_items:
            found += _joined(path, f"'{name}'", some_items, data.get(name))
    return found


def _entry(path: Path, data: Any, key: str) -> Any:
    if not isinstance(data, dict) or key not in data:
        known = list(data) if isinstance(data, dict) else []
        hint = did_you_mean(key, known) or (f" (there is: {', '.join(known)})" if known else "")
        raise RowsError(f"{path}: no entry '{key}'{hint}")
    return data[key]


def _joined(path: Path, what: str, items: Sequence[Item], raw: Any) -> list[tuple[Item, Any]]:
    if not isinstance(raw, list):
        raise RowsError(f"{path}: {what} is not a list, and {len(items)} rows wait for answers")
    if len(raw) != len(items):
        raise RowsError(f"{path}: {what} has {len(raw)} answers for {len(items)} rows")
    for number, value in enumerate(raw, 1):
        if not (value is None or isinstance(value, str) or _is_index(value)):
            raise RowsError(f"{path}: {what}, answer {number}: text, a number or null is expected")
    return list(zip(items, raw, strict=True))


def _answer(item: Item, raw: Any, rule: Rule) -> Answer:
    if raw is None:
        return Answer(item, None, Status.OUT_OF_CHOICE, "null: none of the options")
    if raw == "":
        return Answer(item, None, Status.ERRORED, "no answer in the row")
    if rule == "index":
        return _by_index(item, raw)
    text = str(raw)
    if rule == "unifiedqa":
        found = unifiedqa_rule(text, item.options, item.words)
        if found is None:
            return Answer(item, None, Status.UNPARSABLE, "the published rule finds no option")
        return Answer(item, found)
    told = match(text, item.options, item.language, item.unknown, from_json=json_in)
    return Answer(item, told.option, told.status, told.reason)


def _by_index(item: Item, raw: Any) -> Answer:
    if not _is_index(raw):
        return Answer(item, None, Status.UNPARSABLE, "not a number")
    option = int(raw)
    if 0 <= option < len(item.options):
        return Answer(item, option)
    return Answer(item, None, Status.OUT_OF_CHOICE, f"{option} is no option")
