"""Tables as CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest

from service import tabular
from service.tabular import Column, csv_chunks, parquet_chunks

COLUMNS = [
    Column("who"), Column("metric"), Column("value", "float"), Column("seed", "int"),
    Column("control", "bool"), Column("reason", heading="why"),
]  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"who": "a", "metric": "flrr", "value": 97.123456789, "seed": 3, "control": False},
    {"who": "b", "metric": "flrr", "value": None, "seed": 3, "control": True, "reason": "no face"},
    {"who": "c", "metric": "pdl", "value": 0.0, "seed": 3, "control": False, "reason": None},
]


def read_csv(chunks: Iterator[bytes]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(chunks).decode(), newline="")))


def read_parquet(chunks: Iterator[bytes]) -> Any:
    return pq.read_table(io.BytesIO(b"".join(chunks)))


def test_a_missing_figure_is_an_empty_cell_and_a_zero_is_a_zero() -> None:
    head, a, b, c = read_csv(csv_chunks(COLUMNS, ROWS))
    assert head == ["who", "metric", "value", "seed", "control", "why"]
    assert a == ["a", "flrr", "97.1235", "3", "0", ""]
    assert b == ["b", "flrr", "", "3", "1", "no face"]
    assert c[2] == "0"


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A1", "+1+2", "-1+2", "@SUM(1)", "\t=1", "\n=1"])
def test_no_cell_and_no_heading_is_a_formula(cell: str) -> None:
    head, row = read_csv(csv_chunks([Column("x", heading=cell)], [{"x": cell}]))
    assert head == [f"'{cell}"]
    assert row == [f"'{cell}"]


def test_a_carriage_return_begins_no_row_of_its_own() -> None:
    data = b"".join(csv_chunks([Column("x"), Column("y")], [{"x": "a\r=cmd|' '!A1", "y": "\r=1"}]))
    assert b"\r" not in data
    assert read_csv(iter([data]))[1] == ["a\n=cmd|' '!A1", "'\n=1"]


def test_numbers_written_as_text_stay_numbers() -> None:
    assert read_csv(csv_chunks([Column("x")], [{"x": "-12.5"}]))[1] == ["-12.5"]


def test_quotes_commas_and_line_breaks_survive() -> None:
    cell = 'a,"b"\nc'
    assert read_csv(csv_chunks([Column("x")], [{"x": cell}]))[1] == [cell]


def test_parquet_columns_have_types_and_missing_figures_are_null() -> None:
    table = read_parquet(parquet_chunks(COLUMNS, ROWS, {"complete": "false"}))
    kinds = [str(f.type) for f in table.schema]
    assert kinds == ["string", "string", "double", "int64", "bool", "string"]
    assert table.column("value").to_pylist() == [97.123456789, None, 0.0]
    assert table.column("value").null_count == 1
    assert table.column("control").to_pylist() == [False, True, False]
    assert table.schema.metadata[b"complete"] == b"false"


def test_parquet_keeps_text_as_it_was_declared() -> None:
    table = read_parquet(parquet_chunks([Column("x")], [{"x": "=1+1"}, {"x": None}], {}))
    assert table.column("x").to_pylist() == ["=1+1", None]


def test_a_column_without_any_figure_keeps_its_type() -> None:
    table = read_parquet(parquet_chunks([Column("x", "float")], [{"x": None}, {"x": None}], {}))
    assert str(table.schema.field("x").type) == "double"
    assert table.column("x").null_count == 2


def test_a_table_without_rows_is_a_table() -> None:
    assert read_csv(csv_chunks(COLUMNS, [])) == [[c.title for c in COLUMNS]]
    assert read_parquet(parquet_chunks(COLUMNS, [], {})).num_rows == 0


def test_half_a_surrogate_pair_is_spelt_out_in_both() -> None:
    rows = [{"x": "a\udc80"}]
    assert read_csv(csv_chunks([Column("x")], rows))[1] == ["a\\udc80"]
    assert read_parquet(parquet_chunks([Column("x")], rows, {})).column("x").to_pylist() == [
        "a\\udc80"
    ]


@pytest.mark.parametrize("write", [csv_chunks, lambda c, r: parquet_chunks(c, r, {})])
def test_a_long_table_goes_out_while_its_rows_come_in(write: Any) -> None:
    taken = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for taken in range(1, 3 * tabular.CHUNK_ROWS + 1):
            yield {"x": str(taken)}

    chunks = write([Column("x")], rows())
    first = next(chunks)
    assert first
    assert taken == tabular.CHUNK_ROWS
    rest = list(chunks)
    assert max(len(r) for r in rest) < 2_000_000
    assert taken == 3 * tabular.CHUNK_ROWS


def test_parquet_has_a_row_group_a_chunk() -> None:
    rows = ({"x": i} for i in range(2 * tabular.CHUNK_ROWS + 1))
    data = b"".join(parquet_chunks([Column("x", "int")], rows, {}))
    file = pq.ParquetFile(io.BytesIO(data))
    assert file.num_row_groups == 3
    assert file.read().column("x").to_pylist() == list(range(2 * tabular.CHUNK_ROWS + 1))
