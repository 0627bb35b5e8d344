"""`tidemill log append`: what becomes a record, and what is said when something does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from tidemill.cli.commands.log import app as log_app
from tidemill.core.errors import LogInputError, TidemillError
from tidemill.log import identity
from tidemill.log.file import FileLog
from tidemill.log.reading import read_topic

Append = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    log = FileLog(tmp_path / "log")
    log.create_topic("t", 3)
    return log


@pytest.fixture
def append(log: FileLog, tmp_path: Path) -> Append:
    """Runs `tidemill log append t ...`; errors for people are raised."""
    app = typer.Typer()
    app.add_typer(log_app, name="log")

    def run(*arguments: object, given: bytes = b"") -> Result:
        command = ["log", "append", "t", *map(str, arguments), "--log", str(tmp_path / "log")]
        result = CliRunner().invoke(app, command, input=given)
        if isinstance(result.exception, TidemillError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return run


def values(log: FileLog, partition: int | None = None) -> list[bytes | None]:
    return [record.value for record in read_topic(log, "t", partition=partition)]


def test_lines_of_standard_input_are_dealt_in_turn(append: Append, log: FileLog) -> None:
    result = append(given=b"a\r\n\n\xff\nlast")
    assert [values(log, n) for n in range(3)] == [[b"a", b"last"], [b""], [b"\xff"]]
    assert result.stdout == "4 records: t-0 [0, 2), t-1 [0, 1), t-2 [0, 1)\n"


def test_dash_is_standard_input_among_files(append: Append, log: FileLog, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1\n")
    append(tmp_path / "one", "-", tmp_path / "one", "--segment-records", "1", given=b"2\n")
    assert sorted(values(log)) == [b"1", b"1", b"2"]


def test_append_answers_programs_in_json(append: Append, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\nb\n")
    assert json.loads(append(tmp_path / "in", "--json").stdout) == {
        "topic": "t",
        "records": 2,
        "bytes": 4,
        "ranges": [
            {"partition": 0, "from_offset": 0, "until_offset": 1},
            {"partition": 1, "from_offset": 0, "until_offset": 1},
        ],
        "appended": 2,
        "producer_id": identity.id_of_files([str(tmp_path / "in")]),
    }


def test_nothing_to_append_is_no_error(append: Append, log: FileLog) -> None:
    assert append(given=b"").stdout == "0 records: nothing\n"
    assert values(log) == []


def test_key_of_a_line_decides_its_partition(append: Append, log: FileLog) -> None:
    append("--key-regex", r"^\d+", given=b"21 a\n21 b\n7 c\n21 d\n")
    partition = (-973932308 & 0x7FFFFFFF) % 3
    assert [v for v in values(log, partition) if (v or b"").startswith(b"21")] == [b"21 a", b"21 b", b"21 d"]


def test_round_robin_takes_no_notice_of_keys(append: Append, log: FileLog) -> None:
    append("--key-regex", r"^\d+", "--partitioning", "round-robin", given=b"21 a\n21 b\n21 c\n")
    assert [len(values(log, n)) for n in range(3)] == [1, 1, 1]
    assert {record.key for record in read_topic(log, "t")} == {b"21"}


def test_json_lines_give_key_and_time(append: Append, log: FileLog) -> None:
    given = b'{"u": "x", "at": 1395612427}\n'
    append("--format", "jsonl", "--key", "u", "--timestamp-field", "at", "--timestamp-unit", "s", given=given)
    (record,) = read_topic(log, "t")
    assert (record.key, record.value) == (b"x", given.strip())
    assert record.timestamp.isoformat() == "2014-03-23T22:07:07+00:00"


@pytest.mark.parametrize("name", ["in.jsonl", "in.ndjson", "in.JSON"])
def test_a_name_of_json_lines_says_their_format(append: Append, log: FileLog, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"u": "x"}\n{"u": null}\n')
    result = append(tmp_path / name, "--key", "u")
    assert {record.key: record.value for record in read_topic(log, "t")} == {b"x": b'{"u": "x"}', None: b'{"u": null}'}
    assert result.stderr == "(read as jsonl, as the name says; --format takes another)\n"


def test_names_of_csv_and_parquet_say_their_format(append: Append, log: FileLog, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"u\nx\n")
    pq.write_table(pa.table({"u": ["y"]}), tmp_path / "in.parquet")
    assert "read as csv" in append(tmp_path / "in.csv", "--key", "u").stderr
    assert "read as parquet" in append(tmp_path / "in.parquet").stderr
    assert {(record.key, record.value) for record in read_topic(log, "t")} == {
        (b"x", b'{"u":"x"}'),
        (None, b'{"u":"y"}'),
    }


def test_an_option_of_one_format_says_it_and_nothing_is_assumed(append: Append, log: FileLog, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"u,n\nx,1\n")
    (tmp_path / "in.jsonl").write_bytes(b'{"u": \n')
    assert append(tmp_path / "in.csv", "--raw").stderr == ""
    assert append(tmp_path / "in.jsonl", "--key-regex", "u").stderr == ""
    assert append(tmp_path / "in.jsonl", "--again").stderr == ""
    assert sorted(values(log)) == [b"x,1", b'{"u": ', b'{"u": ']


def test_csv_rows_become_json(append: Append, log: FileLog) -> None:
    append("-f", "csv", "--key", "u", given=b"u,n\nx,1\ny,\n")
    found = {record.key: json.loads(record.value or b"") for record in read_topic(log, "t")}
    assert found == {b"x": {"u": "x", "n": "1"}, b"y": {"u": "y", "n": ""}}


def test_raw_csv_rows_stay_as_they_are(append: Append, log: FileLog) -> None:
    append("-f", "csv", "--raw", "--delimiter", ";", given=b'u;n\n"x;y";1\n')
    assert values(log) == [b'"x;y";1']


@pytest.mark.parametrize("piped", [True, False])
def test_parquet_of_a_file_and_of_standard_input(append: Append, log: FileLog, tmp_path: Path, piped: bool) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"u": ["x", "y"], "n": [1, None]}), path)
    append("-" if piped else path, "-f", "parquet", "--key", "u", given=path.read_bytes() if piped else b"")
    found = {record.key: json.loads(record.value or b"") for record in read_topic(log, "t")}
    assert found == {b"x": {"u": "x", "n": 1}, b"y": {"u": "y", "n": None}}


def test_bad_json_line_is_named_and_what_was_appended_is_counted(append: Append, log: FileLog, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"u": 1}\n' * 5 + b'{"u": \n' + b'{"u": 1}\n')
    with pytest.raises(LogInputError, match=r"in\.jsonl, line 6: expected a JSON object.*nothing was appended"):
        append(path, "-f", "jsonl", "--key", "u")
    assert values(log) == []


def test_a_bad_line_of_a_file_is_found_before_any_record_of_it_is_appended(
    append: Append, log: FileLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.log.append_formats.lines._BLOCK", 9)
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"u": 1}\n' * 5 + b'{"u": \n')
    with pytest.raises(LogInputError, match=r"line 6.*nothing was appended"):
        append(path, "-f", "jsonl", "--key", "u", "--segment-records", "2")
    assert values(log) == []


def test_a_bad_line_of_standard_input_leaves_those_before_it_and_the_mended_input_goes_on_behind_them(
    append: Append, log: FileLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.log.append_formats.lines._BLOCK", 9)
    arguments, good = ["-f", "jsonl", "--key", "u", "--segment-records", "2"], b'{"u": 1}\n' * 5
    with pytest.raises(
        LogInputError, match=r"line 6.*; 4 records of this input are in the log \(t-\d \[0, 4\)\)"
    ) as found:
        append(*arguments, given=good + b'{"u": \n')
    assert len(values(log)) == 4
    (name,) = re.findall(r"--resume --producer-id (\S+) ", found.value.fix)
    said = append(*arguments, "--resume", "--producer-id", name, given=good + b'{"u": 2}\n').stdout
    assert said.startswith("2 records appended, 4 of this input were there before: ")
    assert sorted(values(log)) == [b'{"u": 1}'] * 5 + [b'{"u": 2}']


def test_repeated_append_with_a_producer_id_adds_only_what_is_missing(
    append: Append, log: FileLog, tmp_path: Path
) -> None:
    path = tmp_path / "in"
    arguments = [path, "--segment-records", "3", "--partitioning", "round-robin", "--producer-id", "load-1", "--json"]
    path.write_bytes(b"".join(b"%d\n" % n for n in range(6)))
    first = json.loads(append(*arguments).stdout)
    assert json.loads(append(*arguments).stdout) == first | {"appended": 0}
    path.write_bytes(b"".join(b"%d\n" % n for n in range(8)))
    append(*arguments)
    assert sorted(values(log)) == [b"%d" % n for n in range(8)]


def test_interrupted_append_says_what_became_of_it(
    log: FileLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidemill.log.loading.load", interrupted)
    result = CliRunner().invoke(log_app, ["append", "t", "--log", str(tmp_path / "log")], input=b"a\n")
    assert result.exit_code == 130
    assert "what was appended stays" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["nowhere.log"], "nowhere.log does not exist"),
        (["."], r"\. is a folder"),
        (["--key", "u"], "--key needs records with fields, and the name of standard input does not say their format"),
        (["--timestamp-field", "at"], "--timestamp-field needs records with fields"),
        (
            ["-f", "lines", "--key", "u"],
            r"--key means nothing for --format lines\n.*lines take their key with --key-regex",
        ),
        (["--raw", "--key-regex", "x"], "--raw means nothing for --format lines"),
        (["a.jsonl", "b.csv", "--key", "u"], r"several formats: a\.jsonl jsonl, b\.csv csv"),
        (["a.jsonl", "-", "--key", "u"], r"several formats: a\.jsonl jsonl, standard input no format"),
        (["a.CSV"], r"a\.CSV can be appended in two ways"),
        (["-f", "jsonl", "--key-regex", "x"], "--key-regex means nothing for --format jsonl"),
        (["-f", "jsonl", "--raw"], "--raw means nothing for --format jsonl"),
        (["-f", "csv", "--delimiter", ";;"], "is not one character"),
        (["-f", "parquet"], "standard input cannot be read as Parquet"),
    ],
)
def test_wrong_arguments_are_explained_and_append_nothing(
    append: Append, log: FileLog, arguments: list[str], what: str
) -> None:
    with pytest.raises(LogInputError, match=what):
        append(*arguments, given=b"a\n")
    assert values(log) == []


def test_real_access_log_goes_in_whole(append: Append, log: FileLog, shared_data: Path) -> None:
    path = shared_data / "apache_logs.log"
    append(path, "--key-regex", r"^\S+", "--segment-records", "3000")
    assert sorted(value or b"" for value in values(log)) == sorted(path.read_bytes().splitlines())


def test_real_csv_goes_in_whole(append: Append, log: FileLog, shared_data: Path) -> None:
    path = shared_data / "logins_2018.csv"
    append(path, "-f", "csv", "--key", "source_ip", "--timestamp-field", "datetime")
    assert sum(len(held) for held in log.bounds("t").values()) == 43_283
    record = next(iter(read_topic(log, "t")))
    row = json.loads(record.value or b"")
    assert (record.key or b"").decode() == row["source_ip"]
    assert record.timestamp.replace(tzinfo=None).isoformat(sep=" ") == row["datetime"]
