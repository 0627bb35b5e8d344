"""A stream of Kinesis becomes a topic: each record once, in the order of its shard, whatever is interrupted."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from store import ObjectStore

from support.commands import type_command
from tidemill.core.errors import Fenced, LogInputError, LogUnreachable
from tidemill.log.file import FileLog
from tidemill.log.kinesis import SEQUENCE, KinesisBridge
from tidemill.log.reading import read_topic

Bridged = tuple[Any, str, FileLog]


@pytest.fixture(scope="module")
def server(moto: ObjectStore) -> ObjectStore:
    return moto


@pytest.fixture
def bridged(server: ObjectStore, bucket: str, tmp_path: Path) -> Bridged:
    """A client, a stream of two shards, and a log with the topic `events` of two partitions."""
    client, stream = server.client("kinesis"), f"s{uuid.uuid4().hex[:8]}"
    client.create_stream(StreamName=stream, ShardCount=2)
    while client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]["StreamStatus"] != "ACTIVE":
        time.sleep(0.1)
    log = FileLog(tmp_path / "log")
    log.create_topic("events", partitions=2)
    return client, stream, log


def put(client: Any, stream: str, values: Iterable[int]) -> None:
    for value in values:
        client.put_record(StreamName=stream, Data=b"%d" % value, PartitionKey=f"k{value % 7}")


def brought(log: FileLog) -> list[int]:
    return [int(record.value or b"") for record in read_topic(log, "events")]


def test_every_record_comes_once_in_the_order_of_its_shard(bridged: Bridged) -> None:
    client, stream, log = bridged
    bridge = KinesisBridge(client, stream, log, "events")
    put(client, stream, range(20))
    assert sum(map(len, bridge.run())) == 20
    assert list(bridge.run()) == []
    put(client, stream, range(20, 30))
    assert sum(map(len, KinesisBridge(client, stream, log, "events").run())) == 10
    assert sorted(brought(log)) == list(range(30))
    for partition in (0, 1):
        records = list(read_topic(log, "events", partition=partition))
        assert records
        values = [int(record.value or b"") for record in records]
        assert values == sorted(values)
        assert all(r.key == b"k%d" % (v % 7) for r, v in zip(records, values, strict=True))
        assert [SEQUENCE in dict(r.headers) for r in records] == [True] * len(records)


def test_a_bound_leaves_the_rest_to_the_next_run(bridged: Bridged) -> None:
    client, stream, log = bridged
    put(client, stream, range(20))
    runs = 0
    while sum(map(len, KinesisBridge(client, stream, log, "events").run(most=6))):
        runs += 1
        assert len(brought(log)) <= 6 * runs
    assert sorted(brought(log)) == list(range(20))
    assert runs >= 4


@pytest.mark.parametrize("landed", [True, False])
def test_a_run_that_died_is_followed_by_one_that_goes_on(
    bridged: Bridged, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    client, stream, log = bridged
    put(client, stream, range(20))
    append = FileLog.append

    def dies(self: FileLog, *arguments: Any, **named: Any) -> Any:
        if landed:
            append(self, *arguments, **named)
        raise OSError("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr(FileLog, "append", dies)
        with pytest.raises(OSError, match="lost"):
            list(KinesisBridge(client, stream, log, "events").run())
    list(KinesisBridge(client, stream, log, "events").run())
    assert sorted(brought(log)) == list(range(20))


def test_of_two_bridges_one_is_fenced(bridged: Bridged, monkeypatch: pytest.MonkeyPatch) -> None:
    client, stream, log = bridged
    put(client, stream, range(10))
    append, met = FileLog.append, []

    def meets(self: FileLog, *arguments: Any, **named: Any) -> Any:
        if not met:
            met.append(True)
            put(client, stream, range(10, 20))
            list(KinesisBridge(client, stream, log, "events").run())
        return append(self, *arguments, **named)

    monkeypatch.setattr(FileLog, "append", meets)
    with pytest.raises(Fenced, match="another bridge"):
        list(KinesisBridge(client, stream, log, "events").run())
    assert sorted(brought(log)) == list(range(20))


def test_a_split_shard_is_read_before_its_children(bridged: Bridged) -> None:
    client, stream, log = bridged
    put(client, stream, range(10))
    [first, _] = KinesisBridge(client, stream, log, "events").shards()
    found = client.list_shards(StreamName=stream)["Shards"]
    span = next(s["HashKeyRange"] for s in found if s["ShardId"] == first.name)
    middle = (int(span["StartingHashKey"]) + int(span["EndingHashKey"])) // 2
    client.split_shard(StreamName=stream, ShardToSplit=first.name, NewStartingHashKey=str(middle))
    put(client, stream, range(10, 30))
    shards = KinesisBridge(client, stream, log, "events").shards()
    assert [shard.parents for shard in shards][-2:] == [(first.name,), (first.name,)]
    list(KinesisBridge(client, stream, log, "events").run())
    assert sorted(brought(log)) == list(range(30))


def test_packed_records_are_refused_and_nothing_of_them_comes(bridged: Bridged) -> None:
    client, stream, log = bridged
    client.put_record(StreamName=stream, Data=b"\xf3\x89\x9a\xc2packed", PartitionKey="k")
    with pytest.raises(LogInputError, match="AggregationEnabled"):
        list(KinesisBridge(client, stream, log, "events").run())
    assert brought(log) == []


class Busy:
    """A stream of two shards with three new records whenever it is asked."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def list_shards(self, **_: str) -> Any:
        return {"Shards": [{"ShardId": f"shardId-00000000000{n}"} for n in range(2)]}

    def get_shard_iterator(self, *, ShardId: str, **_: str) -> Any:  # noqa: N803  named by Amazon
        return {"ShardIterator": ShardId}

    def get_records(self, *, ShardIterator: str, Limit: int) -> Any:  # noqa: N803  named by Amazon
        self.calls[ShardIterator] += 1
        first, behind = 3 * self.calls[ShardIterator], max(0, 3 - self.calls[ShardIterator])
        record = {"Data": b"1", "PartitionKey": "k", "ApproximateArrivalTimestamp": datetime.now(UTC)}
        records = [{**record, "SequenceNumber": str(first + n)} for n in range(min(3, Limit))]
        return {"Records": records, "NextShardIterator": ShardIterator, "MillisBehindLatest": behind}


