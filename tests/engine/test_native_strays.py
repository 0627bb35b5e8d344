"""Late rows are written as JSON in the same way by Spark and without it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidemill.engine.aggregate.native_strays import as_json

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "t": pa.array(["", 'a"\\/\n', "\x01\x1f\x7f\u2028", "ä😀", None]),
        "i": pa.array([0, -1, 2**31 - 1, None, None], pa.int32()),
        "a": pa.array([0, -(2**63), 2**63 - 1, None, None], pa.int64()),
        "f": pa.array([True, False, None, None, None]),
        "d": pa.array([date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None, None]),
        "p": pa.array([Decimal(x) for x in ("0.00", "-0.05", "99999999.99", "7.10")] + [None], pa.decimal128(10, 2)),
        "whole": pa.array([*map(Decimal, ("0", "-7", "9" * 38, "10")), None], pa.decimal128(38, 0)),
        "tiny": pa.array([*map(Decimal, ("0", "0.00000001", "-0.12345678", "1.5")), None], pa.decimal128(20, 8)),
        'na"me': pa.array([1, 2, 3, 4, None]),
    }
)


def test_rows_are_written_as_spark_writes_them(spark: Any) -> None:
    columns = ", ".join(f"`{name}`" for name in ROWS.column_names)
    written = spark.createDataFrame(ROWS).selectExpr(f"to_json(struct({columns})) AS text").collect()
    assert [as_json(row) for row in ROWS.to_pylist()] == [row.text for row in written]
