"""Times in text: what is accepted, and that every calendar day is the right number."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decode.decoding import a_contract, assert_as_slow, row
from tidemill.core.contract.contract import Format
from tidemill.core.contract.schema import Scalar
from tidemill.engine.read.decode.instants import EARLIEST, LATEST, iso_days, iso_instants, log_instants

TIME = a_contract({"at": Scalar.TIMESTAMP}, Format.CSV)
DAY = a_contract({"at": Scalar.DATE}, Format.CSV)


def at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31T23:59:59Z", at(2024, 1, 31, 23, 59, 59)),
        ("2024-01-31 23:59:59", at(2024, 1, 31, 23, 59, 59)),
        ("2024-01-31T23:59", at(2024, 1, 31, 23, 59)),
        ("2024-01-31T23:59Z", at(2024, 1, 31, 23, 59)),
        ("2024-01-31T23:59+01", at(2024, 1, 31, 22, 59)),
        ("2024-01-31T23:59:59+0130", at(2024, 1, 31, 22, 29, 59)),
        ("2024-01-31T23:59:59-01:30", at(2024, 2, 1, 1, 29, 59)),
        ("2024-01-31T23:59:59.1", at(2024, 1, 31, 23, 59, 59, 100_000)),
        ("2024-01-31T23:59:59,123Z", at(2024, 1, 31, 23, 59, 59, 123_000)),
        ("2024-01-31T23:59:59.123456+00:00", at(2024, 1, 31, 23, 59, 59, 123_456)),
        ("2024-01-31T23:59:59.999999999Z", at(2024, 1, 31, 23, 59, 59, 999_999)),
        ("1969-12-31T23:59:59.9999999Z", at(1969, 12, 31, 23, 59, 59, 999_999)),
        ("0001-01-01T00:00:00Z", at(1, 1, 1)),
        ("9999-12-31T23:59:59.999999Z", at(9999, 12, 31, 23, 59, 59, 999_999)),
        ("2000-02-29T00:00:00-23:59", at(2000, 2, 29, 23, 59)),
    ],
)
def test_a_time_may_leave_out_seconds_fraction_and_zone(text, expected):
    assert row(TIME, f'"{text}"') == {"at": expected}


@pytest.mark.parametrize(
    "text",
    [
        *("2024-01-31", "2024-01-31T", "2024-01-31T23", "2024-01-31T23:5", "2024-01-31T23:59:", "2024-01-31T23:59:5"),
        *("2024-01-31T23:59:60Z", "2016-12-31T23:59:60Z", "2024-01-31T24:00:00Z", "2024-01-31T23:60:00Z"),
        *("2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-00-01T00:00:00Z", "2024-13-01T00:00:00Z"),
        *("2024-01-00T00:00:00Z", "2024-04-31T00:00:00Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z"),
        *("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-01-31t23:59:59z", "2024-01-31_23:59:59"),
        *("2024-01-31T23:59:59.", "2024-01-31T23:59:59.Z", "2024-01-31T23:59:59.1234567890Z", "2024-01-31T23:59.5Z"),
        *(
            "2024-01-31T23:59:59+1",
            "2024-01-31T23:59:59+1:00",
            "2024-01-31T23:59:59+24:00",
            "2024-01-31T23:59:59+00:60",
        ),
        *(
            "2024-01-31T23:59:59ZZ",
            " 2024-01-31T23:59:59Z",
            "2024-01-31T23:59:59Z ",
            "2024-01-31T23:59:59 Z",
            "20240131T235959Z",
        ),
        *(
            "\uff12\uff10\uff12\uff14-01-31T23:59:59Z",
            "2024-01-31T23:59:59\0",
            "2024/01/31T23:59:59Z",
            "x",
            "-2024-01-31T23:59:59Z",
        ),
    ],
)
def test_what_is_no_time_is_bad(text):
    assert assert_as_slow(TIME, [text.encode()]) == [None]


@given(
    st.datetimes(), st.sampled_from("T "), st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
    st.sampled_from(["", "Z", "+00", "-0130", "+23:59"]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_any_time_that_python_writes_is_decoded_as_slowly(time, separator, precision, zone):
    assert_as_slow(TIME, [(time.isoformat(separator, precision) + zone).encode()])


@given(st.text("0123456789-:.,TZ+ ", min_size=8, max_size=36))
@settings(max_examples=150, deadline=None)
def test_any_text_that_looks_like_a_time_is_decoded_as_slowly(text):
    assert_as_slow(TIME, [f'"{text}"'.encode()])
    assert_as_slow(DAY, [f'"{text[:10]}"'.encode()])


def test_every_day_of_four_centuries_and_both_ends_of_each_year_are_the_right_number():
    days = np.arange(np.datetime64("1700-01-01"), np.datetime64("2100-01-01"))
    years = np.arange(np.datetime64("0001"), np.datetime64("10000")).astype("datetime64[D]")
    days = np.concatenate([days, years, years[1:] - 1, years + 59])
    texts = np.datetime_as_string(days).tolist()
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    numbers, good = iso_days(pa.array(texts))
    logged = [f"{t[8:]}/{months[int(t[5:7]) - 1]}/{t[:4]}:00:00:00 +0000" for t in texts]
    micros, log_good = log_instants(pa.array(logged))

    assert good.all()
    assert log_good.all()
    assert (numbers == days.astype(np.int64)).all()
    assert (micros == numbers * 86_400_000_000).all()


def test_only_real_days_of_a_month_are_days():
    texts = [
        f"{year}-{month:02}-{day:02}" for year in (1900, 2000, 2023, 2024) for month in range(14) for day in range(33)
    ]
    real = []
    for text in texts:
        try:
            real.append(dt.date.fromisoformat(text) is not None)
        except ValueError:
            real.append(False)

    assert iso_days(pa.array(texts))[1].tolist() == real


def test_nulls_empty_arrays_and_slices_are_read():
    texts = pa.array([None, "x", "2024-01-01T00:00:00Z", None, "2024-01-01T00:00Z", "", "é"])

    micros, good = iso_instants(texts)

    assert good.tolist() == [False, False, True, False, True, False, False]
    assert micros[2] == micros[4] == 1_704_067_200_000_000
    assert iso_instants(texts.slice(2, 1))[1].tolist() == [True]
    assert [len(a) for a in iso_instants(texts.slice(7))] == [0, 0]
    assert iso_instants(pa.nulls(3, pa.string()))[1].tolist() == [False] * 3


def test_the_bounds_are_those_of_datetime():
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

    assert epoch + dt.timedelta(microseconds=EARLIEST) == at(1, 1, 1)
    assert epoch + dt.timedelta(microseconds=LATEST) == dt.datetime.max.replace(tzinfo=dt.UTC)
