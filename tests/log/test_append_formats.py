"""Lines, JSON lines, CSV and Parquet become the records that they say."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.errors import LogInputError
from tidemill.log.append_formats import chunks, lines
from tidemill.log.append_formats.chunks import ChunkSize, Rows, gather
from tidemill.log.append_formats.fields import FieldChoice, TimeUnit, microseconds
from tidemill.log.append_formats.lines import JsonLines, Lines, read_json_lines, read_lines
from tidemill.log.append_formats.tables import Csv, ParquetRows, read_csv, read_parquet
from tidemill.log.file import FileLog
from tidemill.log.reading import read_records
from tidemill.log.records import NewRecord, as_table


def all_lines(data: bytes, **source: str) -> list[tuple[bytes, bytes | None]]:
    found = list(read_lines(io.BytesIO(data), "in", Lines(**source)))
    return [pair for rows in found for pair in zip(rows.values, rows.keys, strict=True)]


def all_rows(found: list[Rows]) -> list[tuple[bytes, bytes | None, int | None]]:
    return [row for rows in found for row in zip(rows.values, rows.keys, rows.times, strict=True)]


def from_json(data: bytes, **fields: str) -> list[tuple[bytes, bytes | None, int | None]]:
    return all_rows(list(read_json_lines(io.BytesIO(data), "in", JsonLines(fields=FieldChoice(**fields)))))


def from_csv(data: bytes, source: Csv | None = None, **fields: str) -> list[tuple[bytes, bytes | None, int | None]]:
    return all_rows(list(read_csv(io.BytesIO(data), "in", source or Csv(fields=FieldChoice(**fields)))))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),  # the last line counts without its end
        (b"\n\na\n\n", [b"", b"", b"a", b""]),  # an empty line is an empty value
        (b"a\r\nb\r\n\r\nc\r", [b"a", b"b", b"", b"c"]),
        (b"a\rb\r\r\n", [b"a\rb\r"]),  # one carriage return belongs to the end
        (b"\xff\xfe\n\x00\n", [b"\xff\xfe", b"\x00"]),  # bytes as they are
    ],
)
def test_lines_are_bytes_without_their_ends(data: bytes, expected: list[bytes]) -> None:
    assert [value for value, _ in all_lines(data)] == expected


@given(st.lists(st.binary(max_size=5).filter(lambda line: not {10, 13} & set(line))))
def test_joined_lines_come_back(values: list[bytes]) -> None:
    assert [value for value, _ in all_lines(b"".join(value + b"\n" for value in values))] == values


def test_line_across_blocks_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_BLOCK", 3)
    assert [value for value, _ in all_lines(b"abcdefgh\nij\r\n\nk")] == [b"abcdefgh", b"ij", b"", b"k"]


def test_endless_line_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_BLOCK", 4)
    monkeypatch.setattr(lines, "MAX_ROW_BYTES", 8)
    with pytest.raises(LogInputError, match="in, line 2: longer than"):
        all_lines(b"ab\n" + b"x" * 100)


def test_key_of_a_line_is_the_first_group_or_the_match() -> None:
    data = b"1.2.3.4 - x\nnothing\n5.6.7.8 - y\n"
    assert [key for _, key in all_lines(data, key_regex=r"^[\d.]+")] == [b"1.2.3.4", None, b"5.6.7.8"]
    assert [key for _, key in all_lines(data, key_regex=r"- (\w)")] == [b"x", None, b"y"]


def test_expression_that_is_none_is_refused() -> None:
    with pytest.raises(LogInputError, match=r"'\(' is no regular expression"):
        all_lines(b"a\n", key_regex="(")


def test_json_line_is_kept_byte_by_byte() -> None:
    line = b'{ "user" : "u\\u00e41", "n": 1.50 , "at": 1000}'
    assert from_json(line + b"\n", key="user", time="at") == [(line, "uä1".encode(), 1_000_000)]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('"text"', b"text"),
        ('""', b""),
        ("null", None),
        ("12", b"12"),
        ("1.50", b"1.50"),
        ("123456789012345678901234567890", b"123456789012345678901234567890"),
        ("true", b"true"),
        ('{"a":1}', b'{"a":1}'),
    ],
)
def test_key_of_a_json_field_is_its_text(value: str, key: bytes | None) -> None:
    assert from_json(b'{"k": %s}' % value.encode(), key="k")[0][1] == key


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"k": "cut', "expected a JSON object, found"),
        (b"[1]", "expected a JSON object"),
        (b"", "expected a JSON object, found ''"),
        (b'{"k": "\xff"}', "in, line 3"),
        (b'{"other": 1}', "no field 'k'; the object has other"),
        (b"[" * 100_000, "expected a JSON object"),
    ],
)
def test_bad_json_line_is_named_when_it_is_looked_into(line: bytes, what: str) -> None:
    data = b'{"k": 1}\n{"k": 2}\n' + line + b"\n"
    with pytest.raises(LogInputError, match="in, line 3: ") as caught:
        from_json(data, key="k")
    assert what in str(caught.value)


def test_json_lines_are_not_looked_into_without_need() -> None:
    assert from_json(b'{"k": "cut\n\n') == [(b'{"k": "cut', None, None), (b"", None, None)]


def test_bad_time_is_named_with_its_line() -> None:
    with pytest.raises(LogInputError, match=r"in, line 2: cannot use at: .*'yesterday'"):
        from_json(b'{"at": null}\n{"at": "yesterday"}\n', time="at")


def test_csv_rows_are_json_objects_of_strings() -> None:
    data = b'\xef\xbb\xbfid,name,n\r\n1,"a ""b"", c",\r\n\r\n2,"two\nlines",3.0\r\n'
    found = from_csv(data, key="id")
    assert [json.loads(value) for value, _, _ in found] == [
        {"id": "1", "name": 'a "b", c', "n": ""},
        {"id": "2", "name": "two\nlines", "n": "3.0"},
    ]
    assert [key for _, key, _ in found] == [b"1", b"2"]


def test_raw_csv_rows_are_kept_byte_by_byte() -> None:
    data = b'id;name\n1;"a\n""b"""\r\n2;\xff\n3;too;many\n4\n'
    source = Csv(fields=FieldChoice(key="id"), delimiter=";", raw=True)
    assert [(value, key) for value, key, _ in from_csv(data, source)] == [
        (b'1;"a\n""b"""', b"1"),
        (b"2;\xff", b"2"),
        (b"3;too;many", b"3"),
        (b"4", b"4"),
    ]


