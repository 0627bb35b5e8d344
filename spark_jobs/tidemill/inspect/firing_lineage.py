"""Where the rows of a table of firings come from.

What a firing is made of follows from all records of its key before it, so this is told of a key: the batches that
folded records of it, and those that published its firings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.errors import InputError
from tidemill.core.history.index import IndexedBatch
from tidemill.core.plan.slices import batch_ranges
from tidemill.core.time.panes import Window
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.storage.table_layout import Uris
from tidemill.inspect.contributions import (
    Lineage,
    check_key,
    contributions,
    corrections_of,
    slices_of,
)
from tidemill.inspect.firings import Publication
from tidemill.inspect.window_rows import matching, nothing_counted, rows_of
from tidemill.ledger.ledger import Ledger

_FIRING = "FIRING"
"""The timing of firings whose table has no column for it."""


def lineage_of_firings(
    uris: Uris, ledger: Ledger, sink: FiringSink, start: datetime | None, key: Mapping[str, str]
) -> Lineage:
    """Find what made the firings of a key, or of one of its windows, from ledger, state and published table.

    `row` is the newest firing. State says of a key which batches brought records that it still needs; a batch that
    wrote all state anew says it in the place of those before it. A batch that fired is there even without such rows.
    Rows that an open batch has published are there, too, and it becomes one of the publications when it commits.

    Raises:
        InputError: windows of the table have no start, the key has other columns, or no record counts there.
    """
    if start is not None and sink.start is None:
        raise InputError(f"windows of {sink.table} ({sink.declared}) have no start", fix="name the key alone")
    check_key(sink, key)
    view = ledger.view()
    visible = view.position.slices_of_firings
    published = rows_of(uris, sink, start)
    rows = [] if published is None else matching(published, key).to_pylist()
    rows.sort(key=lambda row: (row["batch_id"], *_number(sink, row)))
    slices = slices_of(uris, sink, key)
    since = (view.position.since or {}).get(sink.table)
    if not rows and (start is not None or not slices):
        raise nothing_counted(uris, sink, start, key)
    wanted = batch_ranges({s["batch_id"] for s in slices} | {row["batch_id"] for row in rows})
    batches = list(ledger.past().batches(lambda zone: zone.has_of(wanted) or zone.incomplete is not None))
    return Lineage(
        table=sink.table,
        window=_window(sink, start, rows),
        key=key,
        row=rows[-1] if rows else None,
        contributions=contributions(ledger, _with_fired(slices, rows, batches), batches, visible),
        publications=_publications(sink, rows, batches),
        corrections=corrections_of(uris, sink, start, key),
        lacking=tuple(r for b in batches if sink.table in (b.incomplete or {}) for r in b.skipped or ()),
        since=since,
    )


def _with_fired(
    slices: Sequence[Mapping[str, int]], rows: Sequence[Mapping[str, Any]], batches: Sequence[IndexedBatch]
) -> Sequence[Mapping[str, int]]:
    """These slices, and without rows those of the committed batches that published rows."""
    attempts = {batch.batch_id: batch.attempt for batch in batches}
    there = {s["batch_id"] for s in slices}
    fired = sorted({row["batch_id"] for row in rows} & attempts.keys() - there)
    more = [{"batch_id": batch, "attempt": attempts[batch], "count_all": 0} for batch in fired]
    return sorted([*slices, *more], key=lambda s: (s["batch_id"], s["attempt"]))


def _number(sink: FiringSink, row: Mapping[str, Any]) -> tuple[int, bool]:
    """The place of a row among those of its window and batch: what a firing takes back comes before it."""
    index = row[sink.told.index] if sink.told.index is not None else 0
    return index, sink.told.operation is None or row[sink.told.operation] == "insert"


def _window(sink: FiringSink, start: datetime | None, rows: Sequence[Mapping[str, Any]]) -> Window:
    if start is None:
        return Window(BEGINNING, END)
    end = sink.end and rows[-1][sink.end]
    return Window(micros(start), micros(end) if end else micros(start + timedelta(microseconds=sink.panes.longest)))


def _publications(
    sink: FiringSink, rows: Sequence[Mapping[str, Any]], batches: Sequence[IndexedBatch]
) -> tuple[Publication, ...]:
    """The batches that published these rows, in their order, each with the timings of its firings.

    A batch publishes before it commits; until then, nobody knows its audit and the version of the table.
    """
    known, found = {batch.batch_id: batch for batch in batches}, []
    for batch_id, part in groupby(rows, key=lambda row: row["batch_id"]):
        timings = [_FIRING if sink.told.timing is None else str(row[sink.told.timing]) for row in part]
        if batch_id in known:
            found.append(Publication.of(known[batch_id], sink.table, ", ".join(dict.fromkeys(timings))))
    return tuple(found)
