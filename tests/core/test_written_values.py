"""Constants with which a predicate fails for every record are refused before there is a record."""

from __future__ import annotations

import pytest

from support.columns import TYPES
from tidemill.core.contract.implicit_casts import check_predicate
from tidemill.core.errors import DeclarationError


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ("mod(small, 0) = 1", "divides by 0"),
        ("pmod(count, (0)) = 1", "divides by 0"),
        ("small % 0 = 1", "divides by 0"),
        ("small / -0.0 > 1", "divides by 0"),
        ("count div 0L > 1", "divides by 0"),
        ("split_part(note, '-', 0) = 'a'", "`split_part` counts from 1"),
        ("element_at(tags, 0) = 'a'", "`element_at` counts from 1"),
        ("size(slice(tags, 0, 1)) = 1", "`slice` counts from 1"),
        ("size(array_insert(tags, 0, 'a')) = 1", "`array_insert` counts from 1"),
        ("date_format(ts, 'YYYY') = '2026'", "'YYYY' is no pattern for `date_format`"),
        ("from_unixtime(count, 'yyyy-MM-DDDD') = '2026'", "`D` cannot come 4 times"),
        ("to_date(note, 'u') = day", "'u' is no pattern for `to_date`"),
        ("to_timestamp(note, 'EEE yyyy') = ts", "`E` is only for writing"),
        ("try_to_timestamp(note, 'yyyy]') = ts", "`]` closes nothing"),
        ("date_format(ts, 'yyyy#') = '2026'", "`#` has no meaning"),
        ("to_utc_timestamp(ts, 'europe/berlin') = ts", "'europe/berlin' is no time zone"),
        ("from_utc_timestamp(ts, '+19:00') = ts", "'+19:00' is no time zone"),
        ("encode(note, 'latin1') = bytes", "'latin1' is no encoding"),
        ("next_day(day, 'MOND') = day", "'MOND' is no day of the week"),
        ("trunc(day, 'day') = day", "'day' is no unit for `trunc`"),
        ("date_trunc('nonsense', ts) = ts", "it would be null for every record"),
        ("date_part('nonsense', ts) = 1", "`nonsense` is no part of a date or a time"),
        ("extract(nonsense FROM ts) = 1", "is no part of a date or a time"),
    ],
)
def test_what_fails_for_every_record_is_refused(predicate: str, said: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        check_predicate(predicate, TYPES)
    assert said.lower() in refused.value.message.lower()
    assert refused.value.fix


@pytest.mark.parametrize(
    "predicate",
    [
        "element_at(map(0, 'a'), 0) = 'a'",
        "element_at(tags, -1) = 'a'",
        "small / 0.1 > 1",
        "try_divide(small, 0) IS NULL",
        "date_format(ts, \"yyyy-MM-dd'T'HH:mm:ss.SSSXXX 'o''clock'\") = 'a'",
        "date_format(ts, 'EEEE d MMMM, QQQ') = 'a'",
        "to_timestamp(note, 'yyyy-MM-dd[ HH:mm]') = ts",
        "from_utc_timestamp(ts, 'America/Argentina/Buenos_Aires') = ts",
        "from_utc_timestamp(ts, note) = ts",
        "from_utc_timestamp(ts, 'UTC+1') = ts",
        "encode(note, 'utf-16le') = bytes",
        "decode(small, 1, 'a') = 'a'",
        "next_day(day, 'tu') = day",
        "date_trunc('DAY', ts) = ts",
        "date_part('dow', ts) = 1",
    ],
)
def test_what_means_something_is_fine(predicate: str) -> None:
    check_predicate(predicate, TYPES)
