"""Buffers that forget idle keys: the plain rule, wherever batches are cut, and what is refused."""

import random

import pytest

from support.ordered import Batch, Record, Story, cut, of_values, shown, told
from support.ordered_oracle import buffered
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.firing import Wake
from tidemill.core.ordered.idle_keys import ForgettingFold
from tidemill.core.ordered.machine import machine_of
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.panes import Window
from tidemill.core.time.watermarks import BEGINNING

TWO = TumblingBuffer(CountPolicy(2), idle_timeout="10 us")
CLOCK = TimePolicy("10 us", clock="batch_clock")


def at(clock: int) -> Moment:
    return Moment(0, clock)


def story_of(declared: TumblingBuffer | SlidingBuffer, *arrivals: tuple[int, list[Record]]) -> Story:
    """The records that arrived at each of these clocks, each in a batch of its own."""
    story = Story(declared)
    for clock, records in arrivals:
        story.before = at(clock)
        story.batch(records, at(clock))
    return story


def test_a_key_is_forgotten_strictly_after_its_timeout() -> None:
    assert shown(story_of(TWO, (100, of_values(1)), (110, of_values(2)))) == [[1, 2]]
    late = story_of(TWO, (100, of_values(1)), (111, of_values(2)))
    assert shown(late) == []
    assert late.state is not None
    assert late.state["held"] == 1


def test_time_alone_forgets_a_key_and_the_key_asks_to_be_looked_at_then() -> None:
    story = story_of(TWO, (100, of_values(1)))
    assert story.wake == Wake(clock=111)
    story.batch([], at(110))
    assert story.state is not None
    assert story.wake == Wake(clock=111)
    story.batch([], at(111))
    assert (story.state, story.wake, story.results) == (None, Wake(), [])


def test_each_record_puts_it_off_also_a_marker_and_a_clock_that_is_set_back_does_not() -> None:
    marked = TumblingBuffer(PunctuationPolicy("m"), idle_timeout="10 us")
    story = story_of(marked, (100, of_values(1)), (108, of_values(2)), (118, [Record(marker=True)]))
    assert shown(story) == [[1, 2]]
    back = story_of(TWO, (100, of_values(1)), (50, []), (105, []))
    assert back.wake == Wake(clock=111)


def test_what_was_due_before_a_key_is_forgotten_fires_and_nothing_after() -> None:
    minutes = TumblingBuffer(CLOCK, emit_empty=True, idle_timeout="25 us")
    story = story_of(minutes, (101, of_values(7)))
    story.batch([], at(1_000))
    assert [(each.window, len(each.records)) for each in story.results] == [
        (Window(100, 110), 1),
        (Window(110, 120), 0),
    ]
    assert story.state is None
    again = story_of(minutes, (101, of_values(7)), (1_001, of_values(8)))
    assert [(each.window, len(each.records)) for each in again.results] == [
        (Window(100, 110), 1),
        (Window(110, 120), 0),
    ]
    assert again.wake == Wake(clock=1_010)


def test_keys_that_another_declaration_kept_are_looked_at_when_this_one_would_forget_them() -> None:
    fold = machine_of(TWO)
    assert isinstance(fold, ForgettingFold)
    plain = story_of(TumblingBuffer(CountPolicy(2)), (100, of_values(1)))
    assert fold.woken(plain.state, plain.wake) == Wake(clock=BEGINNING)
    longer = story_of(TumblingBuffer(CountPolicy(2), idle_timeout="1 day"), (100, of_values(1)))
    assert fold.woken(longer.state, longer.wake) == Wake(clock=111)
    assert fold.woken(None, Wake(5)) == Wake(5)


