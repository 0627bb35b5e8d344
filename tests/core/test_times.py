"""Moments and durations."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import duration, micros, moment, show_duration


@given(st.integers(-(10**16), 10**17))
def test_a_moment_survives_its_microseconds(value: int) -> None:
    assert micros(moment(value)) == value


@given(st.integers(1, 10**15))
def test_a_duration_survives_being_shown(value: int) -> None:
    length = timedelta(microseconds=value)
    assert duration(show_duration(length)) == length


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 seconds", 10),
        ("1 minute", 60),
        ("90s", 90),
        ("2 h", 7200),
        ("250 ms", 0.25),
        ("1 week", 604_800),
        ("5 m", 300),
    ],
)
def test_durations_are_whole_numbers_of_a_unit(text: str, seconds: float) -> None:
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "ten seconds", "1 month", "1.5 hours", "-1 s", "10", "1 minute 5 s"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(DeclarationError, match="not a duration"):
        duration(text)


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a time zone"):
        micros(datetime(2026, 1, 1))  # noqa: DTZ001
    assert micros(datetime(1970, 1, 1, tzinfo=UTC)) == 0
