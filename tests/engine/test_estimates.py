"""Estimates that promise to be the same however batches cut the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidemill import ApproxDistinct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MOST = 4_000
"""Above some hundred values, a sketch changes from a list of values to buckets."""


def estimates(spark: SparkSession, batches: int, precision: int) -> list[int]:
    """The estimates of 0, 1, 300, 700 and 4,000 different values that came in so many batches, merged."""
    from pyspark.sql import functions as F

    triple = ApproxDistinct("CASE WHEN id < many THEN id * 7919 END", precision=precision).triple
    rows = spark.range(MOST).selectExpr(
        "id", "explode(array(0, 1, 300, 700, 4000)) AS many", f"id % {batches} AS batch"
    )
    partials = rows.groupBy("many", "batch").agg(F.expr(triple.partial["value"]).alias("value"))
    merged = partials.groupBy("many").agg(F.expr(triple.merge["value"].format(value="value")).alias("value"))
    found = merged.selectExpr("many", f"{triple.finish.format(value='value')} AS n").orderBy("many")
    return [row["n"] for row in found.collect()]


@pytest.mark.parametrize("precision", [4, 12])
def test_estimate_of_distinct_values_does_not_depend_on_how_batches_cut_the_log(
    spark: SparkSession, precision: int
) -> None:
    in_one = estimates(spark, 1, precision)
    assert [estimates(spark, batches, precision) for batches in (2, 5, 20)] == [in_one] * 3
    assert in_one[:2] == [0, 1]
    error = 1.04 / 2 ** (precision / 2)
    assert all(abs(n - many) <= 4 * error * many for n, many in zip(in_one, (0, 1, 300, 700, MOST), strict=True))


def test_estimate_leaves_out_the_empty_text(spark: SparkSession) -> None:
    triple = ApproxDistinct("t").triple
    rows = spark.sql("SELECT * FROM VALUES (''), ('a'), ('b'), (''), (NULL) AS rows(t)")
    sketch = rows.selectExpr(f"{triple.partial['value']} AS value")
    assert sketch.selectExpr(f"{triple.finish.format(value='value')} AS n").collect()[0]["n"] == 2
