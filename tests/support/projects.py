"""Whole projects in a temporary folder: a log, contracts, a pipeline, and batches of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.protocol.events import Committed, Executor
from tidemill.ledger.process import this_process
from tidemill.log.records import NewRecord
from tidemill.project.project import Project
from tidemill.run.batch import NothingToDo, run_batch
from tidemill.run.claiming import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SHORT_LIVED = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of a Spark that lives for some minutes: compiling for the long run costs more than it brings.

Without the second compiler Java keeps room for only 48 MB of code, and ends when a hundred batches have filled it.
Spark compiles every new query to Java; without that, tests take a sixth less time. The demonstration, the tutorial, the
matrix and projects of `tidemill init` run with Spark's defaults.
"""

NOW = datetime(2026, 1, 1, tzinfo=UTC)

EVENTS_CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: events
version: 1.0.0
status: active
schema:
  - name: events
    logicalType: object
    customProperties:
      - {property: format, value: json}
      - {property: extraFields, value: EXTRA}
    properties:
      - {name: ts, logicalType: timestamp, required: true}
      - {name: user, logicalType: string}
      - {name: amount, logicalType: integer, logicalTypeOptions: {maximum: 1000000}}
"""

SUMS_CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: sums
version: 1.0.0
status: active
schema:
  - name: sums
    logicalType: object
    properties:
      - {name: window_start, logicalType: timestamp, required: true, primaryKey: true, primaryKeyPosition: 1}
      - {name: window_end, logicalType: timestamp, required: true}
      - {name: user, logicalType: string, primaryKey: true, primaryKeyPosition: 2, required: true}
      - {name: n, logicalType: integer, required: true}
      - {name: amount, logicalType: integer}
"""

SUMS_PIPELINE = """
from tidemill import Calendar, Count, Pipeline, Session, Sliding, Sum, Tumbling

with Pipeline("sums", every="1 minute") as pipeline:
    (
        pipeline.read("events", contract="events", event_time="ts", delay="DELAY")
        .filter("coalesce(user, '') != 'nobody'")
        .with_columns(user="coalesce(user, 'unknown')")
        .key_by("user")
        .window(WINDOW, allowed_lateness="LATENESS")
        .aggregate(n=Count(), amount=Sum("amount"))
        .publish("sums", contract="sums", trigger="TRIGGER")
    )
"""

TOTALS_CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: totals
version: 1.0.0
status: active
schema:
  - name: totals
    logicalType: object
    properties:
      - {name: user, logicalType: string, primaryKey: true, required: true}
      - {name: n, logicalType: integer, required: true}
      - {name: amount, logicalType: integer}
"""

TOTALS_PIPELINE = """
from tidemill import Count, Pipeline, Sum

with Pipeline("totals", every="1 minute") as pipeline:
    (
        pipeline.read("events", contract="events", event_time="ts")
        .filter("coalesce(user, '') != 'nobody'")
        .with_columns(user="coalesce(user, 'unknown')")
        .key_by("user")
        .aggregate(n=Count(), amount=Sum("amount"))
        .publish("totals", contract="totals")
    )
"""


NO_SPARK: Any = object()
"""The session of a pipeline on the tiny engine; None would make a batch start Spark."""


@dataclass(frozen=True)
class Mill:
    """A project and the Spark session its batches run in."""

    project: Project
    session: SparkSession
    name: str

    @property
    def log(self) -> Any:
        """The project's log."""
        return self.project.log()

    def feed(self, values: Iterable[bytes | None], *, topic: str = "events", partition: int = 0) -> None:
        """Append records with these values."""
        records = [NewRecord(value=v, timestamp=NOW) for v in values]
        if records:
            self.log.append(topic, partition, records)

    def run(self, *, clock: datetime | None = None, limit: int | None = None, drain: bool = False, **who: Any) -> Any:
        """One batch: its commit, or NothingToDo."""
        request = Request(
            executor=who.get("executor") or this_process(),
            clock=clock or datetime.now(UTC),
            limit=ReadLimit(limit),
            drain=drain,
            from_now=who.get("from_now"),
        )
        return run_batch(self.project, self.name, request, session=self.session and (lambda: self.session))

    def catch_up(self, *, limit: int | None = None, drain: bool = True, **who: Any) -> list[Committed]:
        """All batches until there is nothing to do."""
        commits = []
        while not isinstance(outcome := self.run(limit=limit, drain=drain, **who), NothingToDo):
            commits.append(outcome)
        return commits

    def published(self, table: str | None = None) -> list[dict[str, Any]]:
        """The published rows without Tidemill's own columns, sorted."""
        return without_own(rows_of(self.project.published_uri(table or self.name), self.project.storage()))

    def own(self, table: str) -> list[dict[str, Any]]:
        """The rows of the quarantine or the late table, sorted."""
        return without_own(rows_of(self.project.table_uri(self.name, table), self.project.storage()))

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """All rows that readers can see, by table."""
        flow = self.project.pipeline(self.name)
        tables = {s.table: self.published(s.table) for s in flow.sinks}
        return {**tables, "quarantine": self.own("quarantine"), "late": self.own("late")}


