"""Writes of an attempt to tables that the ledger knows: each inside its boundary, and with the mark that it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.bind.flow import Flow
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import TableMark
from tidemill.core.protocol.codec import fingerprint
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.storage.expected_versions import ExpectedVersions
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.engine.storage.table_layout import Uris
from tidemill.tables.create import ensure_table
from tidemill.tables.expected_version import ExpectedVersion
from tidemill.tables.handles import newest
from tidemill.tables.interface import AlreadyThere, Table, TableSpec, Transaction, Written

Write = Callable[[Table[Any], Transaction], Written]


@dataclass(kw_only=True)
class TableWriter:
    """Writes tables for one attempt.

    `expected` is what the ledger knows about the tables. `versions` collects the version of every table that the
    attempt wrote; `written` collects the marks of those tables that the ledger will know.
    """

    flow: Flow
    plan: BatchPlan
    uris: Uris
    writers: RowWriters
    expected: ExpectedVersions
    versions: dict[str, int] = field(default_factory=dict)
    written: dict[str, TableMark] = field(default_factory=dict)

    @cached_property
    def _plan_hash(self) -> str:
        return fingerprint(self.plan)

    def _write(self, spec: TableSpec, staged: StagedRows, write: Write) -> None:
        with boundary(write_of(self.flow, spec), self.plan.batch_id):
            expected = self._expected(spec)
            handle = ensure_table(spec, expected=expected)
            self.wrote(spec, expected, handle, write(staged.writer.table(spec, handle), expected.newest))

    def _expected(self, spec: TableSpec) -> ExpectedVersion:
        """What the ledger knows about a published table, the quarantine or the late table."""
        sinks = [sink for sink in self.flow.sinks if sink.table == spec.name]
        return self.expected.table(sinks[0]) if sinks else self.expected.own(spec)

    def append_slice(
        self, spec: TableSpec, expected: ExpectedVersion, staged: StagedRows, opened: DeltaTable | None = None
    ) -> DeltaTable:
        """Append these rows as the slice of the attempt, and return a handle on the table, which may be `opened`.

        Appends carry the slice as transaction: if the ledger lost its last commit, the same slice is planned again and
        must not be written twice.
        """
        handle = ensure_table(spec, expected=expected, opened=opened)
        table = staged.writer.table(spec, handle)
        self.wrote(
            spec, expected, handle, table.append(staged.rows, transaction=expected.newest, plan_hash=self._plan_hash)
        )
        return handle

    def wrote(self, spec: TableSpec, expected: ExpectedVersion, handle: DeltaTable, written: Written) -> None:
        """Note the version and the mark of a table that was opened as `handle` and written."""
        self.versions[spec.name] = written.version
        self.written[expected.name] = expected.mark_after(handle, written.version)

    def leave(self) -> None:
        """Keep what an earlier attempt has published, and note it for the ledger."""
        for spec, expected in self.expected.all(self.flow, self.uris):
            handle = newest(spec)
            if handle is not None and handle.transaction_version(expected.newest.app_id) == expected.newest.version:
                self.wrote(spec, expected, handle, AlreadyThere(handle.version()))

    def _no_rows(self, spec: TableSpec) -> StagedRows:
        return StagedRows(self.writers.driver, pa.table({c: [] for c in spec.columns[:1]}), 0)


def write_of(flow: Flow, spec: TableSpec) -> str:
    """The boundary around a write to this table."""
    published = any(sink.table == spec.name for sink in flow.sinks)
    return f"published:{spec.name}" if published else spec.name
