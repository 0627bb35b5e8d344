"""What a command or a form would do, and what an audit or a comparison found, as lines of text for people.

The command line prints these lines, and Airflow's runs log them, so that both say the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemill.core.counts import many
from tidemill.core.plan.slices import batch_ranges, show_batches
from tidemill.core.protocol.events import told
from tidemill.core.time.times import show_moment

if TYPE_CHECKING:
    from tidemill.core.contract.verdict import CheckResult
    from tidemill.core.plan.plan import BatchPlan
    from tidemill.core.plan.position import Since
    from tidemill.core.time.panes import Window
    from tidemill.inspect.verify import Verified
    from tidemill.repair.backfill import Preview
    from tidemill.repair.rewind import TakenBack

NOTHING_DONE = "nothing was done: this is a dry run"
_SHOWN = 5
"""The most ranges of windows that a line names."""


def backfill_lines(found: Preview) -> Iterator[str]:
    """What a backfill would read, how long it would take, and which windows would change."""
    if found.asked is not None and found.asked < found.records:
        asked, read = many(found.asked, "record"), f"{found.records:,}"
        yield f"asked     for {asked}; whole batches are read again, which makes {read}"
    yield f"reads     {many(found.records, 'record')}, in whole batches: {', '.join(range_texts(found))}"
    beside = "live ones in between" if found.replaying is None else "live ones wait for it"
    yield f"in        {many(found.batches, 'batch')}, about {found.seconds:.0f} s once Spark runs, {beside}"
    yield f"instead   of what {show_batches(batch_ranges(c.batch_id for c in found.covers))} made"
    rows = [(name, show_moment(w.start), show_moment(w.end)) for name, each in found.windows.items() for w in each]
    if rows:
        yield from _columns([("table", "windows from", "to"), *rows])
    elif found.windows and not found.unknown and not found.late:
        yield "changes   no window that is published now"
    yield from _of_firings(found)
    yield from _of_records(found)
    for name in found.unknown:
        yield f"{name}: and where else its records lie: batches left it out, and only the records tell"
    for table, count in found.left.items():
        yield (
            f"{count:,} windows of {table} stay as they were published: their state was removed, and other batches "
            "have a part in them; --windows takes these batches, too"
        )


def _of_firings(found: Preview) -> Iterator[str]:
    """Which firings are computed again."""
    if found.replaying is not None:
        tables, since = ", ".join(found.firings), found.replaying.replay.since
        why = f": {found.replaying.why}" if found.replaying.why else ""
        yield f"firings   of {tables} from batch {since} up to the last one are computed again{why}"


def _of_records(found: Preview) -> Iterator[str]:
    """What becomes of late and rejected records that the backfill reads."""
    for name, (number, w) in found.late.items():
        where = name if w is None else f"windows of {name} from {show_moment(w.start)} to {show_moment(w.end)}"
        yield f"late      {number:,} of these records now count in {where}"
    if found.rejected:
        yield f"rejected  {found.rejected:,} of these records are judged again, and count if they pass now"


def range_texts(found: Preview) -> list[str]:
    """The offsets that a backfill would read, each range as text."""
    return [str(r) for items in found.ranges.values() for r in items]


def rewind_lines(found: TakenBack) -> Iterator[str]:
    """What a rewind would take back, and what would be read again."""
    yield f"taken back    {show_batches(batch_ranges(found.batches))}"
    yield f"read again    {', '.join(map(str, found.ranges)) or 'nothing'}"
    for table, version in found.versions.items():
        yield f"{table}: " + ("will have no rows" if version is None else f"goes back to version {version}")
    for batch, asked in found.asked.items():
        yield f"undoes        the {asked.kind} of batch {batch}, by {told(asked.by, asked.why)}"
    yield from undone_lines(found.decisions)


def undone_lines(decisions: Mapping[str, Since]) -> Iterator[str]:
    """The decisions about what numbers mean that are taken back, too, one line for each table."""
    for table, since in decisions.items():
        decided = f"the decision of batch {since.batch_id} about what numbers mean ({told(since.by, since.why)})"
        yield f"{table}: {decided} is taken back, too; the next batch waits for another one"


def audit_lines(results: Sequence[CheckResult]) -> Iterator[str]:
    """What an audit found: one line for each rule that is broken, with rows that break it below, and how many hold."""
    broken = [each for each in results if not each.passed]
    for each in broken:
        yield f"broken    {each}"
        yield from (f"          row {dict(row)}" for row in each.failing_rows)
    yield f"holds     {many(len(results) - len(broken), 'other rule' if broken else 'rule')}"


def read_line(plan: BatchPlan) -> str:
    """Which records a batch has read."""
    read = ", ".join(str(item) for ranges in plan.reads.values() for item in ranges)
    return f"batch {plan.batch_id} read {many(plan.records, 'record')}: {read or 'no offsets'}"


def verified_lines(found: Verified) -> Iterator[str]:
    """The result of comparing one table, with what was left out, and examples of differences."""
    differences = found.differences
    sides = f": {differences.missing:,} missing, {differences.extra:,} too many" if differences.count else ""
    yield f"{found.table}: {many(differences.compared, 'row')} compared, {differences.count:,} different{sides}"
    if left_out := not_compared(found):
        yield f"  not compared: {left_out}"
    for each in differences.examples:
        yield f"  expected {row_text(each.expected)}"
        yield f"  found    {row_text(each.found)}"


def row_text(row: Mapping[str, Any] | None) -> dict[str, str] | None:
    """A row with each value as text; None if there is no such row."""
    return None if row is None else {name: value_text(value) for name, value in row.items()}


def value_text(value: object) -> str:
    """A value as text; of bytes, which may be many, their number and the begin of their hash."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes, SHA-256 {hashlib.sha256(value).hexdigest()[:12]}"
    return str(value)


def not_compared(found: Verified) -> str:
    """What cannot be compared, and why; empty if everything was compared."""
    return "; ".join(text for text in (_of_before(found), _parted(found.parted)) if text)


def _parted(windows: Sequence[Window]) -> str:
    if not windows:
        return ""
    return (
        f"windows that start {_stretches(windows)}: a record came when they had closed, and counts only in those "
        "of its windows that were open"
    )


def _stretches(windows: Sequence[Window]) -> str:
    where = ", ".join(map(_stretch, windows[:_SHOWN]))
    return f"{where}, and {len(windows) - _SHOWN:,} more stretches" if len(windows) > _SHOWN else where


def _stretch(window: Window) -> str:
    first, last = show_moment(window.start), show_moment(window.end - 1)
    return f"at {first}" if first == last else f"from {first} to {last}"


def _of_before(found: Verified) -> str:
    """What another declaration computed; empty if there is nothing."""
    if found.since is None or (not found.earlier and found.since.event_time is None):
        return ""
    where = f", in windows that start {_stretches(found.left_out)}" if found.left_out else ""
    parts = [f"what {show_batches(found.earlier)} made{where}"] if found.earlier else []
    if found.since.event_time is not None:
        whole = show_moment(found.since.event_time)
        parts.append(f"windows that start up to {whole}, when batches had left the table out")
    said = f"since batch {found.since.batch_id} numbers mean something else ({told(found.since.by, found.since.why)})"
    return f"{', and '.join(parts)}; {said}"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
