"""`tidemill log create`, `ls`, `cat` and `trim`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from tidemill.cli.commands.log import app as log_app
from tidemill.core.errors import ConfigError, LogInputError, OffsetsLost, TidemillError, UnknownTopic
from tidemill.log.file import FileLog
from tidemill.log.memory import MemoryLog
from tidemill.log.records import NewRecord

Run = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    return FileLog(tmp_path / "log")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `tidemill log ...` on this test's log; errors for people are raised."""
    app = typer.Typer()
    app.add_typer(log_app, name="log")

    @app.callback()
    def main(project: str | None = None) -> None:
        """Stands for the main command."""

    def run_command(*arguments: str, env: dict[str, str] | None = None) -> Result:
        place = {"TIDEMILL_LOG": str(tmp_path / "log")} if env is None else env
        result = CliRunner().invoke(app, ["log", *arguments], env=place)
        if isinstance(result.exception, TidemillError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return run_command


def test_create_makes_a_topic(run: Run, log: FileLog) -> None:
    result = run("create", "web.access", "--partitions", "3")
    assert log.topic("web.access").partitions == 3
    assert log.topic("web.access").topic_id in result.stdout


def test_create_answers_programs_in_json(run: Run, log: FileLog) -> None:
    answer = json.loads(run("create", "t", "--json").stdout)
    topic = log.topic("t")
    assert topic.created is not None
    made = {"layout": "tidemill", "created": topic.created.isoformat()}
    assert answer == {"topic": "t", "topic_id": topic.topic_id, "partitions": 1, **made}


def test_create_of_a_topic_that_exists_is_refused_unless_allowed(run: Run) -> None:
    first = json.loads(run("create", "t", "-p", "2", "--json").stdout)
    assert json.loads(run("create", "t", "-p", "2", "--if-not-exists", "--json").stdout) == first
    for arguments in (["-p", "2"], ["-p", "3", "--if-not-exists"]):
        with pytest.raises(LogInputError, match="with 2 partitions"):
            run("create", "t", *arguments)


def test_ls_shows_each_topic(run: Run, log: FileLog) -> None:
    log.create_topic("web.access", 2)
    log.append("web.access", 0, [NewRecord(value=b"a")] * 3)
    log.append("web.access", 0, [NewRecord(value=b"a")] * 1500)
    log.trim("web.access", 0, 1)
    log.create_topic("logins", 1)
    shown = run("ls").stdout
    (line,) = (line for line in shown.splitlines() if "web.access" in line)
    assert line.split()[:7] == ["web.access", log.topic("web.access").topic_id, "2", "0", "1,503", "1,502", "2"]
    assert "logins" in shown


def test_ls_of_a_topic_shows_its_partitions(run: Run, log: FileLog) -> None:
    log.create_topic("t", 2)
    log.append("t", 1, [NewRecord(value=b"a")] * 3)
    log.trim("t", 1, 2)
    rows = [line.split() for line in run("ls", "t").stdout.splitlines()]
    assert ["0", "0", "0", "0", "0", "0", "bytes"] in rows
    assert any(row[:5] == ["1", "2", "3", "1", "1"] for row in rows)


def test_ls_answers_programs_in_json(run: Run, log: FileLog) -> None:
    topic = log.create_topic("t", 2)
    log.append("t", 1, [NewRecord(value=b"a")] * 3)
    answer = json.loads(run("ls", "--json").stdout)
    size = log.usage("t")[1].bytes
    assert datetime.fromisoformat(answer.pop("created")) == topic.created
    assert answer == {
        "topic": "t",
        "topic_id": topic.topic_id,
        "partitions": 2,
        "layout": "tidemill",
        "records": 3,
        "segments": 1,
        "bytes": size,
        "bounds": [
            {"partition": 0, "from_offset": 0, "until_offset": 0, "records": 0, "segments": 0, "bytes": 0},
            {"partition": 1, "from_offset": 0, "until_offset": 3, "records": 3, "segments": 1, "bytes": size},
        ],
    }


def test_cat_prints_the_bytes_of_values(run: Run, log: FileLog) -> None:
    log.create_topic("t", 1)
    log.append("t", 0, [NewRecord(value=value) for value in (b"a\r", b"\xff", b"", None, b"b")])
    assert run("cat", "t").stdout_bytes == b"a\r\n\xff\n\n\nb\n"


def test_cat_begins_and_stops_where_it_is_told(run: Run, log: FileLog) -> None:
    log.create_topic("t", 2)
    for partition in (0, 1):
        log.append("t", partition, [NewRecord(value=b"%d%d" % (partition, n)) for n in range(4)])
    assert run("cat", "t", "--limit", "5").stdout == "00\n01\n02\n03\n10\n"
    assert run("cat", "t", "--partition", "1", "--from", "2").stdout == "12\n13\n"
    assert run("cat", "t", "--partition", "1", "--from", "1", "--limit", "1").stdout == "11\n"
    assert run("cat", "t", "--partition", "0", "--from", "4").stdout == ""
    assert run("cat", "t", "--limit", "0").stdout == ""


def test_cat_shows_whole_records_as_json(run: Run, log: FileLog) -> None:
    log.create_topic("t", 1)
    moment = datetime(2024, 1, 1, 12, tzinfo=UTC)
    log.append(
        "t",
        0,
        [
            NewRecord(value="ä".encode(), key=b"\xff", timestamp=moment, headers=(("h", b"1"), ("h", None))),
            NewRecord(value=None, timestamp=moment),
        ],
    )
    shown = [json.loads(line) for line in run("cat", "t", "--json").stdout.splitlines()]
    same = {"topic": "t", "partition": 0, "timestamp": "2024-01-01T12:00:00+00:00"}
    headers = [{"key": "h", "value": "1"}, {"key": "h", "value": None}]
    assert shown == [
        same | {"offset": 0, "key_base64": "/w==", "value": "ä", "headers": headers},
        same | {"offset": 1, "key": None, "value": None, "headers": []},
    ]


def test_cat_from_an_offset_needs_one_partition(run: Run, log: FileLog) -> None:
    log.create_topic("t", 2)
    with pytest.raises(LogInputError, match="give --partition"):
        run("cat", "t", "--from", "0")
    with pytest.raises(LogInputError, match="has no partition 2"):
        run("cat", "t", "--partition", "2")


def test_cat_from_a_trimmed_offset_says_what_is_gone(run: Run, log: FileLog) -> None:
    log.create_topic("t", 1)
    log.append("t", 0, [NewRecord(value=b"a")] * 5)
    log.trim("t", 0, 3)
    with pytest.raises(OffsetsLost, match=r"offset 1 is gone: the log starts at 3[\s\S]*give an offset from 3 to 5"):
        run("cat", "t", "--from", "1")
    with pytest.raises(LogInputError, match=r"offset 6 is not there yet: the log ends at 5"):
        run("cat", "t", "--from", "6")


def test_trim_moves_the_start(run: Run, log: FileLog) -> None:
    log.create_topic("t", 2)
    log.append("t", 1, [NewRecord(value=b"a")] * 5)
    assert "t-1 now holds offsets [3, 5)" in run("trim", "t", "--before", "3", "--partition", "1").stdout
    assert log.bounds("t")[1].from_offset == 3
    answer = json.loads(run("trim", "t", "--before", "4", "--partition", "1", "--json").stdout)
    assert answer == {"partition": 1, "from_offset": 4, "until_offset": 5}
    with pytest.raises(LogInputError, match="give --partition"):
        run("trim", "t", "--before", "5")
    assert log.bounds("t")[1].from_offset == 4


def test_unknown_topic_is_an_error_that_lists_topics(run: Run, log: FileLog) -> None:
    log.create_topic("web.access", 1)
    for command in (["cat", "web"], ["ls", "web"], ["trim", "web", "--before", "0"], ["append", "web", __file__]):
        with pytest.raises(UnknownTopic, match=r"topics there: web\.access"):
            run(*command)


def test_place_of_the_option_comes_before_the_environment(run: Run, tmp_path: Path) -> None:
    run("create", "t", "--log", str(tmp_path / "other"))
    assert [topic.name for topic in FileLog(tmp_path / "other").topics()] == ["t"]
    assert not (tmp_path / "log").exists()


def test_log_of_the_project_is_used_when_none_is_given(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    held = MemoryLog()
    monkeypatch.setattr("tidemill.project.project.Project.load", lambda folder: SimpleNamespace(log=lambda: held))
    run("create", "t", env={"TIDEMILL_LOG": ""})
    assert [topic.name for topic in held.topics()] == ["t"]


def test_log_that_cannot_be_written_to_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.project.project.Project.load", lambda folder: SimpleNamespace(log=object))
    with pytest.raises(ConfigError, match="cannot be written to"):
        run("create", "t", env={"TIDEMILL_LOG": ""})


def test_no_log_at_all_is_an_error_that_says_what_to_give(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no tidemill\.toml[\s\S]*--log PATH"):
        run("ls", env={"TIDEMILL_LOG": "", "TIDEMILL_PROJECT": ""})
