"""Published rows that are sent to a topic: once for readers of committed records, whatever died meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from kafka.conftest import Cluster
from support.projects import EVENTS_CONTRACT, SUMS_CONTRACT, Mill, a_project, an_event, sums
from support.short_forms import shortened
from support.writers import WRITERS
from tidemill.core.errors import AmendmentError, ConfigError, Fenced, LogInputError, LogUnreachable, UnknownTopic
from tidemill.core.log.scan import Record
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.log.interface import Message, OutgoingBatch
from tidemill.log.reading import read_topic
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.kafka

FAILURES = ["before:sent:{}-sums=raise", "after:sent:{}-sums=raise", "after:sent:{}-big=raise"]
PIPELINE = """
from tidemill import Count, Pipeline, Sum, Tumbling

with Pipeline("sums", every="1 minute") as pipeline:
    events = pipeline.read("IN", contract="events", event_time="ts")
    by_user = events.key_by("user").window(Tumbling("10 seconds"), allowed_lateness="10 s")
    by_user.aggregate(n=Count(), amount=Sum("amount")).publish("sums", contract="sums", topic="IN-sums")
    events.filter("amount > 5").select("user", "amount").publish("big", contract="big", topic="IN-big")
"""

BIG = EVENTS_CONTRACT.partition("    customProperties")[0].replace("events", "big") + (
    "    properties:\n      - {name: user, logicalType: string}\n      - {name: amount, logicalType: integer}\n"
)


def a_mill(folder: Path, spark: Any, cluster: Cluster, **settings: Any) -> tuple[Mill, str]:
    """A pipeline with a table of windows and one of rows, both sent; and the topic that it reads."""
    topic = cluster.topic()
    for name in ("sums", "big"):
        cluster.topic(2, name=f"{topic}-{name}")
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT, "big": BIG}
    text = PIPELINE.replace("IN", topic)
    project = a_project(folder, text, contracts, log={"kafka": cluster.broker.servers}, **settings)
    return Mill(project, spark, "sums"), topic


def sent(cluster: Cluster, topic: str) -> list[Record]:
    """What readers of committed records are given."""
    return list(read_topic(cluster.log, topic))


def newest(records: Sequence[Record]) -> list[Record]:
    """Of each key the message of the newest batch."""
    in_order = sorted(records, key=lambda r: int(dict(r.headers)["tidemill.batch"] or 0))
    return list({r.key: r for r in in_order}.values())


def values(records: Sequence[Record]) -> list[dict[str, Any]]:
    return sorted((json.loads(r.value or b"") for r in records), key=json.dumps)


def shown(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Published rows as JSON has them."""
    text = [
        {k: v.isoformat().replace("+00:00", "Z") if isinstance(v, datetime) else v for k, v in r.items()} for r in rows
    ]
    return sorted(text, key=json.dumps)


@pytest.mark.spark
@pytest.mark.parametrize("writer", WRITERS)
def test_a_topic_gets_the_rows_of_its_table(tmp_path: Path, spark: Any, cluster: Cluster, writer: str) -> None:
    mill, topic = a_mill(tmp_path, spark, cluster, writer=writer)
    disorder = [an_event(21), an_event(1), an_event(2, "b", 9), an_event(3, "b", 7), an_event(11), an_event(40)]
    cluster.feed(topic, disorder)
    mill.run()
    cluster.feed(topic, [an_event(41, "c", 8), an_event(60)])
    mill.catch_up()
    windows, rows = sent(cluster, f"{topic}-sums"), sent(cluster, f"{topic}-big")
    assert values(windows) == shown(mill.published("sums"))
    of_partitions = [[r for r in windows if r.partition == partition] for partition in range(2)]
    starts = [[json.loads(r.value or b"")["window_start"] for r in each] for each in of_partitions]
    assert starts == [sorted(each) for each in starts]
    assert values(rows) == shown(mill.published("big"))
    assert [(r.key, r.value) for r in rows if r.value and b"9" in r.value] == [(None, b'{"user":"b","amount":9}')]
    first = next(r for r in windows if r.value and b'"b"' in r.value)
    assert first.key == b'{"window_start":"2026-01-01T00:00:00Z","user":"b"}'
    told = {"pipeline": b"sums", "table": b"sums", "batch": b"1", "kind": b"live"}
    assert dict(first.headers) == {f"tidemill.{name}": value for name, value in told.items()}
    assert first.timestamp < datetime.now(UTC)