def test_a_timeout_may_come_and_go_while_keys_are_open() -> None:
    plain = story_of(TumblingBuffer(CountPolicy(2)), (100, of_values(1)))
    now = machine_of(TWO).fold(plain.state, Records(), at(500), at(500))
    assert now.wake == Wake(clock=511)
    later = machine_of(TWO).fold(now.state, Records([3]), at(505), at(505), 9)
    assert [list(each.pieces) for each in later.firings] == [[0]]
    left = machine_of(TumblingBuffer(CountPolicy(2))).fold(now.state, Records([3]), at(9_999), at(9_999), 9)
    assert [list(each.pieces) for each in left.firings] == [[0]]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(
    "plain",
    [
        TumblingBuffer(CountPolicy(3)),
        TumblingBuffer(DeltaPolicy("x", 2)),
        TumblingBuffer(PunctuationPolicy("m")),
        SlidingBuffer(CountPolicy(3)),
        SlidingBuffer(CountPolicy(4), CountPolicy(2)),
        SlidingBuffer(DeltaPolicy("x", 2), CountPolicy(2)),
    ],
    ids=str,
)
def test_firings_are_those_of_a_buffer_for_each_stretch_without_a_longer_gap(
    plain: TumblingBuffer | SlidingBuffer, seed: int
) -> None:
    draw, clock = random.Random(seed), 0
    batches, stretches = list[Batch](), list[list[Record]]()
    for _ in range(12):
        gap = draw.choice([1, 5, 10, 11, 30])
        records = [Record(0, draw.randint(0, 9), draw.random() < 0.1) for _ in range(draw.randint(1, 4))]
        if not stretches or gap > 10:
            stretches.append([])
        stretches[-1] += records
        clock += gap
        batches.append(Batch(records, at(clock)))
    expected, first = list[list[int]](), 0
    for stretch in stretches:
        expected += [[first + i for i in fires] for fires in buffered(plain, stretch)]
        first += len(stretch)
    declared = type(plain)(*_fields(plain), idle_timeout="10 us")
    for cuts in ((), (1,), (2, 1)):
        story = Story(declared)
        for batch in batches:
            story.before = batch.after
            for part in cut([batch], cuts, batch.after):
                story.batch(part.records, part.after)
        assert [list(each.records) for each in story.results] == expected


def _fields(plain: TumblingBuffer | SlidingBuffer) -> tuple[object, ...]:
    return (plain.flush, plain.emit_empty) if isinstance(plain, TumblingBuffer) else (plain.evict, plain.trigger)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: TumblingBuffer(CountPolicy(2), idle_timeout=5), "idle_timeout: not a duration: 5"),
        (lambda: TumblingBuffer(CountPolicy(2), idle_timeout="0 s"), "longer than nothing, found '0 s'"),
        (lambda: SlidingBuffer(CountPolicy(2), idle_timeout=""), "idle_timeout: not a duration: ''"),
        (lambda: TumblingBuffer(TimePolicy("1 s"), idle_timeout="1 day"), "they would be forgotten before they fire"),
        (lambda: TumblingBuffer(TimePolicy("1 s"), True, "1 day"), "they would be forgotten before they fire"),
        (lambda: TumblingBuffer(CLOCK, idle_timeout="1 day"), "keep nothing for long in a buffer by time 10 us"),
        (lambda: SlidingBuffer(CLOCK, idle_timeout="1 day"), "keep nothing for long in a buffer by time 10 us"),
        (lambda: TumblingBuffer(CountPolicy(1), idle_timeout="1 day"), "keep nothing for long in a buffer by count 1"),
        (lambda: TumblingBuffer(CLOCK, True, "9 us"), "shorter than time 10 us of batch clock"),
        (lambda: SlidingBuffer(CountPolicy(5), CLOCK, idle_timeout="9 us"), "shorter than time 10 us"),
    ],
)
def test_timeouts_that_make_no_sense_are_refused(made, message) -> None:
    with pytest.raises(DeclarationError, match=message):
        made()


def test_a_declaration_says_its_timeout() -> None:
    assert str(TWO) == "tumbling by count 2, a key forgotten after 10 us without records"
    assert told(TWO, []).state is None
