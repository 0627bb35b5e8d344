"""Batches over topics of a real broker: the same rows as over the file log, whatever is between the records."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as Place

from kafka.conftest import Cluster
from support.commands import type_command
from support.projects import EVENTS_CONTRACT, NO_SPARK, SUMS_CONTRACT, SUMS_PIPELINE, Mill, a_project, an_event, sums
from support.recovery import paused
from tidemill.core.errors import LogUnreachable, OffsetsLost, TidemillError, TopicRecreated
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.engine.read import source
from tidemill.log.kafka_reading import fetched
from tidemill.log.reading import read_records, read_topic
from tidemill.project.project import Project
from tidemill.run.batch import NothingToDo

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


HERE = (0, 1_000)
"""The setting `driver_records`: Spark reads the records, or the process of the batch does."""


def a_mill(folder: Path, spark: Any, cluster: Cluster, topic: str, **settings: Any) -> Mill:
    """The pipeline `sums` over a topic of the broker."""
    text = SUMS_PIPELINE.replace('read("events"', f'read("{topic}"')
    for name, value in {"WINDOW": 'Tumbling("10 seconds")', "DELAY": "0 s", "LATENESS": "10 s"}.items():
        text = text.replace(name, value)
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT}
    project = a_project(folder, text.replace("TRIGGER", "on_close"), contracts, **settings)
    with (project.folder / "tidemill.toml").open("a") as file:
        file.write(f'[log]\nkafka = "{cluster.broker.servers}"\n')
    return Mill(Project.load(folder), spark, "sums")


VALUES = [[an_event(7 * n + 1), an_event(7 * n, "b"), b"{cut" if n % 2 else an_event(2, "b", n)] for n in range(6)]


@pytest.mark.parametrize(
    ("writer", "here"), [*(("delta-rs", here) for here in HERE), pytest.param("spark", 0, marks=pytest.mark.long)]
)
def test_the_rows_are_those_of_the_file_log(
    tmp_path: Path, spark: Any, cluster: Cluster, writer: str, here: int
) -> None:
    topic = cluster.topic()
    mill = a_mill(tmp_path / "kafka", spark, cluster, topic, writer=writer, driver_records=here)
    file = sums(tmp_path / "file", spark, lateness="10 s", writer=writer, driver_records=here)
    for values in VALUES:
        cluster.feed(topic, values)
        file.feed(values)
        for each in (mill, file):
            each.run()
    for each in (mill, file):
        each.catch_up()

    def rows(of: Mill) -> dict[str, list[dict[str, Any]]]:
        """What readers see, without what the broker's clock and names decide."""
        hidden = ("topic", "timestamp")
        return {
            t: [{k: v for k, v in r.items() if k not in hidden} for r in rows] for t, rows in of.everything().items()
        }

    assert rows(mill) == rows(file)
    assert len(mill.published()) > 3


@pytest.mark.parametrize("here", HERE)
def test_gaps_of_transactions_are_no_loss_and_an_open_one_waits(
    tmp_path: Path, spark: Any, cluster: Cluster, here: int
) -> None:
    topic = cluster.topic()
    mill = a_mill(tmp_path, spark, cluster, topic, driver_records=here)
    producer = cluster.producer(**{"transactional.id": topic})
    producer.init_transactions(20)
    for number, end in enumerate(("commit", "abort", "commit", "")):
        producer.begin_transaction()
        for second in range(3):
            producer.produce(topic, value=an_event(10 * number + second), partition=0)
        producer.flush(20)
        if end:
            getattr(producer, f"{end}_transaction")(20)
    commit = mill.run()
    assert (commit.accounts[topic].read, commit.position.topics[topic].offsets) == (6, {0: 12})
    assert isinstance(mill.run(), NothingToDo)
    assert "3 offsets wait for an open transaction" in " ".join(type_command(tmp_path, "status", "sums").out.split())
    said = type_command(tmp_path, "run", "sums", "--drain", "--until-caught-up").out.split()
    assert "caught up; 3 offsets wait for an open transaction" in " ".join(said)
    assert mill.project.ledger("sums").view().position.batch_id == 1, "the end of the input waits, too"
    producer.commit_transaction(20)
    assert mill.run().accounts[topic].read == 3
    mill.catch_up()
    assert [r["n"] for r in mill.published()] == [3, 3, 3]


