"""What the ledger knows about the tables of a batch, and what an attempt may leave there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.core.bind.flow import PUBLISHED, Flow
from tidemill.core.bind.sinks import Sink, StatefulSink, WindowedSink
from tidemill.core.plan.amendments import Switch
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import slice_number
from tidemill.core.time.watermarks import BEGINNING
from tidemill.engine.storage.state_table import forgotten_app
from tidemill.engine.storage.table_layout import NODE_FIELDS, PANE_FIELDS, Uris
from tidemill.tables.expected_version import ExpectedVersion
from tidemill.tables.interface import TableSpec, Transaction


def published(sink: Sink) -> str:
    """The name of a sink's published table in marks."""
    return PUBLISHED + sink.table


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedVersions:
    """The tables that a plan starts from, and what the batch may have left there.

    `attempt` is the newest attempt, 0 before the first. `published` says whether some attempt may have published.
    """

    plan: BatchPlan
    attempt: int
    published: bool = True

    def state(self, sink: StatefulSink) -> ExpectedVersion:
        """The state of a sink."""
        number = slice_number(self.plan.batch_id, self.attempt)
        until = self.plan.position.forgotten_until
        removed = Transaction(forgotten_app(self.plan.pipeline, sink), BEGINNING if until is None else until)
        return replace(self._expected(f"state/{sink.table}", number, by_slice=True), removed=removed)

    def merged(self, sink: WindowedSink) -> ExpectedVersion:
        """The merged panes of a windowed sink."""
        number = slice_number(self.plan.batch_id, self.attempt)
        return self._expected(f"merged/{sink.table}", number, by_slice=True)

    def table(self, sink: Sink) -> ExpectedVersion:
        """A published table."""
        return self._expected(published(sink), self._batch, app=sink.table)

    def own(self, spec: TableSpec) -> ExpectedVersion:
        """The quarantine or the late table."""
        return self._expected(spec.name, self._batch)

    def all(self, flow: Flow, uris: Uris) -> list[tuple[TableSpec, ExpectedVersion]]:
        """Every table that the batch may write."""
        stateful = [s for s in flow.sinks if isinstance(s, StatefulSink)]
        # Until the switch is done, published tables belong to the generation before.
        published = () if isinstance(self.plan.work, Switch) else flow.sinks
        return [
            *((uris.state(s, PANE_FIELDS), self.state(s)) for s in stateful),
            *(
                (uris.merged(s, NODE_FIELDS), self.merged(s))
                for s in stateful
                if isinstance(s, WindowedSink) and s.merges_ahead
            ),
            *((spec, self.own(spec)) for spec in (uris.quarantine(), uris.late())),
            *((uris.published_table(s), self.table(s)) for s in published),
        ]

    @property
    def _batch(self) -> int:
        return self.plan.batch_id if self.published else 0

    def _expected(self, name: str, number: int, *, app: str = "", by_slice: bool = False) -> ExpectedVersion:
        position = self.plan.position
        return ExpectedVersion(
            name=name,
            newest=Transaction(f"{self.plan.pipeline}/{app or name}", number, by_slice=by_slice),
            mark=position.tables.get(name),
            slices=position.slices if by_slice else None,
            exclusive=not app,
        )
