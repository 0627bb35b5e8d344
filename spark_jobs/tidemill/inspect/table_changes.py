"""What the present declaration and contracts change in published tables: what readers lose, and what a batch does.

Only the Delta log of each table is read. Nothing is written, and no Spark starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.flow import PUBLISHED
from tidemill.core.bind.meaning import Meaning, meanings
from tidemill.core.bind.sinks import RowSink, Sink, StatefulSink, WindowedSink
from tidemill.core.contract.fitting import Fit, fit
from tidemill.core.contract.schema import DataType, Field, spark_type
from tidemill.core.identity.written import described, same
from tidemill.tables.arrow_types import data_type
from tidemill.tables.create import PROTOCOL, type_text
from tidemill.tables.handles import newest

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from tidemill.core.bind.flow import Flow
    from tidemill.core.protocol.view import View
    from tidemill.project.project import Project
    from tidemill.tables.interface import TableSpec


class Outcome(StrEnum):
    """What the next batch does about a change.

    It TAKES the change; or is refused until somebody DECIDES; or is REFUSED whatever somebody decides; or it is planned
    and STOPS when it publishes. Then it stays open.
    """

    TAKES = "takes"
    DECIDES = "decides"
    REFUSED = "refused"
    STOPS = "stops"


_TOLD: Mapping[Outcome, str] = {
    Outcome.DECIDES: "is refused until somebody decides: `tidemill rebuild {0}`, or `tidemill run {0} --from-now --why "
    "TEXT`, which keeps the table as it is and fills what is missing with null; or undo the change in the "
    "pipeline file or contract",
    Outcome.REFUSED: "is refused: undo the change, publish to a table of another name, or `tidemill rebuild {0}`",
    Outcome.STOPS: "stops when it publishes, and stays open: {1}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """One difference between a published table and what would be published to it now.

    `column` is empty for a change of the whole table. `readers` says what readers lose, and is empty if they lose
    nothing. `batch` says what the next batch does about it.
    """

    table: str
    change: str
    column: str = ""
    before: str
    now: str
    readers: str = ""
    outcome: Outcome
    batch: str

    @property
    def is_wrong(self) -> bool:
        """Whether readers lose something, or the next batch cannot run."""
        return bool(self.readers) or self.outcome is not Outcome.TAKES

    def __str__(self) -> str:
        what = f"{self.table}.{self.column}" if self.column else self.table
        return f"{what} {self.change}: {self.before}, now {self.now}"


def change_json(change: TableChange) -> dict[str, object]:
    """A change as JSON values."""
    return {**asdict(change), "is_wrong": change.is_wrong}


def table_changes(project: Project, flow: Flow, view: View) -> tuple[TableChange, ...]:
    """Every change of the published tables of a pipeline; none for a table that is not there yet.

    Raises:
        ForeignTable: a table belongs to another pipeline.
        TableDamaged: the Delta log of a table is damaged.
        EngineError: a table cannot be opened.
    """
    found = list(_unpublished(flow, view))
    for sink in flow.sinks:
        spec = project.uris(flow.name).published_table(sink)
        # The batch makes this check, too, before it is planned.
        handle = newest(spec, thoroughly=True)
        if handle is not None:
            found += _Table(flow, view, sink, spec, handle).changes()
    return tuple(found)


def _unpublished(flow: Flow, view: View) -> Iterator[TableChange]:
    """The tables that the last batch published, and that no step publishes now."""
    published, known = {sink.table for sink in flow.sinks}, view.position.meanings or {}
    for table in known:
        if table not in published and PUBLISHED + table in view.position.tables:
            yield TableChange(
                table=table,
                change="is published no more",
                before="published",
                now="not declared",
                readers=f"{table} gets no new rows",
                outcome=Outcome.TAKES,
                batch="leaves the table as it is",
            )


@dataclass(frozen=True)
class _Table:
    """One table that exists, and the sink that publishes to it."""

    flow: Flow
    view: View
    sink: Sink
    spec: TableSpec
    handle: DeltaTable

    def changes(self) -> Iterator[TableChange]:
        yield from self._of_table()
        columns = {f.name.lower(): f for f in self.handle.schema().fields}
        kinds = _kinds(self.handle)
        for field in self.spec.fields:
            column = columns.pop(field.name.lower(), None)
            if column is None:
                yield self._added(field)
                continue
            before, now = type_text(column.type), spark_type(field.type)
            if column.name != field.name:
                lost = f"readers that heed capitals do not find `{column.name}`"
                yield self._stops("is spelt in another way", field.name, column.name, field.name, lost)
            elif before != now:
                yield self._retyped(field, before, kinds.get(column.name))
            elif not column.nullable and not field.required:
                yield self._may_be_null(field.name, "null is allowed", f"`{field.name}` may be null")
        for column in columns.values():
            yield from self._dropped(column.name, type_text(column.type), nullable=column.nullable)
        yield from self._nulls()

    def _of_table(self) -> Iterator[TableChange]:
        partitions = tuple(self.handle.metadata().partition_columns)
        if partitions != self.spec.partition_by:
            shown = (", ".join(columns) or "none" for columns in (partitions, self.spec.partition_by))
            yield self._stops("is partitioned by other columns", "", *shown)
        protocol = tuple(self.handle.protocol()[:2])
        if protocol > PROTOCOL:
            yield self._stops("needs a newer protocol of Delta", "", str(protocol), str(PROTOCOL))
        shape = self.view.position.shapes.get(self.sink.table, {})
        if isinstance(self.sink, StatefulSink) and (before := shape.get("keys")) is not None:
            now = self.sink.shape["keys"]
            if not same(before, now) and before != self.sink.legacy_shape.get("keys"):
                lost = "rows are told apart by other columns: a join by the old ones finds none or several"
                old, new = described(before), described(now)
                yield self._change("has other keys", "", old, new, lost, Outcome.REFUSED)

    def _added(self, field: Field) -> TableChange:
        known, name = self._meaning, f"column {field.name}"
        outcome = Outcome.TAKES
        # The column that says why a row was published is in no meaning.
        if known is not None and name in meanings(self.flow)[self.sink.table] and name not in known:
            outcome = self._other_meaning
        told = "adds the column; rows that are there have null"
        return self._change("is new", field.name, "not there", spark_type(field.type), "", outcome, told)

    def _dropped(self, name: str, before: str, *, nullable: bool) -> Iterator[TableChange]:
        known, outcome = self._meaning, Outcome.TAKES
        if known is not None and f"column {name}" in known:
            outcome = self._other_meaning
        elif self._is_known or (known is not None and not isinstance(self.sink, WindowedSink)):
            # Earlier batches left it out already: somebody decided so.
            if not nullable:
                yield self._may_be_null(name, "not published", "")
            return
        told = "keeps the column; rows that it writes have null there"
        lost = f"`{name}` is not published any more"
        yield self._change("is dropped", name, before, "not declared", lost, outcome, told)

    def _retyped(self, field: Field, before: str, kind: DataType | None) -> TableChange:
        now, change = spark_type(field.type), "has another type"
        lost = f"what uses `{field.name}` as {before} fails, or means something else"
        if kind is not None and fit(kind, field.type) is Fit.FITS:
            change, lost = "has a wider type", f"programs that hold `{field.name}` as {before} fail at larger values"
        elif kind is not None and fit(field.type, kind) is Fit.FITS:
            change, lost = "has a narrower type", f"values of `{field.name}` that {now} does not hold are not published"
        last = self.view.last_commit
        # Types are checked before the first plan of a declaration; then somebody else has changed the table.
        if last is not None and last.logical_hash == self.flow.logical_hash:
            return self._stops(change, field.name, before, now, lost)
        return self._change(change, field.name, before, now, lost, Outcome.REFUSED)

    def _may_be_null(self, name: str, now: str, lost: str) -> TableChange:
        fix = f"the table refuses null: ALTER TABLE ... ALTER COLUMN {name} DROP NOT NULL"
        return self._stops("may be null", name, "NOT NULL", now, lost, fix)

    def _nulls(self) -> Iterator[TableChange]:
        """Columns that are required, and of which the log knows that rows have null."""
        files = pa.table(self.handle.get_add_actions(flatten=True))
        for field in self.spec.fields:
            name = f"null_count.{field.name}"
            count = pc.sum(files[name]).as_py() if field.required and name in files.column_names else 0
            if count:
                yield self._change(
                    "is required, and has null", field.name, f"{count:,} rows with null", "required", told="leaves them"
                )

    def _stops(  # noqa: PLR0913, PLR0917  what a change is
        self, change: str, column: str, before: str, now: str, lost: str = "", fix: str = ""
    ) -> TableChange:
        fix = fix or "put the table back as it was, or publish to a table of another name"
        return self._change(change, column, before, now, lost, Outcome.STOPS, fix)

    def _change(  # noqa: PLR0913, PLR0917  what a change is
        self,
        change: str,
        column: str,
        before: str,
        now: str,
        lost: str = "",
        outcome: Outcome = Outcome.TAKES,
        told: str = "",
    ) -> TableChange:
        return TableChange(
            table=self.sink.table,
            change=change,
            column=column,
            before=before,
            now=now,
            readers=lost,
            outcome=outcome,
            batch=_TOLD[outcome].format(self.flow.name, told) if outcome in _TOLD else told,
        )

    @property
    def _meaning(self) -> Meaning | None:
        """What the numbers of the table mean since the last batch; None if no batch has written it down."""
        return (self.view.position.meanings or {}).get(self.sink.table)

    @property
    def _other_meaning(self) -> Outcome:
        """What becomes of a change of the columns that are computed: state has no values of other aggregates."""
        return Outcome.DECIDES if isinstance(self.sink, RowSink) else Outcome.REFUSED

    @property
    def _is_known(self) -> bool:
        """Whether the last batch had this declaration already."""
        last = self.view.last_commit
        return last is not None and last.logical_hash in self.flow.hashes


def _kinds(handle: DeltaTable) -> Mapping[str, DataType]:
    """The types of a table's columns, without those that contracts do not have."""
    found: dict[str, DataType] = {}
    for column in pa.schema(handle.schema().to_arrow()):
        try:
            found[column.name] = data_type(column.type)
        except ValueError:
            continue
    return found
