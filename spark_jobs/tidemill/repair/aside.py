"""What was put aside of records that a backfill reads again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.amendments import Ranges, SideOutput
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.panes import Window
from tidemill.core.time.times import micros
from tidemill.repair.job import AmendmentJob


def count_rejected(amendment: AmendmentJob, ranges: Ranges) -> int:
    """How many records of these offsets are in the quarantine."""
    return len(_aside(amendment, SideOutput.QUARANTINE, ranges, ()))


def late_of(amendment: AmendmentJob, ranges: Ranges) -> Mapping[str, tuple[int, Window | None]]:
    """How many late rows of these offsets each declared table of windows has.

    With them the event times from the start of the first window that such a row belongs to, to the end of the last
    one; None where windows have no bounds.
    """
    sinks, found = {sink.table: sink for sink in amendment.windowed}, dict[str, tuple[int, Window | None]]()
    for row in _aside(amendment, SideOutput.LATE, ranges, ("table_name", "event_time")):
        sink = sinks.get(row["table_name"])
        if sink is not None:
            number, known = found.get(sink.table, (0, None))
            found[sink.table] = number + 1, _spanned(sink, micros(row["event_time"]), known)
    return found


def _spanned(sink: WindowedSink, time: int, known: Window | None) -> Window | None:
    """What is known, and the windows of this time."""
    panes = sink.window.panes
    if sink.start is None:
        return None
    first = panes.last_window_of(time) if sink.merging else panes.first_ending_after(time)
    bounds = Window(first.start, panes.last_window_of(time).end)
    return bounds if known is None else Window(min(known.start, bounds.start), max(known.end, bounds.end))


def _aside(
    amendment: AmendmentJob, output: SideOutput, ranges: Ranges, columns: tuple[str, ...]
) -> list[dict[str, Any]]:
    chosen = amendment.side_tables.choose(output, Selection(), columns=("topic", "partition", "offset", *columns))
    held = [r for items in ranges.values() for r in items]
    rows = [] if chosen is None else chosen.rows.to_pylist()
    return [row for row in rows if any(_holds(r, row) for r in held)]


def _holds(found: OffsetRange, row: Mapping[str, Any]) -> bool:
    place = TopicPartition(row["topic"], row["partition"])
    return found.topic_partition == place and found.from_offset <= row["offset"] < found.until_offset