def test_a_run_ends_though_the_stream_never_does(tmp_path: Path) -> None:
    log, stream = FileLog(tmp_path / "log"), Busy()
    log.create_topic("events", partitions=2)
    assert [len(landed) for landed in KinesisBridge(stream, "s", log, "events").run()] == [3] * 6
    assert set(stream.calls.values()) == {3}


def test_the_command_and_the_task_bring_it(bridged: Bridged, server: ObjectStore, tmp_path: Path) -> None:
    from tidemill_airflow.tasks.kinesis import KinesisBridgeOperator

    client, stream, log = bridged
    put(client, stream, range(5))
    (tmp_path / "tidemill.toml").write_text(f'[kinesis]\nendpoint = "{server.endpoint}"\n')
    said = type_command(tmp_path, "log", "bridge", stream, "events")
    assert said.out.splitlines()[-1] == f"5 records from {stream}"
    put(client, stream, range(5, 9))
    task = KinesisBridgeOperator(task_id="bridge", stream=stream, topic="events", project=str(tmp_path))
    assert task.execute({}) == 4  # type: ignore[arg-type]
    assert sorted(brought(log)) == list(range(9))


def test_a_stream_that_is_not_there_is_named(bridged: Bridged) -> None:
    client, _, log = bridged
    with pytest.raises(LogUnreachable, match="stream nobodys"):
        list(KinesisBridge(client, "nobodys", log, "events").run())
