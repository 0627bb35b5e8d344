"""Where the tables of a pipeline lie, and which columns they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tidemill.core.bind.sinks import Sink, StatefulSink, updates_rows
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.repair.side_outputs import LATE_FIELDS, QUARANTINE_FIELDS
from tidemill.engine.storage.corrections import CORRECTION_FIELDS
from tidemill.tables.interface import Between, TableSpec

OWN_FIELDS = (
    Field(name="batch_id", type=Scalar.LONG, required=True, description="the batch that wrote this row last"),
    Field(name="published_at", type=Scalar.TIMESTAMP, required=True, description="the clock of that batch"),
)

EVERY_ROW = Between(column="batch_id", low=None, high=None)
"""A condition that every row of a published table meets."""

PANE_FIELDS = (Field(name="pane_day", type=Scalar.DATE), Field(name="pane_start", type=Scalar.TIMESTAMP))
NODE_FIELDS = (Field(name="pane_level", type=Scalar.INTEGER), Field(name="pane_start", type=Scalar.TIMESTAMP))
"""The columns that merged panes of every sink have: level and start of a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uris:
    """Where the tables of one pipeline lie. Their `owner` is the pipeline by its first name.

    `storage` gives the options to reach their store, as in `TableSpec`.
    """

    pipeline: str
    owner: str
    table: Callable[..., str]
    published: Callable[[str], str]
    storage: Callable[[], Mapping[str, str]] = field(default=dict, repr=False)

    def state(self, sink: StatefulSink, fields: tuple[Field, ...]) -> TableSpec:
        """The state of a sink: one row per pane, or piece, and key and slice."""
        return TableSpec(
            name=f"state of {sink.table}",
            uri=self.table(self.pipeline, "state", sink.table),
            storage=self.storage,
            owner=self.owner,
            fields=fields,
            partition_by=("pane_day",),
            pruned_by=("pane_start",),
            own=True,
            description=f"Partial aggregates of {sink.table}: only rows whose slice is committed count.",
        )

    def merged(self, sink: StatefulSink, fields: tuple[Field, ...]) -> TableSpec:
        """The merged panes of a sink: one row per node, key and slice."""
        return TableSpec(
            name=f"merged panes of {sink.table}",
            uri=self.table(self.pipeline, "merged", sink.table),
            storage=self.storage,
            fields=fields,
            partition_by=("pane_level",),
            pruned_by=("pane_start",),
            own=True,
            description=f"Rows of state of {sink.table}, merged ahead: derived from it, and of the same slices.",
        )

    def published_table(self, sink: Sink) -> TableSpec:
        """A published table: the columns of its contract, then Tidemill's own."""
        # Delta has no statistics after 32 columns: `batch_id` could not tell files of neighbouring batches apart.
        pruned = ("batch_id",) if len(sink.contract.fields) >= 32 else ()
        return TableSpec(
            name=sink.table,
            uri=self.published(sink.table),
            storage=self.storage,
            owner=self.owner,
            fields=(*sink.contract.fields, *OWN_FIELDS),
            pruned_by=sink.bounds[:1] if updates_rows(sink) else pruned,
            description=sink.contract.description,
        )

    def quarantine(self) -> TableSpec:
        """Rejected records."""
        return TableSpec(
            name="quarantine",
            uri=self.table(self.pipeline, "quarantine"),
            storage=self.storage,
            owner=self.owner,
            fields=QUARANTINE_FIELDS,
            pruned_by=("batch_id",),
            description=f"Records that {self.pipeline} rejected, with every reason and their raw bytes.",
        )

    def late(self) -> TableSpec:
        """Late rows."""
        return TableSpec(
            name="late",
            uri=self.table(self.pipeline, "late"),
            storage=self.storage,
            owner=self.owner,
            fields=LATE_FIELDS,
            pruned_by=("batch_id",),
            description=f"Rows that came to {self.pipeline} after every window of theirs had closed.",
        )

    def corrections(self) -> TableSpec:
        """Published windows before and after repairs."""
        return TableSpec(
            name="corrections",
            uri=self.table(self.pipeline, "corrections"),
            storage=self.storage,
            owner=self.owner,
            fields=CORRECTION_FIELDS,
            pruned_by=("batch_id",),
            description=f"What repairs of {self.pipeline} changed in published windows.",
        )

    def waiting(self, spec: TableSpec) -> TableSpec:
        """The table in which rows for a table wait until their backfill is complete."""
        name = f"waiting:{spec.name}"
        return replace(
            spec, name=name, uri=self.table(self.pipeline, "waiting", spec.name), pruned_by=("batch_id",), own=True
        )
