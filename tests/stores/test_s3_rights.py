"""Keys that end while a batch goes on, and people who may only read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from store import ObjectStore

from machine.tiny import TinyAttempt
from support.commands import type_command
from support.faults import Faults
from support.projects import NO_SPARK, Mill, an_event, sums
from support.recovery import paused
from tidemill.cli.commands import doctor_checks as checks
from tidemill.core.errors import StoreError
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage.spark_writer import SparkWriter
from tidemill.engine.storage.staged_rows import RowWriters
from tidemill.ledger import ledger
from tidemill.project.project import Project
from tidemill.run import batch
from tidemill.run.sessions import renewing


@pytest.fixture
def a_mill(
    tmp_path: Path, troubled: tuple[str, Faults], bucket: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Mill]:
    """A pipeline in the bucket, with an engine that needs no Spark, reached through the proxy."""
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    places = {"lake": {"path": f"s3://{bucket}/lake"}, "log": {"path": f"s3://{bucket}/log"}}
    return lambda **s3: sums(tmp_path, NO_SPARK, **places, s3={"endpoint": troubled[0], **s3})


@pytest.fixture
def of_a_role(a_mill: Callable[..., Mill], server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Mill:
    """The same by a role, whose keys last for an hour."""
    if server.versitygw is not None:
        pytest.skip("this server gives no roles")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.endpoint)
    return a_mill(role="arn:aws:iam::123456789012:role/lake")


def an_hour_passes(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that were given before have ended."""
    later = datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.setattr("botocore.credentials._local_now", lambda: later)
    monkeypatch.setattr(mill.project.access._credentials, "_time_fetcher", lambda: later)
    monkeypatch.setattr(ledger, "_FRESH", -1.0)


def test_a_batch_goes_on_with_new_keys_when_those_it_began_with_have_ended(
    of_a_role: Mill, troubled: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    mill, faults = of_a_role, troubled[1]
    mill.feed([an_event(1), b"{cut"])
    ended = mill.project.access.keys()
    before: list[int] = []

    def meanwhile() -> None:
        an_hour_passes(mill, monkeypatch)
        before.append(len(faults.asked()))

    happened = paused(monkeypatch, "before:state:sums", meanwhile)
    assert mill.run().accounts["events"].rejected == 1
    assert happened
    later = [(path, headers["authorization"]) for _, path, headers in faults.asked()[before[0] :]]
    tables = ("state/sums", "quarantine", "ledger", "leases")
    assert all(any(table in path for path, _ in later) for table in tables)
    assert [path for path, signed in later if ended.access in signed] == []


class Conf:
    """The settings of a session."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.conf = self

    def set(self, name: str, value: str) -> None:
        self.told.append((name, value))


def test_spark_is_told_new_keys_and_nothing_twice(of_a_role: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = Conf()
    renew = renewing(of_a_role.project, Spark.of(spark))
    renew()
    first = dict(spark.told)
    assert first["fs.s3a.session.token"]
    renew()
    assert dict(spark.told) == first
    assert len(spark.told) == len(first)
    an_hour_passes(of_a_role, monkeypatch)
    renew()
    changed = dict(spark.told[len(first) :])
    assert set(changed) == {"fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token"}
    assert all(first[name] != value for name, value in changed.items())


def test_keys_are_asked_for_before_every_job_and_every_write_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.engine.storage.spark_writer.ensure_table", lambda _: None)
    monkeypatch.setattr("tidemill.engine.storage.spark_writer.newest", lambda _: object())
    asked: list[str] = []
    session: Any = Conf()
    writers = RowWriters(Spark.of(session), driver_rows=1, writer="spark", before_job=lambda: asked.append("asked"))
    monkeypatch.setattr(SparkWriter, "stage", lambda *_: (asked.append("job"), 0))
    writers.stage(session, at_most=5)
    writers.spark.table(session)
    writers.spark.bare_table(session)
    assert asked == ["asked", "job", "asked", "asked"]


def test_whoever_looks_needs_no_right_to_write(a_mill: Callable[..., Mill], troubled: tuple[str, Faults]) -> None:
    mill, faults = a_mill(), troubled[1]
    mill.feed([an_event(1)])
    mill.run()
    mill.feed([an_event(2)])
    before = len(faults.asked())
    faults.first(1_000, "501", "PUT")
    for words in (["status"], ["history", "sums"], ["plan", "sums", "--dry-run"], ["log", "ls"]):
        said = type_command(mill.project.folder, *words)
        assert said.code == 0, said.err
    for looked in (checks._lake, checks._log):
        state, told, _ = looked(Project.load(mill.project.folder))
        assert (state, "with conditional writes" in told) == (checks.State.OK, True)
    assert {method for method, *_ in faults.asked()[before:]} <= {"GET", "HEAD"}


def test_a_store_that_may_only_be_read_is_refused_before_anything_is_written(
    a_mill: Callable[..., Mill], troubled: tuple[str, Faults]
) -> None:
    mill, faults = a_mill(), troubled[1]
    mill.feed([an_event(1)])
    faults.first(1_000, "501", "PUT")
    with pytest.raises(StoreError, match="refuses a write"):
        mill.run()
    faults.none()
    assert mill.project.ledger("sums").exists is False
