"""Late rows are written as JSON in the same way by Spark and without it."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidemill.engine.aggregate.native_strays import NotCertain, as_json

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
        "x": pa.array([0.0, -0.0, 0.1, 1234567.890625, None]),
        "y": pa.array([100.0, -0.001, 9999999.5, 0.123456789012345, None]),
        "at": pa.array([0, -1, 1_700_000_000_123_999, -10_000_000_000_000_001, None], pa.timestamp("us", "UTC")),
        'na"me': pa.array([1, 2, 3, 4, None]),
    }
)


def test_rows_are_written_as_spark_writes_them(spark: Any) -> None:
    columns = ", ".join(f"`{name}`" for name in ROWS.column_names)
    written = spark.createDataFrame(ROWS).selectExpr(f"to_json(struct({columns})) AS text").collect()
    assert [as_json(row) for row in ROWS.to_pylist()] == [row.text for row in written]


def test_doubles_of_up_to_fifteen_digits_are_written_as_spark_writes_them(spark: Any) -> None:
    draw = random.Random(15)
    values = [round(draw.uniform(-1, 1) * 10 ** draw.randint(-2, 7), draw.randint(0, 8)) for _ in range(20_000)]
    known = [value for value in values if not value or 1e-3 <= abs(value) < 1e7]
    written = spark.createDataFrame(pa.table({"x": known})).selectExpr("to_json(struct(x)) AS text").collect()
    assert [as_json({"x": value}) for value in known] == [row.text for row in written]
    assert len(known) > 15_000


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, 1e-4, 1e7, -1e300, 5e-324, 0.1234567890123456, 1234567.8901234567),
        *(datetime(999, 12, 31, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_what_java_may_write_in_another_way_is_left_to_spark(value: Any) -> None:
    with pytest.raises(NotCertain):
        as_json({"x": value})