@pytest.mark.spark
@pytest.mark.parametrize("failure", shortened(FAILURES, FAILURES[1:2]))
def test_a_batch_that_fails_around_its_sending_sends_once(
    tmp_path: Path, spark: Any, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    mill, topic = a_mill(tmp_path, spark, cluster)
    cluster.feed(topic, [an_event(1), an_event(2, "b", 9), an_event(30)])
    monkeypatch.setenv(VARIABLE, failure.format(topic))
    for _ in range(2):
        with pytest.raises(Injected):
            mill.run()
    monkeypatch.delenv(VARIABLE)
    assert mill.run().attempt == 3
    assert values(sent(cluster, f"{topic}-sums")) == shown(mill.published("sums"))
    assert len(sent(cluster, f"{topic}-big")) == 1


@pytest.mark.spark
def test_what_goes_back_sends_windows_again_and_rows_not(tmp_path: Path, spark: Any, cluster: Cluster) -> None:
    mill, topic = a_mill(tmp_path, spark, cluster)
    cluster.feed(topic, [an_event(1), an_event(2, "b", 9), an_event(30)])
    mill.run()
    cluster.feed(topic, [an_event(3, "b", 8)])
    assert mill.run().accounts[topic].aggregated == 1
    assert len(mill.own("late")) == 1
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert values(sent(cluster, f"{topic}-big")) == shown(mill.published("big"))
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    last = newest(sent(cluster, f"{topic}-sums"))
    assert values(last) == shown(mill.published("sums"))
    assert {dict(r.headers)["tidemill.kind"] for r in last} == {b"backfill"}
    assert len(sent(cluster, f"{topic}-big")) == 2


@pytest.mark.spark
def test_a_rebuild_sends_its_windows_and_is_refused_where_rows_would_be_lost(
    tmp_path: Path, spark: Any, cluster: Cluster
) -> None:
    mill, topic = a_mill(tmp_path, spark, cluster)
    cluster.feed(topic, [an_event(1), an_event(2, "b", 9), an_event(30)])
    mill.run()
    # Nobody has read these when the generation is built.
    cluster.feed(topic, [an_event(31, "c", 8), an_event(50)])
    with pytest.raises(AmendmentError, match=f"rows without windows are sent to {topic}-big"):
        done(rebuild(an_amendment(mill)))
    assert len(sent(cluster, f"{topic}-sums")) == 2
    file = tmp_path / "pipelines" / "pipeline.py"
    file.write_text(
        file.read_text().replace("amount=Sum", "amount=Max").replace("Count, Pipeline", "Count, Max, Pipeline")
    )
    done(rebuild(an_amendment(mill), accept_loss=True))
    later = Mill(Project.load(tmp_path), spark, "sums")
    assert values(newest(sent(cluster, f"{topic}-sums"))) == shown(later.published("sums"))
    cluster.feed(topic, [an_event(51, "d", 7), an_event(80)])
    later.run()
    assert values(newest(sent(cluster, f"{topic}-sums"))) == shown(later.published("sums"))
    assert [row["user"] for row in values(sent(cluster, f"{topic}-big"))] == ["b", "d"]


@pytest.mark.spark
def test_what_runs_again_after_a_rewind_is_sent_again(tmp_path: Path, spark: Any, cluster: Cluster) -> None:
    mill, topic = a_mill(tmp_path, spark, cluster)
    for values_ in ([an_event(1), an_event(30)], [an_event(31, "b", 9), an_event(60)]):
        cluster.feed(topic, values_)
        mill.run()
    done(rewind(an_amendment(mill), 1))
    mill.run()
    batches = [dict(r.headers)["tidemill.batch"] for r in sent(cluster, f"{topic}-big")]
    assert sorted(batches) == [b"2", b"4"]
    assert len(mill.published("big")) == 1


@pytest.mark.spark
def test_a_topic_that_is_not_there_is_named_and_nothing_moves(tmp_path: Path, spark: Any, cluster: Cluster) -> None:
    mill, topic = a_mill(tmp_path, spark, cluster)
    cluster.delete(f"{topic}-big")
    cluster.feed(topic, [an_event(1, "b", 9), an_event(30)])
    with pytest.raises(UnknownTopic, match=f"{topic}-big"):
        mill.run()
    assert list(mill.project.ledger("sums").entries()) == []
    assert sent(cluster, f"{topic}-sums") == []
    cluster.topic(name=f"{topic}-big")
    mill.run()
    assert (len(sent(cluster, f"{topic}-sums")), len(sent(cluster, f"{topic}-big"))) == (1, 1)


@pytest.mark.spark
def test_only_kafka_is_sent_to(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    file = tmp_path / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace('contract="sums"', 'contract="sums", topic="out"'))
    with pytest.raises(ConfigError, match="sums sends rows to out, and the project's log is not Kafka"):
        Mill(mill.project.load(tmp_path), spark, "sums").run()


def a_parcel(topic: str, batch_id: int = 1, plan_hash: str = "plan") -> OutgoingBatch:
    return OutgoingBatch(
        topic=topic,
        sender=f"of-{topic}",
        batch_id=batch_id,
        plan_hash=plan_hash,
        at=datetime.now(UTC),
        headers={"batch": str(batch_id)},
    )


def some(*words: bytes) -> Iterator[Message]:
    return (Message(key=word, value=word) for word in words)


def test_a_batch_is_sent_once_and_an_older_one_or_another_plan_not_at_all(cluster: Cluster) -> None:
    topic, log = cluster.topic(), cluster.log
    assert log.send(a_parcel(topic), some(b"a", b"b"))
    assert not log.send(a_parcel(topic), some(b"a", b"b"))
    assert log.send(a_parcel(topic, 3), some(b"c"))
    for outgoing in (a_parcel(topic, 2), a_parcel(topic, 3, "other")):
        with pytest.raises(Fenced, match="batch 3 was sent"):
            log.send(outgoing, some(b"d"))
    assert [r.value for r in sent(cluster, topic)] == [b"a", b"b", b"c"]


def test_of_two_that_send_at_once_the_first_is_fenced(cluster: Cluster) -> None:
    topic, log = cluster.topic(), cluster.log

    def slowly() -> Iterator[Message]:
        yield from some(b"a")
        assert log.send(a_parcel(topic), some(b"a", b"b"))
        yield from some(b"b")

    with pytest.raises(LogUnreachable, match="somebody else began to send"):
        log.send(a_parcel(topic), slowly())
    assert [r.value for r in sent(cluster, topic)] == [b"a", b"b"]


KILLED = """
import os, sys, time
from kafka.test_kafka_sending import a_parcel
from tidemill.log.kafka_access import Access
from tidemill.log.kafka_topics import KafkaTopics
from tidemill.log.interface import Message

def messages():
    for n in range(3):
        yield Message(key=None, value=b"lost")
    print("sent", flush=True)
    time.sleep(600)

KafkaTopics(Access(servers=sys.argv[1])).send(a_parcel(sys.argv[2]), messages())
"""


def test_a_sender_that_is_killed_in_its_transaction_leaves_nothing(cluster: Cluster) -> None:
    topic, environment = cluster.topic(), {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, cluster.broker.servers, topic]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sent\n"
        end = time.monotonic() + 30
        while not cluster.log.waiting(topic):
            assert time.monotonic() < end, "nothing of it came to the broker"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert cluster.log.send(a_parcel(topic), some(b"a"))
    assert [r.value for r in sent(cluster, topic)] == [b"a"]


@pytest.mark.parametrize("size", [5_000, 2_000_000])
def test_a_row_that_is_too_large_is_named(cluster: Cluster, size: int) -> None:
    topic = cluster.topic(**{"max.message.bytes": "1000"})
    with pytest.raises(LogInputError, match=f"of-{topic} has a row that is larger than {topic} allows"):
        cluster.log.send(a_parcel(topic), some(b"a", os.urandom(size)))
    assert sent(cluster, topic) == []


def test_what_may_come_twice_is_sent_without_a_transaction(cluster: Cluster) -> None:
    topic, log = cluster.topic(), cluster.log
    outgoing = replace(a_parcel(topic), once=False)
    for _ in range(2):
        assert log.send(outgoing, some(b"a", b"b"))
    assert [r.value for r in sent(cluster, topic)] == [b"a", b"b"] * 2
    assert log.bounds(topic)[0].until_offset == 4, "no marker of a transaction"
