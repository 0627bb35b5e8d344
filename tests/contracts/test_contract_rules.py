"""Rules of records become predicates, rules of tables become checks, and each kind refuses the other's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidemill.contracts.findings import Level
from tidemill.contracts.lint import Finding, lint
from tidemill.contracts.predicates import sql_of
from tidemill.core.contract.contract import (
    Between,
    Check,
    Compare,
    Contract,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    RowRule,
    Severity,
    TableRule,
    Unique,
)
from tidemill.core.contract.row_checks import NotNullInside

Load = Callable[..., Contract]
TheError = Callable[[Path, str], Finding]

BOUNDS = [
    ("integer", "minimum: 1", "`x` >= 1", Between(column="x", minimum=1)),
    ("integer", "maximum: 9223372036854775807", "`x` <= 9223372036854775807", Between(column="x", maximum=2**63 - 1)),
    ("integer", "minimum: -9223372036854775808", "`x` >= -9223372036854775808", Between(column="x", minimum=-(2**63))),
    ("integer", "exclusiveMinimum: 0", "`x` > 0", Between(column="x", minimum=0, exclusive_minimum=True)),
    ("integer", "exclusiveMaximum: 2.5", "`x` < 2.5", Between(column="x", maximum=2.5, exclusive_maximum=True)),
    ("number", "minimum: 0.1", "`x` >= 0.1D AND NOT isnan(`x`)", Between(column="x", minimum=0.1)),
    ("number", "maximum: 1e300", "`x` <= 1e+300D AND NOT isnan(`x`)", Between(column="x", maximum=1e300)),
    ("decimal", "minimum: 0.1", "`x` >= 0.1", Between(column="x", minimum=0.1)),
    ("decimal", "exclusiveMinimum: 1e-7", "`x` > 0.0000001", Between(column="x", minimum=1e-7, exclusive_minimum=True)),
    ("string", "minLength: 2", "char_length(`x`) >= 2", LengthBetween(column="x", minimum=2)),
    ("string", "maxLength: 0", "char_length(`x`) <= 0", LengthBetween(column="x", maximum=0)),
    ("string", r"pattern: 'it''s \d'", r"`x` RLIKE '(?d)\\A(?:it\'s \\d)\\z'", Matches(column="x", pattern=r"it's \d")),
]
TYPES = {"decimal": "number\n  physicalType: decimal(20,8)"}


@pytest.mark.parametrize("case", BOUNDS)
def test_options_are_predicates_of_records_and_checks_of_tables(
    an_input: Load, an_output: Load, case: tuple[str, str, str, Check]
) -> None:
    logical, option, predicate, check = case
    text = f"- name: x\n  logicalType: {TYPES.get(logical, logical)}\n  logicalTypeOptions:\n    {option}"
    name = f"x.{option.partition(':')[0]}"
    pattern = check if isinstance(check, Matches) else None
    assert an_input(text).row_rules == (RowRule(name=name, predicate=predicate, pattern=pattern),)
    assert an_output(text).table_rules == (TableRule(name=name, check=check),)


@pytest.mark.parametrize(
    "case",
    [
        ("integer", "multipleOf: 5", "`x` % 5 = 0"),
        ("decimal", "multipleOf: 0.25", "`x` % 0.25 = 0"),
        ("date", "minimum: '2024-01-31'", "`x` >= DATE '2024-01-31'"),
        ("date", "maximum: 2024-01-31", "`x` <= DATE '2024-01-31'"),
        (
            "timestamp",
            "exclusiveMaximum: 2024-01-31T01:00:00+01:00",
            "`x` < TIMESTAMP '2024-01-31T00:00:00+00:00'",
        ),
        ("timestamp", "exclusiveMinimum: '2024-01-31'", "`x` > TIMESTAMP '2024-01-31T00:00:00+00:00'"),
        ("array", "minItems: 1", "array_size(`x`) >= 1"),
        ("array", "maxItems: 3", "array_size(`x`) <= 3"),
        ("array", "uniqueItems: true", "array_size(array_distinct(`x`)) = array_size(`x`)"),
    ],
)
def test_options_of_dates_multiples_and_arrays_are_rules_of_records_and_tables(
    an_input: Load, an_output: Load, case: tuple[str, str, str]
) -> None:
    logical, option, predicate = case
    type_ = "array\n  items: {logicalType: string}" if logical == "array" else TYPES.get(logical, logical)
    text = f"- name: x\n  logicalType: {type_}\n  logicalTypeOptions:\n    {option}"
    assert [rule.predicate for rule in an_input(text).row_rules] == [predicate]
    [rule] = an_output(text).table_rules
    assert sql_of(rule.check, {"x": an_output(text).fields[0].type}) == predicate


def test_what_objects_must_have_inside_is_a_rule_of_tables(an_output: Load, an_input: Load) -> None:
    text = """
        - name: order
          logicalType: object
          properties:
            - {name: id, logicalType: integer, required: true}
            - name: lines
              logicalType: array
              items:
                logicalType: object
                properties:
                  - {name: price, logicalType: number, required: true}
                  - {name: note, logicalType: string}
    """
    assert an_input(text).row_rules == ()
    prices = NotNullInside(column="order", path=("lines", "[]", "price"))
    assert an_output(text).table_rules == (
        TableRule(name="order.id.required", check=NotNullInside(column="order", path=("id",))),
        TableRule(name="order.lines[].price.required", check=prices),
    )


@pytest.mark.parametrize(
    ("logical", "option"),
    [
        ("integer", "format: i64"),
        ("integer\n  physicalType: int", "format: i32"),
        ("number", "format: f64"),
        ("timestamp", "timezone: true"),
        ("timestamp", "defaultTimezone: Etc/UTC"),
        ("array\n  items: {logicalType: string}", "uniqueItems: false"),
    ],
)
def test_options_that_say_what_is_so_are_no_rules(an_input: Load, logical: str, option: str) -> None:
    assert an_input(f"- name: x\n  logicalType: {logical}\n  logicalTypeOptions: {{{option}}}").row_rules == ()


@pytest.mark.parametrize(
    ("logical", "option", "words"),
    [
        ("string", "minimum: 1", "`x`.minimum: cannot be run for this type; supported: minLength, maxLength,"),
        ("string", "maxLenght: 1", "`x`.maxLenght: unknown option; supported: minLength, maxLength,"),
        ("string", "maxLength: -1", "expected a whole number from 0 to 2,147,483,647, found the number -1"),
        ("string", "maxLength: long", "expected a whole number from 0 to 2,147,483,647, found the text 'long'"),
        ("string", f"pattern: '{'(' * 5000}{')' * 5000}'", "its groups are nested too deeply"),
        ("string", "pattern: 'a{99999999999999}'", "the repetition number is too large"),
        ("string", "pattern: 12", "expected a regular expression, found the number 12"),
        ("string", "pattern: 'a)|(b'", "not a regular expression that every engine reads alike"),
        ("string", "pattern: '(?P<a>b)'", "a named group"),
        ("string", "pattern: '(?=a)b'", "which takes more than linear time or memory"),
        ("string", r"pattern: '(a)\1'", "invalid escape sequence: "),
        ("string", "pattern: 'a{1001}'", "which takes more than linear time or memory"),
        ("string", r"pattern: '\p{Greek}'", r"`\p{Greek}` is a category of Unicode that engines read in other ways"),
        ("string", r"pattern: '\p{C}'", r"`\p{C}` is a category of Unicode that engines read in other ways"),
        ("string", r"pattern: '\p{^L}'", r"`\p` has no name of a category in braces"),
        ("string", r"pattern: '\pL'", r"`\p` has no name of a category in braces"),
        ("string", "pattern: '[[:alpha:]]'", "Possible nested set"),
        ("string", "pattern: 'a(?i)b'", "global flags not at the start"),
        ("string", "pattern: '(?m)ab'", "sets flags for the whole pattern"),
        ("string", "pattern: '(?i)a)|(b'", "not a regular expression that every engine reads alike"),
        ("string", "format: ipv6", "supported: uuid, ipv4, hostname, email, uri"),
        ("integer", "minimum: one", "expected a number of at most 38 digits, found the text 'one'"),
        ("integer", "minimum: true", "expected a number of at most 38 digits, found true"),
        ("integer", "minimum: 1e39", "expected a number of at most 38 digits"),
        ("integer", "format: u64", "is not what the column has: i64"),
        ("integer", "multipleOf: 0", "expected a number above 0"),
        ("number", f"minimum: 1{'0' * 400}", "expected a number that a double can hold"),
        ("number", "minimum: 1e400", "expected a number that a double can hold, found the text '1e400'"),
        ("string", "maxLength: 2147483648", "expected a whole number from 0 to 2,147,483,647"),
        ("number", "multipleOf: 2", "cannot be run for this type"),
        ("number", "format: f32", "is not what the column has: f64"),
        ("date", "minimum: yesterday", "expected a time in ISO 8601"),
        ("date", "minimum: 20240131", "expected a time in ISO 8601"),
        ("date", "format: dd.MM.yyyy", "days are read as yyyy-MM-dd"),
        ("timestamp", "minimum: 12:30", "expected a time in ISO 8601"),
        ("timestamp", "timezone: false", "a time without a zone cannot be stored"),
        ("timestamp", "defaultTimezone: Europe/Berlin", "a time without a zone is read as UTC"),
        ("boolean", "minimum: 1", "supported: none"),
        ("array\n  items: {logicalType: string}", "uniqueItems: maybe", "expected true or false"),
        ("object\n  properties: [{name: y, logicalType: date}]", "maxProperties: 1", "supported: none"),
        ("string\n  physicalType: binary", "maxLength: 1", "supported: none"),
    ],
)
def test_an_option_that_cannot_be_run_is_refused(
    file: Any, logical: str, option: str, words: str, the_error: TheError
) -> None:
    text = f"- name: x\n  logicalType: {logical}\n  logicalTypeOptions:\n    {option}"
    assert words in the_error(file.an_input(text), option).message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("{minimum: 2, maximum: 1}", "minimum 2 is above maximum 1; no value can pass"),
        ("{minimum: 2, exclusiveMinimum: 1}", "has both minimum and exclusiveMinimum"),
        ("{maximum: 2, exclusiveMaximum: 1}", "has both maximum and exclusiveMaximum"),
    ],
)
def test_bounds_that_exclude_each_other_are_refused(file: Any, options: str, words: str, the_error: TheError) -> None:
    path = file.an_input(f"- name: x\n  logicalType: integer\n  logicalTypeOptions: {options}")
    assert words in the_error(path, options).message


def test_required_is_a_check_of_tables_and_left_to_the_decoder_for_records(an_input: Load, an_output: Load) -> None:
    text = "- {name: x, logicalType: string, required: true}"
    record = an_input(text)
    assert record.fields[0].required
    assert record.row_rules == ()
    assert an_output(text).table_rules == (TableRule(name="x.required", check=NotNull(column="x")),)


def test_a_primary_key_means_that_no_part_is_null_and_no_key_repeats(an_output: Load) -> None:
    contract = an_output(
        """
        - {name: a, logicalType: string, primaryKey: true}
        - {name: b, logicalType: string, primaryKey: true, required: true}
        - {name: c, logicalType: string, unique: true}
        """
    )
    assert {rule.name: rule.check for rule in contract.table_rules} == {
        "a.required": NotNull(column="a"),
        "b.required": NotNull(column="b"),
        "c.unique": Unique(columns=("c",)),
        "primaryKey": Unique(columns=("a", "b")),
    }


def test_an_enum_is_a_rule(an_input: Load, an_output: Load) -> None:
    text = '- {name: x, logicalType: string, enum: [{value: a, label: A}, {value: "it\'s"}]}'
    assert an_input(text).row_rules == (RowRule(name="x.enum", predicate=r"`x` IN ('a', 'it\'s')"),)
    assert an_output(text).table_rules == (TableRule(name="x.enum", check=OneOf(column="x", values=("a", "it's"))),)


@pytest.mark.parametrize(
    ("logical", "value"),
    [
        ("integer", "'1'"),
        ("integer", "1.5"),
        ("integer", "true"),
        ("string", "1"),
        ("string", "true"),
        ("boolean", "no"),
    ],
)
def test_a_value_of_another_type_is_not_allowed_silently(
    file: Any, logical: str, value: str, the_error: TheError
) -> None:
    path = file.an_input(f"- name: x\n  logicalType: {logical}\n  enum:\n    - value: {value}")
    assert "is no value of this column's type" in the_error(path, f"value: {value}").message


@pytest.mark.parametrize("value", ["2026-01-01T00:00:00Z", "'2026-01-01T00:00:00Z'"])
def test_a_list_of_times_is_refused_with_what_to_do(file: Any, value: str, the_error: TheError) -> None:
    for rule in (
        f"enum:\n    - value: {value}",
        f"quality: [{{metric: invalidValues, mustBe: 0, arguments: {{validValues: [{value}]}}}}]",
    ):
        path = file.an_input(f"- name: x\n  logicalType: timestamp\n  {rule}")
        assert "times can have bounds" in the_error(path, value).fix


@pytest.mark.parametrize(
    ("name", "matching", "other"),
    [
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("ipv4", "192.168.0.255", "192.168.0.256"),
        ("ipv4", "0.0.0.0", "0.0.0"),
        ("hostname", "a-b.example.org", "-a.example.org"),
        ("email", "a.b+c@example.org", "a@b@example.org"),
        ("uri", "urn:isbn:0451450523", "no uri"),
    ],
)
def test_formats_of_text_are_patterns_for_the_whole_text(an_output: Load, name: str, matching: str, other: str) -> None:
    import re

    contract = an_output(f"- name: x\n  logicalType: string\n  logicalTypeOptions: {{format: {name}}}")
    check = contract.table_rules[0].check
    assert isinstance(check, Matches)
    assert re.fullmatch(check.pattern, matching)
    assert not re.fullmatch(check.pattern, other)


def test_rules_have_the_severity_and_description_they_state(an_output: Load) -> None:
    contract = an_output(
        """
        - name: x
          logicalType: string
          quality:
            - {metric: nullValues, mustBe: 0, severity: warning, description: "Mostly\\n there."}
            - {metric: duplicateValues, mustBe: 0, severity: error, name: own}
        """
    )
    assert contract.table_rules == (
        TableRule(
            name="x.nullValues", check=NotNull(column="x"), severity=Severity.WARNING, description="Mostly there."
        ),
        TableRule(name="own", check=Unique(columns=("x",)), severity=Severity.ERROR),
    )


def test_two_rules_of_one_name_are_refused(file: Any, the_error: TheError) -> None:
    quality = "- {metric: rowCount, mustBeLessThan: 9, name: a}\n- {metric: rowCount, mustBeGreaterThan: 1, name: a}"
    path = file.an_output("- {name: x, logicalType: string}", quality=quality)
    assert "two rules are called `a`, the first in line" in the_error(path, "mustBeGreaterThan").message


def test_more_rules_than_a_mask_has_bits_are_refused(file: Any, an_input: Load) -> None:
    def properties(count: int) -> str:
        line = "- {{name: x{}, logicalType: integer, logicalTypeOptions: {{minimum: 0}}}}"
        return "\n".join(line.format(i) for i in range(count))

    assert len(an_input(properties(63)).row_rules) == 63
    (error,) = [f for f in lint(file.an_input(properties(64))) if f.severity is Level.ERROR]
    assert "64 row rules, but a contract can have at most 63" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "- {name: x, logicalType: string, unique: true} # HERE",
        "- {name: x, logicalType: string, quality: [{metric: duplicateValues, mustBe: 0}]} # HERE",
    ],
)
def test_rules_about_several_records_are_refused_for_records(file: Any, text: str, the_error: TheError) -> None:
    assert "cannot be run in an input contract" in the_error(file.an_input(text), "HERE").message


def test_a_number_of_rows_is_no_rule_of_records(file: Any, the_error: TheError) -> None:
    path = file.an_input("- {name: x, logicalType: string}", quality="- {metric: rowCount, mustBe: 1}")
    assert "it is about several records" in the_error(path, "rowCount").message


def test_a_comparison_of_two_columns_is_a_check(an_output: Load) -> None:
    quality = "- {type: custom, engine: tidemill, implementation: '`a b` <= b'}"
    properties = "- {name: a-b, logicalType: date}\n- {name: b, logicalType: date}"
    contract = an_output(properties, quality=quality.replace("a b", "a-b"))
    assert contract.table_rules == (TableRule(name="quality1", check=Compare(left="a-b", operator="<=", right="b")),)


def test_row_count_of_the_schema_is_a_check(an_output: Load) -> None:
    contract = an_output("- {name: x, logicalType: string}", quality="- {metric: rowCount, mustBeBetween: [1, 9]}")
    assert contract.table_rules == (TableRule(name="rowCount", check=RowCountBetween(minimum=1, maximum=9)),)


def test_rules_without_a_name_have_names_that_differ(an_output: Any) -> None:
    quality = """
    - {type: sql, query: "SELECT COUNT(DISTINCT x) FROM ${object}", mustBeGreaterThan: 1}
    - {type: sql, query: "SELECT COUNT(DISTINCT y) FROM ${object}", mustBeGreaterThan: 1}
    - {metric: rowCount, mustBeGreaterThan: 1}
    - {metric: rowCount, mustBeLessThan: 9}
    """
    contract = an_output("- {name: x, logicalType: string}\n- {name: y, logicalType: string}", quality=quality)
    names = [rule.name for rule in contract.table_rules]
    assert names == ["distinctValues", "distinctValues2", "rowCount", "rowCount4"]
