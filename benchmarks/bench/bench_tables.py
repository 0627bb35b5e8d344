"""What batch after batch costs on tables that grow. Run it by hand:

python benchmarks/bench/bench_tables.py [--batches 2000] [--every 100 500] [--keep 200] [--rows 300]

A batch is a minute: it appends rows to a state table, reads the panes of its last two minutes, upserts
rows into a published table (half of them replace rows of the batch before) and appends one row to a
ledger. One run folds nothing. The others fold small files of each table after every so many batches,
without the newest ten minutes of the published table, and trim the logs. Figures are the median of 40
batches, as processor milliseconds (a busy machine changes them less) and in brackets by the clock.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tidemill.core.contract.schema import Field, Object, Scalar
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.create import ensure_table
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.interface import Between, TableSpec, Transaction
from tidemill.tables.trim import trim_log

START = datetime(2024, 3, 1, tzinfo=UTC)
AROUND = 40
SUMS = Object((Field(name="sum", type=Scalar.DOUBLE), Field(name="count", type=Scalar.LONG)))
STATE = (
    Field(name="pane_day", type=Scalar.DATE),
    Field(name="pane_start", type=Scalar.TIMESTAMP),
    Field(name="page", type=Scalar.STRING),
    Field(name="batch_id", type=Scalar.LONG),
    Field(name="attempt", type=Scalar.INTEGER),
    Field(name="views", type=Scalar.LONG),
    Field(name="bytes", type=SUMS),
    Field(name="visitors", type=Scalar.BINARY),
)
PUBLISHED = (
    Field(name="window_start", type=Scalar.TIMESTAMP),
    Field(name="window_end", type=Scalar.TIMESTAMP),
    Field(name="page", type=Scalar.STRING),
    Field(name="views", type=Scalar.LONG),
    Field(name="bytes", type=Scalar.DOUBLE),
    Field(name="batch_id", type=Scalar.LONG),
    Field(name="published_at", type=Scalar.TIMESTAMP),
)
LEDGER = (
    Field(name="sequence", type=Scalar.LONG),
    Field(name="event", type=Scalar.STRING),
    Field(name="body", type=Scalar.STRING),
)


@dataclass
class Clock:
    """Processor and wall milliseconds of each operation, one pair a batch."""

    spent: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        result = work()
        pair = (time.process_time() - processor) * 1e3, (time.perf_counter() - wall) * 1e3
        self.spent[name].append(pair)
        return result

    def around(self, name: str, batch: int) -> tuple[float, float]:
        some = self.spent[name][max(batch - AROUND // 2, 0) : batch + AROUND // 2] or self.spent[name][-AROUND:]
        return median(p for p, _ in some), median(w for _, w in some)


def minute(batch: int) -> datetime:
    return START + timedelta(minutes=batch)


def state_rows(rng: random.Random, batch: int, rows: int) -> pa.Table:
    pane = minute(batch)
    return pa.Table.from_pylist(
        [
            {
                "pane_day": pane.date(),
                "pane_start": pane - timedelta(minutes=n % 2),
                "page": f"/p/{n}",
                "batch_id": batch,
                "attempt": 1,
                "views": rng.randrange(10**4),
                "bytes": {"sum": rng.random(), "count": n},
                "visitors": rng.randbytes(40),
            }
            for n in range(rows)
        ],
        schema=arrow_schema(STATE),
    )


def published_rows(rng: random.Random, batch: int, rows: int) -> pa.Table:
    starts = [minute(batch - n % 2) for n in range(rows)]
    return pa.Table.from_pylist(
        [
            {
                "window_start": start,
                "window_end": start + timedelta(minutes=1),
                "page": f"/p/{n // 2}",
                "views": rng.randrange(10**4),
                "bytes": rng.random(),
                "batch_id": batch,
                "published_at": start,
            }
            for n, start in enumerate(starts)
        ],
        schema=arrow_schema(PUBLISHED),
    )


def tables(folder: Path) -> dict[str, DeltaRsTable]:
    specs = {
        "state": {"fields": STATE, "partition_by": ("pane_day",), "pruned_by": ("pane_start",)},
        "published": {"fields": PUBLISHED, "pruned_by": ("window_start",)},
        "ledger": {"fields": LEDGER, "pruned_by": ("sequence",)},
    }
    made = {}
    for name, changes in specs.items():
        spec = TableSpec(uri=str(folder / name), name=name, **changes)
        ensure_table(spec)
        made[name] = DeltaRsTable(spec)
    return made


def turn(clock: Clock, made: dict[str, DeltaRsTable], rng: random.Random, batch: int, rows: int) -> None:
    within = (minute(batch - 1), minute(batch + 1))
    panes = Between(column="pane_start", low=within[0], high=within[1])
    days = Between(column="pane_day", low=within[0].date(), high=minute(batch + 1440).date())
    windows = Between(column="window_start", low=within[0], high=within[1])
    partials, results = state_rows(rng, batch, rows), published_rows(rng, batch, rows)
    event = pa.table({"sequence": [batch], "event": ["committed"], "body": ["x" * 1000]})
    done = Transaction("bench", batch)
    clock.time("append state", lambda: made["state"].append(partials, transaction=None, plan_hash="p"))
    found = clock.time("read panes", lambda: made["state"].read(where=(days, panes)))
    assert found.num_rows == 2 * rows - (rows // 2 if batch > 1 else rows), found.num_rows
    clock.time(
        "upsert published",
        lambda: made["published"].upsert(
            results, keys=("window_start", "page"), within=windows, transaction=done, plan_hash="p"
        ),
    )
    clock.time("append ledger", lambda: made["ledger"].append(event, transaction=done, plan_hash="p"))


def fold(clock: Clock, made: dict[str, DeltaRsTable], batch: int, keep: int) -> None:
    settled = minute(batch - 10)
    clock.time(
        "fold state", lambda: made["state"].compact(Between(column="pane_start", low=None, high=minute(batch + 1)))
    )
    clock.time(
        "fold published", lambda: made["published"].compact(Between(column="window_start", low=None, high=settled))
    )
    clock.time("fold ledger", lambda: made["ledger"].compact(Between(column="sequence", low=None, high=batch)))
    for name, table in made.items():
        clock.time(f"trim {name}", partial(trim_log, table.spec, keep=keep))


def run(folder: Path, batches: int, every: int | None, keep: int, rows: int) -> None:
    clock, made, rng = Clock(), tables(folder), random.Random(7)
    for batch in range(1, batches + 1):
        turn(clock, made, rng, batch, rows)
        if every and batch % every == 0:
            fold(clock, made, batch, keep)
    marks = sorted({min(100, batches), batches // 2, batches})
    print(f"\nfolded {f'every {every} batches' if every else 'never'}; {rows} rows a batch")
    print(f"{'':18}" + "".join(f"{f'batch {b}':>18}" for b in marks) + f"{'slowest':>12}")
    for name, spent in clock.spent.items():
        at = [clock.around(name, b) for b in marks] if len(spent) == batches else [clock.around(name, len(spent))]
        cells = "".join(f"{f'{p:.1f} ({w:.1f}) ms':>18}" for p, w in at)
        print(f"{name:18}{cells}{max(p for p, _ in spent):>9.0f} ms")
    for name, table in made.items():
        handle = DeltaTable(table.spec.uri)
        listing = pa.table(handle.get_add_actions(flatten=True))
        size = sum(listing["size_bytes"].to_pylist()) / 1e6
        log = len(list(Path(table.spec.uri, "_delta_log").iterdir()))
        count = sum(listing["num_records"].to_pylist())
        print(f"{name:18}{listing.num_rows} files, {size:.1f} MB, {count} rows, {log} files in the log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--every", type=int, nargs="*", default=[100, 500], help="fold after this many batches")
    parser.add_argument("--keep", type=int, default=200, help="versions to keep in the logs")
    options = parser.parse_args()
    for every in [None, *options.every]:
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder), options.batches, every, options.keep, options.rows)


if __name__ == "__main__":
    main()
