"""Laws of watermarks: exclusive, per partition, never backwards."""

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.log.offsets import TopicPartition
from tidemill.core.time.watermarks import BEGINNING, Furthest, PartitionClock, advance

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
times = st.integers(-(2**60), 2**60)
clocks = st.dictionaries(
    st.builds(TopicPartition, st.just("t"), st.integers(0, 5)),
    st.builds(PartitionClock, max_event_time=st.none() | times, active_at=times),
    max_size=5,
)


def at(event_time: int | None, active_at: int = 0) -> PartitionClock:
    return PartitionClock(max_event_time=event_time, active_at=active_at)


@given(times, clocks, st.integers(0, 10**9), st.sets(st.integers(0, 5)))
def test_the_watermark_never_goes_back(now: int, known, delay: int, idle: set[int]) -> None:  # type: ignore[no-untyped-def]
    assert advance(now, known, {"t": delay}, [TopicPartition("t", p) for p in idle]) >= now


@given(clocks, st.integers(0, 10**9))
def test_the_watermark_is_the_least_of_the_partitions(known, delay: int) -> None:  # type: ignore[no-untyped-def]
    least = min((c.watermark(delay) for c in known.values()), default=BEGINNING)
    assert advance(BEGINNING, known, {"t": delay}) == least


@given(clocks, st.integers(0, 10**9))
def test_when_all_partitions_are_idle_the_watermark_stays(known, delay: int) -> None:  # type: ignore[no-untyped-def]
    assert advance(7, known, {"t": delay}, known) == 7


@given(st.lists(times, min_size=1), st.permutations(range(5)))
def test_a_partition_clock_keeps_the_greatest_event_time_in_any_order(events: list[int], order: list[int]) -> None:
    forwards, backwards = at(None), at(None)
    for event in events:
        forwards = forwards.seen(Furthest(event), clock=0)
    for event in reversed(events):
        backwards = backwards.seen(Furthest(event), clock=0)
    assert forwards == backwards == at(max(events))


@given(times, st.none() | times, st.integers(0, 10**9))
def test_where_records_tell_the_watermark_event_time_does_not_move_it(event: int, mark: int | None, clock: int) -> None:
    seen = at(None).seen(Furthest(event, mark), clock=clock).seen(Furthest(event + 1), clock=clock)
    assert seen.watermark(None) == (BEGINNING if mark is None else mark)
    assert advance(BEGINNING, {P0: seen}, {"t": None}) == seen.watermark(None)


@given(times, times)
def test_a_batch_without_accepted_events_does_not_move_event_time(event: int, clock: int) -> None:
    assert at(event).seen(None, clock=clock).max_event_time == event


@given(times, st.integers(0, 10**12), st.integers(1, 10**12))
def test_a_partition_is_idle_only_strictly_after_its_timeout(active: int, silent: int, timeout: int) -> None:
    assert at(0, active).is_idle(clock=active + silent, timeout=timeout) == (silent > timeout)


@given(times, times)
def test_a_clock_that_goes_back_does_not_make_a_partition_idle(active: int, clock: int) -> None:
    moved = at(0, active).seen(Furthest(0), clock=clock)
    assert moved.active_at == max(active, clock)


def test_each_partition_keeps_its_own_progress_across_batches() -> None:
    first = advance(BEGINNING, {P0: at(100), P1: at(50)}, {"t": 0})
    second = advance(first, {P0: at(200), P1: at(50)}, {"t": 0})
    third = advance(second, {P0: at(200), P1: at(150)}, {"t": 0})
    assert (first, second, third) == (50, 50, 150)


def test_an_input_with_its_own_delay_holds_back_a_union() -> None:
    other = TopicPartition("slow", 0)
    assert advance(BEGINNING, {P0: at(100), other: at(100)}, {"t": 10, "slow": 60}) == 40


def test_an_idle_partition_lets_the_others_move_on() -> None:
    known = {P0: at(200), P1: at(50)}
    assert advance(50, known, {"t": 0}, [P1]) == 200
