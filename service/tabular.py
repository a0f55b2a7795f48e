"""Rows of figures as CSV and as Parquet, written piece by piece: a long table is never in memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.report.csv_files import decimal, neutral

Row = Mapping[str, Any]
CSV_TYPE = "text/csv; charset=utf-8"
PARQUET_TYPE = "application/vnd.apache.parquet"
CHUNK_ROWS = 2000
"""Rows that are put together before they are sent."""
_NUMBERS = {"float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}


@dataclass(frozen=True, slots=True)
class Column:
    """``kind`` is text, float, int or bool. ``heading`` stands for ``key`` in the first line where a
    reader would otherwise confuse two columns."""

    key: str
    kind: str = "text"
    heading: str = ""

    @property
    def title(self) -> str:
        """What stands above the column."""
        return self.heading or self.key


def csv_chunks(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[bytes]:
    """The table as UTF-8 CSV. A missing figure is an empty cell, never 0; figures have six
    significant digits; a cell that a spreadsheet would run as a formula begins with an apostrophe,
    in the first line too."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([neutral(c.title) for c in columns])
    for count, row in enumerate(rows, 1):
        writer.writerow([_cell(c, row.get(c.key)) for c in columns])
        if count % CHUNK_ROWS == 0:
            yield _taken(buffer)
    yield _taken(buffer)


def _cell(column: Column, value: Any) -> str:
    if value is None:
        return ""
    if column.kind == "float":
        return decimal(float(value))
    if column.kind == "bool":
        return str(int(value))
    return neutral(value)


def _taken(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode("utf-8", "backslashreplace")


def parquet_chunks(
    columns: Sequence[Column], rows: Iterable[Row], about: Mapping[str, str]
) -> Iterator[bytes]:
    """The table as Parquet with typed columns, a row group every CHUNK_ROWS rows. A missing figure
    is null. ``about`` goes into the file's key-value metadata. Text is as it was declared: nothing
    that reads Parquet runs a cell as a formula."""
    schema = pa.schema(
        [pa.field(c.title, _NUMBERS.get(c.kind, pa.string())) for c in columns],
        metadata={k.encode(): v.encode() for k, v in about.items()},
    )
    sink = _Sink()
    writer = pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd")
    for batch in _batches(rows):
        columns_of = [[_typed(c, row.get(c.key)) for row in batch] for c in columns]
        arrays = [pa.array(v, f.type) for v, f in zip(columns_of, schema, strict=True)]
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=CHUNK_ROWS)
        yield sink.taken()
    writer.close()
    yield sink.taken()


def _typed(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.kind == "text":
        # what cannot be said in UTF-8 (half of a surrogate pair in a file's name) is spelt out
        return str(value).encode("utf-8", "backslashreplace").decode()
    return {"float": float, "int": int, "bool": bool}[column.kind](value)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == CHUNK_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


class _Sink(io.RawIOBase):
    """A file that only knows how far it has come, and hands out what was written since last asked."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._at += len(part)
        return len(part)

    def taken(self) -> bytes:
        """What was written since the last call."""
        whole = b"".join(self._parts)
        self._parts.clear()
        return whole
