"""The sessions that a batch publishes, and published ones that it takes back because they merged or go on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.open_sessions import OpenSessions
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.repair.state_retention import forgotten_sessions
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.storage.chains import Chain
from tidemill.engine.storage.staged_rows import StagedRows
from tidemill.tables.interface import Between


@dataclass(frozen=True, kw_only=True)
class SessionFiring:
    """How a batch joins the state of one sink into sessions: by `chain`, of rows that start from `since` to `until`."""

    chain: Chain
    since: int
    until: int | None = None

    @staticmethod
    def of(sink: WindowedSink, plan: BatchPlan, after: Position) -> SessionFiring:
        """The firing of a sink in a batch that moves the pipeline to `after`."""
        lateness, watermark = micros(sink.allowed_lateness), plan.position.watermark_of(sink.table)
        then = after.watermark_of(sink.table)
        chain = Chain(
            keys=sink.keys,
            before=watermark if sink.trigger.fires_on_close else END,
            after=then if sink.trigger.fires_on_close else END,
            # Whether a record is late was decided by its own session: whatever session it joins fires.
            refused_until=forgotten_sessions(sink, plan.position),
            again_until=sink.trigger.touched_until(watermark),
            published_until=watermark if sink.trigger.fires_on_close else END,
            whole_after=_whole_after(sink, after),
            open_from=_open_from(sink, then),
        )
        known = (plan.position.open_since or {}).get(sink.table)
        trusted = plan.live and known is not None and lateness <= known.allowed_lateness
        return SessionFiring(chain=chain, since=known.since if known is not None and trusted else BEGINNING)

    @staticmethod
    def again(sink: WindowedSink, plan: BatchPlan) -> SessionFiring:
        """All sessions that are not forgotten fire, as far as the watermark of the plan lets them."""
        until = sink.trigger.touched_until(plan.position.watermark_of(sink.table))
        found = SessionFiring.everything(sink, since=forgotten_sessions(sink, plan.position), until=until)
        return replace(found, chain=replace(found.chain, whole_after=_whole_after(sink, plan.position)))

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
            whole_after=BEGINNING,
            open_from=END,
        )
        return SessionFiring(chain=chain, since=BEGINNING)

    def open_since(self, sink: WindowedSink, found: int | None) -> OpenSessions:
        """Which sessions may be open after this batch, which found the start of the earliest one, if there is one."""
        since = self.chain.open_from if found is None else min(found, self.chain.open_from)
        return OpenSessions(since=since, allowed_lateness=micros(sink.allowed_lateness))


def _open_from(sink: WindowedSink, watermark: int) -> int:
    """The earliest end of a session that a record which is not late may still join."""
    if watermark in (BEGINNING, END):
        return watermark
    return sink.session_panes.open_from(watermark, micros(sink.allowed_lateness))


def _whole_after(sink: WindowedSink, position: Position) -> int:
    """An event time: sessions that start later have all their records; of others, some came before the table."""
    whole = position.whole_after(sink.table)
    # A record that the table lacks may have joined an earlier session with one that starts a gap later.
    return BEGINNING if whole == BEGINNING else whole + sink.session_panes.gap


def times_of(sink: WindowedSink, state: StagedRows) -> list[int]:
    """The starts of the panes that rows of state lie in; of sessions, the first and the last time of their records."""
    starts = state.writer.distinct(state.rows, "pane_start")
    if not sink.merging:
        return starts
    return [min(starts), max(state.writer.distinct(state.rows, "pane_end")) - sink.session_panes.gap]


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
