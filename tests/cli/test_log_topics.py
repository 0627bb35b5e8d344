"""How large a topic may be, what is said of one that is too large, and how topics are deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.test_cli_standing import commit, open_batch
from support.commands import Said, Type, type_command
from support.projects import Mill, an_event
from tidemill.core.exit_code import ExitCode

Log = Callable[..., Said]


@pytest.fixture
def huge(mill: Mill) -> str:
    """A topic that somebody made before there was a bound."""
    mill.log.create_topic("huge", 1)
    file = Path(mill.project.settings.log) / "huge" / "topic.json"
    described = json.loads(file.read_text())
    file.write_text(json.dumps({**described, "partitions": 99_999_999}))
    return "huge"


def test_a_topic_of_more_partitions_than_batches_can_ask_quickly_needs_force(tidemill: Type, mill: Mill) -> None:
    said = tidemill("log", "create", "t", "--partitions", "1025")
    assert said.code == ExitCode.WRONG
    assert "topic t with 1,025 partitions: every batch asks each of them" in said.err
    assert "--force allows up to 10,000" in said.err
    assert tidemill("log", "create", "t", "--partitions", "1025", "--force").code == ExitCode.DONE
    assert mill.log.topic("t").partitions == 1025
    assert tidemill("log", "create", "u", "--partitions", "1024").code == ExitCode.DONE


def test_a_topic_that_no_batch_could_read_is_not_made_at_all(tidemill: Type, mill: Mill) -> None:
    said = tidemill("log", "create", "t", "--partitions", "99999999", "--force")
    assert said.code == ExitCode.WRONG
    assert "99,999,999 partitions" in said.err
    assert "--force allows" not in said.err
    assert [t.name for t in mill.log.topics()] == ["events"]


@pytest.mark.parametrize(
    "words", [["log", "ls", "huge"], ["log", "append", "huge"], ["log", "cat", "huge"], ["plan", "sums", "--dry-run"]]
)
def test_reading_a_topic_of_too_many_partitions_fails_at_once_and_says_why(
    tidemill: Type, mill: Mill, huge: str, words: list[str]
) -> None:
    pipeline = mill.project.folder / "pipelines" / "pipeline.py"
    pipeline.write_text(pipeline.read_text().replace('read("events"', f'read("{huge}"'))
    said = tidemill(*words, given=b"a\n")
    assert said.code == ExitCode.WRONG
    assert "topic huge has 99,999,999 partitions" in said.err
    assert "tidemill log delete huge" in said.err


def test_the_list_of_topics_shows_one_that_is_too_large_beside_the_others(
    tidemill: Type, mill: Mill, huge: str
) -> None:
    mill.feed([an_event(1)])
    lines = {line.split()[0]: line.split() for line in tidemill("log", "ls").out.splitlines() if line.strip()}
    assert lines["huge"][2:9] == ["99,999,999", "too", "many", "to", "be", "read", "-"]
    assert lines["events"][2:6] == ["1", "0", "1", "1"]
    assert "by Tidemill, 20" in " ".join(lines["events"])
    shown = {topic["topic"]: topic for topic in tidemill("log", "ls", "--json").lines}
    assert (shown["huge"]["records"], shown["huge"]["layout"]) == (None, "tidemill")


def test_a_topic_that_is_too_large_can_be_deleted(tidemill: Type, mill: Mill, huge: str) -> None:
    assert tidemill("log", "delete", huge, "--yes").code == ExitCode.DONE
    assert [t.name for t in mill.log.topics()] == ["events"]


def test_deleting_asks_for_the_name_again(tidemill: Type, mill: Mill) -> None:
    for typed, why in (("event\n", "'event' is not 'events'"), ("", "no name was typed")):
        said = tidemill("log", "delete", "events", given=typed)
        assert said.code == ExitCode.WRONG
        assert f"{why}: nothing was deleted" in said.err
        assert mill.log.names() == ["events"]
    said = tidemill("log", "delete", "events", given="events\n")
    assert (said.code, mill.log.names()) == (ExitCode.DONE, [])
    assert "is deleted" in said.out


def test_a_topic_that_a_pipeline_has_read_or_is_reading_is_deleted_by_force_only(tidemill: Type, mill: Mill) -> None:
    mill.feed([an_event(1)])
    plan = open_batch(mill)
    for step in (None, commit):
        if step is not None:
            step(mill, plan)
        # Its ledger knows, whether it is still declared or not.
        (mill.project.folder / "pipelines" / "pipeline.py").write_text("")
        said = tidemill("log", "delete", "events", "--yes")
        assert said.code == ExitCode.WRONG
        assert "topic events was read by sums" in said.err
        assert mill.log.names() == ["events"]
    assert tidemill("rename", "sums", "totals").code == ExitCode.DONE
    assert "topic events was read by totals:" in tidemill("log", "delete", "events", "--yes").err
    assert tidemill("log", "delete", "events", "--yes", "--force", "--json").json["deleted"]
    assert mill.log.names() == []


def test_another_topic_of_that_name_was_read_by_nobody(tidemill: Type, mill: Mill) -> None:
    mill.feed([an_event(1)])
    commit(mill, open_batch(mill))
    mill.log.delete_topic("events")
    mill.log.create_topic("events", 1)
    assert tidemill("log", "delete", "events", "--yes").code == ExitCode.DONE


def test_a_topic_of_a_landing_zone_without_files_is_listed(tmp_path: Path) -> None:
    (tmp_path / "tidemill.toml").write_text('[log]\nlayout = "kafka-connect"\n')
    (tmp_path / "log" / "orders" / "partition=3").mkdir(parents=True)
    said = type_command(tmp_path, "log", "ls")
    assert said.code == ExitCode.DONE
    (line,) = (line.split() for line in said.out.splitlines() if "orders" in line)
    assert line == ["orders", "kafka-connect/orders", "4", "-", "-", "0", "0", "0", "bytes", "by", "Kafka", "Connect"]
    assert "no partition has files yet" in type_command(tmp_path, "log", "ls", "orders").out
    assert type_command(tmp_path, "log", "ls", "--json").json["bounds"] == []
