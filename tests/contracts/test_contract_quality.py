"""Quality rules: metrics of the library, predicates of our own, expectations of Great Expectations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidemill.contracts.findings import Level
from tidemill.contracts.lint import Finding, lint
from tidemill.core.contract.contract import (
    Between,
    Check,
    Compare,
    Contract,
    Holds,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    Unique,
)
from tidemill.core.contract.row_checks import NoneOf

Load = Callable[..., Contract]
TheError = Callable[[Path, str], Finding]

TWO = "- {name: x, logicalType: string}\n- {name: n, logicalType: integer}\n- {name: m, logicalType: integer}"


def with_rule(rule: str, column: str = "x", logical: str = "string") -> str:
    return f"- name: {column}\n  logicalType: {logical}\n  quality:\n    - {rule}"


def checks(contract: Contract) -> dict[str, Check]:
    return {rule.name: rule.check for rule in contract.table_rules}


@pytest.mark.parametrize(
    ("rule", "check"),
    [
        ("{type: library, metric: nullValues, mustBe: 0}", NotNull(column="x")),
        ("{metric: nullValues, mustBe: 0, unit: rows}", NotNull(column="x")),
        ("{metric: nullValues, mustBe: 0, unit: percent}", NotNull(column="x")),
        ("{metric: nullValues, mustBeLessThan: 1}", NotNull(column="x")),
        ("{metric: nullValues, mustBeLessOrEqualTo: 0}", NotNull(column="x")),
        ("{metric: missingValues, arguments: {missingValues: [null]}, mustBe: 0}", NotNull(column="x")),
        (
            "{metric: invalidValues, arguments: {validValues: [a, 'no']}, mustBe: 0}",
            OneOf(column="x", values=("a", "no")),
        ),
        ("{metric: invalidValues, arguments: {pattern: '[a-z]+'}, mustBe: 0}", Matches(column="x", pattern="[a-z]+")),
        ("{metric: duplicateValues, mustBe: 0}", Unique(columns=("x",))),
    ],
)
def test_a_metric_of_a_column_is_a_check(an_output: Load, rule: str, check: Check) -> None:
    assert list(checks(an_output(with_rule(rule))).values()) == [check]


@pytest.mark.parametrize(
    ("rule", "predicate"),
    [
        ("{metric: nullValues, mustBe: 0}", "`x` IS NOT NULL"),
        ("{metric: missingValues, arguments: {missingValues: [null]}, mustBe: 0}", "`x` IS NOT NULL"),
        ("{metric: missingValues, arguments: {missingValues: ['', N/A]}, mustBe: 0}", "`x` NOT IN ('', 'N/A')"),
        (
            "{metric: missingValues, arguments: {missingValues: [null, '-']}, mustBe: 0}",
            "`x` IS NOT NULL AND `x` NOT IN ('-')",
        ),
        ("{metric: invalidValues, arguments: {validValues: [a]}, mustBe: 0}", "`x` IN ('a')"),
        ("{type: custom, engine: tidemill, implementation: x <> upper(x)}", "x <> upper(x)"),
    ],
)
def test_a_rule_of_a_column_is_a_predicate(an_input: Load, rule: str, predicate: str) -> None:
    assert [r.predicate for r in an_input(with_rule(rule)).row_rules] == [predicate]


def test_valid_values_and_a_pattern_are_two_rules(an_output: Load) -> None:
    rule = "{metric: invalidValues, arguments: {validValues: [a], pattern: 'a'}, mustBe: 0}"
    assert list(checks(an_output(with_rule(rule)))) == ["x.invalidValues.validValues", "x.invalidValues.pattern"]
    named = checks(an_output(with_rule(rule.replace("{metric", "{name: known, metric"))))
    assert list(named) == ["known.validValues", "known.pattern"]


@pytest.mark.parametrize(
    ("operator", "minimum", "maximum"),
    [
        ("mustBe: 5", 5, 5),
        ("mustBeGreaterThan: 5", 6, None),
        ("mustBeGreaterThan: 4.5", 5, None),
        ("mustBeGreaterOrEqualTo: 5", 5, None),
        ("mustBeLessThan: 5", None, 4),
        ("mustBeLessThan: 5.5", None, 5),
        ("mustBeLessOrEqualTo: 5", None, 5),
        ("mustBeBetween: [1, 5]", 1, 5),
    ],
)
def test_the_number_of_rows_has_bounds(
    an_output: Load, operator: str, minimum: int | None, maximum: int | None
) -> None:
    contract = an_output(TWO, quality=f"- {{metric: rowCount, {operator}}}")
    assert checks(contract) == {"rowCount": RowCountBetween(minimum=minimum, maximum=maximum)}


def test_duplicates_of_the_schema_name_their_columns(an_output: Load) -> None:
    quality = "- {metric: duplicateValues, mustBe: 0, arguments: {properties: [x, n]}}"
    assert checks(an_output(TWO, quality=quality)) == {"duplicateValues(x,n)": Unique(columns=("x", "n"))}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{metric: freshness, mustBe: 0}", "metric freshness: unknown; supported: nullValues, missingValues,"),
        ("{metric: nullValues}", "needs one of mustBe, mustNotBe,"),
        ("{metric: nullValues, mustBe: 0, mustBeLessThan: 1}", "found mustBe and mustBeLessThan"),
        ("{metric: nullValues, mustBeLessThan: 0, unit: percent}", "no number of rows is mustBeLessThan 0 percent"),
        ("{metric: nullValues, mustBe: -1}", "no number of rows is mustBe -1 rows"),
        ("{metric: nullValues, mustBeBetween: [7, 3]}", "no number of rows is mustBeBetween 7, 3 rows"),
        ("{metric: nullValues, mustBeGreaterThan: 100, unit: percent}", "no number of rows is"),
        ("{metric: nullValues, mustBe: none}", "mustBe needs numbers, found the text 'none'"),
        ("{metric: nullValues, mustBe: 0, unit: bytes}", "unit `bytes` cannot be run"),
        ("{metric: nullValues, mustBe: 0, arguments: {of: x}}", "unknown argument `of`; supported: none"),
        ("{metric: missingValues, mustBe: 0}", "needs the argument missingValues, a list"),
        ("{metric: missingValues, mustBe: 0, arguments: {missingValues: []}}", "missingValues is empty"),
        ("{metric: missingValues, mustBe: 0, arguments: {missingValues: [1]}}", "is no value of `x`"),
        ("{metric: invalidValues, mustBe: 0}", "needs the argument validValues or pattern"),
        ("{metric: invalidValues, mustBe: 0, arguments: {validValues: [no, 1]}}", "the number 1 is no value of `x`"),
        ("{metric: invalidValues, mustBe: 0, arguments: {pattern: '('}}", "the pattern cannot be used"),
        ("{metric: rowCount, mustBe: 1}", "belongs at the schema, found at the property"),
        ("{metric: duplicateValues, mustBe: 0, arguments: {properties: [x]}}", "belongs at the schema"),
        ("{type: dbt}", "quality of type `dbt` cannot be run"),
        ("{description: nothing}", "a quality rule needs a type or a metric"),
        ("{metric: nullValues, mustBe: 0, severity: Error}", "severity is the text 'Error'"),
        ("{metric: nullValues, mustBe: 0, dimension: beauty}", "dimension is the text 'beauty'"),
        ("{metric: nullValues, mustBe: 0, engine: soda}", "`engine` does not belong to a quality rule of type library"),
        ("{type: text, mustBe: 0}", "`mustBe` does not belong to a quality rule of type text"),
        ("{type: custom, engine: soda, implementation: x}", "engine `soda` cannot be run; supported: tidemill,"),
        ("{type: custom, engine: tidemill}", "needs engine and implementation"),
        ("{type: custom, engine: tidemill, implementation: {a: b}}", "expected an SQL predicate"),
        ("{type: custom, engine: tidemill, implementation: ' '}", "expected an SQL predicate"),
    ],
)
def test_a_quality_rule_that_cannot_be_run_is_refused(file: Any, rule: str, words: str, the_error: TheError) -> None:
    path = file.an_output(with_rule(rule))
    assert words in the_error(path, rule).message


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{metric: rowCount, mustBe: 5, unit: percent}", "unit percent cannot be run"),
        ("{metric: rowCount, mustBeBetween: [5, 1]}", "no number of rows is mustBeBetween 5, 1"),
        ("{metric: rowCount, mustBe: 1.5}", "no number of rows is mustBe 1.5"),
        ("{metric: nullValues, mustBe: 0}", "belongs at the property, found at the schema"),
        ("{metric: duplicateValues, mustBe: 0}", "needs the argument properties"),
        ("{metric: duplicateValues, mustBe: 0, arguments: {properties: [y]}}", "there is no property `y`"),
    ],
)
def test_a_quality_rule_of_the_schema_that_cannot_be_run_is_refused(
    file: Any, rule: str, words: str, the_error: TheError
) -> None:
    assert words in the_error(file.an_output(TWO, quality=f"- {rule}"), rule).message


def test_a_rule_in_words_is_accepted_and_not_run(an_output: Load) -> None:
    assert checks(an_output(with_rule("{type: text, description: Verified by hand., dimension: accuracy}"))) == {}


def test_values_that_are_missing_are_listed_for_tables(an_output: Load) -> None:
    rule = "{metric: missingValues, arguments: {missingValues: ['-', null]}, mustBe: 0}"
    [found] = an_output(with_rule(rule)).table_rules
    assert found.check == NoneOf(column="x", values=("-",), null_too=True)


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("n > 0; DROP TABLE t", "`;` ends a statement"),
        ("n > 0 -- always", "a comment would hide what follows"),
        ("n > 0 /* always */", "a comment would hide what follows"),
        ("n > (select max(n) from t)", "a subquery looks beyond the row"),
        ("count(n) over (partition by x) = 1", "a window function looks beyond the row"),
        ("x::int > 0", "`::` is a cast that fails the whole batch"),
        ("n > 0) or (1 = 1", "a bracket without its partner"),
        ("(n > 0", "a bracket without its partner"),
        ("x = 'a", "a quote without its partner"),
        ("n > rand()", "`rand` gives another answer each time"),
        ("x < cast(current_timestamp as string)", "`current_timestamp` gives another answer each time"),
        ("nn > 0", "the predicate reads `nn`, but the contract has no such property; it has x, n, m"),
        ("1 = 1", "reads no property of the contract"),
    ],
)
def test_a_predicate_that_cannot_stand_alone_is_refused(
    file: Any, predicate: str, words: str, the_error: TheError
) -> None:
    quality = f'- type: custom\n  engine: tidemill\n  implementation: "{predicate}"'
    assert words in the_error(file.an_input(TWO, quality=quality), "implementation:").message


@pytest.mark.parametrize(
    "predicate",
    [
        "n > 0 AND (x <> 'a;b--c' OR `m` IS NULL)",
        'x <> "it\'s (" and N < m',
        "exists(split(x, ','), p -> p = 'a')",
    ],
)
def test_predicates_are_taken_as_they_are(an_input: Load, predicate: str) -> None:
    quality = f"- type: custom\n  engine: tidemill\n  implementation: |\n    {predicate}\n"
    assert [r.predicate for r in an_input(TWO, quality=quality).row_rules] == [predicate]


def test_a_predicate_of_many_lines_is_one_line(an_input: Load) -> None:
    quality = "- type: custom\n  engine: tidemill\n  name: both\n  implementation: |\n    n > 0\n    AND m > 0\n"
    contract = an_input(TWO, quality=quality)
    assert [(r.name, r.predicate) for r in contract.row_rules] == [("both", "n > 0 AND m > 0")]


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("n + 1", "a condition is true or false, but"),
        ("x < n", "x is a text (string), but is compared as a number"),
        ("n <= n", "it compares `n` with itself"),
    ],
)
def test_a_predicate_of_tables_that_is_no_condition_is_refused(
    file: Any, predicate: str, words: str, the_error: TheError
) -> None:
    quality = f"- {{type: custom, engine: tidemill, implementation: '{predicate}'}}"
    assert words in the_error(file.an_output(TWO, quality=quality), "tidemill").message


@pytest.mark.parametrize(
    ("predicate", "columns"),
    [("n > 0", ("n",)), ("n + 1 > m", ("n", "m")), ("n <> m", ("n", "m")), ("x = 'a' OR n IS NULL", ("x", "n"))],
)
def test_a_table_takes_any_condition_over_its_columns(
    an_output: Load, predicate: str, columns: tuple[str, ...]
) -> None:
    [rule] = an_output(TWO, quality=f'- {{type: custom, engine: tidemill, implementation: "{predicate}"}}').table_rules
    assert isinstance(rule.check, Holds)
    assert (rule.check.predicate, set(rule.check.columns)) == (predicate, set(columns))


def expectation(kind: str, kwargs: str, engine: str = "greatExpectations") -> str:
    return (
        f"- type: custom\n  engine: {engine}\n  implementation: |\n    type: {kind} # KIND\n    kwargs: {kwargs} # HERE"
    )


@pytest.mark.parametrize(
    ("kind", "kwargs", "check"),
    [
        ("expect_column_values_to_not_be_null", "{column: n}", NotNull(column="n")),
        ("expect_column_values_to_be_unique", "{column: n, mostly: 1}", Unique(columns=("n",))),
        ("expect_compound_columns_to_be_unique", "{columnList: [n, x]}", Unique(columns=("n", "x"))),
        (
            "expect_column_values_to_be_between",
            "{column: n, minValue: 1, max_value: null, strict_min: true}",
            Between(column="n", minimum=1, exclusive_minimum=True),
        ),
        ("expect_column_values_to_be_in_set", "{column: x, value_set: [a, b]}", OneOf(column="x", values=("a", "b"))),
        (
            "expect_column_values_to_match_regex",
            "{column: x, regex: '^a'}",
            Matches(column="x", pattern="(?s:.*)(?:^a)(?s:.*)"),
        ),
        (
            "expect_column_value_lengths_to_be_between",
            "{column: x, max_value: 3}",
            LengthBetween(column="x", maximum=3),
        ),
        (
            "expect_column_value_lengths_to_equal",
            "{column: x, value: 3}",
            LengthBetween(column="x", minimum=3, maximum=3),
        ),
        (
            "expect_column_pair_values_a_to_be_greater_than_b",
            "{column_A: n, column_B: m, or_equal: true}",
            Compare(left="n", operator=">=", right="m"),
        ),
        (
            "expect_column_pair_values_to_be_equal",
            "{column_A: n, column_B: m}",
            Compare(left="n", operator="=", right="m"),
        ),
        (
            "expect_table_row_count_to_be_between",
            "{minValue: 10000, maxValue: 50000}",
            RowCountBetween(minimum=10000, maximum=50000),
        ),
        ("expect_table_row_count_to_equal", "{value: 7}", RowCountBetween(minimum=7, maximum=7)),
    ],
)
def test_an_expectation_that_a_check_says_is_that_check(an_output: Load, kind: str, kwargs: str, check: Check) -> None:
    assert list(checks(an_output(TWO, quality=expectation(kind, kwargs))).values()) == [check]


def test_an_expectation_of_a_column_need_not_name_it(an_output: Load) -> None:
    rule = "{type: custom, engine: great-expectations, implementation: {type: expect_column_values_to_be_unique}}"
    assert checks(an_output(with_rule(rule))) == {"x.quality1": Unique(columns=("x",))}


@pytest.mark.parametrize(
    ("kind", "kwargs", "words"),
    [
        ("expect_column_values_to_be_unique", "{column: y}", "`column` must be the name of a property"),
        ("expect_column_values_to_be_unique", "{column: n, mostly: 0.9}", "a share of bad rows cannot be allowed"),
        (
            "expect_column_values_to_be_unique",
            "{column: n, row_condition: x}",
            "argument `row_condition` cannot be run",
        ),
        ("expect_compound_columns_to_be_unique", "{column_list: [n, y]}", "must be a list of names of properties"),
        ("expect_column_values_to_be_between", "{column: n, min_value: a}", "`min_value` must be a number"),
        ("expect_column_values_to_be_between", "{column: n, min_value: 1, strict_min: 1}", "must be true or false"),
        ("expect_column_values_to_be_between", "{column: x, min_value: 1}", "`x` is no number"),
        ("expect_column_values_to_be_in_set", "{column: n, value_set: [a]}", "values of the type of `n`"),
        ("expect_column_values_to_match_regex", "{column: x, regex: '('}", "`regex` cannot be used"),
        ("expect_column_value_lengths_to_be_between", "{column: x, min_value: -1}", "a whole number from 0 on"),
    ],
)
def test_an_expectation_that_no_check_says_is_refused(
    file: Any, kind: str, kwargs: str, words: str, the_error: TheError
) -> None:
    path = file.an_output(TWO, quality=expectation(kind, kwargs))
    at = "- type: custom" if "is no number" in words else "# HERE"
    assert words in the_error(path, at).message


@pytest.mark.parametrize(
    ("kind", "kwargs", "words"),
    [
        (
            "expect_column_kl_divergence_to_be_less_than",
            "{column: n}",
            "cannot be run; supported: expect_column_values_to_not",
        ),
        ("expect_column_values_to_be_between", "{column: n}", "needs min_value or max_value"),
        ("expect_table_row_count_to_be_between", "{min_value: 2, max_value: 1}", "min_value 2 is above max_value 1"),
        ("expect_column_values_to_be_unique", "{}", "`column` must be the name of a property, found nothing"),
        ("expect_compound_columns_to_be_unique", "{}", "must be a list of names of properties"),
    ],
)
def test_an_expectation_that_cannot_be_run_is_refused(
    file: Any, kind: str, kwargs: str, words: str, the_error: TheError
) -> None:
    assert words in the_error(file.an_output(TWO, quality=expectation(kind, kwargs)), "# KIND").message


def test_expectations_are_for_tables_only(file: Any, the_error: TheError) -> None:
    quality = expectation("expect_column_values_to_be_unique", "{column: n}")
    error = the_error(file.an_input(TWO, quality=quality), "engine: greatExpectations")
    assert "records of an input contract are checked one by one" in error.message


@pytest.mark.parametrize(
    ("left", "right", "comparable"),
    [
        ("integer", "integer, physicalType: int", True),
        ("integer", "number, physicalType: 'decimal(9,2)'", True),
        ("number", "number", True),
        ("timestamp", "timestamp", True),
        ("number", "integer", True),
        ("integer", "number", True),
        ("number, physicalType: 'decimal(9,2)'", "number", True),
        ("timestamp", "date", True),
        ("date", "timestamp", True),
        ("string", "string, physicalType: binary", False),
        ("array, items: {logicalType: date}", "array, items: {logicalType: date}", False),
    ],
)
def test_only_columns_of_types_that_spark_compares_are_compared(
    file: Any, left: str, right: str, comparable: bool
) -> None:
    properties = f"- {{name: a, logicalType: {left}}}\n- {{name: b, logicalType: {right}}}"
    path = file.an_output(properties, quality="- {type: custom, engine: tidemill, implementation: a < b}")
    errors = [f.message for f in lint(path) if f.severity is Level.ERROR]
    expected = "rule `quality1` cannot be run: `a` and `b` have types that cannot be compared"
    assert errors == ([] if comparable else [expected])
