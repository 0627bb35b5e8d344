"""Quality rules of type sql: queries that count rows, with the placeholders of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemill.contracts.audit import audit
from tidemill.contracts.findings import Level
from tidemill.contracts.lint import lint
from tidemill.contracts.load import load_contract
from tidemill.core.contract.contract import Contract, Expectation, Holds, RowCountBetween
from tidemill.core.contract.tolerance import Tolerance
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage.staged_rows import RowWriters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = """
- {name: x, logicalType: string}
- {name: n, logicalType: integer}
- {name: m, logicalType: integer}
"""
ROWS = pa.table({"x": ["a", "b", None, "d"], "n": pa.array([1, -2, None, 4]), "m": pa.array([2, 0, 0, None])})


def of(file: Any, query: str, rest: str = "mustBe: 0", **more: Any) -> Any:
    quality = f'- {{type: sql, name: counted, query: "{query}", {rest}}} # HERE'
    return file.an_output(COLUMNS, quality=quality, **more)


@pytest.mark.parametrize("version", ["v3.0.2", "v3.1.0", "v3.2.0"])
@pytest.mark.parametrize(
    ("query", "predicate"),
    [
        ("SELECT COUNT(*) FROM ${object} WHERE n < 0", "NOT ((n < 0))"),
        ("SELECT COUNT(*) FROM ${table} WHERE n < 0;", "NOT ((n < 0))"),
        ("select count(1) from {model} where n < 0", "NOT ((n < 0))"),
        ("SELECT COUNT(*) AS bad FROM {object} WHERE x = 'where' OR n > m", "NOT ((x = 'where' OR n > m))"),
        ("SELECT COUNT(*) FROM Orders WHERE n < 0", "NOT ((n < 0))"),
        ("SELECT COUNT(n) FROM lake.orders WHERE m = 0", "NOT ((m = 0) AND (n IS NOT NULL))"),
        ("SELECT COUNT_IF(n > m) FROM ${object}", "NOT ((n > m))"),
        ("SELECT COUNT_IF(o.x = to_char(o.n, '(99')) FROM ${object} o", None),
        (
            "SELECT COUNT_IF((n > 1) AND x <> to_char(n, '99')) FROM ${object}",
            "NOT (((n > 1) AND x <> to_char(n, '99')))",
        ),
        ("SELECT COUNT_IF(levenshtein(o.x, 'a', 2) > 0) FROM ${object} o", "NOT ((levenshtein(x, 'a', 2) > 0))"),
        ("SELECT COUNT(IF(nvl(n, 1) IN (1, 2), 1, NULL)) FROM ${object}", "NOT ((nvl(n, 1) IN (1, 2)))"),
        (
            "SELECT COUNT(CASE WHEN (n < 0) OR CASE WHEN m > 1 THEN true END THEN 1 END) FROM ${object}",
            "NOT (((n < 0) OR CASE WHEN m > 1 THEN true END))",
        ),
        (
            "SELECT COUNT((CASE WHEN n < 0 THEN to_char(m, '99') END)) FROM ${object}",
            "NOT (((CASE WHEN n < 0 THEN to_char(m, '99') END) IS NOT NULL))",
        ),
        ("select count(case when n < 0 then 1 end) as bad from {object}", "NOT ((n < 0))"),
        (
            "SELECT COUNT(CASE WHEN n < 0 THEN 'x' ELSE NULL END) FROM ${object} WHERE m = 0",
            "NOT ((m = 0) AND (n < 0))",
        ),
        ("SELECT COUNT(IF(n < 0, 1, NULL)) FROM ${object}", "NOT ((n < 0))"),
        (
            "SELECT COUNT(CASE WHEN n < 0 THEN m END) FROM ${object}",
            "NOT ((CASE WHEN n < 0 THEN m END IS NOT NULL))",
        ),
        (
            "SELECT COUNT(CASE n WHEN 1 THEN 1 END) FROM ${object}",
            "NOT ((CASE n WHEN 1 THEN 1 END IS NOT NULL))",
        ),
        ("SELECT COUNT(*) FROM ${object} o WHERE o.n > 1 AND O.x = 'o.n'", "NOT ((n > 1 AND x = 'o.n'))"),
        ("SELECT COUNT(o.n) AS bad FROM lake.orders AS o WHERE o.m = 0", "NOT ((m = 0) AND (n IS NOT NULL))"),
        ("SELECT COUNT(*) FROM ${object} WHERE ${object}.n > orders.m - orders.m", None),
        ("SELECT COUNT(*) FROM orders WHERE orders.n > `orders`.m", "NOT ((n > m))"),
        ("SELECT COUNT((n)) FROM ${object}", "NOT ((n IS NOT NULL))"),
        ("SELECT COUNT(true) FROM ${object} WHERE n < 0", "NOT ((n < 0))"),
    ],
)
def test_a_count_is_a_check_of_rows(file: Any, query: str, predicate: str | None, version: str) -> None:
    if predicate is None:
        assert [f.severity for f in lint(of(file, query)) if f.severity is Level.ERROR]
        return
    [rule] = load_contract(of(file, query, version=version)).table_rules
    assert isinstance(rule.check, Holds)
    assert (rule.name, rule.check.predicate, rule.tolerance) == ("counted", predicate, None)


def test_the_placeholder_of_a_column_is_the_column_of_the_rule(file: Any) -> None:
    for word in ("${column}", "{property}", "${field}"):
        rule = f"quality: [{{type: sql, query: 'SELECT COUNT(*) FROM ${{object}} WHERE {word} < 0', mustBe: 0}}]"
        [found] = load_contract(file.an_output(f"- {{name: n, logicalType: integer, {rule}}}")).table_rules
        assert found.check == Holds(columns=("n",), predicate="NOT ((`n` < 0))")


def test_a_count_of_all_rows_is_the_number_of_rows(file: Any) -> None:
    [rule] = load_contract(of(file, "SELECT COUNT(*) FROM ${object}", "mustBeBetween: [1, 9]")).table_rules
    assert (rule.check, rule.tolerance) == (RowCountBetween(minimum=1, maximum=9), None)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT COUNT(*) FROM other", "it reads `other`, not its own object"),
        ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", "not its own object"),
        ("SELECT COUNT(*) FROM '/etc/passwd'", "cannot be run"),
        ("SELECT COUNT(*) FROM ${object} TABLESAMPLE (10 PERCENT)", "its table has `sample`"),
        ("SELECT COUNT(*) FROM ${object} AS o (a, b, c) WHERE a > 1", "its table has other names of columns"),
        ("SELECT COUNT(*) FROM ${object} n WHERE n.n > 1", "`n` is its table and a column"),
        ("SELECT COUNT(*) FROM ${object} o WHERE orders.n > 1", "orders"),
        ("SELECT COUNT(CASE WHEN n < 0 THEN 1 ELSE 0 END) FROM ${object}", "it counts every row"),
        ("SELECT COUNT(DISTINCT n) FROM ${object} WHERE m > 0", "counts different values of some rows only"),
        ("SELECT COUNT(DISTINCT nn) FROM ${object}", "has no property `nn`"),
        ("SELECT COUNT(DISTINCT n, m) FROM ${object}", "it selects COUNT(DISTINCT n, m)"),
        ("SELECT COUNT(DISTINCT n + 1) FROM ${object}", "it selects COUNT(DISTINCT n + 1)"),
        ("SELECT COUNT(o.*) FROM ${object} o WHERE o.n < 0", "`o.*` cannot be counted: Spark refuses it for a table"),
        ("SELECT COUNT(${object}.*) FROM ${object}", "`${object}.*` cannot be counted"),
        ("SELECT COUNT(DISTINCT orders.*) FROM orders", "`orders.*` cannot be counted"),
        (
            "SELECT COUNT(* EXCEPT (n)) FROM ${object}",
            "`* EXCEPT (n)` cannot be run: Spark counts the rows",
        ),
        ("SELECT COUNT(DISTINCT orders.s.x) FROM orders", "different values of `s.x` cannot be counted"),
        ("SELECT COUNT_IF(n > 1, m) FROM ${object}", "COUNT_IF takes one condition"),
        ("SELECT COUNT_IF() FROM ${object}", "a function gets too few values"),
        ("SELECT COUNT(IF(n > 1, 1)) FROM ${object}", "IF takes three arguments in Spark"),
        ("SELECT COUNT(*) FROM ${object} JOIN b ON true", "it has `joins`"),
        ("SELECT COUNT(*) FROM ${object} WHERE n IN (SELECT m FROM ${object})", "more than one table or query"),
        ("SELECT COUNT(*) FROM ${object} GROUP BY n", "it has `group`"),
        ("SELECT MAX(n) FROM ${object}", "it selects MAX(n)"),
        ("SELECT COUNT(*), 1 FROM ${object}", "it selects 2 columns"),
        ("SELECT COUNT(*) FROM ${object}; DROP TABLE orders", "it must be one SELECT"),
        ("DELETE FROM ${object}", "it must be one SELECT"),
        ("SELECT COUNT(* FROM", "it is not SQL"),
        ("SELECT COUNT(*) FROM ${ojbect}", "unknown placeholder `${ojbect}`"),
        ("SELECT COUNT(*) FROM ${object} WHERE ${column} > 1", "stands for a column"),
        ("SELECT COUNT(*) FROM ${object} WHERE nn > 1", "the predicate reads `nn`"),
        ("SELECT COUNT(*) FROM ${object} WHERE n + 1", "is used as a condition"),
        ("SELECT COUNT(*) FROM ${object} WHERE java_method('a', 'b') = x", "`java_method` calls code"),
        ("SELECT COUNT(*) FROM ${object} WHERE n > rand()", "`rand`"),
        ("SELECT COUNT(*) FROM ${object} WHERE n > 1 -- all", "comment"),
        ("", "needs a query"),
    ],
)
def test_another_query_is_refused_in_its_line(file: Any, query: str, words: str, the_error: Any) -> None:
    assert words in the_error(of(file, query), "HERE").message


@pytest.mark.parametrize(
    ("operator", "bounds"),
    [
        ("mustBe: 3", {"max_value": 3, "min_value": 3}),
        ("mustBeGreaterThan: 2", {"min_value": 3}),
        ("mustBeLessThan: 2.5", {"max_value": 2}),
        ("mustBeBetween: [1, 9]", {"max_value": 9, "min_value": 1}),
    ],
)
def test_a_count_of_different_values_is_a_statistic(file: Any, operator: str, bounds: dict[str, int]) -> None:
    [rule] = load_contract(of(file, "SELECT COUNT(DISTINCT (X)) FROM ${object}", operator)).table_rules
    kind = "expect_column_unique_value_count_to_be_between"
    assert rule.check == Expectation(column="x", kind=kind, arguments=(("column", "x"), *bounds.items()))
    assert rule.tolerance is None


@pytest.mark.parametrize("operator", ["mustNotBe: 3", "mustBe: 3, unit: percent"])
def test_different_values_take_bounds_alone(file: Any, the_error: Any, operator: str) -> None:
    path = of(file, "SELECT COUNT(DISTINCT x) FROM ${object}", operator)
    assert "cannot be run for a number of different values" in the_error(path, "HERE").message


@pytest.mark.parametrize(("rows", "count"), [(ROWS, 3), (ROWS.slice(0, 0), 0), (ROWS.slice(2, 1), 0)])
def test_different_values_are_counted_without_null(file: Any, rows: pa.Table, count: int) -> None:
    for number in (count, count + 1):
        contract = load_contract(of(file, "SELECT COUNT(DISTINCT x) FROM ${object}", f"mustBe: {number}"))
        [result] = audit("orders", rows, contract)
        assert (result.passed, result.observed) == (number == count, "" if number == count else f"observed {count}")


def test_records_take_a_count_of_none(file: Any, the_error: Any) -> None:
    quality = '- {type: sql, query: "SELECT COUNT(*) FROM ${object} WHERE n < 0", %s} # HERE'
    contract = load_contract(file.an_input(COLUMNS, quality=quality % "mustBe: 0"))
    assert [rule.predicate for rule in contract.row_rules] == ["NOT ((n < 0))"]
    error = the_error(file.an_input(COLUMNS, quality=quality % "mustBeLessThan: 7"), "HERE")
    assert "records are checked one by one" in error.message


AUDITED = [
    ("SELECT COUNT(*) FROM ${object} WHERE n < 0", "mustBe: 0", False),
    ("SELECT COUNT(*) FROM ${object} WHERE n < 0", "mustBeLessThan: 2", True),
    ("SELECT COUNT(*) FROM ${object} WHERE n < 0", "mustBeLessThan: 25, unit: percent", False),
    ("SELECT COUNT(*) FROM ${object} WHERE n < 0", "mustNotBe: 1", False),
    ("SELECT COUNT(*) FROM ${object} WHERE n < m OR x = 'd'", "mustBe: 3", True),
    ("SELECT COUNT(x) FROM ${object}", "mustBeGreaterOrEqualTo: 3", True),
    ("SELECT COUNT(x) FROM ${object}", "mustBeGreaterThan: 3", False),
    ("SELECT COUNT(x) FROM ${object}", "mustBeBetween: [1, 3]", True),
    ("SELECT COUNT(x) FROM ${object}", "mustNotBeBetween: [1, 3]", False),
    ("SELECT COUNT(x) FROM ${object}", "mustBeLessOrEqualTo: 2", False),
    ("SELECT COUNT(*) FROM ${object} WHERE try_divide(n, m) > 0", "mustBe: 1", True),
    ("SELECT COUNT(CASE WHEN n < m THEN 1 END) AS bad FROM ${object} o WHERE o.x <> 'z'", "mustBe: 2", True),
    ("SELECT COUNT(CASE WHEN n < 0 THEN m WHEN n = 4 THEN m ELSE n END) FROM ${object}", "mustBe: 2", True),
    ("SELECT COUNT(*) FROM ${object} WHERE levenshtein(x, 'a') = 1", "mustBe: 2", True),
]


@pytest.mark.spark
@pytest.mark.parametrize(("query", "operator", "passes"), AUDITED)
def test_a_count_is_the_same_in_memory_and_on_spark(
    file: Any, spark: SparkSession, query: str, operator: str, passes: bool
) -> None:
    contract: Contract = load_contract(of(file, query, operator))
    writers = RowWriters(Spark.of(spark), driver_rows=100, writer=None)
    asked: list[str] = []

    def where(rows: pa.Table, columns: Sequence[str], predicate: str) -> pa.Table:
        asked.append(predicate)
        return writers.where(rows, columns, predicate)

    [here] = audit("orders", ROWS, contract, where=where)
    [there] = audit("orders", spark.createDataFrame(ROWS), contract)
    assert (here.passed, there.passed, len(asked)) == (passes, passes, 1)
    key = str
    assert (here.observed, sorted(here.failing_rows, key=key)) == (there.observed, sorted(there.failing_rows, key=key))


def test_a_tolerance_of_a_count_is_kept(file: Any) -> None:
    path = of(file, "SELECT COUNT(*) FROM ${object} WHERE n < 0", "mustBeLessThan: 5, unit: percent")
    assert [f for f in lint(path) if f.severity is Level.ERROR] == []
    [rule] = load_contract(path).table_rules
    assert rule.tolerance == Tolerance(comparison="mustBeLessThan", numbers=(5,), percent=True)


OLDER = [
    ("{rule: duplicateCount, mustBe: 0}", "{metric: duplicateValues, mustBe: 0}"),
    (
        "{type: library, rule: duplicateCount, mustBeLessThan: 2, unit: percent}",
        "{metric: duplicateValues, mustBeLessThan: 2, unit: percent}",
    ),
    (
        "{rule: validValues, validValues: [a, b]}",
        "{metric: invalidValues, mustBe: 0, arguments: {validValues: [a, b]}}",
    ),
    ("{rule: nullValues, mustBe: 0}", "{metric: nullValues, mustBe: 0}"),
]


@pytest.mark.parametrize(("old", "new"), OLDER)
def test_a_rule_in_the_oldest_words_is_a_metric(file: Any, old: str, new: str) -> None:
    text = "- {{name: x, logicalType: string, quality: [{}]}}"
    meant = load_contract(file.an_output(text.format(new))).fingerprint
    for version in ("v3.0.2", "v3.1.0", "v3.2.0"):
        assert load_contract(file.an_output(text.format(old), version=version)).fingerprint == meant


@pytest.mark.parametrize(
    ("rule", "passes"),
    [
        ("metric: rowCount, mustNotBe: 4", False),
        ("metric: rowCount, mustNotBe: 3", True),
        ("metric: rowCount, mustNotBeBetween: [1, 9]", False),
        ("type: sql, query: 'SELECT COUNT(*) FROM ${object}', mustNotBe: 4", False),
        ("type: sql, query: 'SELECT COUNT(*) FROM ${object}', mustNotBeBetween: [5, 9]", True),
    ],
)
def test_a_number_of_rows_may_be_excluded(file: Any, rule: str, passes: bool) -> None:
    [result] = audit("orders", ROWS, load_contract(file.an_output(COLUMNS, quality=f"- {{{rule}}}")))
    assert result.passed is passes
    assert passes or result.observed == "4 rows"
