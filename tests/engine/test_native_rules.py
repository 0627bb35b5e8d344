"""Each rule of `tidemill.engine.native` gives what Spark gives: values, nulls and types, at the edges of each type."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from tidemill.core.contract.schema import Decimal, Field, Scalar
from tidemill.engine.native.statement import run
from tidemill.engine.native.translation import translated
from tidemill.engine.spark.query import ROWS, query
from tidemill.tables.arrow_types import arrow_schema, schema_fields

TEXTS = (None, "", "a", "A", "ab", "a?b?c", "?", "ä", "aä", "😀b", "e\u0301", "a\x00b", "a%", "a_", "a\nb")
TEXTS += (" a ", "it's", "\\", "\uffff")
SMALL = (None, 0, 1, -1, 7, 255, 2**31 - 1, -(2**31))
LARGE = (*SMALL, 2**32, -(2**32) - 1, 2**63 - 1, -(2**63))
DAYS = (None, date(1, 1, 1), date(1969, 12, 31), date(2026, 2, 28), date(9999, 12, 31))
MOMENTS = (None, *(datetime(y, 3, 1, 1, 2, 3, 4, tzinfo=UTC) for y in (1900, 1969, 2026)))
DOUBLES = (None, 0.0, -0.0, 1.0, -1.5, 0.1, 1e308, 5e-324, 2.0**53, 2.0**63, -(2.0**63), 2147483647.9)
DOUBLES += tuple(map(float, ("nan", "inf", "-inf")))
VALUES = {
    "t": (Scalar.STRING, TEXTS),
    "u": (Scalar.STRING, TEXTS),
    "i": (Scalar.INTEGER, SMALL),
    "a": (Scalar.LONG, LARGE),
    "b": (Scalar.LONG, LARGE),
    "f": (Scalar.BOOLEAN, (None, True, False)),
    "g": (Scalar.BOOLEAN, (None, True, False)),
    "d": (Scalar.DATE, DAYS),
    "ts": (Scalar.TIMESTAMP, MOMENTS),
    "z": (Decimal(5, 0), (None, Number(0), Number(-7), Number(99999))),
    "p": (Decimal(10, 2), (None, *map(Number, ("0.00", "-0.05", "99999999.99")))),
    "x": (Scalar.DOUBLE, DOUBLES),
    "y": (Scalar.DOUBLE, DOUBLES),
}
OF_ROWS = """
t = 'a'
t <> u
t < u
t >= 'ä'
length(t)
char_length(u)
split(t, '[?]')[0]
split(t, 'b')[0]
split(t, '[.]')[0]
split(t, '[)]')[0]
t || u
concat(t, '-', u)
concat(t)
t LIKE 'a%'
t LIKE '_'
t LIKE '%?%'
t NOT LIKE '%b'
t LIKE ''
startswith(t, 'a')
startswith(t, u)
endswith(t, u)
contains(t, u)
contains(t, '')
t IN ('a', 'ä', '')
t NOT IN ('a', u)
i IN (0, 7, NULL)
t = 'it''s'
t = "it's"
t IN ('it''s', 'a' 'b')
coalesce(t, 'a''')
coalesce(i, -2147483648)
coalesce(i, -2147483649)
coalesce(a, -9223372036854775808)
least(a, -9223372036854775808)
a | (b & 255L)
a & b | 6L
(a | 6L) & b
z * z
z + z
z + i
p > -1.5
a > 2147483647
a >= 9223372036854775807
a = 2147483648
a > -2147483648
a > -2147483649
p > 0.5
p <= .05
p = 0.050
p < 99999999.990
p > 100
1.5
0.50
00.5
10.0
.5
9223372036854775808
2147483648
a IN (i, b)
p IN (0.00BD, 1BD)
if(f, t, u)
if(i > 0, i, a)
if(f, NULL, a)
greatest(t, u)
greatest(i, a, 0L)
least(a, b)
least(p, p)
greatest(d, d)
coalesce(t, u, '')
CASE WHEN f THEN 1L WHEN g THEN 2 ELSE i END
CASE WHEN f AND NOT g THEN t END
f OR g
f AND g
NOT (f OR coalesce(g, false))
CAST(f AS INT)
CAST(f AS BIGINT)
a & 255L
a | 6L
a & b
a | b
pmod(a, 60000000L)
a div 7L
shiftright(a, 32)
try_add(a, b)
try_multiply(a, b)
try_cast(a AS INT)
CAST(i AS BIGINT)
CAST(a AS STRING)
CAST(i AS STRING)
a IS NOT NULL
d = d
ts > timestamp_micros(0)
unix_micros(ts)
nullif(t, u)
concat_ws('/', t, u)
a BETWEEN -1L AND 7
i NOT BETWEEN 0 AND 6
t BETWEEN 'A' AND 'b'
x = y
x <> y
x < y
x >= 0
x > 0.1
x = 0.1
x <= .1
x > -1.5
x = 1e0
x IN (0, 1.0, y)
x BETWEEN -1.5 AND y
x + y
x - y
x * y
x * 0.1
x + a
-x
1.5D
0D
1E-3
15e1
CAST(a AS DOUBLE)
try_cast(x AS BIGINT)
try_cast(x AS INT)
x > -(-0.1)
coalesce(x, -0.0)
double(-(-1.5))
x IN (0, 1, 2)
NOT (x <= 0.5)
x > double('Infinity')
try_cast(i AS DOUBLE)
double('Infinity')
coalesce(x, 0)
coalesce(x, i)
coalesce(x, 0.1)
if(f, x, a)
CASE WHEN f THEN x WHEN g THEN 0.5 END
greatest(x, y)
least(x, y)
greatest(x, 0)
nullif(x, y)
try_divide(x, y)
try_divide(a, b)
try_divide(x, i)
x / 3
x / 0.5
a / 4L
i / 2
x / 0.1
3 / greatest(i, 1)
abs(greatest(i, -7))
abs(x)
abs(i + 0L)
sqrt(abs(x))
sqrt(greatest(a, 0L))
isnan(x)
x IS NULL
""".strip().splitlines()
OF_GROUPS = """
count(*)
count(1)
count(t)
count(f)
count_if(f)
count_if(i > 0)
min(t)
max(t)
min(i)
max(a)
max(d)
min(ts)
max(p)
max(f)
sum(i)
sum(p)
try_sum(i)
sum(CAST(f AS INT))
min(x)
max(x)
sum(x)
sum(try_cast(i AS DOUBLE))
try_sum(x)
count(x)
count_if(x > 0.1)
try_divide(sum(try_cast(a AS DOUBLE)), count(a))
bool_or(f)
sum(a & 4294967295L)
sum(shiftright(try_cast((a) AS BIGINT), 32)) + shiftright(sum(try_cast((a) AS BIGINT) & 4294967295L), 32)
""".strip().splitlines()


def some_rows(seed: int, count: int = 400) -> pa.Table:
    chance = random.Random(seed)
    schema = arrow_schema(Field(name=name, type=of) for name, (of, _) in VALUES.items())
    columns = [[chance.choice(values) for _ in range(count)] for _, values in VALUES.values()]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def both(spark: Any, statement: str, rows: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    return run(statement, rows), query(spark, statement, spark.createDataFrame(rows)).toArrow()


@pytest.mark.spark
@pytest.mark.parametrize("expression", OF_ROWS)
def test_rule_for_rows_gives_what_spark_gives(spark: Any, expression: str) -> None:
    here, there = both(spark, f"SELECT `a`, {expression} AS `x` FROM {ROWS}", some_rows(1))
    assert here is not None, translated(f"SELECT {expression} AS `x` FROM {ROWS}", schema_fields(some_rows(1).schema))
    assert here.schema.field("x").type == there.schema.field("x").type
    assert shown(here["x"].to_pylist()) == shown(there["x"].to_pylist())


CONDITIONS = [text for text in OF_ROWS if any(sign in text for sign in ("=", "<", ">", " IN ", "LIKE", "BETWEEN"))]


@pytest.mark.spark
def test_rows_are_filtered_as_spark_filters_them(spark: Any) -> None:
    rows = some_rows(1).append_column("k", pa.array(range(400)))
    compared = 0
    for text in CONDITIONS:
        statement = f"SELECT `k` FROM {ROWS} WHERE {text}"
        if run(f"SELECT {text} AS `c` FROM {ROWS}", rows)["c"].type != pa.bool_():
            continue
        here, there = both(spark, statement, rows)
        assert here is not None, text
        assert here["k"].to_pylist() == there["k"].to_pylist(), text
        compared += 1
    assert compared > 40


@pytest.mark.spark
@pytest.mark.parametrize("expression", OF_GROUPS)
def test_rule_for_groups_gives_what_spark_gives(spark: Any, expression: str) -> None:
    statement = f"SELECT `u`, `g`, {expression} AS `x` FROM {ROWS} GROUP BY `u`, `g`"
    # In small groups, all values are often null.
    here, there = both(spark, statement, some_rows(2, count=60))
    assert here is not None, translated(statement, schema_fields(some_rows(2, count=60).schema))
    assert here.schema.field("x").type == there.schema.field("x").type
    assert in_order(here) == in_order(there)


def in_order(rows: pa.Table) -> list[Any]:
    return sorted((tuple(shown(row.values(), digits=12)) for row in rows.to_pylist()), key=repr)


def shown(values: Iterable[Any], digits: int = 17) -> list[Any]:
    """The values; NaN equals itself, and zeros one another. The last digits of sums depend on the order of rows."""
    return [f"{value + 0.0:.{digits}g}" if isinstance(value, float) else value for value in values]


@pytest.mark.spark
def test_sketches_of_workers_say_what_those_of_spark_say(spark: Any) -> None:
    chance, groups = random.Random(3), (0, 1, 5, 40, 300, 5_000)
    names = [(g, str(chance.randrange(g * 2)) + "ä😀"[: chance.randrange(3)]) for g in groups for _ in range(g)]
    rows = pa.table({"g": [g for g, _ in names] + [0, 1], "t": pa.array([t for _, t in names] + [None, ""])})
    made = f"SELECT `g`, hll_sketch_agg(`t`, 12) AS `s` FROM {ROWS} GROUP BY `g`"
    here, there = both(spark, made, rows)
    assert here is not None
    told = [estimates(spark, each) for each in (here, there)]
    assert told[0] == told[1]
    assert max(told[0].values()) > 4_000
    together = pa.concat_tables([here, there.cast(here.schema)])
    assert estimates(spark, together) == told[0]


def estimates(spark: Any, rows: pa.Table) -> dict[int, int]:
    """What the sketches of each group estimate together; those of one group are merged by Spark."""
    merged = f"SELECT `g`, hll_union_agg(`s`) AS `s` FROM {ROWS} GROUP BY `g`"
    text = f"SELECT `g`, hll_sketch_estimate(hll_union(`s`, `s`)) AS `n` FROM ({merged})"
    found = query(spark, text, spark.createDataFrame(rows)).toArrow().to_pylist()
    return {row["g"]: row["n"] for row in found}
