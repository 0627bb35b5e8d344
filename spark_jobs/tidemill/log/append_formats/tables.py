"""Rows with named columns: CSV and Parquet. The value of a record is the row as a JSON object."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError
from tidemill.log.append_formats.chunks import MAX_ROW_BYTES, Rows, bad_row, too_long
from tidemill.log.append_formats.fields import FieldChoice, key_bytes, microseconds

_ROWS = 10_000
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv:
    """RFC 4180 with a header line, in UTF-8. Blank lines are skipped.

    Values are JSON objects of strings; with `raw` they are the bytes of the row in the file. An empty cell means no key
    or no time.
    """

    fields: FieldChoice = field(default_factory=FieldChoice)
    delimiter: str = ","
    raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRows:
    """Any Parquet file. In the JSON, times are ISO 8601, decimals are text and bytes are base64."""

    fields: FieldChoice = field(default_factory=FieldChoice)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The name of a CSV file, how to read it, and the index of each column."""

    name: str
    source: Csv
    columns: dict[str, int]


class _TextLines:
    """Gives the lines of a stream to the CSV reader as text, and keeps their bytes until `take` is called."""

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
        """Return the bytes of the lines read since the last call, without the last line end."""
        taken = b"".join(self._kept)
        self._kept.clear()
        return taken.removesuffix(b"\n").removesuffix(b"\r")


def read_csv(stream: IO[bytes], name: str, source: Csv) -> Iterator[Rows]:
    """Yield the rows after the header, in order.

    Raises:
        LogInputError: the header lacks a chosen field, a row has an unclosed quote, or its time is not valid. Without
            `raw`, also if a row has another number of fields than the header or is not UTF-8.
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
    """Yield the rows in order. `stream` must be seekable and has `size` bytes.

    Raises:
        LogInputError: the file is not Parquet, lacks a chosen field, or a time is not valid. The error counts rows as
            lines.
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
    for number, row in enumerate(_plain(batch, first, name), first):
        key = key_bytes(row[fields.key]) if fields.key is not None else None
        try:
            time = microseconds(row[fields.time], fields.unit) if fields.time is not None else None
        except ValueError as error:
            raise bad_row(name, number, f"cannot use {fields.time}: {error}") from error
        rows.add(msgspec.json.encode(row, enc_hook=str), key, time)
    return rows


def _plain(batch: pa.RecordBatch, first: int, name: str) -> list[dict[str, Any]]:
    """The rows as Python's values, of which each can be written in JSON."""
    rows = _in_microseconds(batch)
    infinite = any(pc.any(pc.is_inf(numbers)).as_py() for numbers in _floats(rows.to_struct_array()))
    try:
        found: list[dict[str, Any]] = rows.to_pylist()
    except OverflowError:
        number, column = next(_beyond(rows))
        what = f"the column {column} holds a day before year 1 or after 9999, which no record can say"
        raise bad_row(name, first + number, what, "mend the row, or leave the column out") from None
    if infinite:
        number = next(n for n, row in enumerate(found) if _is_infinite(row))
        column = next(column for column, value in found[number].items() if _is_infinite(value))
        what = f"the column {column} holds an infinite number, which JSON cannot say"
        raise bad_row(name, first + number, what, "write null, or mend the row")
    return found


def _floats(array: pa.Array) -> Iterator[pa.Array]:
    """All numbers with a point in an array, also inside of lists and structs."""
    kind = array.type
    if pa.types.is_struct(kind):
        for inner in array.flatten():
            yield from _floats(inner)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _floats(pc.list_flatten(array))
    elif pa.types.is_floating(kind):
        yield array


def _is_infinite(value: Any) -> bool:
    match value:
        case float():
            return math.isinf(value)
        case dict():
            return any(map(_is_infinite, value.values()))
        case list():
            return any(map(_is_infinite, value))
        case _:
            return False


def _beyond(rows: pa.RecordBatch) -> Iterator[tuple[int, str]]:
    """Rows and columns whose values Python cannot hold."""
    for number in range(len(rows)):
        for column in rows.schema.names:
            try:
                rows.column(column)[number].as_py()
            except OverflowError:
                yield number, column


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cut nanoseconds to microseconds, which Python, Spark and Delta can hold."""
    types = [pa.timestamp("us", f.type.tz) if pa.types.is_timestamp(f.type) else f.type for f in batch.schema]
    schema = pa.schema([pa.field(f.name, t) for f, t in zip(batch.schema, types, strict=True)])
    return batch.cast(schema, safe=False)
