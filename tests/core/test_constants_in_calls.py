"""Constants that Spark's analyzer reads are read before there is a Spark: formats, schemas, positions, intervals."""

from __future__ import annotations

import pytest

from support.columns import TYPES
from support.constants_in_calls import NUMBER_FORMATS, SCHEMAS
from support.refusals import refusal_of
from tidemill.core.contract.implicit_casts import check_predicate
from tidemill.core.contract.schema_texts import fault_of_schema
from tidemill.core.sql.interval_fields import fields_of, interval_name, joined_intervals, written_interval
from tidemill.core.sql.number_formats import fault_of_number_format


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ("to_char(price, 'yyyy') = 'a'", "'yyyy' is no format for `to_char`"),
        ("to_char(price, 'L999') = 'a'", "`L` has no meaning; a format of numbers is S or MI for the sign"),
        ("to_varchar(price, '') = 'a'", "it is empty; a format of numbers"),
        ("to_number(note, '$') = 1", "it has no digit 0 or 9"),
        ("try_to_number(note, '9,,9') = 1", "its signs do not stand so"),
        ("to_char(price, note) = 'a'", "`to_char` takes a constant as its format of `decimal`, but `note` has a value"),
        ("to_char(bytes, 'utf8') = 'a'", "there are hex, utf-8, base64; Spark refuses it"),
        ("to_char(bytes, 1) = 'a'", "`to_char` takes a text as its format of binary"),
        ("to_char(day, 'YYYY') = 'a'", "it would fail the whole batch"),
        ("to_binary(note, 'x') = bytes", "there are hex, utf-8, utf8, base64; Spark refuses it"),
        ("try_to_binary(note, 'x') = bytes", "it would be null for every record"),
        ("to_number(note, date'2026-01-01') = 1", "it is `date`; Spark refuses it"),
        ("regexp_replace(note, 'a', 'b', 0) = 'a'", "`0` is no position for `regexp_replace`"),
        ("regexp_replace(note, 'a', 'b', '-1') = 'a'", "it counts from 1, up to 2147483647; Spark refuses it"),
        ("format_string('%0$s', note) = 'a'", "'%0$s' is no template for `format_string`"),
        ("from_json(note, 'a: INT').a = 1", "no colon stands between a field and its type: write a INT; Spark refuses"),
        ("from_json(note, 'a CHAR(3)').a = 'a'", "`CHAR` cannot be read here, write STRING"),
        ("size(from_json(note, 'map<int,int>')) > 1", "the keys of a map are texts, not int"),
        ("from_csv(note, 'array<int>')[0] = 1", "`from_csv` reads struct, not array"),
        ("from_csv(note, 'a ARRAY<INT>').a IS NULL", "the fields of CSV are plain"),
        (f"from_json(note, '{'array<' * 2000}int{'>' * 2000}') IS NULL", "types are nested at most 100 deep"),
        ("from_json(note, '{bad').a = 1", "it begins like JSON, and is none"),
        ('from_json(note, \'{"type":"struct"}\').a = 1', "`struct` has fields, type, and nothing else"),
        ("from_json(note, 'a INT', map('Mode', 'failfast')).a = 1", "fails the whole batch at the first text"),
        ("from_xml(note, 'a INT', map('mode', 'DROPMALFORMED')).a = 1", "no function of a row can drop it"),
        ("to_json(person, map('dateFormat', note)) = 'a'", "the options of `to_json` are a map(...) of constants"),
        ("from_json(note, 'a INT', str_to_map('a:b')).a = 1", "the options of `from_json` are a map(...) of constants"),
        ("width_bucket(price, interval '2' hour, 1, 2) = 1", "takes three numbers or three intervals of one kind, not"),
        ("size(sequence(day, day, 1)) = 1", "`sequence` over `date` makes no steps of type `int`"),
        ("size(sequence(1, ts - ts)) = 1", "`sequence` goes from integer to integer by integers"),
        ("extract(MINUTE FROM interval '1' hour) = 1", "`interval hour` has no `minute`: it has hour"),
        ("extract(HOUR FROM (day - day)) = 1", "`interval day` has no `hour`: it has day"),
        ("date_part(('nonsense'), ts) = 1", "`nonsense` is no part of a date or a time"),
        ("date_part() = 1", "`date_part` takes 2 arguments, but gets 0"),
        ("day > day - interval 1 quarter", "an interval has no unit `quarter`"),
        ("interval 1 h > interval '1' hour", "an interval has no unit `h`: the units are year, month"),
        ("ts + interval 'P1D' > ts", "`P1D` is no list of numbers with units"),
        ("ts + interval '1 day 2' > ts", "is no list of numbers with units"),
        ("ts + interval 1.5 day > ts", "`1.5` is no number of days"),
        ("ts + interval '' day > ts", "`` is no number of days"),
        ("ts + interval '1-13' year to month > ts", "`1-13` is no interval year to month, which is written like 1-2"),
        ("ts + interval '1' day to month > ts", "there is no interval day to month"),
        ("ts + interval '2:3' day to second > ts", "which is written like 1 2:3:4"),
        ("ts + interval '1 month 1 day' > ts", "has months and days"),
        ("ts + interval 999999999999 day > ts", "longer than an interval can be"),
        (
            "array_contains(array(interval '1' day), interval '24' hour)",
            "converts no `interval day` to an interval with",
        ),
        ("array_union(array(interval '1' day), array(interval '1' hour)) IS NULL", "to an interval with other fields"),
        ("map(interval '1' day, 1)[interval '1' hour] = 1", "the keys of `map<interval day, int>` are not of type"),
        ("note COLLATE nonsense = 'a'", "there is no collation `nonsense`; there are UTF8_BINARY, UTF8_LCASE"),
        ("note COLLATE de_DEU = 'a'", "there is no collation `de_DEU`"),
        ("collate(note, 'nonsense') = 'a'", "there is no collation `nonsense`"),
        ("collate(note, note) = 'a'", "takes the name of a collation as a constant text"),
        ("cast(note AS string COLLATE nonsense) = 'a'", "there is no collation `nonsense`"),
        ("date_format(ts, concat('foo', 'Q!')) = 'a'", "'fooQ!' is no pattern for `date_format`"),
        ("to_char(price, upper('x') || 'y') = 'a'", "'Xy' is no format for `to_char`"),
        ("from_json(note, concat('a ', 'FOO')).a = 1", "'a FOO' is no schema for `from_json`"),
        ("decode(bytes, lower('FOO')) = 'a'", "'foo' is no encoding for `decode`"),
        ("day > day - interval small day", "the size of an interval is a constant"),
        ("to_variant_object(array()) IS NULL", "`to_variant_object` takes no `array<void>`"),
        ("size(transform(array(), x -> x.name)) = 1", "`x` is always NULL, which has no fields"),
        ("interval 2 days & hash(note) = 1", "`&` takes no `interval day`"),
    ],
)
def test_a_constant_that_spark_refuses_is_refused_with_what_is_expected(predicate: str, said: str) -> None:
    refused = refusal_of(predicate)
    assert said in refused.message
    assert refused.fix


