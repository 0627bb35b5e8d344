"""The sessions that a batch publishes, and published ones that it takes back because they merged or go on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.repair.state_retention import forgotten_sessions
from tidemill.core.time.times import micros, moment
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.aggregate.firing import Firing
from tidemill.engine.storage.chains import Chain
from tidemill.tables.interface import Between


@dataclass(frozen=True, kw_only=True)
class SessionFiring:
    """How a batch joins the state of one sink into sessions: by `chain`, of rows that start at `since` or later."""

    chain: Chain
    since: int

    @staticmethod
    def of(sink: WindowedSink, plan: BatchPlan, after: Position) -> SessionFiring:
        """The firing of a sink in a batch that moves the pipeline to `after`."""
        panes, firing = sink.session_panes, Firing.of(sink, plan, after)
        bounds = firing.bounds
        lateness, watermark = micros(sink.allowed_lateness), after.watermark
        chain = Chain(
            keys=sink.keys,
            before=bounds["_before"],
            after=bounds["_after"],
            # Whether a record is late was decided by its own session: whatever session it joins fires.
            refused_until=max(forgotten_sessions(sink, plan.position), BEGINNING),
            again_until=firing.again_until,
            published_until=firing.before if sink.trigger is Trigger.ON_CLOSE else END,
            open_from=BEGINNING if watermark == BEGINNING else panes.open_from(watermark, lateness),
        )
        known = (plan.position.open_since or {}).get(sink.table, BEGINNING)
        return SessionFiring(chain=chain, since=known if plan.live else BEGINNING)

    @staticmethod
    def again(sink: WindowedSink, plan: BatchPlan) -> SessionFiring:
        """All sessions that are not forgotten fire, as far as the watermark of the plan lets them."""
        until = sink.trigger.touched_until(plan.position.watermark)
        return SessionFiring.everything(sink, since=forgotten_sessions(sink, plan.position), until=until)

    @staticmethod
    def everything(sink: WindowedSink, *, since: int = BEGINNING, until: int = END) -> SessionFiring:
        """All sessions fire that end after `since`, at `until` or earlier; none counts as published."""
        chain = Chain(
            keys=sink.keys,
            before=since,
            after=until,
            refused_until=END,
            again_until=BEGINNING,
            published_until=BEGINNING,
            open_from=END,
        )
        return SessionFiring(chain=chain, since=BEGINNING)

    def open_since(self, found: int | None) -> int:
        """An event time: sessions that start earlier are closed after this batch, which found the earliest open one."""
        return self.chain.open_from if found is None else min(found, self.chain.open_from)


def first_open(sink: WindowedSink, state: pa.Table, open_from: int) -> int:
    """The start of the earliest session in rows of state, visible or not, that ends at `open_from` or later.

    It is `open_from` where there is none. Rows that are not visible can only make sessions longer.
    """
    everything = replace(SessionFiring.everything(sink).chain, open_from=open_from)
    rows = state.append_column("_touched", pa.repeat(pa.scalar(False), state.num_rows))
    found = everything.apart(everything.over(rows)).open_since
    return open_from if found is None else found


def remembered(sink: WindowedSink, position: Position) -> Between:
    """Where the published sessions lie that are not forgotten."""
    until, [_, end] = forgotten_sessions(sink, position), sink.bounds
    return Between(column=end, low=None if until == BEGINNING else moment(until + 1), high=None)
