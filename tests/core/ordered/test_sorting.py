"""Buffers in order of event time: when records are let in, what is kept, and what is refused."""

import pytest

from support.ordered import Record, Story, of_times, of_values, shown
from tidemill.core.errors import DeclarationError, Incompatible
from tidemill.core.ordered.alive import pieces_of
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.firing import Reason, Wake
from tidemill.core.ordered.machine import machine_of
from tidemill.core.ordered.opened import opened_since
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.watermarks import END

TWO = TumblingBuffer(CountPolicy(2), order="event_time")
LAST = SlidingBuffer(CountPolicy(2), order="event_time")


def at(watermark: int) -> Moment:
    return Moment(watermark, 0)


def test_a_record_waits_until_the_watermark_is_past_it_and_the_key_asks_to_be_looked_at_then() -> None:
    story = Story(LAST, at(0))
    story.batch(of_values(7, 3, 5), at(3))
    assert (shown(story), story.wake) == ([], Wake(watermark=4))
    story.batch([], at(6))
    assert (shown(story), story.wake) == ([[3], [3, 5]], Wake(watermark=8))
    story.batch([], at(8))
    assert [set(each) for each in shown(story)[2:]] == [{5, 7}]


def test_what_is_behind_the_watermark_is_late_and_what_is_at_it_is_not() -> None:
    story = Story(TWO, at(5))
    story.batch(of_times(4, 5), at(5))
    assert story.dropped == [(0, Reason.LATE, None)]
    assert story.state is not None
    assert [each[0] for each in story.state["waiting"]] == [5]


def test_of_one_time_the_lesser_place_is_first_whatever_came_first() -> None:
    story = Story(SlidingBuffer(CountPolicy(1), order="event_time"), at(0))
    places = [("t", 1, 4), ("t", 0, 9), ("s", 3, 1), ("t", 0, 2)]
    for value, place in enumerate(places):
        story.batch([Record(1, value, place=place)], at(0))
    story.batch([], at(2))
    assert shown(story) == [[2], [3], [1], [0]]


def test_a_key_keeps_what_waits_and_what_is_in_its_buffer_and_nothing_else() -> None:
    story = Story(TWO, at(0))
    story.batch(of_values(1, 9, 2, 3), at(4))
    assert shown(story) == [[1, 2]]
    assert story.state is not None
    assert pieces_of(story.state) == [[1, 1], [3, 3]]
    story.batch(of_values(4), at(END))
    assert shown(story) == [[1, 2], [3, 4]]
    assert pieces_of(story.state) == [[1, 1]], "the record at 9, of which the end of the log makes no firing"


def test_markers_are_taken_in_order_and_the_end_of_the_log_flushes() -> None:
    story = Story(TumblingBuffer(PunctuationPolicy("m"), order="event_time"), at(0))
    story.batch([*of_values(5, 2), Record(3, marker=True)], at(4))
    assert (shown(story), story.wake) == ([[2]], Wake(watermark=6))
    story.batch([], at(END))
    assert (shown(story), story.state) == ([[2], [5]], None)


def test_a_record_without_a_value_is_dropped_when_it_comes_and_a_late_one_is_late_first() -> None:
    story = Story(TumblingBuffer(DeltaPolicy("x", 1), order="event_time"), at(5))
    story.batch([Record(9, None), Record(1, None), Record(9, float("nan"))], at(5))
    assert story.dropped == [(0, Reason.NO_VALUE, None), (1, Reason.LATE, None), (2, Reason.NO_VALUE, None)]
    assert story.state is None


def test_time_ages_a_buffer_as_far_as_the_watermark_whether_records_come_or_not() -> None:
    story = Story(SlidingBuffer(TimePolicy("10 us"), order="event_time"), at(0))
    story.batch(of_values(1, 8), at(9))
    assert (shown(story), story.wake) == ([[1], [1, 8]], Wake(watermark=19))
    story.batch([], at(19))
    assert story.state is None


def test_a_trigger_by_the_clock_sees_what_the_watermark_has_let_in() -> None:
    declared = SlidingBuffer(CountPolicy(2), TimePolicy("10 us", clock="batch_clock"), order="event_time")
    story = Story(declared, Moment(0, 1))
    story.batch(of_values(3, 2, 1, 9), Moment(5, 12))
    assert shown(story) == [[3, 2]]
    story.batch([], Moment(5, 20))
    assert shown(story) == [[3, 2]] * 2


def test_ids_go_on_and_state_of_another_machine_is_refused() -> None:
    machine, records = machine_of(LAST), Records([5, 6], [], [])
    first = machine.fold(None, records, at(0), at(0), 10)
    second = machine.fold(first.state, records, at(0), at(0), 99)
    assert (first.pieces, second.pieces) == ([10, 11], [12, 13])
    with pytest.raises(Incompatible, match="of 'sorted'"):
        machine_of(SlidingBuffer(CountPolicy(2))).fold(second.state, Records(), at(0), at(9))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: TumblingBuffer(CountPolicy(2), order="time"), 'is "arrival" or "event_time", found \'time\''),
        (lambda: SlidingBuffer(CountPolicy(2), order=None), 'is "arrival" or "event_time", found None'),
        (lambda: TumblingBuffer(TimePolicy("1 s"), order="event_time"), "holds the same records in any order"),
        (
            lambda: SlidingBuffer(TimePolicy("1 s", clock="batch_clock"), order="event_time"),
            "looks at when records arrive",
        ),
        (
            lambda: TumblingBuffer(CountPolicy(2), order="event_time", idle_timeout="1 day"),
            "idle_timeout forgets keys.* before they are in the buffer",
        ),
        (
            lambda: SlidingBuffer(CountPolicy(2), order="event_time", most_keys=5),
            "most_keys forgets keys.* before they are in the buffer",
        ),
        (
            lambda: SlidingBuffer(CountPolicy(2), TimePolicy("1 s"), order="event_time"),
            "in order of event time is triggered by its records, or by the clock",
        ),
    ],
)
def test_an_order_that_cannot_be_is_refused(make, says) -> None:
    with pytest.raises(DeclarationError, match=says) as refused:
        make()
    assert refused.value.fix


def test_each_record_may_be_a_result_of_its_own_in_order() -> None:
    declared = TumblingBuffer(CountPolicy(1), order="event_time")
    assert str(declared) == "tumbling by count 1, in order of event time"
    story = Story(declared, at(0))
    story.batch(of_values(7, 3, 5), at(6))
    assert shown(story) == [[3], [5]]


def test_the_oldest_record_that_waits_says_since_when_a_key_is_open() -> None:
    story = Story(TWO, at(0))
    story.batch(of_values(7, 3, 5), at(4))
    assert story.state is not None
    assert opened_since(story.state) == 5
