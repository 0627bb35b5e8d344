"""Calls that Spark's analyzer refuses are refused before there is a Spark."""

from __future__ import annotations

import pytest

from support.columns import TYPES
from support.refusals import refusal_of
from tidemill.core.contract.implicit_casts import check_predicate, checked_type
from tidemill.core.contract.schema import Array, Scalar
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import parsed


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ("size(note) > 0", "`size` takes an array or a map as argument 1, but `note` is a value of type string"),
        ("upper(flag, flag) = 'A'", "`upper` takes 1 argument, but gets 2"),
        ("coalesce() = 1", "`coalesce` takes 1 or more arguments, but gets 0"),
        ("substr(note) = 'a'", "`substring` takes 2 or 3 arguments, but gets 1"),
        ("array_contains(note, 'x')", "`array_contains` takes an array as argument 1"),
        ("array_contains(tags, 3)", "`array_contains` looks for a whole number in an array of string"),
        ("length(tags) > 1", "`length` takes a text or what becomes one as argument 1"),
        ("year(count) > 1", "`year` takes a date or a timestamp as argument 1"),
        ("md5(flag) = 'a'", "`md5` takes a text or binary as argument 1"),
        ("from_json(note, 'foo bar').foo = 1", "'foo bar' is no schema for `from_json`"),
        ("from_json(flag, 'a INT').a = 1", "`from_json` takes a text as argument 1"),
        ("array_contains(tags, NULL)", "Spark does not look for NULL"),
        ("e(1) > 1", "`e` takes no argument, but gets 1"),
        ("array_join(array(tags), ',') = 'a'", "texts are joined, not items of type `array<string>`"),
        ("like(note, 'a', 'xx')", "'xx' is no single character to escape with"),
        ("timestampdiff(DAYS, day, ts) = 1", "a unit is one of year, quarter, month"),
        ("timestampadd(DAY, 1) = ts", "`timestampadd` takes a unit and two values"),
        ("exists(tags, (x) -> x = 'a')", "one variable stands in no brackets: (x) -> ..."),
        ("size(transform(tags, (x, X) -> x)) = 1", "two variables of a lambda function have one name"),
        ("struct(note, note).note = 'a'", "there are 2 fields `note`"),
        ("named_struct('a', 1, 'A', 2).a = 1", "there are 2 fields `a`"),
        ("extract('DAY' FROM ts) = 1", "the field of `extract` is a word, with FROM behind it"),
        ("extract(day, ts) = 1", "the field of `extract` is a word, with FROM behind it"),
        ("count BETWEEN SYMMETRIC 3 AND 1", "Spark has no BETWEEN SYMMETRIC"),
        ("größe = 1", "the name 'größe' has other signs than a to z, 0 to 9 and _"),
        ("note\u200b = 'a'", "has other signs than a to z"),
        ("person.größe = 1", "has other signs than a to z"),
        ("count = 1e", "'1e' is no number"),
        ("upper(str => note) = 'A'", "`upper` takes its arguments by their place alone, found `str`"),
        ("mask(note, foo => 'q') = 'a'", "`mask` takes each of str, upperChar, lowerChar"),
        ("mask(note, lowerChar => 'q', 'x') = 'a'", "those without a name first"),
        ("mask(note, str => note) = 'a'", "`mask` takes each of str"),
        ("mask(note, lowerChar => 'qq') = 'a'", "by one character, not by 'qq'"),
        ("mask(note, '') = 'a'", "by one character, not by ''"),
        ("date_part(concat('X', 'AY'), ts) = 1", "`XAY` is no part of a date or a time"),
    ],
)
def test_a_call_that_spark_refuses_is_refused(predicate: str, said: str) -> None:
    refused = refusal_of(predicate)
    assert said in refused.message


@pytest.mark.parametrize(
    "predicate",
    [
        "upper(flag) = 'TRUE'",
        "size(split(note, ',')) > 1",
        "size(unknown) > 1",
        "array_position(tags, NULL) > 0",
        "array_contains(array(1, 2), count)",
        "date_add(day, 1) > day",
        "datediff(DAY, day, ts) > 1",
        "exists(tags, tag -> length(tag) > 1)",
        "mask(note, upperChar => 'x') = 'x'",
        "mask(note, 'X', digitChar => NULL) = 'x'",
        "mask(lowerChar => 'x', str => note) = 'x'",
        "from_json(note, 'a INT, b ARRAY<STRING>').a = 1",
        "from_json(note, 'a DECIMAL(3, 1)').a = 1",
        "length(bytes) > 1",
        "`größe` = 1",
        "note = 'größe' OR note = r'größe'",
        "array_join(tags, ',') = 'a'",
        "timestampdiff(DAY, day, ts) = 1",
        "size(transform(tags, (x, i) -> concat(x, i))) = 1",
        "size(transform(tags, x -> (x))) = 1",
        "extract(DAY FROM ts) = 1",
        "extract('DAY', ts) = 1",
        "like(note, 'a', '!')",
        "coalesce(note) = 'a'",
    ],
)
def test_what_spark_takes_or_nobody_knows_is_fine(predicate: str) -> None:
    check_predicate(predicate, TYPES)


