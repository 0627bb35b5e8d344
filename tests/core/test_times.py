"""Moments and durations."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.readme import page
from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import _UNITS, duration, micros, moment, positive_duration, show_duration, signed_duration


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ten seconds",
        "1 month",
        "1.5 hours",
        "-1.5 s",
        "--1 s",
        "- -1 s",
        "10",
        "1 minute 5 s",
        "\u0663 days",
        "x" * 10**6,
    ],
)
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(DeclarationError, match="not a duration") as refused:
        duration(text)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("value", ["-5 s", " - 5 seconds", "-5000 ms", timedelta(seconds=-5)])
def test_a_duration_below_zero_is_one_as_text_and_as_timedelta(value: str | timedelta) -> None:
    assert signed_duration(value) == timedelta(seconds=-5)
    with pytest.raises(
        DeclarationError, match=r"^delay must not be negative, found '?[ -]+5[0 a-z]*'?\n  fix: leave out the minus"
    ):
        duration(value, "delay")
    with pytest.raises(
        DeclarationError, match=r"^every must be longer than nothing, found .*\n  fix: write for example"
    ):
        positive_duration(value, "every")


@pytest.mark.parametrize("of", [duration, positive_duration, signed_duration])
def test_units_that_the_page_and_the_error_name_are_durations(of: Any) -> None:
    with pytest.raises(DeclarationError) as refused:
        of("soon", "delay")
    fix = refused.value.fix.partition(":")[2]
    [line] = [line for line in page("concepts/time").splitlines() if line.startswith("A duration is")]
    for named in (re.findall(r"[a-z]+", fix), re.findall(r"`([a-z]+)`", line)):
        assert {of(f"1 {unit}", "delay") for unit in named} == {timedelta(microseconds=n) for n in set(_UNITS.values())}


@pytest.mark.parametrize("of", [duration, positive_duration, signed_duration])
def test_what_is_no_duration_is_named(of: Any) -> None:
    for value in ("soon", "5", 5, None):
        with pytest.raises(DeclarationError, match=r"^delay: not a duration: "):
            of(value, "delay")
    with pytest.raises(DeclarationError, match=r"^delay is at most 365,000 days"):
        of("400000 days", "delay")


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a time zone"):
        micros(datetime(2026, 1, 1))  # noqa: DTZ001
    assert micros(datetime(1970, 1, 1, tzinfo=UTC)) == 0
