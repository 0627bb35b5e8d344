"""Whether batches keep up with a topic of Kafka that is written to at a steady pace."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc  # type: ignore[import-untyped]
from broker import Broker
from deltalake import DeltaTable

from bench.feed import TOPIC
from bench.tidemill_batch import PIPELINE, PROJECT, TABLE
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.project.settings import Settings
from tidemill.run.batch import NothingToDo, Outcome, run_batch
from tidemill.run.claiming import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """So many records a second for so many seconds, and a batch every so many seconds."""

    rate: int
    seconds: int
    every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A batch: the records that it read, its seconds, and the records that were not committed when it had ended."""

    read: int
    seconds: float
    behind: int


@dataclass(frozen=True)
class Reader:
    """The product over a topic of Kafka."""

    project: Project
    spark: SparkSession

    def commit(self, *, drain: bool = False) -> Outcome:
        """One batch."""
        request = Request(executor=this_process(None), clock=datetime.now(UTC), limit=ReadLimit(None), drain=drain)
        return run_batch(self.project, PIPELINE, request, session=lambda: self.spark)

    def behind(self) -> int:
        """How many records of the log are not committed."""
        known = self.project.ledger(PIPELINE).view().position.topics
        offsets = known[TOPIC].offsets if TOPIC in known else {}
        held = self.project.log().bounds(TOPIC)
        return sum(bound.until_offset - offsets.get(number, 0) for number, bound in held.items())


def measured(spark: SparkSession, folder: Path, pace: Pace, told: Callable[[str], None]) -> dict[str, Any]:
    """What was written and what came of it: records `lost` and `doubled`, and of the batches seconds and lag.

    `behind_s` is how many seconds' worth of records were not committed when a batch had ended, at most.
    """
    with Broker(folder / "kafka") as broker:
        reader = Reader(_project(folder / "lake", broker.servers), spark)
        reader.project.log().create_topic(TOPIC, PARTITIONS)  # type: ignore[attr-defined]
        # The first batches of a session compile; they are no part of the steady state.
        with _writing(broker.servers, Pace(rate=pace.rate, seconds=2, every=1)) as feed:
            feed.wait(60)
        first = _account(reader.commit())
        with _writing(broker.servers, pace) as feed:
            batches = list(_batches(reader, feed, pace, told))
        accounts = [first, *(account for account, _ in batches)]
        while not isinstance(outcome := reader.commit(drain=True), NothingToDo):
            accounts.append(_account(outcome))
        written = sum(held.until_offset for held in reader.project.log().bounds(TOPIC).values())
        return {**asdict(pace), **_told([timed for _, timed in batches], pace), **_balance(reader, accounts, written)}


def _batches(
    reader: Reader, feed: subprocess.Popen[bytes], pace: Pace, told: Callable[[str], None]
) -> Iterator[tuple[dict[str, int], Timed]]:
    """Every so many seconds a batch, or as soon as the one before it has ended, while records are written."""
    due = time.monotonic()
    while feed.poll() is None:
        due = max(due + pace.every, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0))
        begin = time.monotonic()
        account = _account(reader.commit())
        seconds = time.monotonic() - begin
        timed = Timed(read=account["read"], seconds=round(seconds, 2), behind=reader.behind())
        told(f"{timed.read:,} records in {timed.seconds} s, then {timed.behind:,} behind")
        yield account, timed


def _told(batches: list[Timed], pace: Pace) -> dict[str, Any]:
    return {
        "batches": len(batches),
        "median_s": round(median(b.seconds for b in batches), 2),
        "slowest_s": max(b.seconds for b in batches),
        "behind_s": round(max(b.behind for b in batches) / pace.rate, 1),
    }


def _balance(reader: Reader, accounts: list[dict[str, int]], written: int) -> dict[str, int]:
    """Published counts, and what the accounts say ended elsewhere, against what was written."""
    storage = dict(reader.project.storage()) or None
    table = DeltaTable(reader.project.published_uri(TABLE), storage_options=storage).to_pyarrow_table()
    elsewhere = sum(a["filtered"] + a["rejected"] + a["late"] for a in accounts)
    found = pc.sum(table["requests"]).as_py() + elsewhere
    return {"records": written, "lost": max(written - found, 0), "doubled": max(found - written, 0)}


def _account(outcome: Outcome) -> dict[str, int]:
    if isinstance(outcome, NothingToDo):
        return dict.fromkeys(("read", "filtered", "rejected", "late"), 0)
    found = outcome.accounts[TOPIC]
    return {name: getattr(found, name) for name in ("read", "filtered", "rejected", "late")}


def _project(lake: Path, servers: str) -> Project:
    contracts, pipelines = str(PROJECT / "data_contracts"), str(PROJECT / "pipelines")
    settings = Settings(
        lake=str(lake), log="", pipelines=pipelines, contracts=contracts, jars="", kafka={"kafka": servers}
    )
    return Project(PROJECT, settings)


@contextmanager
def _writing(servers: str, pace: Pace) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes at this pace; it has ended, and well, when the block has."""
    script = Path(__file__).with_name("pace_feed.py")
    command = [sys.executable, str(script), servers, TOPIC, str(pace.rate), str(pace.seconds)]
    with subprocess.Popen(command) as feed:
        try:
            yield feed
        except BaseException:
            feed.kill()
            raise
    if feed.returncode:
        raise RuntimeError("the records could not be written")