def test_empty_cell_is_no_key_and_no_time() -> None:
    assert from_csv(b"k,at\n,\n", key="k", time="at")[0][1:] == (None, None)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"a,b\n1,2\n3\n", "in, line 3: expected 2 fields, found 1"),
        (b"a,b\n1,2,3\n", "in, line 2: expected 2 fields, found 3"),
        (b'a,b\n"1\n\n",2\n"x,y\n\n', "in, line 5: not a CSV row"),
        (b'a,b\n1,"x"y\n', "in, line 2: not a CSV row"),
        (b"a,b\n1,\xff\n", "in, line 2: not UTF-8"),
        (b"a,b,a\n", "in has columns twice: a"),
    ],
)
def test_bad_csv_row_is_named(data: bytes, what: str) -> None:
    with pytest.raises(LogInputError, match=what):
        from_csv(data)


def test_field_that_no_csv_column_has_is_refused() -> None:
    with pytest.raises(LogInputError, match="in has no column 'c'; it has a, b"):
        from_csv(b"a,b\n1,2\n", key="c")


def test_csv_without_rows_has_no_records() -> None:
    assert from_csv(b"") == []
    assert from_csv(b"a,b\n") == []


def test_parquet_rows_are_json_objects(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": [7, None],
            "at": pa.array([1_700_000_000_000_000_001, None], pa.timestamp("ns", tz="UTC")),
            "price": pa.array([Decimal("1.50"), None]),
            "day": [date(2024, 2, 29), None],
            "raw": [b"\xff", None],
            "tags": [["a", None], []],
            "inner": [{"x": float("nan")}, None],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    size = (tmp_path / "in.parquet").stat().st_size
    with (tmp_path / "in.parquet").open("rb") as stream:
        source = ParquetRows(fields=FieldChoice(key="id", time="at"))
        found = list(read_parquet(stream, "in", source, size))
    (first, key, time), (second, *rest) = all_rows(found)
    assert json.loads(first) == {
        "id": 7,
        "at": "2023-11-14T22:13:20Z",
        "price": "1.50",
        "day": "2024-02-29",
        "raw": "/w==",
        "tags": ["a", None],
        "inner": {"x": None},
    }
    assert (key, time) == (b"7", 1_700_000_000_000_000)
    assert rest == [None, None]
    assert json.loads(second) == dict.fromkeys(table.column_names) | {"tags": []}
    assert found[-1].consumed == size


def test_file_that_is_no_parquet_is_refused() -> None:
    with pytest.raises(LogInputError, match="in cannot be read as Parquet"):
        list(read_parquet(io.BytesIO(b"a,b\n1,2\n"), "in", ParquetRows(), 8))


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (None, TimeUnit.SECONDS, None),
        ("", TimeUnit.SECONDS, None),
        (1, TimeUnit.SECONDS, 1_000_000),
        (1, TimeUnit.MILLISECONDS, 1_000),
        ("1", TimeUnit.MICROSECONDS, 1),
        (-1.5, TimeUnit.SECONDS, -1_500_000),
        ("1395612427.25", TimeUnit.SECONDS, 1_395_612_427_250_000),
        ("1970-01-01T00:00:01Z", TimeUnit.SECONDS, 1_000_000),
        ("1970-01-01 01:00:01.5+01:00", TimeUnit.SECONDS, 1_500_000),
        ("1970-01-01 00:00:01", TimeUnit.SECONDS, 1_000_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), TimeUnit.SECONDS, -1),
    ],
)
def test_times_are_microseconds_since_1970(value: object, unit: TimeUnit, expected: int | None) -> None:
    assert microseconds(value, unit) == expected