def test_a_failed_batch_reads_the_same_offsets_again(
    tmp_path: Path, spark: Any, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic(2)
    mill = a_mill(tmp_path, spark, cluster, topic)
    cluster.feed(topic, [an_event(s) for s in (1, 2, 15)])
    cluster.feed(topic, [an_event(s) for s in (3, 30)], partition=1)
    monkeypatch.setenv(VARIABLE, "after:published:sums=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    cluster.feed(topic, [an_event(4)])
    commit = mill.run()
    assert (commit.attempt, commit.accounts[topic].read) == (2, 5)
    mill.catch_up()
    assert [r["n"] for r in mill.published()] == [4, 1, 1]


def test_retention_past_the_committed_offset_is_refused_and_a_new_topic_too(
    tmp_path: Path, spark: Any, cluster: Cluster
) -> None:
    topic = cluster.topic()
    mill = a_mill(tmp_path, spark, cluster, topic)
    cluster.feed(topic, [an_event(1)])
    mill.run()
    cluster.feed(topic, [an_event(11), an_event(12)])
    for done in cluster.admin.delete_records([Place(topic, 0, 2)]).values():
        done.result(20)
    with pytest.raises(OffsetsLost, match=f"{topic}-0: offsets 1 to 1 are gone"):
        mill.run()
    cluster.delete(topic)
    cluster.topic(name=topic)
    with pytest.raises(TopicRecreated):
        mill.run()
    assert mill.project.ledger("sums").view().position.batch_id == 1


def test_new_partitions_are_read_from_their_start(tmp_path: Path, spark: Any, cluster: Cluster) -> None:
    topic = cluster.topic()
    mill = a_mill(tmp_path, spark, cluster, topic)
    cluster.feed(topic, [an_event(1)])
    mill.run()
    cluster.grow(topic, 3)
    cluster.feed(topic, [an_event(2)], partition=2)
    commit = mill.run()
    assert (commit.accounts[topic].read, commit.position.topics[topic].offsets) == (1, {0: 1, 1: 0, 2: 1})


@pytest.mark.parametrize("here", HERE)
def test_partitions_that_come_between_plan_and_read_are_the_next_batchs(
    tmp_path: Path, spark: Any, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, here: int
) -> None:
    topic = cluster.topic()
    mill = a_mill(tmp_path, spark, cluster, topic, driver_records=here)
    cluster.feed(topic, [an_event(1)])

    def grow() -> None:
        cluster.grow(topic, 2)
        cluster.feed(topic, [an_event(2)], partition=1)

    happened = paused(monkeypatch, "after:planned", grow)
    reads = [mill.run().position.topics[topic].offsets for _ in range(2)]
    assert happened
    assert reads == [{0: 1}, {0: 1, 1: 1}]
    mill.catch_up()
    assert [r["n"] for r in mill.published()] == [2]


def test_a_batch_takes_no_more_of_a_partition_than_is_allowed_and_tells_lag_tools_how_far_it_is(
    tmp_path: Path, spark: Any, cluster: Cluster
) -> None:
    topic = cluster.topic(2)
    mill = a_mill(tmp_path, spark, cluster, topic, partition_records=2)
    cluster.feed(topic, [an_event(s) for s in range(5)])
    cluster.feed(topic, [an_event(1)], partition=1)
    for offsets in ({0: 2, 1: 1}, {0: 4, 1: 1}, {0: 5, 1: 1}):
        assert type_command(tmp_path, "run", "sums", session=lambda _: spark).code == 0
        assert told(cluster, topic) == mill.project.ledger("sums").view().position.topics[topic].offsets == offsets


def told(cluster: Cluster, topic: str) -> dict[int, int]:
    """The offsets of a topic that lag tools see."""
    [done] = cluster.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("tidemill.sums")]).values()
    places: Any = done.result(20).topic_partitions
    return {p.partition: p.offset for p in places if p.topic == topic}


@pytest.mark.long
@pytest.mark.parametrize("here", HERE)
def test_what_compaction_took_is_no_loss(tmp_path: Path, spark: Any, cluster: Cluster, here: int) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    topic = cluster.topic(**config)
    producer = cluster.producer()
    for second in range(6):
        producer.produce(topic, value=an_event(second), key=str(second % 2).encode(), partition=0)
        producer.flush(20)
        time.sleep(0.2)
    end = time.monotonic() + 90
    # Of each key the last one; what is in the newest segment is not compacted.
    while (kept := len(list(read_topic(cluster.log, topic)))) > 3 and time.monotonic() < end:
        time.sleep(1)
    assert kept == 3
    mill = a_mill(tmp_path, spark, cluster, topic, driver_records=here)
    commit = mill.run()
    assert (commit.accounts[topic].read, commit.position.topics[topic].offsets) == (kept, {0: 6})
    mill.catch_up()
    assert sum(r["n"] for r in mill.published()) == kept


def test_where_the_brokers_are_is_not_in_the_ledger(tmp_path: Path, spark: Any, cluster: Cluster) -> None:
    topic = cluster.topic()
    mill = a_mill(tmp_path, spark, cluster, topic)
    cluster.feed(topic, [an_event(1)])
    mill.run()
    told = json.dumps([str(e.event) for e in mill.project.ledger("sums").entries()])
    assert cluster.broker.servers not in told


