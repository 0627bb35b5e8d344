"""Laws of windows and panes, and every boundary that is decided once."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill import Sliding, Tumbling
from tidemill.core.errors import DeclarationError
from tidemill.core.time.panes import EvenPanes, Window
from tidemill.core.time.times import MICROSECOND, micros

SECOND = 1_000_000
times = st.integers(-(2**60), 2**60)
lengths = st.integers(1, 10**9)


@st.composite
def all_panes(draw: st.DrawFn) -> EvenPanes:
    slide = draw(st.integers(1, 5000))
    size = draw(st.integers(slide, slide * 4))
    return EvenPanes(size=size, slide=slide, offset=draw(st.integers(0, slide - 1)))


@given(all_panes(), times)
def test_every_window_of_a_time_contains_it(panes: EvenPanes, time: int) -> None:
    assert all(time in window for window in panes.windows_of(time))


@given(all_panes(), times)
def test_no_other_aligned_window_contains_a_time(panes: EvenPanes, time: int) -> None:
    windows = panes.windows_of(time)
    before, after = windows[0].start - panes.slide, windows[-1].start + panes.slide
    assert time not in Window(before, before + panes.size)
    assert time not in Window(after, after + panes.size)


@given(all_panes(), times)
def test_windows_start_at_the_offset_plus_whole_slides(panes: EvenPanes, time: int) -> None:
    assert {(w.start - panes.offset) % panes.slide for w in panes.windows_of(time)} == {0}


@given(all_panes(), times)
def test_the_pane_of_a_time_contains_it(panes: EvenPanes, time: int) -> None:
    start = panes.pane_of(time)
    assert start <= time < start + panes.pane


@given(all_panes(), times)
def test_all_times_of_a_pane_have_the_same_windows(panes: EvenPanes, time: int) -> None:
    start = panes.pane_of(time)
    assert panes.windows_of(start) == panes.windows_of(time) == panes.windows_of(start + panes.pane - 1)


@given(all_panes(), times)
def test_a_window_is_tiled_by_its_panes(panes: EvenPanes, time: int) -> None:
    window = panes.last_window_of(time)
    starts = list(panes.panes_of(window))
    assert starts[0] == window.start
    assert starts[-1] + panes.pane == window.end
    assert all(panes.pane_of(start) == start for start in starts)


@given(all_panes())
def test_a_pane_is_the_greatest_common_divisor_of_size_and_slide(panes: EvenPanes) -> None:
    assert panes.pane == math.gcd(panes.size, panes.slide)


@given(all_panes(), times, times)
def test_lateness_never_ends_once_it_began(panes: EvenPanes, time: int, watermark: int) -> None:
    if panes.is_late(time, watermark=watermark, allowed_lateness=0):
        assert panes.is_late(time, watermark=watermark + 1, allowed_lateness=0)


@given(all_panes(), times, lengths)
def test_a_record_is_late_exactly_from_end_plus_lateness_on(panes: EvenPanes, time: int, lateness: int) -> None:
    edge = panes.last_window_of(time).end + lateness
    assert panes.is_late(time, watermark=edge, allowed_lateness=lateness)
    assert not panes.is_late(time, watermark=edge - 1, allowed_lateness=lateness)


@given(st.integers(1, 10**6), times)
def test_a_tumbling_window_is_its_own_pane(size: int, time: int) -> None:
    panes = Tumbling(size * MICROSECOND).panes
    assert [w.start for w in panes.windows_of(time)] == [panes.pane_of(time)]


@pytest.mark.parametrize(("seconds", "start"), [(-10.001, -20), (-10, -10), (-1, -10), (0, 0), (9.999, 0), (10, 10)])
def test_record_at_window_end_belongs_to_next_window(seconds: float, start: int) -> None:
    assert Tumbling("10 seconds").panes.pane_of(round(seconds * SECOND)) == start * SECOND


def test_sliding_windows_of_a_size_that_the_slide_does_not_divide() -> None:
    starts = [w.start // SECOND for w in Sliding("12 seconds", "5 seconds").panes.windows_of(720 * SECOND)]
    assert starts == [710, 715, 720]


def test_windows_follow_their_offset() -> None:
    panes = Tumbling("1 day", offset="5 hours").panes
    start = panes.pane_of(0)
    assert start == -19 * 3600 * SECOND


def test_times_near_the_end_of_64_bits_do_not_wrap() -> None:
    panes = Sliding("1 hour", "1 minute").panes
    assert all(2**63 - 1 in w for w in panes.windows_of(2**63 - 1))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Sliding("1 minute", "2 minutes"), "slide 2 minutes is longer than size 1 minute"),
        (lambda: Tumbling("0 seconds"), "longer than nothing"),
        (lambda: Tumbling("1 month"), "not a duration"),
        (lambda: Sliding("1 hour", "7 us"), "panes"),
    ],
)
def test_an_impossible_window_is_refused_when_it_is_declared(make, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DeclarationError, match=says):
        make()


def test_windows_that_mean_the_same_are_equal() -> None:
    assert Tumbling("60 seconds") == Tumbling("1 minute")
    assert repr(Tumbling("60 seconds")) == repr(Tumbling("1 minute"))
    assert micros(Tumbling("1 minute").size) == 60 * SECOND  # type: ignore[arg-type]
