"""What a long life costs: looks at a ledger of a million events, and repairs of a million scattered records.

python benchmarks/bench/bench_history.py [--events 1000 1000000] [--records 1000 100000 1000000] [--out FILE]

Seconds by events in the ledger: of a plan, of what `status` shows, of the plan of a backfill of one day, and of the
lineage of one number. Both ledgers have a batch every five minutes, so that a day is as many batches in either.
`replay_s` is the slowest batch of a replay, by scattered records in quarantine; `live_s` a live batch of as many
records that publishes as many windows. The last lines say each ratio beside its limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

STEP = timedelta(minutes=5)
ROUNDS = 7
PARTITIONS = 2
LOOKS = ("plan_s", "status_s", "backfill_plan_s", "lineage_s")
REPLAYS = ("replay_s", "replay_batches", "replay_windows", "live_s", "live_windows")
LIMITS = {"ratio": 2, "replay_ratio": 3}
"""What a look at the longest ledger may take of one at the shortest, and a batch of a replay of a live one."""


def main() -> int:
    """Measure, write and print; fails when a ratio is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="*", default=[1_000, 1_000_000])
    parser.add_argument("--records", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--out", type=Path, default=Path("build/bench_history.json"))
    given = parser.parse_args()
    found: dict[str, dict[str, Any]] = {name: {} for name in (*LOOKS, *REPLAYS)}
    for events in given.events:
        with tempfile.TemporaryDirectory(prefix="tidemill-history-") as folder:
            for name, value in looks(Path(folder), events).items():
                found.setdefault(name, {})[str(events)] = value
    if given.records:
        from bench.suite import bench_session

        with bench_session() as spark:
            for records in (given.records[0], *given.records):
                # The first one heats the session, and is measured once more.
                with tempfile.TemporaryDirectory(prefix="tidemill-replay-") as folder:
                    for name, value in replays(spark, Path(folder), records).items():
                        found[name][str(records)] = value
    ends = [str(min(given.events)), str(max(given.events))] if given.events else []
    found["ratio"] = {n: round(found[n][ends[-1]] / found[n][ends[0]], 2) for n in LOOKS if ends}
    found["replay_ratio"] = {n: round(s / found["live_s"][n], 2) for n, s in found["replay_s"].items()}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    over = [told(name, what, ratio) for name in LIMITS for what, ratio in found[name].items() if ratio > LIMITS[name]]
    for name in LIMITS:
        for what, ratio in found[name].items():
            print(told(name, what, ratio))
    return 1 if over else 0


def told(name: str, what: str, ratio: float) -> str:
    """A ratio beside its limit, for people."""
    means = f"{what}: longest ledger to shortest" if name == "ratio" else f"replay of {what} records to a live batch"
    return f"{means}: {ratio:.2f} times, at most {LIMITS[name]}{'' if ratio <= LIMITS[name] else ': OVER'}"


def looks(folder: Path, events: int) -> dict[str, float]:
    """Median seconds of each look at a ledger of so many events; also how long it took to make and to index."""
    from tidemill.core.plan.amendments import Reason
    from tidemill.core.repair.selection import OfTimes
    from tidemill.inspect.lineage import lineage
    from tidemill.inspect.status import status_of
    from tidemill.ledger.process import this_process
    from tidemill.project.project import Project
    from tidemill.repair.backfill import preview
    from tidemill.repair.job import AmendmentJob
    from tidemill.run.claiming import Request, next_plan

    made = time.perf_counter()
    mill, day, window = long_lived(folder, events)
    made = time.perf_counter() - made
    ledger = mill.project.ledger(mill.name)
    indexed = time.perf_counter()
    ledger.index_old()
    indexed = time.perf_counter() - indexed
    ledger.keep_short(keep=200)

    def project() -> Any:
        return Project.load(mill.project.folder)

    def plan() -> Any:
        found = project()
        request = Request(executor=this_process(), clock=datetime.now(UTC))
        return next_plan(found.pipeline("sums"), found.log(), found.ledger("sums").view(), request)

    def backfill() -> Any:
        amendment = AmendmentJob(project=project(), pipeline="sums", reason=Reason(by="the bench"))
        found = preview(amendment, OfTimes(since=day, until=day + timedelta(days=1)))
        assert len(found.covers) == timedelta(days=1) // STEP, len(found.covers)
        return found

    def number() -> Any:
        found = lineage(project(), "sums", None, window, {"user": "a"})
        assert found.contributions, "the window has no state"
        assert [p.timing for p in found.publications] == ["ON_TIME"], found.publications
        return found

    calls = (plan, lambda: status_of(project(), "sums"), backfill, number)
    seconds = {name: timed(call) for name, call in zip(LOOKS, calls, strict=True)}
    return {**seconds, "making_s": round(made, 1), "indexing_s": round(indexed, 1)}


def timed(call: Callable[[], Any]) -> float:
    """Median seconds, when what is imported is."""
    call()
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        assert call() is not None
        taken.append(time.perf_counter() - begin)
    return round(median(taken), 4)


def long_lived(folder: Path, events: int) -> tuple[Any, datetime, datetime]:
    """A pipeline with so many events, a day in its life, and a window that its newest batches published.

    Its first and last batches are real, of the engine of the tests without Spark; those between are only in the ledger,
    though the log has what they read.
    """
    from bench.long_ledger import Course, append_many
    from machine.tiny import TinyAttempt
    from support.projects import sums
    from tidemill.core.protocol.events import Audited, Committed, Planned
    from tidemill.log.records import NewRecord
    from tidemill.run import batch

    batch.Attempt, spared = TinyAttempt, batch.Attempt  # type: ignore[misc, assignment]
    try:
        count = events // 3
        start = (datetime.now(UTC) - (count + 12) * STEP).replace(microsecond=0, second=0)
        mill = sums(folder / "mill", None, partitions=PARTITIONS)  # type: ignore[arg-type]
        times = [start + n * STEP for n in range(count + 8)]
        for partition in range(PARTITIONS):
            records = [NewRecord(value=an_event(at), timestamp=at) for at in times]
            for low in range(0, len(records), 50_000):
                mill.log.append("events", partition, records[low : low + 50_000])
        for n in range(2):
            one_batch(mill, times[n])
        *_, planned, audited, last = (e.event for e in mill.project.ledger("sums").entries())
        assert isinstance(planned, Planned)
        assert isinstance(audited, Audited)
        assert isinstance(last, Committed)
        course = Course(
            last=last, plan=planned.plan, audited=audited, executor=planned.executor, start=start, step=STEP, records=1
        )
        uri, after = mill.project.table_uri("sums", "ledger"), 6
        after = append_many(uri, "sums", course, range(3, count - 79), after)
        # The newest events lie in files of their own, as batches leave them.
        for number in range(count - 79, count + 1):
            after = append_many(uri, "sums", course, range(number, number + 1), after)
        for n in range(count, count + 4):
            one_batch(mill, times[n])
    finally:
        batch.Attempt = spared  # type: ignore[misc]
    day = start + (count - 3 * (timedelta(days=1) // STEP) // 3 - 5) * STEP
    window = times[count + 1]
    return mill, day, window.replace(second=window.second // 10 * 10)


def one_batch(mill: Any, clock: datetime) -> None:
    """A batch of one record of each partition, without Spark."""
    from tidemill.core.plan.read_limit import ReadLimit
    from tidemill.ledger.process import this_process
    from tidemill.run.batch import run_batch
    from tidemill.run.claiming import Request

    request = Request(executor=this_process(), clock=clock, limit=ReadLimit(PARTITIONS))
    run_batch(mill.project, mill.name, request, session=lambda: None)  # type: ignore[arg-type,return-value]


def an_event(at: datetime, user: str = "a", amount: int = 1) -> bytes:
    """A record."""
    return json.dumps({"ts": at.isoformat(), "user": user, "amount": amount}).encode()


def replays(spark: Any, folder: Path, records: int) -> dict[str, Any]:
    """The slowest batch of a replay of so many scattered records, and a live batch of as many as it takes."""
    from support.projects import Mill, sums
    from tidemill.core.plan.amendments import Reason, SideOutput
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.project.project import Project
    from tidemill.repair.job import AmendmentJob
    from tidemill.repair.repair import MOST, repair

    mill = sums(folder / "mill", spark, partitions=PARTITIONS, lateness="1 day")
    size, start = min(records, MOST), datetime(2026, 1, 1, tzinfo=UTC)
    for low in range(0, 2 * records, 2 * size):
        values = [
            an_event(
                start + timedelta(milliseconds=n * 7_200_000 // (2 * records)),
                f"u{n % 97}",
                2_000_000 if n % 4 < 2 else 1,
            )
            for n in range(low, min(low + 2 * size, 2 * records))
        ]
        for partition in range(PARTITIONS):
            mill.feed(values[partition::PARTITIONS], partition=partition)
        mill.run(clock=start + timedelta(days=1))
    contract = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 1000000}", "maximum: 100000000}"))
    amendment = AmendmentJob(
        project=Project.load(mill.project.folder), pipeline="sums", reason=Reason(by="the bench"), session=lambda: spark
    )
    windows: list[int] = []
    taken = lengths(repair(amendment, SideOutput.QUARANTINE, Selection()), windows)
    again = Mill(amendment.project, spark, "sums")
    assert not again.own("quarantine")
    # As many records as a batch of the replay has, over as many windows and keys, which close by it.
    live, span, fired = [], 7_200_000 * size // records, 0
    for number in range(1, 4):
        begin = start + number * timedelta(hours=3)
        times = [begin + timedelta(milliseconds=n * span // size) for n in range(size)]
        values = [an_event(at, f"u{n % 97}", 1) for n, at in enumerate(times)]
        for partition in range(PARTITIONS):
            again.feed(values[partition::PARTITIONS], partition=partition)
        began = time.perf_counter()
        fired = again.run(clock=start + timedelta(days=1)).published["sums"]
        live.append(time.perf_counter() - began)
    found = (round(max(taken), 3), len(taken), max(windows), round(median(live), 3), fired)
    return dict(zip(REPLAYS, found, strict=True))


def lengths(batches: Any, windows: list[int]) -> list[float]:
    """How long each batch takes; `windows` gets how many rows each has published."""
    taken, begin = [], time.perf_counter()
    for commit in batches:
        taken.append(time.perf_counter() - begin)
        windows.append(commit.published["sums"])
        begin = time.perf_counter()
    return taken


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.exit(main())