BEYOND = ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59.9-23:00"]
"""Dates that no moment of the years 1 to 9999 of UTC has."""


@pytest.mark.parametrize(
    "value", [True, "yesterday", [], 10**18, float("nan"), float("inf"), "2024-13-01", b"1", *BEYOND]
)
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        microseconds(value, TimeUnit.SECONDS)


def rows_of(*values: bytes, consumed: int = 0) -> Rows:
    return Rows(values=list(values), keys=[None] * len(values), times=[None] * len(values), consumed=consumed)


def test_chunks_hold_all_rows_in_order_and_none_too_many() -> None:
    some = [rows_of(b"a", b"b", b"c", consumed=3), rows_of(), rows_of(b"d", b"e", consumed=5)]
    made = list(gather(some, ChunkSize(records=2)))
    assert [chunk.records["value"].to_pylist() for chunk in made] == [[b"a", b"b"], [b"c", b"d"], [b"e"]]
    assert made[-1].consumed == 5


def test_chunk_of_large_rows_is_closed_early() -> None:
    some = [rows_of(b"x" * 60), rows_of(b"x" * 60), rows_of(b"y")]
    made = list(gather(some, ChunkSize(records=100, bytes=100)))
    assert [len(chunk.records) for chunk in made] == [2, 1]


def test_row_limit_is_one_limit_for_all_formats() -> None:
    assert lines.MAX_ROW_BYTES == chunks.MAX_ROW_BYTES == 64 * 1024 * 1024


@pytest.mark.parametrize("text", BEYOND)
def test_records_beyond_the_years_are_refused_whoever_gives_them(text: str) -> None:
    at = datetime.fromisoformat(text)
    with pytest.raises(LogInputError, match="not in the years 1 to 9999"):
        NewRecord(value=b"x", timestamp=at)
    micros = 2**62 if at.year > 1 else -(2**62)
    times = pa.array([micros], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    with pytest.raises(LogInputError, match="not in the years 1 to 9999"):
        as_table(pa.table({"value": [b"x"], "timestamp": times}))


def test_records_beyond_the_years_that_are_there_are_read_as_of_the_nearest_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(str(tmp_path))
    log.create_topic("t", partitions=1)
    numbers = pa.array([-(2**62), 0, 2**62, None], pa.int64())
    rows = pa.table({"value": [b"a", b"b", b"c", b"d"], "timestamp": numbers.cast(pa.timestamp("us", tz="UTC"))})
    with monkeypatch.context() as patch:
        patch.setattr("tidemill.log.records.in_years", lambda times: times)
        log.append("t", 0, rows)
    scan = log.scan(log.topic("t").topic_id, [log.bounds("t")[0]])
    years = [record.timestamp.year for record in read_records(scan)]
    assert years[:3] == [1, 1970, 9999]
    assert log.offset_at("t", 0, datetime(1, 1, 1, tzinfo=UTC)) == 0
    assert log.offset_at("t", 0, datetime(1900, 1, 1, tzinfo=UTC)) == 1
    assert log.offset_at("t", 0, datetime(9000, 1, 1, tzinfo=UTC)) == 2


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([0, -(2**62)], pa.int64()).cast(pa.timestamp("us", tz="UTC")), "a day before year 1 or after 9999"),
        (pa.array([0, -(2**30)], pa.int32()).cast(pa.date32()), "a day before year 1 or after 9999"),
        (pa.array([0.5, float("inf")]), "an infinite number"),
        (pa.array([[0.5], [1.0, float("inf")]]), "an infinite number"),
        (pa.array([{"x": 0.5}, {"x": float("-inf")}]), "an infinite number"),
    ],
)
def test_value_of_parquet_that_no_record_can_say_is_refused_by_row_and_column(column: pa.Array, said: str) -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([1, 2]), "odd": column}), stream)
    size = stream.tell()
    with pytest.raises(LogInputError, match=rf"^f\.parquet, line 2: the column odd holds {said}") as found:
        list(read_parquet(stream, "f.parquet", ParquetRows(), size))
    assert found.value.fix
