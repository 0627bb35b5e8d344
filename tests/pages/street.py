"""A project for pages: a pipeline with batches of every sort, made by the tiny engine, and one that is blocked."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.projects import EVENTS_CONTRACT, NO_SPARK, SUMS_CONTRACT, SUMS_PIPELINE, Mill, a_project
from tidemill.core.errors import AuditBlocked
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.repair.side_outputs import Selection
from tidemill.ledger.process import this_process
from tidemill.log.records import NewRecord
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob
from tidemill.repair.repair import repair
from tidemill.run import batch

HOSTILE = "<script>alert(1)</script>"
RUN = "scheduled__2026-01-01T00:00:00+00:00"


@contextmanager
def tiny_engine() -> Iterator[None]:
    """The engine of a few lines instead of Spark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        yield


def a_street(folder: Path, *, batches: int = 6) -> Project:
    """The pipeline `sums`, with rejected and late records and a repair, and `strict`, whose second batch is blocked."""
    pipeline = SUMS_PIPELINE.replace("WINDOW", 'Tumbling("10 seconds")').replace("TRIGGER", "on_close")
    pipeline = pipeline.replace("DELAY", "2 s").replace("LATENESS", "10 s")
    strict = pipeline.replace('Pipeline("sums"', 'Pipeline("strict"').replace('publish("sums"', 'publish("few"')
    contract = SUMS_CONTRACT.replace("sums", "few").replace(
        "{name: n, logicalType: integer, required: true}",
        "{name: n, logicalType: integer, required: true, logicalTypeOptions: {maximum: 3}}",
    )
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT, "few": contract}
    project = a_project(folder, pipeline, contracts)
    (folder / "pipelines" / "strict.py").write_text(strict.replace('contract="sums"', 'contract="few"'))
    project = Project.load(folder)
    mill = Mill(project, NO_SPARK, "sums")
    mill.log.create_topic("events", partitions=2)
    with tiny_engine():
        _live(mill, batches)
        _repair(project)
        _block(Mill(project, NO_SPARK, "strict"))
    return project


def _live(mill: Mill, batches: int) -> None:
    # The windows of records follow from where a window begins.
    present = datetime.fromtimestamp(datetime.now(UTC).timestamp() // 10 * 10, UTC)
    chance, start = random.Random(7), present - timedelta(seconds=30 * batches)
    for number in range(batches):
        now = start + timedelta(seconds=30 * number)
        for partition in range(2):
            times = [now + timedelta(seconds=chance.uniform(0, 29)) for _ in range(chance.randint(20, 60))]
            records = [_an_event(at, chance.choice("abcde"), chance.randint(1, 90)) for at in sorted(times)]
            if number > 1:
                records += [_an_event(now - timedelta(seconds=50), "a", 1)] * 2
            records += [b'{"ts": "' + HOSTILE.encode(), b"\x00\xff" + b"x" * 2_000]
            records.append(_an_event(now, HOSTILE, 2_000_000))
            _feed(mill, records, partition, now)
        who = this_process(
            f"airflow:sums/scheduled__{datetime.now(UTC).isoformat()}/batch" if number else f"airflow:sums/{RUN}/batch"
        )
        mill.run(clock=now + timedelta(seconds=29), executor=who)


def one_more_batch(project: Project) -> None:
    """Let `sums` read ten records more."""
    now, mill = datetime.now(UTC), Mill(project, NO_SPARK, "sums")
    _feed(mill, [_an_event(now, "a", 1)] * 10, 0, now)
    with tiny_engine():
        mill.run(clock=now, executor=this_process("airflow:sums/manual__more/batch"))


def _repair(project: Project) -> None:
    job = AmendmentJob(
        project=project,
        pipeline="sums",
        reason=Reason(by="ana", why="they were late"),
        identity="airflow:sums.replay/manual__1/batches",
        session=lambda: NO_SPARK,
    )
    list(repair(job, SideOutput.LATE, Selection()))


def _block(mill: Mill) -> None:
    who = this_process("airflow:strict/manual__1/batch")
    mill.run(limit=20, executor=who, clock=datetime.now(UTC))
    with pytest.raises(AuditBlocked):
        mill.run(executor=who, clock=datetime.now(UTC))


def _an_event(at: datetime, user: str, amount: int) -> bytes:
    return json.dumps({"ts": at.isoformat(), "user": user, "amount": amount}).encode()


def _feed(mill: Mill, values: list[bytes], partition: int, now: datetime) -> None:
    records: list[Any] = [NewRecord(value=value, timestamp=now) for value in values]
    mill.log.append("events", partition, records)