def rows_of(uri: str, storage: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """All rows of a Delta table; none when it does not exist."""
    options = dict(storage or {}) or None
    if not DeltaTable.is_deltatable(uri, options):
        return []
    return list(pa.table(DeltaTable(uri, storage_options=options).to_pyarrow_table()).to_pylist())


def without_own(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what differs between runs: the clock of the batch and the batch."""
    hidden = {"batch_id", "published_at", "recorded_at"}
    return sorted_rows({k: v for k, v in r.items() if k not in hidden} for r in rows)


def sorted_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows in an order that depends on nothing but their values."""
    return sorted((dict(r) for r in rows), key=lambda r: json.dumps(r, default=str))


def an_event(second: float, user: str | None = "a", amount: int | None = 1, **more: Any) -> bytes:
    """A JSON event at a number of seconds after 2026-01-01."""
    ts = datetime.fromtimestamp(NOW.timestamp() + second, UTC).isoformat()
    return json.dumps({"ts": ts, "user": user, "amount": amount, **more}).encode()


def a_project(folder: Path, pipeline: str, contracts: Mapping[str, str], **settings: Any) -> Project:
    """Write a project and load it. Settings go into [spark] and [limits]; those of other sections are dictionaries."""
    (folder / "pipelines").mkdir(parents=True, exist_ok=True)
    (folder / "data_contracts").mkdir(exist_ok=True)
    (folder / "pipelines" / "pipeline.py").write_text(pipeline)
    for name, text in contracts.items():
        (folder / "data_contracts" / f"{name}.odcs.yaml").write_text(text)
    write_settings(folder, **settings)
    return Project.load(folder)


def write_settings(folder: Path, **settings: Any) -> None:
    """Write the file of a project anew."""
    spark = {k: settings[k] for k in ("writer", "aggregate", "remote", "master", "cores") if k in settings}
    if settings.get("writer") == "spark":
        # What runs with this writer has Spark do all that it can do.
        spark.setdefault("aggregate", "spark")
    sections = {
        "spark": {"jars": str(ROOT / ".tidemill" / "jars"), **spark},
        "spark.conf": {**SHORT_LIVED, **settings.get("conf", {})},
        "limits": {
            k: settings[k]
            for k in ("driver_rows", "driver_records", "batch_records", "partition_records")
            if k in settings
        },
        **{k: settings[k] for k in ("lake", "log", "s3", "maintenance") if k in settings},
    }
    text = "".join(_section(name, values) for name, values in sections.items())
    (folder / "tidemill.toml").write_text(text)


def _section(name: str, values: Mapping[str, Any]) -> str:
    """A section of TOML; JSON's strings, numbers and truths are TOML's, too."""
    lines = (f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in values.items())
    return f"[{name}]\n{''.join(lines)}\n"


def sums(
    folder: Path,
    session: SparkSession,
    *,
    window: str = 'Tumbling("10 seconds")',
    delay: str = "0 s",
    lateness: str = "0 s",
    trigger: str = "on_close",
    extra: str = "keep",
    partitions: int = 1,
    output: Callable[[str], str] = str,
    **settings: Any,
) -> Mill:
    """A pipeline that counts and sums JSON events per user, and its empty topic `events`."""
    text = SUMS_PIPELINE.replace("WINDOW", window).replace("DELAY", delay)
    text = text.replace("LATENESS", lateness).replace("TRIGGER", trigger)
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", extra), "sums": output(SUMS_CONTRACT)}
    mill = Mill(a_project(folder, text, contracts, **settings), session, "sums")
    mill.log.create_topic("events", partitions=partitions)
    return mill


def totals(folder: Path, session: SparkSession, *, keyed: bool = True, **settings: Any) -> Mill:
    """A pipeline that counts and sums JSON events so far, per user or in all, and its empty topic `events`."""
    pipeline, contract = TOTALS_PIPELINE, TOTALS_CONTRACT
    if not keyed:
        pipeline = pipeline.replace('.key_by("user")\n', "\n")
        contract = "".join(line for line in contract.splitlines(keepends=True) if "name: user" not in line)
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "totals": contract}
    mill = Mill(a_project(folder, pipeline, contracts, **settings), session, "totals")
    mill.log.create_topic("events", partitions=2)
    return mill


def somebody(identity: str) -> Executor:
    """An executor on a machine that nobody can look into."""
    return Executor(identity=identity, host="elsewhere", pid=1)
