"""What was found wrong on the way, shrunk to the smallest records that show it."""

from __future__ import annotations

import pytest

from support.ordered import Batch, Record, Story, cut, told
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.firing import Wake
from tidemill.core.ordered.policies import MOST_BY_TIME, DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.ordered.records import Moment
from tidemill.core.time.watermarks import END

SIX = TimePolicy("6 us")


def fired(story: Story) -> list[tuple[int, ...]]:
    """The numbers of the records of each firing."""
    return [each.records for each in story.results]


def test_a_delta_fires_without_what_the_watermark_has_evicted_though_nobody_folded_the_key_for_it() -> None:
    story = Story(SlidingBuffer(SIX, DeltaPolicy("x", 2)), Moment(0, 0))
    story.batch([Record(0, 1), Record(5, 1)], Moment(0, 0))
    assert story.wake == Wake(watermark=12)
    story.before = Moment(8, 0)
    story.batch([Record(9, 5)], Moment(8, 0))
    assert fired(story) == [(1,)]


def test_a_delta_does_not_fire_what_time_has_emptied() -> None:
    story = told(
        SlidingBuffer(SIX, DeltaPolicy("x", 2)), [Batch([Record(0, 1)], Moment(9)), Batch([Record(9, 5)], Moment(9))]
    )
    assert fired(story) == []


def test_the_clock_fires_without_what_the_watermark_has_evicted() -> None:
    story = Story(SlidingBuffer(SIX, TimePolicy("10 us", clock="batch_clock")), Moment(0, 1))
    story.batch([Record(0, 1), Record(5, 1)], Moment(0, 1))
    story.before = Moment(8, 9)
    story.batch([], Moment(9, 12))
    assert fired(story) == [(1,)]


@pytest.mark.parametrize("watermark", [2, 8])
def test_in_order_of_event_time_no_batch_in_between_evicts_more_than_records_do(
    watermark: int,
) -> None:
    batches = [Batch([Record(1, 1), Record(5, 1), Record(9, 5)], Moment(watermark)), Batch([], Moment(20))]
    assert fired(told(SlidingBuffer(SIX, DeltaPolicy("x", 2), order="event_time"), batches, Moment(0))) == [(1,)]


@pytest.mark.parametrize("steps", [[100], [35, 100]])
def test_a_sliding_buffer_counts_anew_once_time_has_emptied_it(steps: list[int]) -> None:
    records = [Batch([Record(10), Record(60)], Moment(0)), *(Batch([], Moment(step)) for step in steps)]
    story = told(SlidingBuffer(TimePolicy("20 us"), order="event_time"), records, Moment(0))
    assert [(each.records, each.index) for each in story.results] == [((0,), 0), ((1,), 0)]


def test_a_pause_makes_no_record_too_old_for_the_firings_that_it_put_off() -> None:
    clock = TimePolicy("10 us", clock="batch_clock")
    story = Story(SlidingBuffer(clock, clock), Moment(0, 1))
    story.batch([Record(0, 1)], Moment(0, 1))
    story.batch([], Moment(0, 500))
    assert fired(story) == [(0,)]


def test_after_the_end_of_the_log_records_wait_for_their_marker_again() -> None:
    story = Story(TumblingBuffer(PunctuationPolicy("m")), Moment(0))
    story.batch([Record(1)], Moment(END))
    story.batch([Record(2)], Moment(END))
    story.batch([Record(3), Record(4, marker=True)], Moment(END))
    assert fired(story) == [(0,), (1, 2)]


def test_one_record_with_a_wrong_time_brings_no_endless_empty_windows() -> None:
    declared = TumblingBuffer(TimePolicy("10 us"), emit_empty=True)
    [one, other] = told(declared, cut([Batch([Record(0), Record(30 * MOST_BY_TIME)], Moment(END))], ())).results
    assert (one.records, other.records) == ((0,), (1,))
