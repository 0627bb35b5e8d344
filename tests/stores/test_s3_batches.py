"""Log, lake and ledger in a bucket: the same rows, also when answers are lost and two processes meet."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from store import ObjectStore

from log.test_landing import a_mill as a_landing_mill
from log.test_landing import land
from support.builders import NOW, a_commit, a_plan, an_executor
from support.faults import Faults
from support.projects import NO_SPARK, Mill, an_event
from support.recovery import a_wide_mill, recomputed
from support.writers import WRITERS
from tidemill.core.contract.verdict import Verdict
from tidemill.core.errors import CommitUnknown, EngineError, Fenced, StoreUnreachable
from tidemill.core.protocol.events import Audited, Planned
from tidemill.core.protocol.view import View
from tidemill.inspect.lag import LagReader, Sources
from tidemill.ledger.ledger import Ledger
from tidemill.log.file import FileLog
from tidemill.log.reading import read_topic
from tidemill.log.records import NewRecord
from tidemill.run.batch import NothingToDo
from tidemill.stores.access import S3Access
from tidemill.stores.s3 import S3Store

HERE = (0, 1_000)
"""The setting `driver_records`: Spark reads the records, or the process of the batch does."""

ROWS = {"sums": 9, "totals": 5, "quarantine": 2, "late": 6}


def in_bucket(folder: Path, spark: Any, endpoint: str, bucket: str, **settings: Any) -> Mill:
    """The wide pipeline with everything in the bucket."""
    places = {"lake": {"path": f"s3://{bucket}/lake"}, "log": {"path": f"s3://{bucket}/log"}}
    return a_wide_mill(folder, spark, **places, s3={"endpoint": endpoint}, **settings)


def a_log(bucket: str, access: S3Access) -> FileLog:
    """A log in the bucket, without a project."""
    return FileLog(f"s3://{bucket}/log", store=S3Store(f"s3://{bucket}/log", access), storage=access.delta)


@pytest.mark.spark
@pytest.mark.parametrize("writer", WRITERS)
def test_the_rows_are_what_the_raw_log_gives(
    tmp_path: Path, spark: Any, server: ObjectStore, bucket: str, writer: str
) -> None:
    # Spark reads these few records, too, from S3A; without Spark they are read below.
    mill = in_bucket(tmp_path, spark, server.endpoint, bucket, writer=writer, driver_records=0)
    reader = LagReader(mill.project, "wide", Sources.of(mill.project.pipeline("wide")))
    before = reader.read()
    assert (before.batch_id, before.records > 0, reader.is_older(before, datetime.now(UTC))) == (1, True, True)
    mill.catch_up()
    assert (reader.read().records, reader.read().batch_id) == (0, 2)
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == ROWS
    assert {name: tables[name] for name in ("sums", "totals")} == recomputed(mill)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".parquet", ".json")]
    keys = [o["Key"] for o in server.client().list_objects_v2(Bucket=bucket)["Contents"]]
    assert {key.partition("/")[0] for key in keys} == {"lake", "log"}


@pytest.mark.spark
def test_small_batches_of_a_bucket_need_no_spark(tmp_path: Path, spark: Any, server: ObjectStore, bucket: str) -> None:
    mill = in_bucket(tmp_path, spark, server.endpoint, bucket)
    whole = mill.run(limit=5).accounts
    assert sum(account.read for account in whole.values()) == 5
    alone = replace(mill, session=NO_SPARK)
    assert alone.catch_up(limit=5)
    tables = mill.everything()
    assert {name: tables[name] for name in ("sums", "totals")} == recomputed(mill)
    assert len(tables["quarantine"]) == ROWS["quarantine"]


@pytest.mark.spark
@pytest.mark.parametrize("here", HERE)
def test_what_kafka_connect_wrote_into_a_bucket_is_a_log(
    tmp_path: Path, spark: Any, server: ObjectStore, bucket: str, here: int
) -> None:
    land(tmp_path / "landing", 0, [an_event(1), an_event(2, "b"), b"{cut"])
    land(tmp_path / "landing", 3, [an_event(15)], packed=False)
    store = server.client()
    for path in (tmp_path / "landing").rglob("*.*"):
        key = f"topics/{path.relative_to(tmp_path / 'landing')}"
        store.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    place = f'path = "s3://{bucket}/topics"\nlayout = "kafka-connect"\n[s3]\nendpoint = "{server.endpoint}"'
    mill = a_landing_mill(tmp_path / "mill", spark, place, driver_records=here)
    assert [mill.run(limit=2).accounts["events"].read for _ in range(2)] == [2, 2]
    mill.catch_up()
    assert [r["n"] for r in mill.published()] == [1, 1, 1]
    assert [r["offset"] for r in mill.own("quarantine")] == [2]


@pytest.mark.spark
@pytest.mark.long
def test_a_commit_of_delta_rs_is_put_only_where_nothing_is(
    tmp_path: Path, spark: Any, troubled: tuple[str, Faults], bucket: str
) -> None:
    address, faults = troubled
    in_bucket(tmp_path, spark, address, bucket, writer="delta-rs")
    puts = [(path, headers) for method, path, headers in faults.asked() if method == "PUT" and "_delta_log/0" in path]
    commits = [headers for path, headers in puts if bucket in path and path.endswith(".json")]
    assert commits
    assert [headers.get("if-none-match") for headers in commits] == ["*"] * len(commits)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("here", "seed", "faults_of"),
    [
        (1_000, 1, {"lost": 3, "503": 2, "409": 1}),
        *(
            pytest.param(here, seed, {"lost": 6, "503": 4, "409": 2}, marks=pytest.mark.long)
            for here in HERE
            for seed in (1, 2)
        ),
    ],
)
def test_lost_answers_and_a_busy_store_change_nothing(  # noqa: PLR0917
    tmp_path: Path, spark: Any, troubled: tuple[str, Faults], bucket: str, here: int, seed: int, faults_of: Any
) -> None:
    address, faults = troubled
    mill = in_bucket(tmp_path, spark, address, bucket, driver_records=here)
    faults.dice(seed, **faults_of)
    for _ in range(20):
        try:
            if isinstance(mill.run(drain=True), NothingToDo):
                break
        except (StoreUnreachable, EngineError, CommitUnknown):
            continue
    assert {"lost", "503"} <= faults.happened()
    faults.none()
    mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == ROWS
    assert {name: tables[name] for name in ("sums", "totals")} == recomputed(mill)


def test_two_writers_of_a_ledger_agree_on_one_order(bucket: str, access: S3Access) -> None:
    uri = f"s3://{bucket}/ledger"
    ledgers = [Ledger(uri, "p", access.delta) for _ in range(2)]
    won: list[int] = []

    def work(number: int) -> None:
        ledger, who = ledgers[number], an_executor(f"e{number}")
        for _ in range(6):

            def decide(view: View) -> Planned:
                batch_id = view.position.batch_id + 1
                plan = a_plan(batch_id=batch_id, position=view.position, until={0: 10 * batch_id})
                return Planned(plan=plan, executor=who, at=NOW)

            # The other one has an open batch, or was first.
            with suppress(Fenced):
                batch = ledger.append(decide).open_batch
                if batch is not None and batch.executor == who:
                    audited = Audited(
                        batch_id=batch.plan.batch_id, attempt=1, verdict=Verdict(), logical_hash="hash", at=NOW
                    )
                    for event in (audited, a_commit(batch.plan)):
                        ledger.append(lambda _, event=event: event)  # type: ignore[misc]
                    won.append(batch.plan.batch_id)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, range(2)))
    entries = Ledger(uri, "p", access.delta).entries()
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    assert sorted(won) == list(range(1, len(won) + 1))
    assert len(entries) == 3 * len(won) > 0


def test_old_batches_of_a_ledger_are_indexed_beside_it(bucket: str, access: S3Access) -> None:
    ledger = Ledger(f"s3://{bucket}/lake/ledger", "p", access.delta)
    assert ledger.past().zones == ()
    for batch_id in range(1, 13):
        plan = a_plan(batch_id=batch_id, position=ledger.view().position, until={0: 10 * batch_id})
        audited = Audited(batch_id=batch_id, attempt=1, verdict=Verdict(), logical_hash="hash", at=NOW)
        for event in (Planned(plan=plan, executor=an_executor(), at=NOW), audited, a_commit(plan)):
            ledger.append(lambda _, event=event: event)  # type: ignore[misc]
    ledger.keep_short(keep=10)
    past = Ledger(f"s3://{bucket}/lake/ledger", "p", access.delta).past()
    assert [zone.batches for zone in past.zones] == [(1, 1)]
    assert [batch.batch_id for batch in past.batches()] == list(range(1, 13))
    ledger.keep_short(keep=10)


def test_two_appenders_take_offsets_one_after_the_other(bucket: str, access: S3Access) -> None:
    logs = [a_log(bucket, access) for _ in range(2)]
    logs[0].create_topic("events", partitions=1)

    def work(number: int) -> list[int]:
        records = [NewRecord(value=b"%d" % number), NewRecord(value=b"%d" % number)]
        return [logs[number].append("events", 0, records).from_offset for _ in range(10)]

    with ThreadPoolExecutor(2) as threads:
        taken = list(threads.map(work, range(2)))
    assert sorted(taken[0] + taken[1]) == list(range(0, 40, 2))
    values = [record.value for record in read_topic(logs[0], "events")]
    assert len(values) == 40
    assert values[::2] == values[1::2]
    assert logs[0].offset_at("events", 0, NOW) == 0


def test_an_append_whose_answer_was_lost_is_there_once(
    troubled: tuple[str, Faults], bucket: str, access: S3Access
) -> None:
    address, faults = troubled
    log = a_log(bucket, S3Access({"endpoint": address}))
    log.create_topic("events", partitions=1)
    faults.first(1, "lost", "PUT", ".parquet")
    assert len(log.append("events", 0, [NewRecord(value=b"once")])) == 1
    assert [record.value for record in read_topic(log, "events")] == [b"once"]
    log.append("events", 0, [NewRecord(value=b"twice")])
    assert log.trim("events", 0, 1).from_offset == 1
    assert [record.value for record in read_topic(log, "events")] == [b"twice"]
    log.delete_topic("events")
    assert log.topics() == []
