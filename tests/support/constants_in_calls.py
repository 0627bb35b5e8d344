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
_IN_JSON = (
    *("integer", "int", "bigint", "long", "INTEGER", "decimal(10,2)", "decimal(10, 2)", "decimal", "char(3)", "null"),
    *("void", "interval", "interval day", "time(6)", "timestamp_ltz", "byte", "tinyint", "variant", "string"),
)
JSON_SCHEMAS = (
    *(
        f'{{"type":"struct","fields":[{{"name":"a","type":"{each}","nullable":true,"metadata":{{}}}}]}}'
        for each in _IN_JSON
    ),
    *(
        '{"type":"struct","fields":[{"name":"a","type":"integer"}]}',
        '{"type":"struct"}',
        '{"type":"struct","fields":{}}',
    ),
    *('{"type":"struct","fields":[],"x":1}', '{"type":"struct","fields":[{"name":1,"type":"integer"}]}', "{}", "{bad"),
    *('{"type":"array","elementType":"integer"}', '{"type":"array","elementType":"long","containsNull":true}'),
    *('{"type":"array","elementType":"integer","containsNull":1}', ' {"type":"struct","fields":[]}'),
    *(
        f'{{"type":"map","keyType":"{each}","valueType":"long","valueContainsNull":true}}'
        for each in ("string", "long")
    ),
)
_TYPES = (
    *("text", "int4", "int8", "bool", "uuid", "json", "bit", "datetime", "timestamptz", "timestamp(3)", "number(3,1)"),
    *("varchar", "char", "varchar(3)", "varchar(0)", "char(3,4)", "int unsigned", "int()", "int[]", "array(int)"),
    *("decimal(3,1,1)", "decimal(a)", "dec(3,1)", "numeric(3)", "timestamp with time zone", "`int`", "real", "null"),
    *("timestamp with local time zone", "interval week", "interval month to day"),
    *("map<string>", "array<text>", "string collate UTF8_LCASE", "string(3)", "integer", "long", "void"),
)
_WRITTEN_INTERVALS = (
    *("1 h", "'1 h'", "'1 day 2'", "1.5 day", "'1.5' second", "'1.1234567891' second", "'' day", "'P1D'", "'1day'"),
    *("'1-2' year to month", "'1-13' year to month", "'12' year to month", "'1 25' day to hour", "'1 2' day to hour"),
    *("'1 2:60' day to minute", "'1 2:3:4' day to minute", "'99:3' hour to minute", "'3:4.5' minute to second"),
    *("'1  2' day to hour", "'1' day to day", "'1' second to day", "'1' day to month", "'-1-2' year to month"),
    *("1 day 2 hours", "1 year 2 months", "'1 month 1 day'", "'1 day 1 day'", "'interval 1 day'", "'day 1'", "-5 days"),
    *("'1.5 days'", "'1.5 seconds'", "'--1 day'", "'1 DAYS'", "'2147483648' month", "999999999999 day", "1 decade"),
)
_COLLATIONS = (
    *("nonsense", "UTF8_LCASE", "utf8_lcase", "UTF8_LCASE_CI", "UTF8_BINARY_RTRIM", "UNICODE_CI_AI_RTRIM", "de_AUT"),
    *(
        "UNICODE_RTRIM_AI_CI",
        "UNICODE_CI_CI",
        "UNICODE_CI_CS",
        "de_DEU",
        "zh_Hans_CHN",
        "zh_CHN",
        "de_CI_DEU",
        "en_USA",
    ),
    *("system.builtin.de", "builtin.de", "foo.bar.UNICODE"),
)
_OF_OTHER_INTERVALS = (
    *("array_contains(array({}), {})", "array_append(array({}), {})", "array_union(array({}), array({}))"),
    *("array_position(array({}), {})", "arrays_overlap(array({}), array({}))", "array_insert(array({}), 1, {})"),
    *(
        "map({}, 1)[{}]",
        "element_at(map({}, 1), {})",
        "map_contains_key(map({}, 1), {})",
        "array_remove(array({}), {})",
    ),
)
_COMPUTED = (
    *("to_char(price, concat('x', 'y'))", "to_char(price, concat('9', '9'))", "to_number(note, lower('X'))"),
    *("from_json(note, concat('a ', 'FOO'))", "from_json(note, 'a ' || 'int')", "to_binary(note, upper('hex'))"),
    *("collate(note, upper('unicode'))", "collate(note, note)", "collate(note, NULL)", "collate(note, 1)"),
    *("collate(tags, 'UNICODE')", "array_union(array(person), array(struct('n', 4L)))", "arrays_overlap(tags, tags)"),
)
_OPTIONS = (
    *("map('mode', 'PERMISSIVE')", "map('dateFormat', note)", "map_concat(map('a', 'b'))", "str_to_map('a:b')", "NULL"),
    *("map('a', 1)", "map('a', 'b', 'c', concat('d', 'e'))"),
)
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
    *("a timestamp with local time zone", *JSON_SCHEMAS),
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
    yield from (f"cast(NULL AS {each})" for each in _TYPES)
    yield from (f"NULL::{each}" for each in _TYPES[:10])
    yield from (f"variant_get(parse_json(note), '$.a', '{each}')" for each in _TYPES)
    yield from (f"ts + interval {each}" for each in _WRITTEN_INTERVALS)
    yield from (f"note COLLATE {each}" for each in _COLLATIONS)
    yield from (f"collate(note, '{each}')" for each in _COLLATIONS)
    yield from (form.format(a, b) for form in _OF_OTHER_INTERVALS for a in _INTERVALS[:6] for b in _INTERVALS[3:6])
    yield from _COMPUTED
    yield from (f"from_json(note, 'a INT', {each})" for each in _OPTIONS)
    yield from (f"to_csv(person, {each})" for each in _OPTIONS)
    yield from _MORE
