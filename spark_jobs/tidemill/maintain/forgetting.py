"""Removes the state of windows that closed for good long ago; the ledger remembers up to which event time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import Fenced
from tidemill.core.plan.position import Position
from tidemill.core.protocol.events import Forgotten
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.view import View
from tidemill.core.time.times import moment
from tidemill.engine.publish.session_results import first_open
from tidemill.engine.storage.state_table import State, forgotten_app
from tidemill.engine.storage.table_layout import Uris
from tidemill.ledger.ledger import Ledger
from tidemill.maintain.task import MaintenanceTask
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.interface import Between, TableSpec, Transaction
from tidemill.tables.keeping import KeptTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenState:
    """The state to remove: of windows that end at `until` or earlier, in slices of batches up to `through`."""

    until: int
    through: int

    def removed(self, uris: Uris, sink: WindowedSink, spec: TableSpec, *, dry_run: bool) -> MaintenanceTask:
        """Remove the panes of these windows, except panes that later windows share."""
        edge = moment(_first_kept(uris, sink, self.until))
        # Rows that a backfill writes there meanwhile stay.
        where = (
            Between(column="pane_start", low=None, high=edge),
            Between(column="batch_id", low=None, high=self.through + 1),
        )
        remembered = Transaction(forgotten_app(uris.owner, sink), self.until)
        with nullcontext() if dry_run else boundary(f"removed:{sink.table}", self.through):
            count = KeptTable(spec).forget(where, remembered=remembered, dry_run=dry_run)
        return MaintenanceTask(table=spec.name, what="rows of windows closed for good removed", count=count)


def _first_kept(uris: Uris, sink: WindowedSink, until: int) -> int:
    """The start of the first pane to keep: windows that end after `until` need it or a later one."""
    if not sink.merging:
        return sink.window.panes.first_ending_after(until).start
    state, forgotten = State.of(uris, sink), until - sink.session_panes.gap
    # A session that is not forgotten and starts before has a row from before, which is enough to find it.
    columns, within = (
        (*sink.keys, "pane_start", "pane_end"),
        (Between(column="pane_start", low=None, high=moment(until)),),
    )
    rows = DeltaRsTable(state.spec, opened=state.handle).read(where=within, columns=columns) if state else None
    return forgotten if rows is None else min(first_open(sink, rows, forgotten + 1), forgotten)


def forgotten_state(
    ledger: Ledger, until_of: Callable[[Position], int | None], now: datetime, *, dry_run: bool
) -> ForgottenState | None:
    """Record in the ledger what is removed, and return it. None while a backfill is open, because it may need it."""

    def event(view: View) -> Forgotten:
        until = until_of(view.position)
        if until is None:
            raise Fenced("nothing more can be forgotten")
        return Forgotten(batch_id=view.last_batch_id, until=until, at=now)

    view = ledger.view()
    until = until_of(view.position)
    # An open batch may need the state that would be removed.
    if until is not None and view.open_batch is None and view.superseded is None and not dry_run:
        with suppress(Fenced), boundary("forgotten", view.last_batch_id):
            ledger.append(event)
        view = ledger.view()
    found = until if dry_run and until is not None else view.position.forgotten_until
    if found is None or view.position.backfill is not None:
        return None
    return ForgottenState(until=found, through=view.position.batch_id)
