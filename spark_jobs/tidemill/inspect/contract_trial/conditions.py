"""Which decoded records break a rule of an input contract.

The checks of contracts are masks over Arrow columns. Predicates run in DuckDB where it gives the same as Spark, and
in Spark otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.conditions import Predicate, Rule
from tidemill.contracts.masks import broken
from tidemill.contracts.outcomes import named
from tidemill.core.contract.schema import DataType
from tidemill.core.sql.text import select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSpark = Callable[[str], "SparkSession"]
"""Opens a session for the rule of this name, on first use."""

_ROW = "_row"


def broken_records(rule: Rule, rows: pa.Table, types: Mapping[str, DataType], spark: OpenSpark) -> Any:
    """The positions of the records that break the rule; null is not false.

    Raises:
        DeclarationError: Spark does not understand the predicate, or it fails for some record.
        EngineError: the rule could not be checked.
    """
    if isinstance(rule.condition, Predicate):
        return _false(rule.name, rule.condition.sql, rows, spark)
    with named(rule.name):
        return _positions(broken(rule.condition, rows, types))


def where(spark: OpenSpark) -> Callable[[pa.Table, Sequence[str], str], pa.Table]:
    """What gives columns of the rows for which a predicate is true, as an audit asks for them."""

    def picked(rows: pa.Table, columns: Sequence[str], predicate: str) -> pa.Table:
        places = _false(predicate, f"NOT ({predicate})", rows, spark)
        return rows.select(list(columns)).take(pa.array(places, pa.int64()))

    return picked


def _positions(mask: Any) -> Any:
    return pc.indices_nonzero(mask).to_numpy()


def _false(rule: str, predicate: str, rows: pa.Table, spark: OpenSpark) -> Any:
    from tidemill.engine.driver.statement import run
    from tidemill.engine.spark.query import ROWS

    if not rows.num_rows:
        return np.array([], dtype=np.int64)
    found = run(select([f"NOT coalesce(({predicate}), true) AS broken"], ROWS), rows)
    if found is not None:
        return _positions(found.column("broken"))
    from tidemill.engine.spark.failures import explained
    from tidemill.engine.spark.query import of_driver, query

    session = spark(rule)
    numbered = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
    with explained(f"rule `{rule}`"):
        wrong = query(
            session,
            select([_ROW], ROWS, where=f"NOT coalesce(({predicate}), true)"),
            of_driver(session, numbered),
        ).toArrow()
    return np.sort(wrong.column(_ROW).to_numpy())
