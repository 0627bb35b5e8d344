"""Runs a pipeline on the records of a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import Sink
from tidemill.core.declare.columns import PUBLISHED_COLUMNS
from tidemill.core.declare.operators import Read
from tidemill.core.errors import AuditBlocked, ConfigError
from tidemill.core.protocol.events import Committed
from tidemill.inspect.lineage import lineage
from tidemill.ledger.process import this_process
from tidemill.log.memory import MemoryLog
from tidemill.project.project import Project
from tidemill.project.settings import Settings
from tidemill.run.batch import NothingToDo, run_batch
from tidemill.run.claiming import Request
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest
from tidemill.tables.interface import TableSpec
from tidemill.testing.given import Given, as_record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_YEAR, _LAST_YEAR = 1970, 9000
"""Clocks of batches lie in these years: what is computed from them has to be a time, too."""

_ABOUT_BLOCKED = (
    "correct the pipeline, the contract or the records of the test; if the test expects it, write "
    "`with pytest.raises(AuditBlocked)`, from tidemill.core.errors"
)


class Trial:
    """One pipeline of a project on a log in memory, with a lake in a folder of its own. It runs real batches in Spark.

    `clock` is the time of the following batches, with a zone; None means now. `commits` are those of its
    batches. A topic is created, with one partition, when the pipeline names it, so that no idle partition holds the
    watermark back.

    Raises:
        ConfigError: the pipeline was renamed.
        DeclarationError: the pipeline does not exist, or does not fit its contracts.
    """

    def __init__(self, project: Project, pipeline: str, folder: Path, session: SparkSession) -> None:
        self.clock: datetime | None = None
        self.commits: list[Committed] = []
        self._log, self._session, self._name = MemoryLog(), session, pipeline
        self.project = Project(project.folder, _alone(project, folder))
        self.project.__dict__["_files"] = self._log
        for source in self.flow.inputs:
            self._log.create_topic(source.topic, partitions=1)

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self._name

    @property
    def flow(self) -> Flow:
        """The pipeline as it is declared."""
        return self.project.pipeline(self._name)

    def give(self, topic: str, *records: Given) -> None:
        """Append records to a topic, which is created if it does not exist.

        Args:
            topic: a topic that the pipeline reads.
            records: each is the fields of a JSON object, text, bytes, None for a record without a value, or a
                `NewRecord`. Times in fields have a zone and are written as ISO 8601; decimals are written as numbers
                with all their digits.

        Raises:
            ConfigError: the pipeline does not read the topic.
            LogInputError: no record can have a value that was given; nothing was appended.
        """
        self._check_read(topic)
        appended = [as_record(topic, number, each) for number, each in enumerate(records, 1)]
        if topic not in self._log.names():
            self._log.create_topic(topic, partitions=1)
        self._log.append(topic, 0, appended)

    def _check_read(self, topic: str) -> None:
        reads = [o for o in self.flow.spec.graph.operators.values() if isinstance(o, Read)]
        if not any(read.takes(topic) for read in reads):
            named = ", ".join(str(read.topic) for read in reads)
            raise ConfigError(f"{self._name} does not read {topic!r}; it reads {named}", fix="name one of them")

    def run(self, *, limit: int | None = None) -> Committed | None:
        """Run one batch, and return its commit; None if there is nothing to do.

        Args:
            limit: the most records that the batch reads; None: the project's limit.

        Raises:
            AuditBlocked: the batch would publish rows that break a rule of their contract; nothing was published.
            TidemillError: the batch did not commit, as it would not outside a test.
        """
        return self._run(drain=False, limit=limit)

    def end(self) -> Committed | None:
        """Run the last batch, and return its commit: the input ends, and every window closes.

        Raises:
            TidemillError: the batch did not commit, as it would not outside a test.
        """
        return self._run(drain=True, limit=None)

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """Return what is published now, without Tidemill's own columns, ordered by window and key.

        Firings, of which there may be several for these, are ordered by all values as texts: let `index` tell which
        was first.

        Args:
            table: the published table; None if the pipeline has only one.

        Raises:
            ConfigError: the table does not exist, or none is named and there are several.
        """
        sink = self._sink(table)
        found = _read(self.project.uris(self._name).published_table(sink))
        own = [{k: v for k, v in row.items() if k not in PUBLISHED_COLUMNS} for row in found]
        names = sink.row_key or tuple(own[0] if own else ())
        return sorted(own, key=lambda row: [str(row[name]) for name in names])

    def rejected(self) -> list[dict[str, Any]]:
        """Return the records in quarantine, oldest first: `topic`, `offset`, `reasons`, `value` and others."""
        return _oldest_first(_read(self.project.uris(self._name).quarantine()))

    def late(self) -> list[dict[str, Any]]:
        """Return the late records, oldest first. A record that several tables refused appears once for each of them."""
        return _oldest_first(_read(self.project.uris(self._name).late()))

    def firings(self, start: datetime, *, table: str | None = None, **key: object) -> list[tuple[int, str]]:
        """Return when one window was published: each batch, and why (`ON_TIME`, `LATE`, ...).

        Args:
            start: the start of the window; without a zone, it is in UTC.
            table: the published table; None if the pipeline has only one.
            key: the value of each column of the key.

        Raises:
            InputError: no window starts at `start`, which is a datetime, or the key has other columns.
        """
        if not isinstance(start, datetime):
            raise ConfigError(f"firings: expected the start of a window, found {start!r}", fix="give a datetime")
        at = start if start.tzinfo else start.replace(tzinfo=UTC)
        named = {name: str(value) for name, value in key.items()}
        found = lineage(self.project, self._name, self._sink(table).table, at, named)
        return [(each.batch_id, each.timing) for each in found.publications]

    def _run(self, *, drain: bool, limit: int | None) -> Committed | None:
        if self.clock is not None and (not isinstance(self.clock, datetime) or self.clock.tzinfo is None):
            raise ConfigError(f"clock: {self.clock} is no time with a zone", fix="write datetime(..., tzinfo=UTC)")
        if self.clock is not None and not _FIRST_YEAR <= self.clock.year <= _LAST_YEAR:
            raise ConfigError(
                f"clock: {self.clock} is not between the years {_FIRST_YEAR} and {_LAST_YEAR}",
                fix="write a time at which batches may run",
            )
        request = Request(
            executor=this_process(), clock=self.clock or datetime.now(UTC), limit=self.project.limit(limit), drain=drain
        )
        try:
            outcome = run_batch(self.project, self._name, request, session=lambda: self._session)
        except AuditBlocked as error:
            # Nobody can decide about the batch of a trial.
            error.fix = _ABOUT_BLOCKED
            raise
        if isinstance(outcome, NothingToDo):
            return None
        self.commits.append(outcome)
        return outcome

    def _sink(self, table: str | None) -> Sink:
        sinks = {sink.table: sink for sink in self.flow.sinks}
        if table is None and len(sinks) == 1:
            return next(iter(sinks.values()))
        if table is None or table not in sinks:
            raise ConfigError(f"{self._name} publishes {', '.join(sinks)}, found {table!r}", fix="name one of them")
        return sinks[table]


def _alone(project: Project, folder: Path) -> Settings:
    """The project's settings for this machine, with a lake and a log of their own."""
    lake, log = str(folder / "lake"), str(folder / "log")
    return replace(project.settings, lake=lake, log=log, kafka=None, layout="", s3={}, remote="", master="")


def _read(spec: TableSpec) -> list[dict[str, Any]]:
    rows: pa.Table = DeltaRsTable(spec).read() if newest(spec) is not None else pa.table({})
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def _oldest_first(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["topic"], row["offset"]))
