"""How far a backfill of firings reaches, and which batches it folds: pure rules over descriptions of batches."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemill.core.history.coverage import Cover
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.lineage import Superseded, lineage, origins, origins_of, with_superseded
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.packed_offsets import packed
from tidemill.core.plan.slices import BatchRange, SliceSet, batch_ranges
from tidemill.core.plan.work import Kind
from tidemill.core.repair.replaying import is_readable, replayed

AT = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = TopicPartition("t", 0)


def a_batch(batch_id: int, *reads: tuple[int, int], kind: Kind = Kind.LIVE, folded: tuple[int, ...] = ()) -> Cover:
    ranges = {"t": tuple(OffsetRange(PLACE, low, high) for low, high in reads)}
    batch = IndexedBatch(
        sequence=batch_id,
        batch_id=batch_id,
        attempt=1,
        kind=kind,
        started=AT,
        at=AT,
        before=0,
        after=0,
        reads=packed(ranges),
        folded=batch_ranges(folded) or None,
        panes={},
        tables={},
    )
    return Cover(batch=batch, ranges=batch.ranges, batches=batch.batches)


def ids(covers: tuple[Cover, ...]) -> list[int]:
    return [cover.batch_id for cover in covers]


def reach(touched: list[Cover], covers: list[Cover], superseded: Superseded | None = None) -> tuple[int, list[int]]:
    found = replayed(touched, covers, lambda cover: origins_of(cover.batch, superseded or {}))
    return found.since, ids(found.covers)


LIVE = [a_batch(number, (10 * number, 10 * number + 10)) for number in range(1, 7)]


def test_a_backfill_goes_on_to_the_last_batch() -> None:
    assert reach([LIVE[2]], LIVE) == (3, [3, 4, 5, 6])


def test_a_slice_of_batches_on_both_sides_takes_the_earlier_ones_along() -> None:
    folded = a_batch(7, (20, 50), folded=(2, 3, 4))
    covers = [LIVE[0], LIVE[4], LIVE[5], folded]
    assert reach([LIVE[4]], covers) == (5, [5, 6])
    assert reach([folded], covers) == (2, [5, 6, 7])
    early = a_batch(8, (10, 60), folded=(1, 2, 3, 4, 5))
    assert reach([LIVE[5]], [LIVE[5], early]) == (6, [6])
    straddling = a_batch(8, (10, 70), folded=(1, 2, 3, 4, 5, 6))
    assert reach([a_batch(7, (70, 80))], [a_batch(7, (70, 80)), straddling]) == (7, [7])
    assert reach([a_batch(6, (60, 70))], [straddling]) == (1, [8])


def test_what_a_backfill_has_read_again_counts_where_it_was_read_first() -> None:
    again = a_batch(7, (30, 70), kind=Kind.BACKFILL)
    superseded = {7: batch_ranges([3, 4, 5, 6])}
    later = a_batch(8, (70, 80))
    covers = [LIVE[0], LIVE[1], again, later]
    assert reach([later], covers, superseded) == (8, [8])
    assert reach([again], covers, superseded) == (3, [7, 8])
    # A backfill that superseded a backfill, and one whose slice was folded with others.
    assert origins(batch_ranges([9]), {7: batch_ranges([3, 4]), 9: batch_ranges([5, 7])}) == (3, 5)
    assert origins(batch_ranges([6, 7, 10]), {7: batch_ranges([3, 4, 5])}) == (3, 10)


def test_backfills_may_have_superseded_each_other_any_number_of_times() -> None:
    superseded = {batch: batch_ranges([batch - 1]) for batch in range(2, 3_000)}
    assert origins(batch_ranges([2_999, 3_001]), superseded) == (1, 3_001)


def test_whose_rows_a_table_may_still_hold() -> None:
    superseded = {10: batch_ranges([2, 9]), 9: batch_ranges([2, 3])}
    assert with_superseded(batch_ranges([10, 12]), superseded) == batch_ranges([2, 3, 9, 10, 12])
    assert with_superseded(batch_ranges([4]), superseded) == batch_ranges([4])
    chain = {batch: batch_ranges([batch - 1]) for batch in range(2, 3_000)}
    assert with_superseded(batch_ranges([2_999]), chain) == batch_ranges(range(1, 3_000))


def test_batches_that_share_offsets_stay_together() -> None:
    repair = a_batch(7, (15, 16), kind=Kind.REPAIR)
    assert reach([LIVE[5]], [*LIVE, repair]) == (1, [1, 2, 3, 4, 5, 6, 7])
    repair = a_batch(7, (45, 46), kind=Kind.REPAIR)
    assert reach([LIVE[5]], [*LIVE, repair]) == (4, [4, 5, 6, 7])


@pytest.mark.parametrize(
    ("kinds", "targets", "expected"),
    [
        ("LLL", {}, [1, 2, 3]),
        ("LLLWL", {4: 1}, [1, 5]),
        ("LLWL", {3: 0}, [4]),
        # Back, and forward again to what was taken back.
        ("LLLWWL", {4: 1, 5: 3}, [1, 2, 3, 6]),
        ("LRBFL", {}, [1, 2, 5]),
        ("LBLWL", {4: 2}, [1, 5]),
    ],
)
def test_the_lineage_is_what_no_rewind_took_back(kinds: str, targets: dict[int, int], expected: list[int]) -> None:
    of = {"L": Kind.LIVE, "R": Kind.REPAIR, "B": Kind.BACKFILL, "F": Kind.FOLD, "W": Kind.REWIND}
    batches = [a_batch(number, kind=of[kind]).batch for number, kind in enumerate(kinds, start=1)]
    assert [batch.batch_id for batch in lineage(batches, targets.__getitem__)] == expected


def test_a_lineage_may_begin_anywhere() -> None:
    batches = [a_batch(number, kind=kind).batch for number, kind in ((5, Kind.LIVE), (6, Kind.REWIND), (7, Kind.LIVE))]
    assert [batch.batch_id for batch in lineage(batches, lambda _: 2)] == [7]


def test_state_is_readable_where_maintenance_removed_nothing_of_it() -> None:
    before, now = SliceSet(through=5), SliceSet(through=9, hidden=(BatchRange(2, 4),))
    assert is_readable(before, now, None)
    assert is_readable(before, now, 5)
    assert not is_readable(before, now, 6)
    assert is_readable(SliceSet(through=1), now, 6)
    assert is_readable(SliceSet(through=5, hidden=(BatchRange(2, 5),)), now, 6)
    assert not is_readable(SliceSet(through=5, hidden=(BatchRange(3, 5),)), now, 6)