def test_what_functions_give_is_exact() -> None:
    assert checked_type("hash(note)", TYPES) is Scalar.INTEGER
    assert checked_type("xxhash64(note)", TYPES) is Scalar.LONG
    assert checked_type("split(note, ',')", TYPES) == Array(Scalar.STRING)
    assert checked_type("sqrt(count)", TYPES) is Scalar.DOUBLE


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ("count > 0x10", "Spark reads `0x10` as the name of a column"),
        ("ratio < 1e400", "Spark cannot hold the number 1e400"),
        ("ratio < -1.5E400", "Spark cannot hold the number 1.5E400"),
        (f"count < {'9' * 39}", "Spark cannot hold the number 999"),
    ],
)
def test_a_number_that_is_none_to_spark_is_refused(predicate: str, said: str) -> None:
    refused = refusal_of(predicate)
    assert said in refused.message


@pytest.mark.parametrize(
    "predicate", ["bytes = X'10'", "ratio < 1e308", f"price < 0{'9' * 38}", "count >> 1 > 0", "ratio > 1e-400"]
)
def test_a_number_that_spark_reads_is_fine(predicate: str) -> None:
    check_predicate(predicate, TYPES)


@pytest.mark.parametrize(
    "predicate",
    [
        "ceil(ratio, 1) > 1",
        "floor(ratio, 1) > 1",
        "ceiling(price, 1) > 1",
        "array(small, count)[0] > 1",
        "array(array(small))[0][0] > 1",
        "map('a', small)['a'] > 1",
    ],
)
def test_calls_that_look_like_types_or_round_are_calls(predicate: str) -> None:
    check_predicate(predicate, TYPES)
    assert parsed(predicate).columns


@pytest.mark.parametrize("call", ["dateadd('day', 1, day) > day", "timestampdiff('HOUR', ts, ts) > 1"])
def test_a_unit_of_time_has_no_quotes(call: str) -> None:
    refused = refusal_of(call)
    assert "a unit is a word, not a text" in refused.message
    assert refused.fix.startswith("write the unit without quotes: ")


@pytest.mark.parametrize(
    ("predicate", "form"),
    [
        ("between(small, 1, 2)", "value BETWEEN 1 AND 2"),
        ("flag and when(flag, true)", "CASE WHEN condition THEN value ELSE other END"),
        ("case(small, 1)", "CASE WHEN condition THEN value ELSE other END"),
        ("not in(small, 1)", "value IN (1, 2)"),
    ],
)
def test_an_operator_that_is_called_is_refused_with_what_to_write(predicate: str, form: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        parsed(predicate)
    assert refused.value.fix.endswith(f"is no function: write {form}")


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ("day > date'2020-02-30'", "'2020-02-30' is no date"),
        ("ts > timestamp'2020-02-30 00:00:00'", "'2020-02-30 00:00:00' is no timestamp"),
        ("day > cast('soon' as date)", "'soon' is no date"),
        ("ts > timestamp'2026-01-01 25:00:00'", "'2026-01-01 25:00:00' is no timestamp"),
        ("ts > timestamp'2026-01-01 10:60'", "'2026-01-01 10:60' is no timestamp"),
        ("ts > timestamp'2026-01-01 10:00:00 Foo/Bar'", "is no timestamp"),
        ("ts > timestamp'2026-01-01T10:00:00+25:00'", "is no timestamp"),
        ("ts > '2026-01-01 25:00:00'", "'2026-01-01 25:00:00' is compared as a date or a time"),
        ("small < 500Y", "`500Y` is no number that Spark has: a byte is a number from -128 to 127"),
        ("small < 128Y", "a byte is a number from -128 to 127"),
        ("small < 70000S", "a short is a number from -32768 to 32767"),
        ("count < 99999999999999999999L", "a bigint is a number from -9223372036854775808 to 9223372036854775807"),
        ("ratio < 1e40F", "`1e40F` is no number that Spark has: a float is a number from -3.4028235e+38"),
    ],
)
def test_a_literal_that_spark_cannot_read_is_refused(predicate: str, said: str) -> None:
    refused = refusal_of(predicate)
    assert said in refused.message
    assert refused.fix


@pytest.mark.parametrize(
    "predicate",
    [
        "small > -128Y",
        "small < 127Y",
        "small > -32768S",
        "count > -9223372036854775808L",
        "ratio < 3.4e38F",
        "day > date'2020-02-29'",
        "day > date'2020'",
        "ts > timestamp'2020-02-29 23:59:59.123 Europe/Berlin'",
        "day > try_cast('soon' as date)",
        "ts > '2026-01-01T10:00:00.5Z' OR ts > '2026-01-01 1:2:3+01:00' OR ts > '2026-01-01 10:00 UTC+1'",
        "day > '2026-01-01 whatever'",
    ],
)
def test_a_literal_that_spark_reads_is_fine(predicate: str) -> None:
    check_predicate(predicate, TYPES)
