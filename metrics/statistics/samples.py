"""Subject means: the only numbers that tests and intervals ever see.

A block is one tool and task seen through one attribute: a unit is a subject within a group (one
subject may stand in two groups where the attribute was varied on one and the same face). Its cells
hold how many items were measured, their sum and sum of squares, for each column of questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from domain.measurements import Outcome
from metrics.statistics.columns import Column
from metrics.statistics.table import Coded, Codes, Table

Floats = npt.NDArray[np.float64]

_JUDGED = (Outcome.MEASURED.value, Outcome.FACE_LOST.value, Outcome.BLANK.value)
"""Items that could have lost a face: those that came back and could be judged."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Units of one group: ``count``, ``total``, ``square`` are (units, columns); ``items`` (units,)."""

    subjects: Codes
    count: Floats
    total: Floats
    square: Floats
    items: Floats

    @property
    def means(self) -> Floats:
        """(units, columns) subject means, NaN where a subject has no figure."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.count > 0, self.total / np.maximum(self.count, 1), np.nan)

    def item_variance(self) -> Floats:
        """Variance of single items, clustering ignored: (columns,)."""
        n = self.count.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            var = (self.square.sum(axis=0) - self.total.sum(axis=0) ** 2 / n) / (n - 1)
        return np.where(n > 1, np.maximum(var, 0.0), np.nan)

    def missing(self) -> Floats:
        """Items without a figure: (columns,)."""
        return np.asarray(self.items.sum() - self.count.sum(axis=0))

    def take(self, chosen: npt.NDArray[Any]) -> Sample:
        """Some of the units, by mask or index."""
        return Sample(
            self.subjects[chosen], self.count[chosen], self.total[chosen],
            self.square[chosen], self.items[chosen],
        )  # fmt: skip

    def merged(self) -> Sample:
        """One unit a subject, for the rest of several groups in which a subject may stand twice."""
        found, place = np.unique(self.subjects, return_inverse=True)
        if len(found) == len(self.subjects):
            return self
        count, total, square = (
            _added(place, part, len(found)) for part in (self.count, self.total, self.square)
        )
        items = np.bincount(place, self.items, len(found)).astype(np.float64)
        return Sample(found, count, total, square, items)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One tool and task, one attribute, many questions."""

    tool: str
    task: str
    attribute: str
    columns: Sequence[Column]
    groups: list[str]
    group: Codes
    """(units,) index into ``groups``."""
    units: Sample
    spread: npt.NDArray[np.bool_]
    """(columns,) whether the column's underlying figures differ at all."""

    def of(self, group: int) -> Sample:
        """The units of one group."""
        return self.units.take(self.group == group)

    def sizes(self) -> Codes:
        """Subjects in each group."""
        return np.bincount(self.group, minlength=len(self.groups))


def build_block(
    table: Table, arm: int, attribute: str, by: Coded, columns: Sequence[Column]
) -> Block:
    """Average the rows of one arm into subject means. ``by`` are the group codes of all rows."""
    groups = max(len(by.names), 1)
    unit_key = np.where(by.codes >= 0, table.subject.codes * groups + by.codes, -1)
    item_rows = table.item_row[(table.arm[table.item_row] == arm) & (unit_key[table.item_row] >= 0)]
    found = np.unique(unit_key[item_rows])
    rows = np.flatnonzero((table.arm == arm) & (unit_key >= 0) & np.isfinite(table.value))
    pieces, spread = _pieces(table, rows, item_rows, columns)
    width = len(columns)
    cell, values = [], []
    for index, (at, v) in enumerate(pieces):
        cell.append(np.searchsorted(found, unit_key[at]) * width + index)
        values.append(v)
    cells = np.concatenate(cell) if cell else np.zeros(0, dtype=np.int64)
    value = np.concatenate(values) if values else np.zeros(0)
    size, shape = len(found) * width, (len(found), width)
    count, total, square = (
        np.bincount(cells, weights, size).reshape(shape).astype(np.float64)
        for weights in (None, value, value * value)
    )
    items = np.bincount(np.searchsorted(found, unit_key[item_rows]), minlength=len(found))
    units = Sample(found // groups, count, total, square, items.astype(np.float64))
    tool, task = table.arms[arm]
    return Block(tool, task, attribute, columns, by.names, found % groups, units, spread)


def _pieces(
    table: Table, rows: Codes, item_rows: Codes, columns: Sequence[Column]
) -> tuple[list[tuple[Codes, Floats]], npt.NDArray[np.bool_]]:
    """For each column the rows that answer it and their values; and whether they differ."""
    place = {key: code for code, key in enumerate(table.figures)}
    figure = table.figure[rows]
    order = np.argsort(figure, kind="stable")
    edges = np.searchsorted(figure[order], np.arange(len(table.figures) + 1))
    pieces: list[tuple[Codes, Floats]] = []
    spread = np.ones(len(columns), dtype=bool)
    for index, column in enumerate(columns):
        if column.outcome is not None:
            pieces.append(_outcome_piece(table, item_rows, column.outcome))
            continue
        code = place.get((column.metric, column.region), -1)
        at = rows[order[edges[code] : edges[code + 1]]] if code >= 0 else rows[:0]
        value = table.value[at]
        spread[index] = len(value) == 0 or bool(value.min() != value.max())
        if column.event is not None and column.threshold is not None:
            hit = value < column.threshold if column.event == "below" else value > column.threshold
            value = hit.astype(np.float64)
        pieces.append((at, value))
    return pieces, spread


def _outcome_piece(table: Table, item_rows: Codes, outcome: str) -> tuple[Codes, Floats]:
    ended = table.item_outcome[table.item[item_rows]]
    names = table.outcomes
    if outcome in (Outcome.FACE_LOST.value, Outcome.BLANK.value):
        judged = np.isin(ended, [names.index(o) for o in _JUDGED])
        item_rows, ended = item_rows[judged], ended[judged]
    wanted = names.index(outcome) if outcome in names else -1
    return item_rows, (ended == wanted).astype(np.float64)


def _added(place: Codes, part: Floats, size: int) -> Floats:
    out = np.zeros((size, part.shape[1]))
    np.add.at(out, place, part)
    return out
