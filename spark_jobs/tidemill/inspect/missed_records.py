"""How many records windows missed that later ones took, as far as the commits of batches that still count tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.plan.slices import BatchRange, batch_ranges, in_both

if TYPE_CHECKING:
    from tidemill.core.bind.sinks import StatefulSink
    from tidemill.core.history.index import IndexedBatch
    from tidemill.ledger.ledger import Ledger


Missed = Mapping[int, tuple[int, int, int]]
"""By the start of a window: how many records it missed, and the first and the last batch that read some of them."""


def missed_records(ledger: Ledger, sink: StatefulSink, batches: Sequence[BatchRange] = ()) -> Missed:
    """The windows of a table that missed records which the batches in these ranges read; by default all batches."""
    found: dict[int, tuple[int, int, int]] = {}
    for batch in counting(ledger, sink, batches):
        for span in (batch.missed or {}).get(sink.table, ()):
            for number in range(sink.panes.number_of(span.first), sink.panes.number_of(span.last) + 1):
                start = sink.panes.window(number).start
                records, first, last = found.get(start, (0, batch.batch_id, batch.batch_id))
                found[start] = (records + span.records, min(first, batch.batch_id), max(last, batch.batch_id))
    return found


def counting(ledger: Ledger, sink: StatefulSink, batches: Sequence[BatchRange] = ()) -> Iterator[IndexedBatch]:
    """The batches whose records count in a table as they were counted then.

    No rewind took them back. Of windows, a backfill has given records to all that had missed them; but firings that it
    computes again lack the same records.
    """
    from tidemill.run.histories import standing

    if isinstance(sink, FiringSink):
        yield from (b for b in standing(ledger) if not batches or any(b.batch_id in r for r in batches))
        return
    past = ledger.past()
    low = min((r.from_batch for r in batches), default=0)
    covers = past.covers(ledger.view().position.slices, lambda zone: zone.batches[1] >= low)
    visible = batch_ranges(r for cover in covers for r in cover.batches)
    yield from past.with_ids(in_both(visible, batches) if batches else visible)
