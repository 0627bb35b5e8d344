"""Casts that Spark's analyzer refuses are refused before there is a Spark."""

from __future__ import annotations

import pytest

from support.columns import TYPES
from tidemill.core.contract.implicit_casts import check_predicate
from tidemill.core.errors import DeclarationError


@pytest.mark.parametrize(
    ("cast", "said", "fix"),
    [
        ("cast(day as int)", "of type date, which Spark does not cast to INT", "unix_date(day)"),
        ("try_cast(day as int)", "of type date, which Spark does not cast to INT", "unix_date(day)"),
        ("cast(day as boolean)", "does not cast to BOOLEAN", "cast(day AS STRING)"),
        ("cast(small as date)", "of type int, which Spark does not cast to DATE", "date_from_unix_date(small)"),
        ("cast(1 as date)", "`1` is a whole number, which Spark does not cast to DATE", "date_from_unix_date(1)"),
        ("cast(small as binary)", "does not cast to BINARY", "leave out the cast"),
        ("cast(flag as date)", "of type boolean, which Spark does not cast to DATE", "leave out the cast"),
        ("cast(flag as timestamp)", "does not cast to TIMESTAMP", "leave out the cast"),
        ("cast(ts as boolean)", "does not cast to BOOLEAN", "leave out the cast"),
        ("cast(tags as int)", "of type array<string>, which Spark does not cast to INT", "take an item"),
        ("cast(person as int)", "which Spark does not cast to INT", "take an item or a field"),
        ("cast(bytes as int)", "of type binary, which Spark does not cast to INT", "leave out the cast"),
        ("cast(note as array<int>)", "does not cast to ARRAY<INT>", "leave out the cast"),
        ("cast(note as decimal(50, 2))", "Spark has no type DECIMAL(50, 2)", "DECIMAL(38, 2)"),
        ("try_cast(note as decimal(3, 5))", "more digits behind the point than in all", "DECIMAL(38, 2)"),
    ],
)
def test_a_cast_that_spark_refuses_is_refused(cast: str, said: str, fix: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        check_predicate(f"{cast} is null", TYPES)
    assert said in refused.value.message
    assert fix in refused.value.fix


@pytest.mark.parametrize(
    "cast",
    [
        *("cast(day as timestamp)", "cast(ts as date)", "cast(ts as bigint)", "cast(ts as decimal(20, 6))"),
        *("cast(flag as int)", "cast(small as boolean)", "cast(small as timestamp)", "cast(price as double)"),
        *("cast(note as int)", "cast(note as date)", "cast(note as binary)", "cast(note as boolean)"),
        *("cast(tags as string)", "cast(person as string)", "cast(bytes as string)", "cast(day as string)"),
        *("cast(tags as array<int>)", "cast(null as date)", "cast(unknown as date)", "cast(note as decimal(38, 38))"),
        *("cast(day as varchar(10))", "cast(note as interval day)", "cast(small as decimal)"),
    ],
)
def test_a_cast_that_spark_takes_is_fine(cast: str) -> None:
    check_predicate(f"{cast} is null", TYPES)
