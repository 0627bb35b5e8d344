"""Reads what keys of ordered windows kept at some moment."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.errors import EngineError
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import SliceSet
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.repair.replaying import is_readable
from tidemill.engine.publish.ordered_state import Kept
from tidemill.engine.storage.expected_versions import ExpectedVersions
from tidemill.engine.storage.row_writers import DriverWriter
from tidemill.engine.storage.state_table import State, horizon_of, pane_predicates
from tidemill.engine.storage.table_layout import Uris


@dataclass(frozen=True, kw_only=True)
class KeptReader:
    """Reads state for the batch of a plan."""

    plan: BatchPlan
    uris: Uris
    driver: DriverWriter
    expected: ExpectedVersions

    def now(self, sink: FiringSink) -> Kept | None:
        """The state that counts before the batch; None when there is none."""
        return self.of(sink, self.plan.position.slices_of_firings)

    def then(self, sink: FiringSink, replay: Replay) -> Kept | None:
        """The state before the first batch of a replay; None when there was none.

        Raises:
            EngineError: maintenance has removed some of it since the batch was planned.
        """
        found = self.of(sink, replay.before)
        # Maintenance that began before the plan may remove state at any moment: look once all is read.
        if not is_readable(replay.before, self.plan.position.slices_of_firings, horizon_of(self.uris, sink)):
            raise EngineError(
                f"{sink.table}: maintenance has removed what keys kept before batch {replay.since} since batch "
                f"{self.plan.batch_id} was planned",
                fix=f"compute all again: `tidemill rebuild {self.uris.pipeline}`",
            )
        return found

    def of(self, sink: FiringSink, slices: SliceSet) -> Kept | None:
        """The state in some slices; None when there is none."""
        with boundary(f"panes:{sink.table}", self.plan.batch_id):
            state = State.of(self.uris, sink, self.expected.state(sink))
            if state is None:
                return None
            rows = state.read(self.driver, [pane_predicates((None, None))], slices)
        return Kept.of(sink, rows)
