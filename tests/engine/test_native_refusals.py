"""What the driver has no rule for, or fails on, is left to Spark: single expressions, clauses and results."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest
import sqlglot
from sqlglot.errors import SqlglotError

from tidemill.core.contract.schema import Decimal as DecimalType
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.sql.functions import AGGREGATE_FUNCTIONS, ROW_FUNCTIONS
from tidemill.engine.native.expressions import _RULES
from tidemill.engine.native.statement import run
from tidemill.engine.native.translation import translated
from tidemill.engine.spark.query import ROWS

LONG, INTEGER, BINARY = Scalar.LONG, Scalar.INTEGER, Scalar.BINARY


@pytest.mark.parametrize(
    "expression",
    [
        "sum(DISTINCT a)",
        "max(a) FILTER (WHERE a > 1)",
        "a BETWEEN SYMMETRIC 1 AND 2",
        "t ILIKE 'A'",
        "t LIKE ANY ('a', 'b')",
        "t <=> t",
        "d < t",
        "a | b4 & a",
        "a | 2L >> 1",
        "(a & 6L) | a & a | a >> 1",
        "d5 * 2",
        "d5 + (2)",
        "-2L + d5",
        "d5 * CAST(2 AS BIGINT)",
        "-9223372036854775808L",
        "t = '\0'",
        "concat_ws(',')",
        "map(a)",
        "count(DISTINCT a)",
        "count(a, i)",
        "a / 2.0",
        "d / 2",
        "try_divide(d, a)",
        "a / (a / (a / (a / (a / (a / (a / a))))))",
        "a % 0",
        "pmod(a, 0)",
        "a div 0",
        "shiftright(a, 64)",
        "CAST('1' AS INT)",
        "CAST('2026-01-01' AS DATE)",
        "CAST(t AS DOUBLE)",
        "CAST(d AS DOUBLE)",
        "CAST(a > 1 AS DOUBLE)",
        "CAST(1.5D AS STRING)",
        "CAST(1.5D AS DECIMAL(2, 1))",
        "d > 1.5D",
        "abs(d)",
        "sqrt(t)",
        "1.5D % 1.0D",
        "CAST(a AS TIMESTAMP)",
        "'\\\\'",
        "1e400",
        "1.5F",
        "123456789012345678901234567890123456789",
        "`b`",
        "row_number() OVER (ORDER BY a)",
        "CASE a WHEN 1 THEN 2 END",
        "explode(array(a))",
        "current_timestamp()",
        "rand()",
        "(SELECT 1)",
        "a ->",
        "a & 6L >> 1",
        "a < 1 = true",
        "i & i",
        "shiftright(i, 1)",
        "pmod(i, 7)",
        "pmod(a, try_cast(300 AS TINYINT))",
        "try_add(i, 1)",
        "try_multiply(i, i)",
        "nullif(i, 0L)",
        "hll_union_agg(a)",
        "hll_union(b2, b2)",
        "hll_sketch_estimate(b2)",
        "hll_sketch_estimate(hll_union(b2, b3))",
        "hll_sketch_estimate(hll_union(b2, b2, true))",
        "hll_union_agg(b2, true)",
        "CAST(b2 AS STRING)",
        "CAST('a' AS BINARY)",
        "concat_ws(',', b2)",
        "split(t, '[?]')[1]",
        "split(t, '[?]', 2)[0]",
        "split(t, '?')[0]",
        "split(t, '[ab]')[0]",
        "split(t, '')[0]",
        "split(t, t)[0]",
        "element_at(split(t, ','), 1)",
        "t LIKE 'a' || t",
        "t LIKE 'a\\%'",
        "t LIKE 'a' ESCAPE '!'",
        "a || t",
        "length(b2)",
        "upper(t)",
        "a IN (SELECT 1)",
        "a IN ('1')",
        "hll_sketch_agg(t)",
        "hll_sketch_agg(t, 11)",
        "hll_sketch_agg(a, 12)",
        "greatest(a, t)",
        "count_if(a)",
        "if(a, 1, 2)",
        "try_sum()",
        "try_sum(d)",
        "CAST(a AS DECIMAL(50, 2))",
        "CAST('a' AS STRING COLLATE UTF8_LCASE) = 'A'",
        "CASE WHEN a > 0 THEN d ELSE CAST(a AS DECIMAL(38, 0)) END",
        " + ".join(["a"] * 3_000),
    ],
)
def test_expression_without_a_rule_is_refused(expression: str) -> None:
    fields = (Field(name="a", type=LONG), Field(name="i", type=INTEGER), Field(name="d", type=DecimalType(38, 9)))
    fields += (Field(name="b4", type=LONG), Field(name="d5", type=DecimalType(5, 0)))
    fields += (Field(name="b2", type=BINARY), Field(name="b3", type=BINARY), Field(name="t", type=Scalar.STRING))
    assert isinstance(translated(f"SELECT {expression} AS `x` FROM {ROWS}", fields), str)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("CASE WHEN try_cast(`a` AS INT) < 7 THEN 1L ELSE 0L END", 0),
        ("CASE WHEN try_add(`a`, -9223372036854775807L) < 0L THEN 1L ELSE 0L END", 0),
        ("CASE WHEN typeof(`a`) = `t` THEN 1L ELSE 0L END", 1),
        ("CAST(try_cast(`a` AS INT) AS BIGINT)", None),
        ("CASE WHEN `a` IS NULL THEN 1.5BD ELSE 2BD END", Decimal("2.0")),
    ],
)
def test_cast_that_gives_null_is_null_wherever_it_stands(expression: str, found: object) -> None:
    rows = pa.table({"a": pa.array([-(2**40)]), "t": ["bigint"]})
    result = run(f"SELECT {expression} AS `x` FROM {ROWS}", rows)
    assert result is not None
    assert result["x"].to_pylist() == [found]


def test_cast_that_fails_in_spark_fails_in_the_driver() -> None:
    rows = pa.table({"a": pa.array([2**40])})
    assert run(f"SELECT CAST(`a` AS INT) AS `x` FROM {ROWS}", rows) is None
    assert run(f"SELECT try_cast(`a` AS INT) AS `x` FROM {ROWS}", rows) == pa.table({"x": pa.array([None], pa.int32())})


def test_result_that_is_larger_than_the_driver_may_hold_is_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"a": pa.array(range(1_000))})
    statement = f"SELECT explode(sequence(0L, `a`, 1L)) AS `x` FROM {ROWS}"
    assert run(statement, rows) is not None
    monkeypatch.setattr("tidemill.engine.native.statement._MOST_BYTES", 100_000)
    assert run(statement, rows) is None


def test_columns_with_one_name_are_left_to_spark() -> None:
    fields = (Field(name="a", type=LONG), Field(name="a", type=LONG))
    assert isinstance(translated(f"SELECT `a` FROM {ROWS}", fields), str)
    assert isinstance(translated(f"SELECT *, `a` FROM {ROWS}", fields[:1]), str)


@pytest.mark.parametrize("more", ["ORDER BY a", "LIMIT 1", "HAVING a > 1", "GROUP BY ALL", "GROUP BY ROLLUP (a)"])
def test_clause_without_a_rule_is_refused(more: str) -> None:
    fields = (Field(name="a", type=LONG),)
    assert not isinstance(translated(f"SELECT `a` FROM {ROWS}", fields), str)
    assert isinstance(translated(f"SELECT `a` FROM {ROWS} {more}", fields), str)


SAME = """
bool_or char_length character_length coalesce concat concat_ws contains count count_if date element_at endswith greatest
if ifnull int least len length like max min nullif nvl shiftright startswith string sum timestamp to_timestamp try_add
try_element_at try_multiply typeof unix_micros boolean div double float and or not abs isnan sqrt try_divide
"""


def root_of(text: str) -> object:
    try:
        found = sqlglot.parse_one(text, dialect="spark").expressions[0].this
    except (SqlglotError, LookupError):
        return None
    return found


def test_parser_takes_no_other_function_for_something_that_has_a_rule() -> None:
    """The parser knows functions of many dialects, and writes some of them as a cast or an operator."""
    arguments = ("a", "'99'", "'DAY'", "1")
    calls = (", ".join(some) for count in (1, 2) for some in product(arguments, repeat=count))
    names = sorted(ROW_FUNCTIONS | AGGREGATE_FUNCTIONS)
    texts = [(name, f"SELECT {name}({call}) AS `x`") for call in calls for name in names]
    found = {name for name, text in texts if type(root_of(text)) in _RULES}
    assert found <= set(SAME.split())
    assert {"nvl", "len", "int"} <= found


def test_groups_of_doubles_are_left_to_spark() -> None:
    fields = (Field(name="x", type=Scalar.DOUBLE), Field(name="a", type=LONG))
    counted = f"SELECT count(*) AS `n` FROM {ROWS} GROUP BY"
    assert not isinstance(translated(f"{counted} `a`", fields), str)
    assert translated(f"{counted} `x`", fields) == "groups of doubles"