@pytest.mark.parametrize(
    "predicate",
    [
        "to_char(price, 'S9,999.99') = 'a'",
        "to_char(bytes, 'UTF-8') = 'a'",
        "to_char(day, 'yyyy-MM') = '2026-01'",
        "to_char(day, note) = '2026-01'",
        "to_number(note, 99) = 1",
        "to_number(note, upper('s99')) = 1",
        "to_binary(note, NULL) = bytes",
        "regexp_replace(note, 'a', 'b', -(-1)) = 'a'",
        "regexp_replace(note, 'a', 'b', NULL) = 'a'",
        "format_string('%1$s', note) = 'a'",
        "from_json(note, 'a INT NOT NULL, b STRUCT<c: ARRAY<INT>>').a = 1",
        "from_csv(note, 'a INT', map('sep', ';')).a = 1",
        "from_json(note, 'a INT', map('mode', 'PERMISSIVE')).a = 1",
        "to_json(struct(note AS mode), map('ignoreNullFields', 'false')) = 'a'",
        "width_bucket(interval '1' hour, interval '1' day, ts - ts, 3) = 1",
        "size(sequence(day, ts, interval '1' hour)) = 1",
        "extract(HOUR FROM interval '1' hour + interval '1' minute) = 1",
        "extract(SECOND FROM interval '1' hour * 2) = 1",
        "extract(DAY FROM (day - day)) = 1",
        "extract(HOUR FROM (ts - day)) = 1",
        "day + interval '1' day = day",
        "day + interval 2 weeks = day",
        "ts + interval 1 day 2 hours > ts",
        "ts + interval '1 2:3:4.5' day to second > ts",
        "ts + interval '99:3' hour to minute > ts",
        "ts + interval -5 DAYS > ts",
        "ts + interval 'interval 1 day 2 hours' > ts",
        "ts + interval '1.5 seconds' > ts",
        "array_contains(array(interval '1' day), interval '2' day)",
        "note COLLATE UNICODE_CI_AI_RTRIM = 'a'",
        "note COLLATE system.builtin.zh_Hans_CHN = 'a'",
        "collate(note, lower('DE_AUT')) = 'a'",
        "date_format(ts, concat('yyyy', '-MM')) = 'a'",
        f"date_format(ts, {' || '.join(['note'] * 2000)}) = 'a'",
        "to_variant_object(tags) IS NOT NULL",
    ],
)
def test_a_constant_that_spark_reads_is_fine(predicate: str) -> None:
    check_predicate(predicate, TYPES)


@pytest.mark.parametrize("text", [text for text in NUMBER_FORMATS if text and set(text.upper()) <= set("09.,SMI$")])
def test_a_format_of_numbers_with_a_digit_more_in_front_of_its_point_is_as_good(text: str) -> None:
    """A law of the grammar that does not depend on how the format is read."""
    fault = fault_of_number_format(text)
    assert bool(fault) is bool(fault_of_number_format(text.lower()))
    if not fault and "9" in text.partition(".")[0]:
        assert fault_of_number_format(text.replace("9", "99", 1)) == ""


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_field_of_a_struct_is_read_as_a_field_of_a_schema(schema: str) -> None:
    """Fields that stand alone are fields of a struct, too; only a colon is new there."""
    if (
        fault_of_schema(schema)
        or schema.lstrip().startswith(("{", "array<", "map<", "struct<", "variant"))
        or "--" in schema
    ):
        return
    assert fault_of_schema(f"outer struct<{schema}>") == ""
    assert fault_of_schema(f"array<struct<{schema}>>") == ""
    assert fault_of_schema(f"struct<{schema}") != ""


def test_intervals_have_the_fields_between_the_first_and_the_last_one() -> None:
    assert interval_name(("minute", "day")) == "interval day to minute"
    assert interval_name(("month", "day")) == ""
    assert fields_of("interval day to minute") == ("day", "hour", "minute")
    assert fields_of("interval") == fields_of("string") == ()
    assert joined_intervals("interval hour", "interval day") == "interval day to hour"
    assert joined_intervals("interval month", "interval month") == "interval month"
    assert written_interval("INTERVAL '2 weeks 3 milliseconds'") == "interval day to second"
