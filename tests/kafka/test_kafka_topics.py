"""`tidemill log` on topics of a real broker, and what lag tools see."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from kafka.conftest import Cluster
from support.commands import type_command
from support.projects import an_event
from tidemill.cli.exit_codes import ExitCode
from tidemill.core.errors import LogInputError
from tidemill.core.offsets import TopicPartition
from tidemill.log.reading import read_topic
from tidemill.log.records import NewRecord

pytestmark = pytest.mark.kafka


@pytest.fixture
def project(tmp_path: Path, cluster: Cluster) -> Path:
    """A project whose log is the broker."""
    (tmp_path / "tidemill.toml").write_text(f'[log]\nkafka = "{cluster.broker.servers}"\n')
    return tmp_path


def test_topics_are_made_filled_looked_at_and_trimmed(project: Path, cluster: Cluster, tmp_path: Path) -> None:
    name = f"made-{datetime.now(UTC):%H%M%S%f}"
    lines = tmp_path / "lines"
    lines.write_text("a\nb\nc\n")
    assert type_command(project, "log", "create", name, "--partitions", "2").code == ExitCode.DONE
    refused = type_command(project, "log", "create", name)
    assert refused.code == ExitCode.WRONG
    assert f"topic {name} is already in Kafka" in refused.err
    assert (
        type_command(project, "log", "append", name, str(lines), "--partitioning", "round-robin").code == ExitCode.DONE
    )
    shown = type_command(project, "log", "cat", name, "--json").lines
    assert sorted(each["value"] for each in shown) == ["a", "b", "c"]
    assert f"{name} " in type_command(project, "log", "ls").out
    held = cluster.log.bounds(name)[0]
    trimmed = type_command(project, "log", "trim", name, "--partition", "0", "--before", str(held.until_offset))
    assert trimmed.code == ExitCode.DONE
    assert cluster.log.bounds(name)[0].from_offset == held.until_offset


def test_an_append_is_one_transaction_and_keeps_everything(cluster: Cluster) -> None:
    name, at = cluster.topic(), datetime(2026, 1, 1, tzinfo=UTC)
    record = NewRecord(value=b"v", key=b"k", timestamp=at, headers=(("h", b"1"),))
    found = cluster.log.append(name, 0, [record, NewRecord(value=None)])
    assert str(found) == f"{name}-0 [0, 2)"
    first, second = read_topic(cluster.log, name)
    assert (first.key, first.value, first.headers, first.timestamp) == (b"k", b"v", (("h", b"1"),), at)
    assert second.value is None
    assert cluster.log.append(name, 0, []).from_offset == 3


def test_what_only_a_file_log_keeps_is_refused(cluster: Cluster, project: Path, tmp_path: Path) -> None:
    name = cluster.topic()
    with pytest.raises(LogInputError, match="Kafka decides where"):
        cluster.log.append(name, 0, [NewRecord(value=b"a")], at=0)
    (tmp_path / "lines").write_text("a\n")
    said = type_command(project, "log", "append", name, str(tmp_path / "lines"), "--producer-id", "me")
    assert said.code == ExitCode.WRONG
    assert "without a producer id" in said.err


def test_lag_tools_see_how_far_a_reader_is(cluster: Cluster) -> None:
    name = cluster.topic()
    cluster.feed(name, [an_event(1)])
    cluster.log.tell_position("sums", {TopicPartition(name, 0): 1})
    group = ConsumerGroupTopicPartitions("tidemill.sums")
    [done] = cluster.admin.list_consumer_group_offsets([group]).values()
    places: Any = done.result(20).topic_partitions
    assert [(p.topic, p.partition, p.offset) for p in places if p.topic == name] == [(name, 0, 1)]
    assert json.dumps([p.error for p in places if p.error]) == "[]"
