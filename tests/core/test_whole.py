"""Which forgotten windows a backfill may replace: those that nobody else has a part in, whatever the index knows."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from support.builders import NOW, a_flow
from tidemill import Sliding, Tumbling
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.history.coverage import covers_of
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.past import Past
from tidemill.core.history.zones import zone_of
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import SliceSet
from tidemill.core.plan.work import Kind
from tidemill.core.repair.whole_windows import left_of, starts_over, whole_of
from tidemill.core.time.spans import PaneSpan

SECOND = 1_000_000
spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), min_size=1, max_size=8)
windows = st.sampled_from(
    [Tumbling("5 seconds"), Sliding("12 seconds", "4 seconds"), Sliding("10 seconds", "7 seconds")]
)


def a_batch(number: int, panes: PaneSpan) -> IndexedBatch:
    """A batch that read one offset, and left state there."""
    return IndexedBatch(
        sequence=number,
        batch_id=number,
        attempt=1,
        kind=Kind.LIVE,
        started=NOW,
        at=NOW,
        before=0,
        after=0,
        reads={"t": {0: f"{number}+1"}},
        panes={"counts": panes},
        tables={},
    )


def a_past(batches: Sequence[IndexedBatch], indexed: int) -> Past:
    """The same batches, the first of them in an index of blocks of two."""
    blocks = [batches[i : i + 2] for i in range(0, indexed, 2) if i + 2 <= indexed]
    zones = tuple(zone_of(b[0].sequence, b[-1].sequence, b) for b in blocks)
    known = {zone.first: block for zone, block in zip(zones, blocks, strict=True)}
    return Past(zones=zones, load=lambda zone: known[zone.first], recent=tuple(batches[2 * len(blocks) :]))


@given(
    found=spans, taken=st.sets(st.integers(1, 8)), until=st.integers(0, 80), indexed=st.integers(0, 8), window=windows
)
def test_a_window_is_whole_only_when_all_that_have_a_part_in_it_are_read(
    found: list[tuple[int, int]], taken: set[int], until: int, indexed: int, window: Tumbling | Sliding
) -> None:
    flow = a_flow(window=window)
    [sink] = flow.sinks
    assert isinstance(sink, WindowedSink)
    panes = sink.window.panes
    marks = [PaneSpan(*(panes.pane_of(s * SECOND) for s in (low, low + more))) for low, more in found]
    batches = [a_batch(number, span) for number, span in enumerate(marks, start=1)]
    position = Position(slices=SliceSet(through=len(batches)), forgotten_until=until * SECOND)
    past = a_past(batches, min(indexed, len(batches)))
    covers = [c for c in covers_of(batches, position.slices) if c.batch_id in taken]
    whole = (whole_of(flow, position, past, covers) or {})["counts"]

    own = [starts_over(panes, c.panes["counts"]) for c in covers]
    others = [starts_over(panes, b.panes["counts"]) for b in batches if b.batch_id not in taken]
    kept, left = panes.first_ending_after(until * SECOND).start, 0
    low = panes.windows_of(0)[0].start - 3 * panes.slide
    for start in range(low, kept, panes.slide):
        is_whole = any(s.first <= start <= s.last for s in whole)
        shared = any(s.first <= start <= s.last for s in others)
        touched = any(s.first <= start <= s.last for s in own)
        assert not (is_whole and shared)
        assert is_whole or not touched or shared
        left += touched and not is_whole
    assert all(s.last < kept for s in whole)
    job = Backfill(since=9, left={}, supersedes=(), panes={"counts": tuple(c.panes["counts"] for c in covers)}, by="")
    assert left_of(sink, Backfill(**{**_fields(job), "whole": {"counts": whole}}), position) == left


def _fields(job: Backfill) -> dict[str, object]:
    return {name: getattr(job, name) for name in ("since", "left", "supersedes", "panes", "by")}


def test_without_anything_forgotten_there_is_nothing_to_ask() -> None:
    assert whole_of(a_flow(), Position(), Past(), []) is None


def test_whoever_reads_everything_may_replace_all_that_is_forgotten() -> None:
    flow = a_flow()
    batches = [a_batch(1, PaneSpan(10 * SECOND, 20 * SECOND)), a_batch(2, PaneSpan(50 * SECOND, 50 * SECOND))]
    position = Position(slices=SliceSet(through=2), forgotten_until=100 * SECOND)
    [stretch] = (whole_of(flow, position, a_past(batches, 2), covers_of(batches, position.slices)) or {})["counts"]
    assert stretch.first < 0
    assert stretch.last == 90 * SECOND, "records that come into other windows by now have theirs"
