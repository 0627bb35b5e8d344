"""Which values a contract takes, as far as it is certain without Spark."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import CONTRACTS, EVENTS
from tidemill import Average, Bitmap, BloomFilter, Collect, Count, First, Max, Min, Pipeline, Sum, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.fitting import Fit, fit
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar, spark_type
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.errors import DeclarationError

INT, LONG, DOUBLE, TEXT = Scalar.INTEGER, Scalar.LONG, Scalar.DOUBLE, Scalar.STRING


def an_object(*fields: tuple[str, DataType]) -> Object:
    return Object(tuple(Field(name=n, type=t) for n, t in fields))


@pytest.mark.parametrize(
    ("found", "wanted", "how"),
    [
        (INT, LONG, Fit.FITS),
        (INT, DOUBLE, Fit.FITS),
        (Scalar.DATE, Scalar.TIMESTAMP, Fit.FITS),
        (LONG, Decimal(19), Fit.FITS),
        (INT, Decimal(12, 2), Fit.FITS),
        (Decimal(10, 2), Decimal(12, 3), Fit.FITS),
        (Array(INT), Array(LONG), Fit.FITS),
        (an_object(("a", INT)), an_object(("A", LONG)), Fit.FITS),
        (LONG, Decimal(18), Fit.SOME),
        (Decimal(20, 2), Decimal(10, 2), Fit.SOME),
        (TEXT, LONG, Fit.LOSES),
        (LONG, TEXT, Fit.LOSES),
        (LONG, INT, Fit.LOSES),
        (LONG, DOUBLE, Fit.LOSES),
        (DOUBLE, LONG, Fit.LOSES),
        (DOUBLE, Decimal(38, 10), Fit.LOSES),
        (Decimal(10, 2), DOUBLE, Fit.LOSES),
        (Decimal(10, 2), LONG, Fit.LOSES),
        (Decimal(10, 3), Decimal(12, 2), Fit.LOSES),
        (Scalar.TIMESTAMP, Scalar.DATE, Fit.LOSES),
        (Scalar.BOOLEAN, INT, Fit.LOSES),
        (Array(LONG), Array(INT), Fit.LOSES),
        (Array(Decimal(20)), Array(Decimal(10)), Fit.LOSES),
        (an_object(("a", INT), ("b", INT)), an_object(("b", INT), ("a", INT)), Fit.LOSES),
        (an_object(("a", INT)), an_object(("a", INT), ("b", INT)), Fit.LOSES),
    ],
)
def test_only_what_keeps_every_value_fits(found: DataType, wanted: DataType, how: Fit) -> None:
    assert fit(found, wanted) is how


@given(precision=st.integers(1, 38), scale=st.integers(0, 38), other=st.integers(1, 38), behind=st.integers(0, 38))
def test_a_decimal_fits_where_its_largest_number_does(precision: int, scale: int, other: int, behind: int) -> None:
    scale, behind = min(scale, precision), min(behind, other)
    largest, most = (10**precision - 1) * 10 ** (38 - scale), (10**other - 1) * 10 ** (38 - behind)
    exact = largest % 10 ** (38 - behind) == 0
    expected = Fit.LOSES if not exact else Fit.FITS if largest <= most else Fit.SOME
    assert fit(Decimal(precision, scale), Decimal(other, behind)) is expected


def bound(aggregate: Aggregate, column: DataType, *, key: DataType | None = None, **added: str) -> Any:
    fields = {"window_start": Scalar.TIMESTAMP, "window_end": Scalar.TIMESTAMP, "user": key or TEXT, "x": column}
    table = Contract(name="out", version="1", fields=tuple(Field(name=n, type=t) for n, t in fields.items()))
    with Pipeline("p", every="1 minute") as pipeline:
        rows = pipeline.read("t", contract="events", event_time="ts").with_columns(**added)
        rows.key_by("user").window(Tumbling("1 s")).aggregate(x=aggregate).publish("out", contract="out")
    return bind(pipeline.spec, {**CONTRACTS, "out": table})


@pytest.mark.parametrize(
    ("aggregate", "column", "says"),
    [
        (Average("amount"), LONG, "`x` is double, but the contract says bigint"),
        (Count(), INT, "`x` is bigint, but the contract says int"),
        (Sum("amount"), DOUBLE, "`x` is bigint, but the contract says double"),
        (Max("user"), LONG, "`x` is string, but the contract says bigint"),
        (First("ts"), Scalar.DATE, "`x` is timestamp, but the contract says date"),
        (Collect("amount"), Array(INT), "`x` is array<bigint>, but the contract says array<int>"),
        (Sum("user"), LONG, "`x` is Sum of `user`, which is string and no number"),
        (Average("ts"), DOUBLE, "which is timestamp and no number"),
        (Bitmap("user"), Scalar.BINARY, "`x` is Bitmap of `user`, which is string and no whole number"),
        (Bitmap("ts"), Scalar.BINARY, "which is timestamp and no whole number"),
        (BloomFilter("ts"), Scalar.BINARY, "which is timestamp and has another text in each time zone"),
        (Bitmap("amount"), Scalar.STRING, "`x` is binary, but the contract says string"),
        (BloomFilter("user"), Scalar.STRING, "`x` is binary, but the contract says string"),
    ],
)
def test_an_aggregate_that_its_column_cannot_hold_is_refused_with_both_types(
    aggregate: Aggregate, column: DataType, says: str
) -> None:
    with pytest.raises(DeclarationError, match=says) as refused:
        bound(aggregate, column)
    assert "test_types.py:" in refused.value.message


def test_a_key_that_its_column_cannot_hold_is_refused() -> None:
    with pytest.raises(DeclarationError, match="`user` is string, but the contract says bigint for it") as refused:
        bound(Count(), LONG, key=LONG)
    assert "tidemill rebuild" in refused.value.fix


@pytest.mark.parametrize(
    ("one", "other", "fine"),
    [
        (INT, LONG, True),
        (INT, DOUBLE, True),
        (TEXT, TEXT, True),
        (LONG, Decimal(10, 2), True),
        (Decimal(10, 2), Decimal(10, 4), True),
        (Decimal(38, 2), Decimal(10, 4), False),
        (LONG, DOUBLE, False),
        (LONG, TEXT, False),
        (Decimal(10, 2), DOUBLE, False),
        (Scalar.BOOLEAN, INT, False),
        (Array(LONG), Array(DOUBLE), False),
    ],
)
def test_streams_are_merged_where_one_type_holds_every_value_of_both(
    one: DataType, other: DataType, fine: bool
) -> None:
    contracts = {
        n: replace(EVENTS, name=n, fields=(Field(name="x", type=t),)) for n, t in {"a": one, "b": other}.items()
    }
    table = Contract(name="out", version="1", fields=(Field(name="n", type=TEXT),))
    for first, second in ("ab", "ba"):
        with Pipeline("p", every="1 minute") as pipeline:
            a, b = (pipeline.read(n, contract=n) for n in (first, second))
            a.union(b).with_columns(n="'x'").select("n").publish("out", contract="out")
        if fine:
            bind(pipeline.spec, {**contracts, "out": table})
            continue
        shown = [re.escape(spark_type(contracts[n].fields[0].type)) for n in (first, second)]
        with pytest.raises(DeclarationError, match=f"streams whose `x` is {shown[0]} in one and {shown[1]} in another"):
            bind(pipeline.spec, {**contracts, "out": table})


def test_what_only_spark_knows_is_left_to_spark() -> None:
    bound(Sum("amount"), LONG, amount="length(user) / 2")
    bound(Min("`amount`"), LONG)
    bound(Sum("amount"), Decimal(38))
    bound(Count(), LONG, key=TEXT, user="concat(user, 'x')")


def test_rows_without_windows_are_held_to_their_contract_too() -> None:
    table = Contract(name="out", version="1", fields=(Field(name="amount", type=INT),))
    with Pipeline("p", every="1 minute") as pipeline:
        pipeline.read("t", contract="events").select("amount").publish("out", contract="out")
    with pytest.raises(DeclarationError, match="`amount` is bigint, but the contract says int"):
        bind(pipeline.spec, {"events": EVENTS, "out": table})


def test_an_outcome_of_overflow_that_there_is_not_is_refused() -> None:
    with pytest.raises(DeclarationError, match="overflow is saturate or null, found 'wrap'"):
        Sum("x", overflow="wrap")
