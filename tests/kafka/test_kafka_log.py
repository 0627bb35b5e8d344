"""Topics of a real broker as a log: identities, bounds, records, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from kafka.conftest import Cluster
from tidemill.core.errors import LogRefused, LogUnreachable, OffsetsLost, TopicRecreated, UnknownTopic
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log.kafka import KafkaLog
from tidemill.log.kafka_access import Access
from tidemill.log.kafka_reading import _record
from tidemill.log.reading import read_records, read_topic

pytestmark = pytest.mark.kafka


def values(cluster: Cluster, name: str) -> list[bytes | None]:
    """What a topic holds."""
    return [r.value for r in read_topic(cluster.log, name)]


def test_bounds_and_identity_are_those_of_the_broker(cluster: Cluster) -> None:
    name = cluster.topic(2)
    cluster.feed(name, [b"a", b"b"], partition=1)
    topic = cluster.log.topic(name)
    assert (topic.name, topic.partitions) == (name, 2)
    assert {p: (r.from_offset, r.until_offset) for p, r in cluster.log.bounds(name).items()} == {0: (0, 0), 1: (0, 2)}
    assert name in [t.name for t in cluster.log.topics()]
    assert values(cluster, name) == [b"a", b"b"]


def test_a_topic_that_is_not_there_is_named_with_those_that_are(cluster: Cluster) -> None:
    name = cluster.topic()
    for ask in (cluster.log.topic, cluster.log.bounds):
        with pytest.raises(UnknownTopic, match=f"no topic 'nothing' in Kafka at 127.0.0.1:.*{name}"):
            ask("nothing")


def test_only_committed_transactions_count_and_an_open_one_holds_the_end(cluster: Cluster) -> None:
    name = cluster.topic()
    producer = cluster.producer(**{"transactional.id": name})
    producer.init_transactions(20)
    for value, end in ((b"a", "commit"), (b"b", "abort"), (b"c", "commit"), (b"d", "")):
        producer.begin_transaction()
        producer.produce(name, value=value, partition=0)
        producer.flush(20)
        if end:
            getattr(producer, f"{end}_transaction")(20)
    # Each record is followed by the marker of its transaction.
    assert cluster.log.bounds(name)[0].until_offset == 6
    assert cluster.log.waiting(name) == {0: 1}
    assert values(cluster, name) == [b"a", b"c"]
    producer.commit_transaction(20)
    assert cluster.log.waiting(name) == {}
    assert values(cluster, name) == [b"a", b"c", b"d"]


def test_records_have_key_headers_tombstone_and_time(cluster: Cluster) -> None:
    name = cluster.topic()
    producer, at = cluster.producer(), datetime(2026, 1, 1, tzinfo=UTC)
    producer.produce(name, value=None, key=b"k", headers=[("h", b"1")], timestamp=int(at.timestamp() * 1000))
    producer.flush(20)
    [record] = read_topic(cluster.log, name)
    assert (record.key, record.value, record.headers, record.timestamp) == (b"k", None, (("h", b"1"),), at)


@pytest.mark.parametrize(("milliseconds", "year"), [(2**62, 9999), (-(2**62), 1), (0, 1970)])
def test_a_record_beyond_the_years_is_read_as_of_the_nearest_moment(milliseconds: int, year: int) -> None:
    # Brokers of today refuse such times unless a topic is told otherwise; older ones took them.
    said = {"topic": "t", "partition": 0, "offset": 0, "key": None, "value": b"x", "headers": None}
    message = SimpleNamespace(
        timestamp=lambda: (TIMESTAMP_CREATE_TIME, milliseconds),
        **{name: partial(said.get, name) for name in said},
    )
    assert _record(message).timestamp.year == year


def test_offsets_are_found_by_time(cluster: Cluster) -> None:
    name, start = cluster.topic(), datetime(2026, 1, 1, tzinfo=UTC)
    producer = cluster.producer()
    for hour in range(3):
        at = start + timedelta(hours=hour)
        producer.produce(name, value=b"x", partition=0, timestamp=int(at.timestamp() * 1000))
    producer.flush(20)
    asked = [start - timedelta(days=1), start + timedelta(minutes=1), start + timedelta(days=1)]
    assert [cluster.log.offset_at(name, 0, at) for at in asked] == [0, 1, 3]


def test_what_retention_took_is_refused_by_name(cluster: Cluster) -> None:
    from confluent_kafka import TopicPartition as Place

    name = cluster.topic()
    cluster.feed(name, [b"a", b"b", b"c"])
    for done in cluster.admin.delete_records([Place(name, 0, 2)]).values():
        done.result(20)
    topic, place = cluster.log.topic(name), TopicPartition(name, 0)
    with pytest.raises(OffsetsLost, match=f"topic {name} partition 0: offsets 0 to 1 are gone"):
        cluster.log.scan(topic.topic_id, [OffsetRange(place, 0, 3)])
    with pytest.raises(OffsetsLost, match="offset 3 is not there"):
        cluster.log.scan(topic.topic_id, [OffsetRange(place, 2, 4)])
    scan = cluster.log.scan(topic.topic_id, [OffsetRange(place, 2, 3)])
    assert [r.value for r in read_records(scan)] == [b"c"]


def test_a_topic_of_the_same_name_is_another_one(cluster: Cluster) -> None:
    name = cluster.topic()
    before = cluster.log.topic(name).topic_id
    cluster.delete(name)
    cluster.topic(name=name)
    with pytest.raises(TopicRecreated, match="was created again"):
        cluster.log.scan(before, [OffsetRange(TopicPartition(name, 0), 0, 0)])


def test_a_cluster_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.log.kafka.PATIENCE", 1.0)
    with pytest.raises(LogUnreachable, match=r"Kafka at 127\.0\.0\.1:1 was asked for") as refused:
        KafkaLog(Access(servers="127.0.0.1:1")).topic("t")
    assert refused.value.retryable


def test_who_may_not_come_in_is_told_so_without_the_password(
    a_broker: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from broker import Login

    broker = a_broker(login=Login(user="miller", password="se cret")).start()
    access = Access(servers=broker.servers, protocol=broker.protocol, user="miller", password="se cret")
    admin = KafkaLog(access)
    assert list(admin.topics()) == []
    assert "se cret" not in repr(access)
    # The client asks again for as long as it may, although the answer stays the same.
    monkeypatch.setattr("tidemill.log.kafka.PATIENCE", 2.0)
    stranger = KafkaLog(Access(servers=broker.servers, protocol=broker.protocol, user="miller", password="wrong"))
    with pytest.raises(LogRefused, match=r"does not let us in: .*invalid credentials") as refused:
        stranger.topics()
    assert "wrong" not in str(refused.value)


def test_log_of_one_batch_asks_the_broker_once_for_a_topic_and_its_bounds(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, whole = cluster.topic(), cluster.log
    log = whole.remembering()
    assert log.admin is whole.admin
    cluster.feed(name, [b"a", b"b"])
    asked = list[str]()
    for method in ("_described", "_offsets"):
        real = getattr(KafkaLog, method)
        monkeypatch.setattr(
            KafkaLog, method, lambda *given, method=method, real=real: (asked.append(method), real(*given))[1]
        )
    held = log.bounds(name)[0]
    assert [r.value for r in read_records(log.scan(log.topic(name).topic_id, [held]))] == [b"a", b"b"]
    assert asked == ["_described", "_offsets", "_offsets"]
    cluster.feed(name, [b"c"])
    later = OffsetRange(held.topic_partition, 2, 3)
    assert [r.value for r in read_records(log.scan(log.topic(name).topic_id, [later]))] == [b"c"]
    with pytest.raises(OffsetsLost):
        log.scan(log.topic(name).topic_id, [OffsetRange(held.topic_partition, 2, 4)])
    assert cluster.log.bounds(name)[0].until_offset == 3
