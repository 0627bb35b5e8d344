"""Calls whose constants Spark's analyzer reads: formats, schemas, positions and fields; and what intervals are."""

from __future__ import annotations

from collections.abc import Iterator

NUMBER_FORMATS = (
    *("999", "0999", "9,99", "9G999D99", "$9,999.99", "S9,999.99", "9,999.99S", "MI999", "999MI", "999PR"),
    *("s999", ".99", "99.", "S$999", "S999MI", "MI9S", "", "abc", "9,999.99$", "$S999", "9.9.9", "9D9G9"),
    *(",999", "999,", "9,,9", "L999", "$", "S", ".", "$99$", " 999", "SS9", "S9S", "MI9MI", "PR9", "base64"),
    *("yyyy", "$.9", "9$", "99PRS", "MIS9"),
)
BINARY_FORMATS = ("hex", "HEX", "base64", "utf-8", "UTF-8", "utf8", "x", "", "999")
SCHEMAS = (
    *("", "a", "1", "a INT", "a: INT", "a int, b string", "a int b string", "a int,", ",a int", "a CHAR(3)"),
    *("a STRING(3)", "int", "variant", "array<int>", "map<string,int>", "map<int,string>", "struct<a:int>"),
    *("struct<a int>", "struct<>", "array<>", "array<a>", "array", "array<int", "array int"),
    *("a array<array<variant>>", "a map<int,int>", "a decimal", "a decimal(3,1)", "a decimal(39,1)"),
    *("a decimal(3,5)", "a decimal(x)", "a int NOT NULL", "a int NULL", "1a int", 'a int COMMENT "x"'),
    *('a int comment "x" not null', "1 int", "1L int", "1e5 int", "a-b int", "`a-b` int", "a.b int"),
    *("select int", "a interval", "a interval day", "a interval hour to minute", "a interval minute to hour"),
    *("ä int", "a interval week", "a interval day to day", "a time", "a time(9)", "a null", "a object"),
    *("a datetime", "a int(3)", "a geometry", "a geometry(4326)", "a string collate UTF8_LCASE"),
    *("a string collate system.builtin.UTF8_LCASE", "a string collate", "a struct<b:int,c:array<strin>>"),
    *("a struct<b:int c:int>", "a map<string>", "a array<int>>", "a `int`", "a timestamp without time zone"),
    *("a timestamp with time zone", "a INT -- c", "interval int", "a set<int>"),
)
_POSITIONS = (
    *("0", "1", "-1", "(0)", "-(-1)", "NULL", "'1'", "'0'", "' 1 '", "'x'", "''", "'1.5'", "1.5", "0.5", "0Y"),
    *("1L", "2e0", "5000000000", "1e10", "cast('0' as int)", "cast(0 as bigint)", "count", "flag"),
)
_FORMATS = ("1", "9", "9.9", "-9", "90L", "2S", "9e0", "X'00'", "true", "NULL", "note", "date'2026-01-01'", "('99')")
_INTERVALS = (
    *("interval '1' month", "interval '1' year", "interval '1-2' year to month", "interval '1' hour"),
    *("interval '1' day", "interval '1 2' day to hour", "interval '1:2' hour to minute", "(ts - ts)"),
    *("(day - day)", "make_interval(1)", "interval 2 days", "interval 1 week", "interval 1 millisecond"),
    *("make_ym_interval(1)", "make_dt_interval(1)"),
)
_OF_INTERVALS = (
    *("-{}", "{} * 2", "{} / 2", "abs({})", "{} + NULL", "coalesce({}, NULL)", "array({})[0]", "day + {}"),
    *("day - {}", "ts + {}", "{} + day", "try_add(day, {})", "sequence(day, day, {})", "sequence(1, 5, {})"),
    *("sequence({}, {})", "width_bucket({}, {}, {}, 3)", "width_bucket({}, 1, 2, 3)"),
    *("width_bucket(price, {}, note, note)", "width_bucket({}, NULL, {}, 3)", "sequence(1, {}, note)"),
    *("sequence({}, 2S, small)", "sequence({}, note, '1')"),
    *("aggregate(array(1), {}, (a, x) -> a + interval '1' day)", "to_variant_object(array({}))"),
    *(f"extract({field} FROM {{}})" for field in ("YEAR", "MONTH", "DAYS", "HOUR", "MINUTE", "SECOND", "WEEK")),
)
_PAIRS = ("{} + {}", "{} - {}", "coalesce({}, {})", "greatest({}, {})", "{} = {}", "width_bucket({}, {}, {}, 1.5)")
_MORE = (
    *("interval 1 quarter", "interval '1' foo", "day + interval small day", "interval (1 + 1) days"),
    *("interval note day", "format_string('%0$s', 1)", "printf(r'a%0$s', 1)", "format_string('%1$s', 1)"),
    *("format_string('%00$s', 1)", "format_string(('%0$s'), 1)", "format_string(note, 1)", "date_part()"),
    *("date_part(('zz'), ts)", "datepart('d', ts)", "sequence(NULL, NULL)", "sequence(NULL, NULL, 1)"),
    *("sequence(note, note, 1)", "sequence(note, note, '1')", "sequence(day, day, 1)"),
    *("sequence(day, day, NULL)", "sequence(day, note)", "sequence(1, 5, 1.5)", "sequence(1, day)"),
    *("to_variant_object(array())", "to_variant_object(map(1, 'a'))", "to_variant_object(tags)"),
    *("to_variant_object(NULL)", "transform(array(), x -> x.name)", "array()[0].name"),
    *("transform(array(), x -> x['name'])", "array() = tags"),
)


def constants_in_calls() -> Iterator[str]:
    """Expressions over the columns of `support.columns`, some of which Spark refuses."""
    written = [f"'{text}'" for text in NUMBER_FORMATS]
    yield from (f"{call}, {each})" for call in ("to_char(price", "to_number(note") for each in (*written, *_FORMATS))
    yield from (f"to_varchar(bytes, {each})" for each in (*(f"'{text}'" for text in BINARY_FORMATS), *_FORMATS))
    yield from (f"to_binary(note, {each})" for each in (*(f"'{text}'" for text in BINARY_FORMATS), *_FORMATS))
    yield from (f"{name}(note, '{schema}')" for name in ("from_json", "from_csv", "from_xml") for schema in SCHEMAS)
    yield from (f"regexp_replace(note, 'a', 'b', {each})" for each in _POSITIONS)
    yield from (form.replace("{}", each) for form in _OF_INTERVALS for each in _INTERVALS)
    yield from (f"to_char({each}, '999')" for each in ("NULL", "day", "flag", "note"))
    for form in _PAIRS:
        yield from (form.format(a, b, a) for a in _INTERVALS[::2] for b in _INTERVALS[1::3])
    yield from _MORE
