"""Whether published tables keep the freshness and latency of their contracts, from the newest commit alone.

*Freshness* is the time from the newest instant that a table covers until now. *Latency* is the time from that instant
until the commit that published it. A table that publishes windows when they close covers the time up to the end of the
last closed window. Any other table covers the time up to the newest event time that was read for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import Sink, WindowedSink
from tidemill.core.contract.service_level import ServiceLevel
from tidemill.core.counts import many
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.view import View
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


class Kept(StrEnum):
    """Whether a level is kept. UNKNOWN: the newest commit cannot tell, or the contract gives no number and unit."""

    MET = "met"
    MISSED = "missed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLevel:
    """A service level of a table. `measured` is in microseconds; None where it is unknown, and `why` says so."""

    table: str
    level: ServiceLevel
    covers_until: int | None
    measured: int | None
    why: str = ""

    @property
    def kept(self) -> Kept:
        """Whether what was measured is at most what is promised."""
        if self.measured is None or self.level.most is None:
            return Kept.UNKNOWN
        return Kept.MET if self.measured <= self.level.most else Kept.MISSED

    def __str__(self) -> str:
        promised = f"{self.table}: {self.level.name} of at most {self.level.text}"
        if self.measured is None:
            return f"{promised}: {self.kept}: {self.why}"
        return f"{promised}: {self.kept}: {rough(self.measured // 1_000_000)}"


def rough(seconds: int) -> str:
    """A time in its two largest units, for people: `327 days 12 hours`, or `21 seconds`."""
    for number, (unit, length) in enumerate(_UNITS):
        if seconds >= length:
            parts = [(seconds // length, unit)]
            parts += [(seconds % length // below, name) for name, below in _UNITS[number + 1 : number + 2]]
            return " ".join(many(count, name) for count, name in parts if count)
    return "0 seconds"


def level_json(found: MeasuredLevel) -> dict[str, object]:
    """A measured level as JSON values; times are in seconds."""
    covers, most, measured = found.covers_until, found.level.most, found.measured
    return {
        "table": found.table,
        "property": found.level.name,
        "element": found.level.element or None,
        "promised": found.level.text,
        "promised_seconds": None if most is None else most / 1_000_000,
        "measured_seconds": None if measured is None else measured / 1_000_000,
        "covers_until": None if covers is None else moment(covers).isoformat(),
        "state": found.kept.value,
        "why": found.why or None,
    }


def service_levels(flow: Flow, view: View, now: datetime) -> tuple[MeasuredLevel, ...]:
    """Every freshness and latency that the contracts of published tables promise, measured at `now`."""
    return tuple(_measured(flow, view, now))


def missed_after(flow: Flow, commit: Committed) -> tuple[str, ...]:
    """The levels that are missed right after a commit, for people."""
    found = service_levels(flow, View(position=commit.position, last_commit=commit), commit.at)
    return tuple(str(each) for each in found if each.kept is Kept.MISSED)


def _measured(flow: Flow, view: View, now: datetime) -> Iterator[MeasuredLevel]:
    for sink in flow.sinks:
        covers = _covers_until(flow, sink, view.position)
        for level in sink.contract.levels:
            found = _of_level(sink, level, view, covers, now)
            measured, why = (found, "") if isinstance(found, int) else (None, found)
            yield MeasuredLevel(table=sink.table, level=level, covers_until=covers, measured=measured, why=why)


def _of_level(sink: Sink, level: ServiceLevel, view: View, covers: int | None, now: datetime) -> int | str:
    """What was measured, or why nothing can be."""
    commit = view.last_commit
    if level.most is None:
        return "the contract gives no number with a unit of time"
    if commit is None or covers is None:
        return "nothing is published yet"
    if level.name == "freshness":
        return max(micros(now) - covers, 0)
    if commit.kind is not Kind.LIVE or not commit.published.get(sink.table):
        return f"batch {commit.batch_id}, the last one, published no new rows to it"
    return max(micros(commit.at) - covers, 0)


def _covers_until(flow: Flow, sink: Sink, position: Position) -> int | None:
    """The newest instant that a table covers, in microseconds; None before it covers any."""
    watermark = position.watermark_of(sink.table)
    if isinstance(sink, WindowedSink) and sink.trigger.fires_on_close and watermark != END:
        if watermark == BEGINNING:
            return None
        panes = sink.window.panes
        return panes.last_ending_by(watermark).end
    if isinstance(sink, FiringSink) and sink.waits_for_watermark and watermark != END:
        return None if watermark == BEGINNING else watermark
    topics = {source.topic for source in flow.inputs if source.name in sink.paths}
    labels = {source.name for source in flow.patterns} & set(sink.paths)
    clocks = (clock for place, clock in position.clocks.items() if labels or place.topic in topics)
    return max((c.max_event_time for c in clocks if c.max_event_time is not None), default=None)
