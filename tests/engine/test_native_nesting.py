"""Selects in selects for DuckDB: only what is needed of each is there, and the rows are those of Spark."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from tidemill.engine.native.statement import run
from tidemill.engine.native.translation import Translation, translated
from tidemill.engine.spark.query import ROWS, query
from tidemill.tables.arrow_types import schema_fields

ROWS_OF = pa.table(
    {
        "a": pa.array([1, 2, 3, 2, None], pa.int64()),
        "B": pa.array([5, None, 5, 7, 9], pa.int64()),
        "s1_0": pa.array(["c0", "c1", "s2_0", None, "c0"], pa.string()),
    }
)
STATEMENTS = f"""
SELECT count(1) AS n FROM (SELECT a AS x FROM (SELECT a, B FROM {ROWS} WHERE B > 5L))
SELECT count(1) AS n FROM (SELECT a FROM (SELECT * FROM {ROWS}))
SELECT count(1) AS n FROM (SELECT explode(sequence(0L, B, 1L)) AS x FROM {ROWS} WHERE B IS NOT NULL)
SELECT count(1) AS n FROM (SELECT max(a) AS s FROM {ROWS})
SELECT count(1) AS n FROM (SELECT hll_sketch_agg(s1_0, 12) AS s FROM {ROWS})
SELECT count(1) AS n FROM (SELECT a, count(1) AS m FROM {ROWS} GROUP BY a)
SELECT count(1) AS n FROM (SELECT a FROM {ROWS} GROUP BY a)
SELECT m FROM (SELECT a, count(1) AS m, max(B) AS unread FROM {ROWS} GROUP BY a)
SELECT a AS B, B AS a FROM (SELECT B AS a, a AS B, s1_0 FROM {ROWS})
SELECT x, x AS y, a FROM (SELECT a AS x, a FROM {ROWS})
SELECT x + y AS z FROM (SELECT a AS x, a AS y FROM {ROWS} WHERE a < 3L)
SELECT a + 1L AS a FROM (SELECT a + 1L AS a FROM (SELECT a + 1L AS a, s1_0 FROM {ROWS}) WHERE a > 2L)
SELECT x FROM (SELECT a AS x, s1_0 = 'c0' AS named FROM {ROWS}) WHERE named
SELECT s1_0, 'c0' AS c0 FROM (SELECT s1_0 FROM {ROWS} WHERE s1_0 <> 's2_0')
SELECT x FROM (SELECT s1_0 AS x FROM {ROWS}) WHERE x <> 'c99 s3_1'
SELECT s1_0, max(s0_1) AS s0_0 FROM (SELECT s1_0, a AS s0_1, B * 2L AS unread FROM {ROWS}) GROUP BY s1_0
""".strip().splitlines()


def in_order(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.spark
@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_are_those_of_spark(spark: Any, statement: str) -> None:
    here, there = run(statement, ROWS_OF), query(spark, statement, spark.createDataFrame(ROWS_OF)).toArrow()
    assert here is not None, translated(statement, schema_fields(ROWS_OF.schema))
    assert in_order(here) == in_order(there)
    assert here.column_names == there.column_names


def text_of(statement: str) -> str:
    found = translated(statement, schema_fields(ROWS_OF.schema))
    assert isinstance(found, Translation), found
    return found.text


def test_what_nobody_reads_is_not_computed() -> None:
    inner = f"SELECT *, a * 7L AS unread, a * 11L AS x FROM (SELECT *, B * 13L AS lost FROM {ROWS})"
    assert re.findall(r"\b(?:7|11|13)\b", text_of(f"SELECT x FROM ({inner})")) == ["11"]


def test_select_that_only_passes_columns_on_is_left_out() -> None:
    deep = f"SELECT B AS a, a AS B FROM {ROWS}"
    for _ in range(5):
        deep = f"SELECT B AS a, a AS B FROM ({deep})"
    assert text_of(deep).count("SELECT") == 1
    assert text_of(f"SELECT a FROM ({deep} WHERE a > 1L)").count("SELECT") == 2
