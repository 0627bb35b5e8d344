"""The audit of a Spark data frame gives what the audit of the same rows in memory gives."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal as Exact
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tidemill.contracts.audit import audit
from tidemill.contracts.masks import broken
from tidemill.contracts.predicates import sql_of
from tidemill.core.contract.contract import (
    Between,
    Check,
    Compare,
    Contract,
    Expectation,
    Holds,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    TableRule,
    Unique,
)
from tidemill.core.contract.row_checks import Bounded, ItemsBetween, ItemsDistinct, MultipleOf, NoneOf, NotNullInside
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Scalar
from tidemill.core.contract.verdict import CheckResult
from tidemill.tables.arrow_types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAN = float("nan")
NOON = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)
TYPES: dict[str, DataType] = {
    "i": Scalar.INTEGER,
    "l": Scalar.LONG,
    "d": Scalar.DOUBLE,
    "f": Scalar.DOUBLE,
    "e": Decimal(38, 20),
    "s": Scalar.STRING,
    "t": Scalar.TIMESTAMP,
    "o": Scalar.DATE,
    "a": Array(Scalar.DOUBLE),
}
CHECKS = (
    NotNull(column="l"),
    NotNull(column="d"),
    Unique(columns=("s",)),
    Unique(columns=("s", "d")),
    Between(column="l", maximum=2**53),
    Between(column="l", minimum=-(2**63), maximum=2**70),
    Between(column="l", minimum=0.5),
    Between(column="d", minimum=0),
    Between(column="d", maximum=2**70),
    Between(column="d", minimum=0, maximum=1, exclusive_maximum=True),
    Between(column="e", minimum=0.1),
    OneOf(column="s", values=("e1", "it's")),
    OneOf(column="d", values=(1.0, 0.5)),
    OneOf(column="l", values=(2**53 + 1,)),
    OneOf(column="o", values=("2024-01-31",)),
    Matches(column="s", pattern=r"e[0-9]|it's|\w+"),
    LengthBetween(column="s", minimum=2, maximum=3),
    Compare(left="d", operator="<", right="f"),
    Compare(left="d", operator=">=", right="f"),
    Compare(left="d", operator="=", right="f"),
    Compare(left="i", operator="<=", right="l"),
    MultipleOf(column="l", factor=2),
    ItemsDistinct(column="a"),
    RowCountBetween(minimum=9),
    RowCountBetween(maximum=9),
)

VALUES: dict[str, list[Any]] = {
    "i": [0, 1, -1, 2**31 - 1, -(2**31), None],
    "l": [0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None],
    "d": [0.0, -0.0, 0.1, 1.0, NAN, float("inf"), float("-inf"), None],
    "f": [0.0, -0.0, 0.5, NAN, None],
    "e": [Exact("0.1"), Exact("0.10000000000000000001"), Exact(-1), Exact(1), Exact(10) ** 17, None],
    "s": ["", "a", "a\n", "a\x0b", "a ", "ä", "äb", "\u2028", "\r", None],
    "t": [NOON, NOON + dt.timedelta(microseconds=1), None],
    "o": [dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(1, 1, 1), None],
    "a": [None, [], [1.0], [0.0, -0.0], [NAN, NAN], [None, None], [1.0, None, 2.0], [1.0, 2.0, 3.0, 4.0]],
}


def a_contract(*checks: Any) -> Contract:
    return Contract(
        name="orders",
        version="1.0.0",
        fields=tuple(Field(name=n, type=t) for n, t in TYPES.items()),
        primary_key=("i",),
        table_rules=tuple(TableRule(name=f"{n} {check}", check=check) for n, check in enumerate(checks)),
    )


@pytest.fixture
def rows() -> pa.Table:
    micro = dt.timedelta(microseconds=1)
    return pa.table(
        {
            "i": pa.array([0, 1, 2, 3, 4, 5], pa.int32()),
            "l": pa.array([2**53, 2**53 + 1, None, 2**63 - 1, 0, -(2**63)]),
            "d": pa.array([0.5, NAN, None, float("inf"), 1.0, 0.5]),
            "f": pa.array([1.0, 1.0, NAN, NAN, 1.0, 0.25]),
            "e": pa.array([Exact(f"0.{n}9999999999") for n in range(5)] + [None], pa.decimal128(38, 20)),
            "s": pa.array(["e1", "e1\n", None, "it's", "äöüx", "e1"]),
            "t": pa.array([NOON, NOON + micro, None, NOON, NOON, NOON], pa.timestamp("us", "UTC")),
            "o": pa.array([dt.date(2024, 1, 31)] * 4 + [dt.date(2024, 2, 1), None]),
            "a": pa.array([[1.0], [], None, [1.0, 1.0], [0.0], [2.0]]),
        }
    )


def summary(results: tuple[CheckResult, ...]) -> list[tuple[Any, ...]]:
    """Everything but the number of rows that a passed rule about it observed, which Spark is not asked for."""
    return [(r.rule, r.passed, r.observed, sorted(r.failing_rows, key=lambda row: row["i"] or 0)) for r in results]


def test_a_data_frame_and_a_table_of_the_same_rows_are_judged_alike(spark: SparkSession, rows: pa.Table) -> None:
    contract = a_contract(*CHECKS)
    on_spark = audit("orders", spark.createDataFrame(rows), contract)
    in_memory = audit("orders", rows, contract)
    assert summary(on_spark) == summary(in_memory)
    assert sum(not r.passed for r in on_spark) == len(CHECKS) - 2


NOT_IN_BOTH = {Unique, RowCountBetween, Holds, Expectation, NotNullInside}
"""Checks of several rows, those that users write in SQL or in the words of Great Expectations, and parts of objects,
which records check where they are decoded.
"""


def test_mask_and_sql_of_every_check_are_compared() -> None:
    rng = random.Random(1)
    drawn = {type(a_check(rng)) for _ in range(1000)}
    assert drawn == set(get_args(Check)) - NOT_IN_BOTH


def a_check(rng: random.Random) -> Check:
    """Any check about one row of these columns."""
    column = rng.choice(["i", "l", "d", "e"])
    low, high = sorted(rng.choices([-(2**70), -(2**63), -1.5, -1, 0, 0.1, 0.5, 1, 2**31, 2**53, 2**63 - 1, 2**70], k=2))
    bounds = {"minimum": rng.choice([None, low]), "maximum": high}
    left, right = rng.choice([("d", "f"), ("i", "l"), ("l", "e"), ("i", "e"), ("f", "d")])
    exclusive = {f"exclusive_{side}": rng.random() < 0.5 for side in bounds}
    return rng.choice(
        [
            NotNull(column=rng.choice(list(TYPES))),
            Between(column=column, **bounds, **exclusive),
            Between(column=column, **bounds, **exclusive),
            OneOf(column="d", values=(0, 0.1, 1)),
            OneOf(column="e", values=(0.1, 1)),
            OneOf(column="s", values=("", "a\n", "ä")),
            Matches(column="s", pattern=rng.choice([r"\w+", r"\S*", r"[^\s]*", r".*", r"a\s", r"[\sa]+", "a|ä"])),
            LengthBetween(column="s", minimum=rng.choice([None, 0, 1]), maximum=rng.choice([1, 3])),
            Bounded(column="o", operator=rng.choice([">", ">=", "<", "<="]), bound="2024-01-31"),
            Bounded(column="t", operator=rng.choice([">", ">=", "<", "<="]), bound="2024-01-31T12:00:00+00:00"),
            MultipleOf(column=rng.choice(["i", "l"]), factor=rng.choice([1, 2, 3, 2**53])),
            MultipleOf(column="e", factor=rng.choice([0.1, 0.25, 1])),
            NoneOf(column="s", values=("", "a"), null_too=rng.random() < 0.5),
            NoneOf(column="d", values=(0, 1)),
            ItemsBetween(column="a", minimum=rng.choice([1, 2]), maximum=rng.choice([None, 1, 3])),
            ItemsDistinct(column="a"),
            Compare(left=left, operator=rng.choice(["<", "<=", ">", ">=", "="]), right=right),
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_mask_says_what_spark_says_of_the_same_rule(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    schema = arrow_schema(Field(name=n, type=t) for n, t in TYPES.items())
    table = pa.table(
        {name: pa.array(rng.choices(VALUES[name], k=60), schema.field(name).type) for name in TYPES}, schema
    )
    checks = [a_check(rng) for _ in range(100)]
    counted = [f"count_if(NOT coalesce(({sql_of(check, TYPES)}), true)) AS c{n}" for n, check in enumerate(checks)]
    [on_spark] = spark.createDataFrame(table).selectExpr(*counted).toArrow().to_pylist()
    for n, check in enumerate(checks):
        bad = pc.sum(broken(check, table, TYPES)).as_py()
        assert bad == on_spark[f"c{n}"], check


def test_a_data_frame_without_rows_breaks_nothing(spark: SparkSession, rows: pa.Table) -> None:
    contract = a_contract(NotNull(column="l"), Unique(columns=("s", "l")), Between(column="d", minimum=0))
    results = audit("orders", spark.createDataFrame(rows).limit(0), contract)
    assert [(r.passed, r.failing_rows) for r in results] == [(True, ())] * 3


def test_a_data_frame_shows_at_most_twenty_rows_and_is_not_kept(spark: SparkSession) -> None:
    frame = spark.range(1000).selectExpr("cast(id % 10 AS int) AS i", "id AS l", "id AS unused")
    contract = a_contract(Unique(columns=("i",)), Between(column="l", maximum=499))
    first, second = audit("orders", frame, contract)
    assert (len(first.failing_rows), first.observed) == (20, "1000 of 1000 rows")
    assert (len(second.failing_rows), second.observed) == (20, "500 of 1000 rows")
    assert set(second.failing_rows[0]) == {"i", "l"}
    assert not frame.select("i", "l").storageLevel.useMemory


def test_a_data_frame_is_audited_where_only_its_number_of_rows_is_asked_for(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr("cast(id AS int) AS i")
    (result,) = audit("orders", frame, a_contract(RowCountBetween(maximum=2)))
    assert (result.passed, result.observed, result.failing_rows) == (False, "3 rows", ())
