"""Casts that Spark's analyzer refuses are refused before there is a Spark."""

from __future__ import annotations

import pytest

from support.columns import TYPES
from support.refusals import refusal_of
from tidemill.core.contract.implicit_casts import check_predicate


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
        ("cast(note as decimal(50, 2))", "Spark has no type 'decimal(50, 2)'", "DECIMAL(38, 2)"),
        ("try_cast(note as decimal(3, 5))", "more digits behind the point than in all", "DECIMAL(38, 2)"),
        ("cast(note as text)", "Spark has no type 'text'", "write STRING"),
        ("cast(count as int4)", "Spark has no type 'int4'", "write INT"),
        ("try_cast(count as bool)", "`bool` is no type", "write BOOLEAN"),
        ("cast(note as datetime)", "Spark has no type 'datetime'", "write TIMESTAMP"),
        ("cast(note as timestamp(3))", "`(` cannot follow there", "write a type of Spark"),
        ("cast(note as timestamp with time zone)", "Spark has no TIMESTAMP WITH TIME ZONE", "write TIMESTAMP"),
        ("cast(note as varchar)", "`(` is expected", "write STRING"),
        ("cast(count as int unsigned)", "`unsigned` cannot follow there", "write INT"),
        ("cast(tags as int[])", "`[` has no meaning there", "write a type of Spark"),
        ("cast(tags as array(int))", "`array` names the type of its items", "write a type of Spark"),
        ("cast(cast(count as int4) as string)", "Spark has no type 'int4'", "write INT"),
        ("count::bool", "Spark has no type 'bool'", "write BOOLEAN"),
        ("array(tags)::array<array<text>>", "Spark has no type 'array<array<text>>'", "write a type of Spark"),
        (f"cast(note as {'array<' * 120}int{'>' * 120})", "types are nested at most 100 deep", "write a type"),
        ("cast(note as interval second to day)", "there is no interval second to day", "write a type"),
        ("variant_get(parse_json(note), '$.a', 'foo')", "'foo' is no type for `variant_get`", "write a type"),
        ("try_variant_get(parse_json(note), '$.a', 'bool')", "is no type for `try_variant_get`", "write BOOLEAN"),
        ("cast(parse_json(note) as map<int, int>)", "Spark does not cast `variant`", "leave out the cast"),
    ],
)
def test_a_cast_that_spark_refuses_is_refused(cast: str, said: str, fix: str) -> None:
    refused = refusal_of(f"{cast} is null")
    assert said in refused.message
    assert fix in refused.fix


@pytest.mark.parametrize(
    "cast",
    [
        *("cast(day as timestamp)", "cast(ts as date)", "cast(ts as bigint)", "cast(ts as decimal(20, 6))"),
        *("cast(flag as int)", "cast(small as boolean)", "cast(small as timestamp)", "cast(price as double)"),
        *("cast(note as int)", "cast(note as date)", "cast(note as binary)", "cast(note as boolean)"),
        *("cast(tags as string)", "cast(person as string)", "cast(bytes as string)", "cast(day as string)"),
        *("cast(tags as array<int>)", "cast(null as date)", "cast(unknown as date)", "cast(note as decimal(38, 38))"),
        *("cast(day as varchar(10))", "cast(note as interval day)", "cast(small as decimal)"),
        *("cast(note as char(3))", "cast(array(note) as array<varchar(3)>)", "array(array(count))::array<array<int>>"),
        *("count::decimal(10,2)", "cast(note as timestamp with local time zone)", "struct(cast(count as int) AS a)"),
        *("variant_get(parse_json(note), '$.a', 'a int')", "cast(unknown as struct<a: int, `b c`: map<string, int>>)"),
    ],
)
def test_a_cast_that_spark_takes_is_fine(cast: str) -> None:
    check_predicate(f"{cast} is null", TYPES)
