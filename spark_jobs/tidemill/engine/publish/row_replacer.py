"""Replaces some rows of tables: those of some keys, those of some records, or all within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.publish.firings import Fires
from tidemill.engine.publish.replaced_keys import ReplacedKeys
from tidemill.engine.publish.table_writer import TableWriter
from tidemill.engine.storage.staged_rows import StagedRows
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.fence import find_commit
from tidemill.tables.handles import newest
from tidemill.tables.interface import Between, Table, TableSpec, Transaction, Written
from tidemill.tables.rewrite import Picked


def version_before(handle: DeltaTable, wrote: Transaction) -> int | None:
    """The version of a table before a transaction; None, for the newest one, if the table does not have it."""
    there = handle.transaction_version(wrote.app_id) == wrote.version
    found = find_commit(handle, wrote) if there else None
    return None if found is None else found[0] - 1


@dataclass(kw_only=True)
class RowReplacer(TableWriter):
    """Writes that replace rows, and what they change."""

    def replace_keys(self, sink: FiringSink, staged: StagedRows, keys: pa.Table) -> None:
        """Replace the rows that batches have published of these keys since the first one that is folded again."""
        spec, replaced = self.uris.published_table(sink), ReplacedKeys.of(self.plan, sink, keys)
        if sink.replaces:
            self.keep(sink, replaced.changes(self.plan, self._before(spec), staged.writer.arrow(staged.rows)))
        self.replace_picked(spec, staged, replaced.within, replaced.picked, lambda: self._others(spec, replaced))

    def of_keys(self, sink: FiringSink, fires: Fires, keys: pa.Table) -> Fires:
        """What fires, as the rows to publish of these keys, also if there are none, with what vanishes."""
        staged = fires.rows or self.writers.in_driver(arrow_schema(sink.contract.fields).empty_table())
        if not sink.replaces:
            return replace(fires, rows=staged)
        before = self._before(self.uris.published_table(sink))
        gone = ReplacedKeys.of(self.plan, sink, keys).vanished(before, staged.writer.arrow(staged.rows))
        return replace(fires, rows=staged, gone=self.writers.in_driver(gone) if gone.num_rows else None)

    def _before(self, spec: TableSpec) -> Iterator[pa.Table]:
        """The rows of a table before this batch, in parts, even if an earlier attempt has already changed it."""
        if (handle := newest(spec)) is not None:
            version = version_before(handle, self._expected(spec).newest)
            yield from DeltaRsTable(spec).batches(version=version)

    def _others(self, spec: TableSpec, replaced: ReplacedKeys) -> StagedRows:
        """The rows of other keys that lie where rows are replaced, for Spark to write them again."""
        there = self.writers.spark.table(spec).read(any_of=tuple((bounds,) for bounds in replaced.within))
        keys = self.writers.frame([self.writers.in_driver(replaced.keys)])
        return StagedRows(self.writers.spark, *self.writers.spark.stage(replaced.others_in_spark(there, keys)))

    def replace_picked(
        self,
        spec: TableSpec,
        rows: StagedRows,
        within: tuple[Between, ...],
        only: Picked,
        left: Callable[[], StagedRows],
    ) -> None:
        """Replace the rows inside `within` that `only` means; `left` gives the others there."""
        if rows.writer is self.writers.driver:

            def take(table: Table[Any], named: Transaction) -> Written:
                assert isinstance(table, DeltaRsTable)
                return table.replace(rows.rows, within=within, transaction=named, plan_hash=self._plan_hash, only=only)

            self._write(spec, rows, take)
            return
        # Spark can only replace all rows of a batch, so the rows that stay are written again.
        stay = left()
        whole = self.writers.together([rows, stay]) if stay.count else rows
        self._write(spec, whole, lambda table, transaction: self._replace(table, whole, within, transaction))

    def _replace(
        self, table: Table[Any], staged: StagedRows, within: tuple[Between, ...], transaction: Transaction
    ) -> Written:
        return table.replace(staged.rows, within=within, transaction=transaction, plan_hash=self._plan_hash)

    def keep(self, sink: StatefulSink, rows: pa.Table) -> None:
        """Append to the table of corrections."""
        spec, changed = self.uris.corrections(), self.writers.in_driver(rows)
        named = Transaction(f"{self.flow.key}/{spec.name}/{sink.table}", self.plan.batch_id)
        with boundary("corrections", self.plan.batch_id):
            table = changed.writer.table(spec)
            self.versions[spec.name] = table.append(changed.rows, transaction=named, plan_hash=self._plan_hash).version
