"""Laws of offsets, ranges, read limits and slices."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.log.offsets import MAX_OFFSET, OffsetRange, TopicPartition, merge_ranges, outside
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.plan.slices import SliceSet

partitions = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 2))


@st.composite
def ranges(draw: st.DrawFn, highest: int = 60) -> OffsetRange:
    low, high = sorted((draw(st.integers(0, highest)), draw(st.integers(0, highest))))
    return OffsetRange(draw(partitions), low, high)


def offsets(items) -> set[tuple[TopicPartition, int]]:  # type: ignore[no-untyped-def]
    return {(r.topic_partition, o) for r in items for o in range(r.from_offset, r.until_offset)}


@given(st.lists(ranges()))
def test_merging_ranges_keeps_every_offset_and_adds_none(items: list[OffsetRange]) -> None:
    assert offsets(merge_ranges(items)) == offsets(items)


@given(st.lists(ranges()))
def test_merged_ranges_do_not_touch_or_overlap(items: list[OffsetRange]) -> None:
    merged = merge_ranges(items)
    for left, right in pairwise(merged):
        assert left.topic_partition != right.topic_partition or left.until_offset < right.from_offset


@given(st.lists(ranges()), st.lists(ranges()))
def test_what_lies_outside_is_what_no_range_holds(wanted: list[OffsetRange], held: list[OffsetRange]) -> None:
    found = [*outside(wanted, held)]
    assert offsets(found) == offsets(wanted) - offsets(held)
    assert found == list(merge_ranges(found))


@given(ranges(), ranges())
def test_ranges_overlap_when_they_share_an_offset(left: OffsetRange, right: OffsetRange) -> None:
    assert left.overlaps(right) == bool(offsets([left]) & offsets([right]))


@given(ranges(), st.integers(-5, 80))
def test_taking_offsets_takes_the_first_ones(item: OffsetRange, count: int) -> None:
    taken = item.take(count)
    assert taken.from_offset == item.from_offset
    assert len(taken) == min(len(item), max(count, 0))


@given(st.lists(ranges(), max_size=8), st.integers(1, 200))
def test_a_read_limit_is_used_up_and_never_exceeded(backlog: list[OffsetRange], limit: int) -> None:
    taken = ReadLimit(limit).apply(backlog)
    assert sum(map(len, taken)) == min(limit, sum(map(len, backlog)))


@given(st.lists(ranges(), max_size=8), st.integers(1, 200))
def test_a_read_limit_takes_each_range_from_its_start(backlog: list[OffsetRange], limit: int) -> None:
    for before, after in zip(backlog, ReadLimit(limit).apply(backlog), strict=True):
        assert after == before.take(len(after))


@given(st.lists(ranges(), max_size=6), st.integers(1, 50))
def test_batches_under_any_limit_tile_the_log(backlog: list[OffsetRange], limit: int) -> None:
    rest, read = tuple(backlog), []
    while any(rest):
        taken = ReadLimit(limit).apply(rest)
        read += [r for r in taken if r]
        rest = tuple(
            OffsetRange(r.topic_partition, t.until_offset, r.until_offset) for r, t in zip(rest, taken, strict=True)
        )
    assert sum(map(len, read)) == sum(map(len, backlog))
    assert offsets(read) == offsets(backlog)


def test_a_short_range_is_not_starved_by_long_ones() -> None:
    long = [OffsetRange(TopicPartition("a", p), 0, 1_000_000) for p in range(2)]
    short = OffsetRange(TopicPartition("a", 9), 0, 1)
    assert len(ReadLimit(1_000).apply([*long, short])[2]) == 1


@given(st.data(), st.integers(1, 12), st.integers(1, 15), st.integers(0, 1_000))
def test_under_one_limit_every_range_with_a_backlog_is_served_within_as_many_batches_as_there_are_ranges(
    data: st.DataObject, count: int, limit: int, start: int
) -> None:
    sizes = st.integers(1, 40)
    rest = [OffsetRange(TopicPartition("a", p), start * p, start * p + data.draw(sizes)) for p in range(count)]
    unserved = dict.fromkeys(range(count), 0)
    for _ in range(3 * count):
        taken = ReadLimit(limit).apply(rest)
        for p, (item, part) in enumerate(zip(rest, taken, strict=True)):
            unserved[p] = 0 if part else unserved[p] + 1
            # There is always something left to read.
            until = max(item.until_offset, part.until_offset + 1) + data.draw(st.integers(0, 3))
            rest[p] = OffsetRange(item.topic_partition, part.until_offset, until)
        assert max(unserved.values()) < count


@pytest.mark.parametrize(("count", "limit"), [(64, 10), (10, 10), (1_000, 7), (8, 4)])
def test_among_equal_ranges_the_turn_comes_round_as_soon_as_a_batch_can_serve(count: int, limit: int) -> None:
    served: set[int] = set()
    rest = [OffsetRange(TopicPartition("a", p), 0, 10**9) for p in range(count)]
    for _ in range(2 * count // limit):
        taken = ReadLimit(limit).apply(rest)
        served |= {p for p, part in enumerate(taken) if part}
        rest = [
            OffsetRange(r.topic_partition, t.until_offset, r.until_offset) for r, t in zip(rest, taken, strict=True)
        ]
    assert served == set(range(count))


@pytest.mark.parametrize(("low", "high"), [(-1, 0), (5, 4), (0, MAX_OFFSET + 1)])
def test_a_range_that_cannot_be_is_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="not a range"):
        OffsetRange(TopicPartition("a", 0), low, high)


@given(st.integers(0, 2**62), st.integers(1, 10))
def test_ranges_near_the_greatest_offset_keep_their_length(below: int, length: int) -> None:
    low = MAX_OFFSET - below % 2**40 - length
    assert len(OffsetRange(TopicPartition("a", 0), low, low + length)) == length


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=12), st.integers(0, 50), st.integers(0, 5))
def test_a_slice_is_visible_exactly_when_it_was_added(steps: list[tuple[int, int]], batch: int, attempt: int) -> None:
    slices, added, last = SliceSet(), set(), 0
    for skip, tried in steps:
        last += skip
        slices = slices.add(last, tried)
        added.add((last, tried))
    assert ((batch, attempt) in slices) == ((batch, attempt) in added)


def test_a_slice_of_an_older_batch_cannot_be_added() -> None:
    with pytest.raises(ValueError, match="not after"):
        SliceSet(through=3).add(3, 1)


@given(st.lists(ranges(), max_size=6), st.integers(1, 50), st.integers(1, 20))
def test_batch_that_leaves_something_over_has_reached_its_limit(
    backlog: list[OffsetRange], limit: int, of_partition: int
) -> None:
    bounds = ReadLimit(limit, of_partition)
    taken = bounds.apply(backlog)
    if sum(map(len, taken)) < sum(map(len, backlog)):
        assert bounds.is_reached(taken)
    assert not ReadLimit().is_reached(taken)
