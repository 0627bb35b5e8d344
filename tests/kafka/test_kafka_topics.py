"""`tidemill log` on topics of a real broker, and what lag tools see."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from kafka.conftest import Cluster
from support.commands import Said, type_command
from support.projects import an_event
from tidemill.core.errors import LogInputError, TidemillError
from tidemill.core.exit_code import ExitCode
from tidemill.core.log.offsets import TopicPartition
from tidemill.inspect.lag import LagReader, Sources
from tidemill.log.kafka_appending import Appender
from tidemill.log.reading import read_topic
from tidemill.log.records import NewRecord
from tidemill.log.writable import ProducerBatch
from tidemill.project.project import Project

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


def test_what_waits_in_a_broker_is_counted_by_offsets_and_aged_by_its_times(project: Path, cluster: Cluster) -> None:
    name, at = cluster.topic(partitions=2), datetime(2026, 1, 1, tzinfo=UTC)
    cluster.log.append(name, 1, [NewRecord(value=b"v", timestamp=at), NewRecord(value=b"w", timestamp=at)])
    for sources in (Sources(topics=(name,)), Sources(topics=(), patterns=(f"{name[:-1]}.",))):
        reader = LagReader(Project.load(project), "sums", sources)
        lag = reader.read()
        # The markers of transactions have offsets, too.
        assert (lag.batch_id, lag.next_offsets) == (0, {TopicPartition(topic=name, partition=1): 0})
        assert 2 <= lag.records <= 3
        assert [reader.is_older(lag, at + timedelta(seconds=s)) for s in (-1, 0, 1)] == [False, False, True]
    cluster.delete(name)
    with pytest.raises(TidemillError, match=name):
        LagReader(Project.load(project), "sums", Sources(topics=(name,))).read()


def test_an_append_is_one_transaction_and_keeps_everything(cluster: Cluster) -> None:
    name, at = cluster.topic(), datetime(2026, 1, 1, tzinfo=UTC)
    record = NewRecord(value=b"v", key=b"k", timestamp=at, headers=(("h", b"1"),))
    found = cluster.log.append(name, 0, [record, NewRecord(value=None)])
    assert str(found) == f"{name}-0 [0, 2)"
    first, second = read_topic(cluster.log, name)
    assert (first.key, first.value, first.headers, first.timestamp) == (b"k", b"v", (("h", b"1"),), at)
    assert second.value is None
    assert cluster.log.append(name, 0, []).from_offset == 3


def test_a_place_in_kafka_cannot_be_chosen(cluster: Cluster) -> None:
    name = cluster.topic()
    with pytest.raises(LogInputError, match="Kafka decides where"):
        cluster.log.append(name, 0, [NewRecord(value=b"a")], at=0)


def append(project: Path, name: str, *words: object, given: bytes = b"") -> Said:
    """Types the append of an input, three lines a transaction, dealt to the partitions in turn."""
    how = ("--segment-records", "3", "--partitioning", "round-robin")
    return type_command(project, "log", "append", name, *words, *how, given=given)


@pytest.mark.parametrize("landed", [pytest.param(False, marks=pytest.mark.long), True])
def test_an_append_over_partitions_lands_as_a_whole_and_a_second_try_appends_what_is_missing(
    cluster: Cluster, project: Path, tmp_path: Path, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, lines = cluster.topic(2), tmp_path / "lines"
    lines.write_bytes(b"".join(b"%d\n" % n for n in range(8)))
    kept = Appender._keep

    def lost(appender: Appender, batch: ProducerBatch, ranges: Any) -> None:
        kept(appender, batch, ranges)
        if batch.sequence == 1:
            if landed:
                appender._producer.commit_transaction(20)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

    with monkeypatch.context() as patched:
        patched.setattr(Appender, "_keep", lost)
        said = append(project, name, lines)
    assert said.code == ExitCode.RETRY
    total = 6 if landed else 3
    assert f"{total} records of this input are in the log ({name}-0 [0, " in said.err
    assert "type the same command with --resume" in said.err
    assert sorted(r.value or b"" for r in read_topic(cluster.log, name)) == [b"%d" % n for n in range(total)]
    # Records without a key are dealt on from where the batch before ended.
    again = append(project, name, lines, "--resume")
    assert again.out.startswith(f"{8 - total} records appended, {total} of this input were there before")
    values = [r.value or b"" for r in read_topic(cluster.log, name)]
    assert values == [b"%d" % n for n in (0, 2, 4, 6, 1, 3, 5, 7)]
    assert append(project, name, lines).out.startswith("nothing appended: all 8 records of this input were there")
    lines.write_bytes(b"7\n" * 8)
    assert "has nothing of this input" in append(project, name, lines, "--resume").err
    assert len(values) == len(list(read_topic(cluster.log, name)))


def test_a_second_try_with_other_records_is_refused_and_standard_input_is_new_each_time(
    cluster: Cluster, project: Path
) -> None:
    name = cluster.topic(2)
    assert append(project, name, "--producer-id", "p", given=b"a\nb\n").code == ExitCode.DONE
    said = append(project, name, "--producer-id", "p", given=b"a\nc\n")
    assert said.code == ExitCode.WRONG
    assert re.search(r"landed with 2 records.*; the retry has 2; the records or their partitions differ", said.err)
    append(project, name, given=b"a\n")
    append(project, name, given=b"a\n")
    assert sorted(r.value or b"" for r in read_topic(cluster.log, name)) == [b"a", b"a", b"a", b"b"]


def test_a_topic_of_kafka_has_a_bound_of_partitions_and_is_deleted_by_name(cluster: Cluster, project: Path) -> None:
    name = f"made-{datetime.now(UTC):%H%M%S%f}"
    refused = type_command(project, "log", "create", name, "--partitions", "1025")
    assert refused.code == ExitCode.WRONG
    assert f"topic {name} with 1,025 partitions" in refused.err
    type_command(project, "log", "create", name)
    assert type_command(project, "log", "ls", name, "--json").json["layout"] == "kafka"
    assert type_command(project, "log", "delete", name, given=b"other\n").code == ExitCode.WRONG
    assert type_command(project, "log", "delete", name, given=f"{name}\n").code == ExitCode.DONE
    assert name not in cluster.log.names()


def test_lag_tools_see_how_far_a_reader_is(cluster: Cluster) -> None:
    name = cluster.topic()
    cluster.feed(name, [an_event(1)])
    cluster.log.tell_position("sums", {TopicPartition(name, 0): 1})
    group = ConsumerGroupTopicPartitions("tidemill.sums")
    [done] = cluster.admin.list_consumer_group_offsets([group]).values()
    places: Any = done.result(20).topic_partitions
    assert [(p.topic, p.partition, p.offset) for p in places if p.topic == name] == [(name, 0, 1)]
    assert json.dumps([p.error for p in places if p.error]) == "[]"
