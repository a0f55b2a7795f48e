"""Rows of measurements in, numbered columns out; every doubt about the input is said here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from domain.errors import LikenessError, did_you_mean
from domain.measurements import FACE_REGION, Outcome, Status

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_DEFAULTS = {
    "tool": "", "task": "", "perturbation": "none", "region": FACE_REGION,
    "status": Status.MEASURED.value,
}  # fmt: skip
_REQUIRED = ("subject_id", "metric", "value")
_ITEM_KEYS = ("item_id", "portrait_id")
_NO_VALUE = ("", "nan", "none", "null", "na", "n/a")


class StatisticsError(LikenessError):
    """The rows cannot be analysed as they are; the message names the row or column and the cause."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as numbers: ``codes`` index ``names``; -1 = empty."""

    codes: Codes
    names: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """All rows, coded. Row arrays have shape (rows,), item arrays (items,)."""

    subject: Coded
    arm: Codes
    arms: list[tuple[str, str]]
    figure: Codes
    figures: list[tuple[str, str]]
    value: Floats
    """NaN where not measured."""
    item: Codes
    item_row: Codes
    """The first row of each item: gives its subject, arm and attributes."""
    outcomes: list[str]
    item_outcome: Codes
    attributes: Mapping[str, Coded]
    extra: Mapping[str, Floats]
    """Numeric covariates by name, (rows,)."""
    portrait: Coded
    """-1 where the rows name no portrait_id."""


def frame_of(rows: Any) -> pd.DataFrame:
    """A data frame from one, from mappings, or from dataclass-like rows."""
    if isinstance(rows, pd.DataFrame):
        return rows
    listed = list(rows)
    if listed and not isinstance(listed[0], Mapping):
        listed = [{k: getattr(r, k) for k in _fields(r)} for r in listed]
    return pd.DataFrame(listed)


def read(rows: Any, attributes: Sequence[str], covariates: Sequence[str] = ()) -> Table:
    """Check and code ``rows``. Raises StatisticsError with one clear line.

    A column ``source_line`` gives each row's line in its file for messages; without it rows count
    from 2, as under a header.
    """
    frame = frame_of(rows)
    if len(frame) == 0:
        raise StatisticsError("no rows: there is nothing to analyse")
    _need(frame, _REQUIRED)
    _need(frame, attributes, "attribute")
    subject = coded(frame["subject_id"])
    if (subject.codes < 0).any():
        raise StatisticsError(f"{_where(frame, subject.codes < 0)}: subject_id is empty")
    names = {
        key: _coded_or(frame, key) for key in ("tool", "task", "perturbation", "region", "metric")
    }
    arm, arm_keys = _combined([names["tool"].codes, names["task"].codes])
    figure, figure_keys = _combined([names["metric"].codes, names["region"].codes])
    figures = [
        (_name(names["metric"], m), _name(names["region"], r) or FACE_REGION)
        for m, r in figure_keys
    ]
    no_metric = np.array([m == "" for m, _ in figures], dtype=bool)
    figure = np.where(no_metric[figure], -1, figure)
    by = {a: coded(frame[a]) for a in attributes}
    item = _items(
        frame, [arm, subject.codes, names["perturbation"].codes, *(c.codes for c in by.values())]
    )
    _, item_row = np.unique(item, return_index=True)
    status = coded(frame["status"]) if "status" in frame else Coded(
        np.zeros(len(frame), dtype=np.int64), [Status.MEASURED.value]
    )  # fmt: skip
    value = _values(frame, status, figure)
    outcomes, item_outcome = _outcomes(frame, status, item, len(item_row))
    return Table(
        subject, arm, [(_name(names["tool"], a), _name(names["task"], b)) for a, b in arm_keys],
        figure, figures, value, item, item_row.astype(np.int64), outcomes, item_outcome,
        by,
        {c: pd.to_numeric(frame[c], errors="coerce").to_numpy(np.float64, na_value=np.nan)
         for c in covariates if c in frame},
        coded(frame["portrait_id"]) if "portrait_id" in frame else Coded(np.full(len(frame), -1), []),
    )  # fmt: skip


def coded(column: Any) -> Coded:
    """Text of a column as codes; empty cells and missing values are -1; names in sorted order."""
    codes, found = pd.factorize(column)
    names = ["" if pd.isna(v) else _text(v) for v in found]
    ordered = sorted({n for n in names if n})
    place = {name: i for i, name in enumerate(ordered)}
    lookup = np.array([place.get(n, -1) for n in names] + [-1], dtype=np.int64)
    return Coded(lookup[codes], ordered)


