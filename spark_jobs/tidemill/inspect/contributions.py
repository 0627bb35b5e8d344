"""What a published number was made of: the slices of state that hold its records, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.errors import InputError
from tidemill.core.history.coverage import Cover, covers_of
from tidemill.core.history.index import IndexedBatch
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Fold, Ranges
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Since
from tidemill.core.plan.slices import BatchRange, SliceSet
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Planned
from tidemill.core.time.panes import Window
from tidemill.core.time.watermarks import END
from tidemill.engine.storage.state_table import PaneRange, State, pane_predicates
from tidemill.engine.storage.table_layout import Uris
from tidemill.inspect.firings import Publication
from tidemill.inspect.window_rows import matching
from tidemill.ledger.ledger import Ledger
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A batch whose slice has rows for a window and key: its own, or those of batches it `folded`.

    `counts` says whether the slice is visible.
    """

    batch_id: int
    attempt: int
    kind: Kind
    ranges: Ranges
    folded: tuple[BatchRange, ...]
    rows: int
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Everything behind the number of one window and key. `row` is its present row.

    `lacking` are offsets that the log lost before they were read; their records may belong to the window. Batches
    before `since` counted by another declaration. If `forgotten`, the state of the window was removed: nobody knows any
    more which batches read its records and when it fired for them. Of firings without a window, `window` has all times.
    """

    table: str
    window: Window
    key: Mapping[str, str]
    row: Mapping[str, Any] | None
    contributions: tuple[Contribution, ...] = ()
    publications: tuple[Publication, ...] = ()
    corrections: tuple[Mapping[str, Any], ...] = ()
    lacking: tuple[OffsetRange, ...] = ()
    since: Since | None = None
    forgotten: bool = False

    @property
    def all_times(self) -> bool:
        """Whether the number is over all event times, without a window."""
        return self.window.end == END


def check_key(sink: StatefulSink, key: Mapping[str, str]) -> None:
    """Refuse a key of other columns than the table has.

    Raises:
        InputError: the text names both.
    """
    if set(key) != set(sink.keys):
        raise InputError(f"{sink.table} has the key ({', '.join(sink.keys)}), found ({', '.join(key)})")


def slices_of(
    uris: Uris, sink: StatefulSink, key: Mapping[str, str], panes: PaneRange = (None, None)
) -> Sequence[Mapping[str, int]]:
    """Batch, attempt and number of rows of every slice with rows of this key in these panes, visible or not."""
    state = State.of(uris, sink)
    if state is None:
        return []
    table = DeltaRsTable(state.spec, opened=state.handle)
    columns = ("batch_id", "attempt", *sink.keys)
    rows = matching(table.read(where=pane_predicates(panes), columns=columns), key)
    found: list[dict[str, int]] = rows.group_by(["batch_id", "attempt"]).aggregate([([], "count_all")]).to_pylist()
    return sorted(found, key=lambda s: (s["batch_id"], s["attempt"]))


def contributions(
    ledger: Ledger, slices: Sequence[Mapping[str, int]], batches: Iterable[IndexedBatch], visible: SliceSet
) -> tuple[Contribution, ...]:
    """What these slices hold, from their batches; those that are not among `batches` did not commit."""
    known = {batch.batch_id: batch for batch in batches}
    covers = {cover.batch_id: cover for cover in covers_of(known.values(), visible)}
    return tuple(_contribution(known.get(s["batch_id"]) or _plan(ledger, s["batch_id"]), s, covers) for s in slices)


def _plan(ledger: Ledger, batch_id: int) -> BatchPlan:
    """The plan of a batch that did not commit."""
    [planned] = ledger.of_batches(BatchRange(batch_id, batch_id + 1), Planned)
    assert isinstance(planned.event, Planned)
    return planned.event.plan


def _contribution(
    made: IndexedBatch | BatchPlan, found: Mapping[str, int], covers: Mapping[int, Cover]
) -> Contribution:
    cover = covers.get(made.batch_id)
    if isinstance(made, BatchPlan):
        ranges, folded = made.reads, made.work.batches if isinstance(made.work, Fold) else ()
    else:
        ranges, folded = made.ranges, made.folded or ()
    return Contribution(
        batch_id=made.batch_id,
        attempt=found["attempt"],
        kind=made.kind,
        ranges=ranges,
        folded=folded,
        rows=found["count_all"],
        counts=cover is not None and cover.batch.attempt == found["attempt"],
    )


def corrections_of(
    uris: Uris, sink: StatefulSink, start: datetime | None, key: Mapping[str, str]
) -> tuple[Mapping[str, Any], ...]:
    """The corrections of a published row that repairs and backfills noted, in their order."""
    spec = uris.corrections()
    if newest(spec) is None:
        return ()
    rows = DeltaRsTable(spec).read(where=()).to_pylist()
    return tuple(
        row
        for row in sorted(rows, key=lambda r: r["batch_id"])
        if row["table_name"] == sink.table and row["window_start"] == start and _same(json.loads(row["key"]), key)
    )


def _same(found: Mapping[str, Any], key: Mapping[str, str]) -> bool:
    return {name: "" if value is None else str(value) for name, value in found.items()} == dict(key)
