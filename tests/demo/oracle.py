"""Recomputes from the raw log what the tables of a demonstration must hold, and reads what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable

from demo.oracle_queries import SIDE_OUTPUTS, WINDOWS, Rules, parsed, placed
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.protocol.events import Committed, Planned
from tidemill.core.time.times import moment
from tidemill.demo.site import PIPELINE, TABLE, TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project.project import Project

Window = tuple[int, str]
"""The key of a published row: the start of its minute in microseconds since 1970, and its page."""

Place = tuple[int, int]
"""Partition and offset of a record."""

VALUES = ("window_end", "requests", "bytes", "visitors", "status_2xx", "status_3xx", "status_4xx", "status_5xx")

_CUTS = pa.schema(
    [
        ("batch", pa.int64()),
        ("clock", pa.timestamp("us", "UTC")),
        ("partition", pa.int32()),
        ("from_offset", pa.int64()),
        ("until_offset", pa.int64()),
        ("idle", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Published rows by key (in a list, because a faulty table may hold a key twice), and side outputs.

    `side_outputs` gives for "rejected" and "late" the places of the records and how often each is there. A
    recomputation may also find "unread" records.
    """

    rows: Mapping[Window, Sequence[Mapping[str, Any]]]
    side_outputs: Mapping[str, Counter[Place]]

    @property
    def requests(self) -> int:
        """The requests of all rows together."""
        return sum(row["requests"] for rows in self.rows.values() for row in rows)


def rules_of(flow: Flow) -> Rules:
    """The settings of the pipeline about time."""
    sink = flow.sinks[0]
    assert isinstance(sink, WindowedSink)
    return Rules(
        delay=flow.inputs[0].delay,
        allowed_lateness=sink.allowed_lateness,
        future_tolerance=flow.spec.future_tolerance,
    )


def recompute(session: SparkSession, project: Project) -> Contents:
    """Compute what the tables must hold, from the files of the log and the offsets that each batch read."""
    rules = rules_of(project.pipeline(PIPELINE))
    views = {
        "raw_log": session.read.parquet(*segments(project)).select("partition", "offset", "value"),
        "cuts": session.createDataFrame(cuts(project)),
    }
    try:
        for name, frame in views.items():
            frame.createOrReplaceTempView(name)
        for name, query in (("parsed", parsed(rules)), ("placed", placed(rules))):
            # Both are read more than once.
            views[name] = session.sql(query).persist()
            views[name].createOrReplaceTempView(name)
        rows = session.sql(WINDOWS).toArrow()
        side_outputs = session.sql(SIDE_OUTPUTS).toArrow().to_pylist()
    finally:
        for name, frame in views.items():
            frame.unpersist()
            session.catalog.dropTempView(name)
    outcomes = ("rejected", "late", "unread")
    return Contents(
        rows=_by_window(rows),
        side_outputs={
            o: Counter((s["partition"], s["offset"]) for s in side_outputs if s["outcome"] == o) for o in outcomes
        },
    )


def cuts(project: Project) -> pa.Table:
    """The offsets that each committed batch read, from the plans in the ledger."""
    entries = [e.event for e in project.ledger(PIPELINE).entries()]
    committed = {e.batch_id for e in entries if isinstance(e, Committed)}
    plans = [e.plan for e in entries if isinstance(e, Planned) and e.plan.batch_id in committed]
    rows = [
        {
            "batch": plan.batch_id,
            "clock": plan.clock,
            "partition": item.topic_partition.partition,
            "from_offset": item.from_offset,
            "until_offset": item.until_offset,
            "idle": item.topic_partition.partition in plan.topics[TOPIC].idle,
        }
        for plan in plans
        for item in plan.topics[TOPIC].ranges
    ]
    return pa.Table.from_pylist(rows, schema=_CUTS)


def published(project: Project) -> Contents:
    """Read what the tables hold."""
    rows = _table(project.published_uri(TABLE))
    side_outputs = {name: _table(project.table_uri(PIPELINE, where)) for name, where in _SIDE_TABLES.items()}
    return Contents(
        rows={} if rows is None else _by_window(rows),
        side_outputs={name: Counter() if t is None else _places(t) for name, t in side_outputs.items()},
    )


def damaged_values(project: Project) -> int:
    """How many records in quarantine do not have the bytes that the log has."""
    import pyarrow.dataset as ds  # type: ignore[import-untyped]

    held = _table(project.table_uri(PIPELINE, "quarantine"))
    if held is None:
        return 0
    kept = {
        (r["partition"], r["offset"]): r["value"] for r in held.select(["partition", "offset", "value"]).to_pylist()
    }
    wanted = ds.field("offset").isin([offset for _, offset in kept])
    raw = ds.dataset(segments(project), format="parquet").to_table(["partition", "offset", "value"], filter=wanted)
    there = {(r["partition"], r["offset"]): r["value"] for r in raw.to_pylist()}
    return sum(1 for place, value in kept.items() if place not in there or there[place] != value)


_SIDE_TABLES = {"rejected": "quarantine", "late": "late"}


def _table(uri: str) -> pa.Table | None:
    return DeltaTable(uri).to_pyarrow_table() if DeltaTable.is_deltatable(uri) else None


def _places(table: pa.Table) -> Counter[Place]:
    return Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def _by_window(rows: pa.Table) -> dict[Window, list[Mapping[str, Any]]]:
    found: dict[Window, list[Mapping[str, Any]]] = {}
    starts = rows["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    values = rows.select(["page", *VALUES]).to_pylist()
    for start, row in zip(starts, values, strict=True):
        found.setdefault((start, row["page"]), []).append(row)
    return found


def show_window(window: Window) -> str:
    """Format the key of a row for people."""
    start, page = window
    return f"{page} at {moment(start):%Y-%m-%d %H:%M}"


def total(contents: Contents, outcome: str) -> int:
    """How many records are in this side output."""
    return sum(contents.side_outputs.get(outcome, Counter[Place]()).values())


def busiest(contents: Contents, count: int) -> list[tuple[str, int]]:
    """The pages with the most requests, and how many."""
    pages: Counter[str] = Counter()
    for (_, page), rows in contents.rows.items():
        pages[page] += sum(row["requests"] for row in rows)
    return pages.most_common(count)


def segments(project: Project) -> list[str]:
    """The files of the log, found by looking, not by asking the log."""
    return sorted(str(path) for path in Path(project.settings.log).glob(f"{TOPIC}/*/*/*.parquet"))