def _text(value: Any) -> str:
    return (
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    )


def _fields(row: Any) -> list[str]:
    return list(getattr(row, "__dataclass_fields__", None) or vars(row))


def _need(frame: pd.DataFrame, wanted: Sequence[str], what: str = "column") -> None:
    have = [str(c) for c in frame.columns]
    for name in wanted:
        if name not in have:
            hint = did_you_mean(name, have, 0.6)
            raise StatisticsError(f"no {what} '{name}'{hint} (columns: {', '.join(have[:30])})")


def _coded_or(frame: pd.DataFrame, key: str) -> Coded:
    if key in frame:
        return coded(frame[key])
    return Coded(np.zeros(len(frame), dtype=np.int64), [_DEFAULTS[key]])


def _name(column: Coded, code: int) -> str:
    return column.names[code] if code >= 0 else ""


def _combined(parts: Sequence[Codes]) -> tuple[Codes, list[tuple[int, ...]]]:
    """One code for several columns of codes; the second value gives the parts of each."""
    sizes = [int(p.max(initial=-1)) + 2 for p in parts]
    key = np.zeros(len(parts[0]), dtype=np.int64)
    for part, size in zip(parts, sizes, strict=True):
        key = key * size + part + 1
    found, codes = np.unique(key, return_inverse=True)
    keys = []
    for number in found:
        rest, split = int(number), []
        for size in reversed(sizes):
            rest, digit = divmod(rest, size)
            split.append(digit - 1)
        keys.append(tuple(reversed(split)))
    return codes.astype(np.int64), keys


def _items(frame: pd.DataFrame, keys: Sequence[Codes]) -> Codes:
    """Which picture each row belongs to: subject, tool, perturbation and attributes (a face may
    have been varied in one), and item_id or portrait_id where given."""
    parts = [*keys, *(coded(frame[key]).codes for key in _ITEM_KEYS if key in frame)]
    code = parts[0]
    for part in parts[1:]:  # factorised after each step, so that no product can overflow
        code = np.unique(code * (int(part.max()) + 2) + part + 1, return_inverse=True)[1]
    return code.astype(np.int64)


def _values(frame: pd.DataFrame, status: Coded, figure: Codes) -> Floats:
    """Finite figures where measured, NaN elsewhere; a measured row without a figure is an error."""
    raw = frame["value"]
    value = pd.to_numeric(raw, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    is_measured = np.array([n == Status.MEASURED.value for n in status.names] + [False])
    measured = is_measured[status.codes] & (figure >= 0)
    wrong = measured & ~np.isfinite(value)
    if wrong.any():
        first = raw.iloc[int(np.flatnonzero(wrong)[0])]
        text = "" if pd.isna(first) and not isinstance(first, float) else str(first).strip()
        said = f"value '{text}'"
        cause = (
            "not a finite figure"
            if text.lower() in _NO_VALUE or "inf" in text.lower()
            else "not a number"
        )
        raise StatisticsError(
            f"{_where(frame, wrong)}: {said} is {cause} although its status is 'measured'"
            f" ({int(wrong.sum())} such rows); give such rows another status"
        )
    return np.where(measured, value, np.nan)


def _outcomes(
    frame: pd.DataFrame, status: Coded, item: Codes, items: int
) -> tuple[list[str], Codes]:
    """How each item ended: its ``outcome`` column, else the statuses of its rows."""
    source = coded(frame["outcome"]) if "outcome" in frame else status
    known = [o.value for o in Outcome]
    place = {name: i for i, name in enumerate(known)}
    lookup = np.array(
        [place.get(n, place["not_measurable"]) for n in source.names] + [place["measured"]]
    )
    per_row = lookup[source.codes]
    ended = np.full(items, -1, dtype=np.int64)
    soft = (place["measured"], place["not_measurable"])
    ended[item[per_row == place["not_measurable"]]] = place["not_measurable"]
    ended[item[per_row == place["measured"]]] = place["measured"]
    for code in range(len(known)):  # a hard end of any row is the end of the item
        if code not in soft:
            ended[item[per_row == code]] = code
    return known, ended


def _where(frame: pd.DataFrame, wrong: npt.NDArray[np.bool_]) -> str:
    first = int(np.flatnonzero(wrong)[0])
    line = frame["source_line"].iloc[first] if "source_line" in frame else first + 2
    return f"line {line}"
