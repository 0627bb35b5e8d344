"""Rows with named columns, CSV and Parquet. A row's value is its JSON object."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError
from tidemill.log.inputs.chunks import MAX_ROW_BYTES, Rows, bad_row, too_long
from tidemill.log.inputs.fields import FieldChoice, key_bytes, microseconds

_ROWS = 10_000
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv:
    """RFC 4180 with a header line, in UTF-8. Blank lines are left out.

    Values are JSON objects of strings, or with `raw` the bytes of the row as they stand in the file.
    An empty cell is no key and no time.
    """

    fields: FieldChoice = field(default_factory=FieldChoice)
    delimiter: str = ","
    raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRows:
    """Any Parquet file. Times become ISO 8601, decimals text, bytes base64 in the JSON."""

    fields: FieldChoice = field(default_factory=FieldChoice)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """A CSV file's name, how to read it, and where its columns are."""

    name: str
    source: Csv
    columns: dict[str, int]


class _TextLines:
    """Lines of a stream as text for the CSV reader, with their bytes kept until they are taken."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name
        self._kept: list[bytes] = []
        self.number = 0
        self.consumed = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._stream.readline(MAX_ROW_BYTES + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > MAX_ROW_BYTES:
            raise too_long(self._name, self.number)
        self.consumed += len(line)
        line = line.removeprefix(_BOM) if self.number == 1 else line
        self._kept.append(line)
        return line.decode("utf-8", "surrogateescape")

    def take(self) -> bytes:
        """The bytes of the lines since the last time, without the end of the last."""
        taken = b"".join(self._kept)
        self._kept.clear()
        return taken.removesuffix(b"\n").removesuffix(b"\r")


def read_csv(stream: IO[bytes], name: str, source: Csv) -> Iterator[Rows]:
    """The rows after the header, in order.

    Raises:
        LogInputError: a row has another number of fields than the header (unless `raw`), is not UTF-8
            (unless `raw`), has an unclosed quote, or its time is none; the header lacks a field.
    """
    csv.field_size_limit(MAX_ROW_BYTES)
    lines = _TextLines(stream, name)
    reader = csv.reader(lines, delimiter=source.delimiter, strict=True)
    header = _next_row(reader, lines, name)
    if header is None:
        return
    layout = _Layout(name=name, source=source, columns=_columns(header, name, source.fields))
    rows = Rows()
    while True:
        lines.take()
        first = lines.number + 1
        cells = _next_row(reader, lines, name)
        if cells is None:
            break
        if cells:
            _add_row(rows, cells, lines.take(), first, layout)
        if len(rows.values) >= _ROWS:
            rows.consumed = lines.consumed
            yield rows
            rows = Rows()
    rows.consumed = lines.consumed
    yield rows


def read_parquet(stream: IO[bytes], name: str, source: ParquetRows, size: int) -> Iterator[Rows]:
    """The rows in order. `stream` can seek and has `size` bytes.

    Raises:
        LogInputError: the file is no Parquet, lacks a field, or a time is none; rows count as lines.
    """
    try:
        file = pq.ParquetFile(stream)
        _columns(file.schema_arrow.names, name, source.fields)
        done, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=_ROWS):
            done += len(batch)
            yield _parquet_rows(batch, done - len(batch) + 1, name, source, size * done // total)
    except (pa.ArrowException, OSError) as error:
        raise LogInputError(f"{name} cannot be read as Parquet: {error}", fix="check the file and --format") from error


def _next_row(reader: Iterator[list[str]], lines: _TextLines, name: str) -> list[str] | None:
    first = lines.number + 1
    try:
        return next(reader, None)
    except csv.Error as error:
        raise bad_row(name, first, f"not a CSV row: {error}", "check the quotes and --delimiter") from error


def _columns(names: Sequence[str], name: str, fields: FieldChoice) -> dict[str, int]:
    columns = {column: index for index, column in enumerate(names)}
    if len(columns) != len(names):
        double = sorted({column for column in names if list(names).count(column) > 1})
        raise LogInputError(f"{name} has columns twice: {', '.join(double)}", fix="give each its own name")
    for wanted in fields.names:
        if wanted not in columns:
            raise LogInputError(f"{name} has no column {wanted!r}; it has {', '.join(names)}")
    return columns


def _add_row(rows: Rows, cells: list[str], text: bytes, line: int, layout: _Layout) -> None:
    fields, columns, raw = layout.source.fields, layout.columns, layout.source.raw
    if len(cells) != len(columns) and not (raw and all(columns[wanted] < len(cells) for wanted in fields.names)):
        what = f"expected {len(columns)} fields, found {len(cells)}"
        raise bad_row(layout.name, line, what, "mend the row, or use --raw")
    key = cells[columns[fields.key]] if fields.key is not None else ""
    time = cells[columns[fields.time]] if fields.time is not None else None
    try:
        value = text if raw else msgspec.json.encode(dict(zip(columns, cells, strict=True)))
        rows.add(value, key.encode("utf-8", "surrogateescape") or None, microseconds(time, fields.unit))
    except UnicodeEncodeError as error:
        raise bad_row(layout.name, line, "not UTF-8", "convert the file, or use --raw") from error
    except ValueError as error:
        raise bad_row(layout.name, line, f"cannot use {' and '.join(fields.names)}: {error}") from error


def _parquet_rows(batch: pa.RecordBatch, first: int, name: str, source: ParquetRows, consumed: int) -> Rows:
    rows = Rows(consumed=consumed)
    fields = source.fields
    for number, row in enumerate(_in_microseconds(batch).to_pylist(), first):
        key = key_bytes(row[fields.key]) if fields.key is not None else None
        try:
            time = microseconds(row[fields.time], fields.unit) if fields.time is not None else None
        except ValueError as error:
            raise bad_row(name, number, f"cannot use {fields.time}: {error}") from error
        rows.add(msgspec.json.encode(row, enc_hook=str), key, time)
    return rows


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Nanoseconds are cut to what Python, Spark and Delta can hold."""
    types = [pa.timestamp("us", f.type.tz) if pa.types.is_timestamp(f.type) else f.type for f in batch.schema]
    schema = pa.schema([pa.field(f.name, t) for f, t in zip(batch.schema, types, strict=True)])
    return batch.cast(schema, safe=False)
