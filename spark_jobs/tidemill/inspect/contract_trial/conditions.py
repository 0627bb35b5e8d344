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

from tidemill.contracts.changes.described import Described
from tidemill.contracts.conditions import Predicate, Rule
from tidemill.contracts.masks import broken
from tidemill.contracts.outcomes import named
from tidemill.core.contract.contract import Holds
from tidemill.core.contract.exact_sums import exact
from tidemill.core.contract.schema import DataType
from tidemill.core.errors import ContractError, DeclarationError
from tidemill.core.sql.text import select
from tidemill.tables.arrow_types import data_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSpark = Callable[[str], "SparkSession"]
"""Opens a session for the rule of this name, on first use."""

_ROW = "_row"
_FIX = (
    "write a predicate that no value makes fail: try_cast, try_divide and the like are null for what they cannot take"
)


def broken_records(
    rule: Rule, rows: pa.Table, types: Mapping[str, DataType], spark: OpenSpark, source: str = ""
) -> Any:
    """The positions of the records that break the rule of a contract in the file `source`; null is not false.

    Raises:
        ContractError: Spark does not understand the predicate, or it fails for some record.
        EngineError: the rule could not be checked.
    """
    if isinstance(rule.condition, Predicate):
        return _false(rule.name, rule.condition.sql, rows, spark, f"{source}:{rule.line}: rule `{rule.name}`")
    with named(rule.name):
        return _positions(broken(rule.condition, rows, types))


def where(spark: OpenSpark, found: Described) -> Callable[[pa.Table, Sequence[str], str], pa.Table]:
    """What gives columns of the rows for which a predicate is true, as an audit asks for them."""
    places = {
        rule.condition.predicate: (name, f"{found.contract.source}:{rule.line}: rule `{name}`")
        for name, rule in found.rules.items()
        if isinstance(rule.condition, Holds)
    }

    def picked(rows: pa.Table, columns: Sequence[str], predicate: str) -> pa.Table:
        own = next((each for sql, each in places.items() if sql in predicate), (predicate, found.contract.source))
        broken_ = _false(own[0], f"NOT ({predicate})", rows, spark, own[1])
        return rows.select(list(columns)).take(pa.array(broken_, pa.int64()))

    return picked


def _positions(mask: Any) -> Any:
    return pc.indices_nonzero(mask).to_numpy()


def _false(rule: str, predicate: str, rows: pa.Table, spark: OpenSpark, place: str) -> Any:
    from tidemill.engine.native.statement import run
    from tidemill.engine.spark.query import ROWS

    if not rows.num_rows:
        return np.array([], dtype=np.int64)
    certain = exact(predicate, {f.name: data_type(f.type) for f in rows.schema}).sql
    for sql in dict.fromkeys((predicate, certain)):
        found = run(select([f"NOT coalesce(({sql}), true) AS broken"], ROWS), rows)
        if found is not None:
            return _positions(found.column("broken"))
    try:
        return _false_in_spark(rule, certain, rows, spark)
    except DeclarationError as error:
        # Under the first line, Spark gives its own plan.
        said = error.message.partition("\n")[0]
        raise ContractError(f"{place}: {said}", fix=_FIX) from error


def _false_in_spark(rule: str, predicate: str, rows: pa.Table, spark: OpenSpark) -> Any:
    from tidemill.engine.spark.failures import explained
    from tidemill.engine.spark.query import ROWS, of_driver, query

    session = spark(rule)
    numbered = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
    with explained("it cannot be checked"):
        wrong = query(
            session,
            select([_ROW], ROWS, where=f"NOT coalesce(({predicate}), true)"),
            of_driver(session, numbered),
        ).toArrow()
    return np.sort(wrong.column(_ROW).to_numpy())