@pytest.mark.parametrize("here", [pytest.param(0, marks=pytest.mark.long), 1_000])
def test_the_brokers_are_asked_once_for_the_records_of_a_batch(
    tmp_path: Path, spark: Any, a_broker: Any, here: int
) -> None:
    broker = a_broker().start()
    own = Cluster(broker)
    topic = own.topic()
    own.feed(topic, [an_event(1), b"{cut", an_event(2), an_event(15)])
    mill = a_mill(tmp_path, spark, own, topic, driver_records=here)

    def end() -> None:
        broker.kill()

    with pytest.MonkeyPatch.context() as patch:
        happened = paused(patch, "after:records:sums", end)
        # A batch tells lag tools where it is when it has committed, and nobody is there to listen.
        patch.setattr("tidemill.log.kafka_topics.PATIENCE", 1.0)
        commit = mill.run()
    assert happened
    assert (commit.accounts[topic].read, commit.accounts[topic].rejected) == (4, 1)
    assert [r["value"] for r in mill.own("quarantine")] == [b"{cut"]


@pytest.mark.long
@pytest.mark.parametrize("here", HERE)
def test_a_broker_that_dies_in_a_batch_and_comes_back_loses_and_doubles_nothing(
    tmp_path: Path, spark: Any, a_broker: Any, here: int
) -> None:
    broker = a_broker().start()
    own = Cluster(broker)
    topic = own.topic()
    own.feed(topic, [an_event(1), an_event(2, "b"), an_event(15)])
    mill = a_mill(tmp_path, spark, own, topic, driver_records=here)
    with pytest.MonkeyPatch.context() as patch:
        happened = paused(patch, "after:planned", broker.kill)
        # A broker that is away is away after five seconds, too.
        for name in ("kafkaConsumer.pollTimeoutMs", "kafka.default.api.timeout.ms", "kafka.request.timeout.ms"):
            patch.setitem(source._PATIENCE, name, "5000")
        for module in ("kafka", "kafka_reading"):
            patch.setattr(f"tidemill.log.{module}.PATIENCE", 5.0)
        with pytest.raises(TidemillError) as error:
            mill.run()
        assert happened
        assert (error.value.retryable, error.value.exit_code) == (True, 6)
        with pytest.raises(LogUnreachable):
            mill.run()
    broker.start()
    commit = mill.run()
    assert (commit.batch_id, commit.accounts[topic].read) == (1, 3)
    assert [(r["user"], r["n"]) for r in mill.published()] == [("a", 1), ("b", 1)]


def test_a_pattern_matches_topics_of_the_cluster_but_not_those_of_kafka(
    tmp_path: Path, spark: Any, cluster: Cluster
) -> None:
    base = cluster.topic()
    for number in (1, 2):
        cluster.topic(name=f"{base}.{number}")
        cluster.feed(f"{base}.{number}", [an_event(number)])
    mill = a_mill(tmp_path, spark, cluster, base)
    file = tmp_path / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace(f'"{base}"', f'pattern=r"({base}|__).+"'))
    mill = Mill(Project.load(tmp_path), spark, "sums")
    assert {t: a.read for t, a in mill.run().accounts.items()} == {f"{base}.1": 1, f"{base}.2": 1}


def test_small_batches_need_no_spark_and_large_records_do(tmp_path: Path, spark: Any, cluster: Cluster) -> None:
    topic = cluster.topic(partitions=2)
    mill = a_mill(tmp_path, spark, cluster, topic, driver_records=10)
    cluster.feed(topic, [an_event(1)])
    mill.run()
    cluster.feed(topic, [an_event(15), b"{cut"])
    cluster.feed(topic, [an_event(16), None], partition=1)
    commit = replace(mill, session=NO_SPARK).run()
    assert (commit.accounts[topic].read, commit.accounts[topic].rejected) == (4, 2)
    assert [r["value"] for r in mill.own("quarantine")] == [b"{cut", None]
    cluster.feed(topic, [an_event(30, "c" * 20_000)])
    with pytest.raises(AttributeError, match="'object' object has no attribute"):
        replace(mill, session=NO_SPARK).run()
    assert mill.run().accounts[topic].aggregated == 1


def test_several_ranges_of_a_partition_are_read_into_memory(cluster: Cluster) -> None:
    topic = cluster.topic(partitions=2)
    for partition in range(2):
        cluster.feed(topic, [b"%d" % n for n in range(20)], partition=partition)
    wanted = [OffsetRange(TopicPartition(topic, p), *ends) for p, ends in ((0, (2, 4)), (0, (7, 9)), (1, (5, 20)))]
    scan = cluster.log.scan(cluster.log.topic(topic).topic_id, wanted)
    found = fetched(scan, most=1_000)
    assert found is not None
    rows = sorted((row["partition"], row["offset"], row["value"]) for row in found.rows.to_pylist())
    assert rows == [(r.partition, r.offset, r.value) for r in read_records(scan)]
    assert [offset for partition, offset, _ in rows if not partition] == [2, 3, 7, 8]
    assert fetched(scan, most=10) is None
