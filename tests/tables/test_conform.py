"""Arrow rows come in many shapes and leave in one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar
from tidemill.core.errors import Incompatible
from tidemill.tables.arrow import conform
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.interface import TableSpec

PAIR = Object((Field(name="a", type=Scalar.LONG), Field(name="b", type=Scalar.STRING)))
MOMENT = datetime(2024, 3, 1, 12, 0, 0, 1, UTC)


def a_spec(*types: DataType) -> TableSpec:
    """A table with columns c0, c1, ... of these types."""
    fields = tuple(Field(name=f"c{n}", type=t) for n, t in enumerate(types))
    return TableSpec(uri="nowhere", name="odd", fields=fields)


@pytest.mark.parametrize(
    ("data_type", "given", "found"),
    [
        (Scalar.STRING, pa.array(["x", None], pa.large_string()), ["x", None]),
        (Scalar.STRING, pa.array(["x", None], pa.string_view()), ["x", None]),
        (Scalar.STRING, pa.array(["x", None]).dictionary_encode(), ["x", None]),
        (Scalar.BINARY, pa.array([b"\xff", None], pa.binary_view()), [b"\xff", None]),
        (Scalar.LONG, pa.array([1, None], pa.int8()), [1, None]),
        (Scalar.LONG, pa.nulls(2), [None, None]),
        (Scalar.TIMESTAMP, pa.array([MOMENT], pa.timestamp("us", "America/New_York")), [MOMENT]),
        (Scalar.TIMESTAMP, pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("ns")), [MOMENT]),
        (Decimal(20, 2), pa.array([7], pa.int32()).cast(pa.decimal128(10, 0)), [7]),
        (PAIR, pa.nulls(1), [None]),
        (PAIR, pa.array([{"b": "x", "a": 1}, None]), [{"a": 1, "b": "x"}, None]),
        (PAIR, pa.array([{"a": 1}]), [{"a": 1, "b": None}]),
        (Array(PAIR), pa.array([[{"a": 1, "b": "x"}], [], None]), [[{"a": 1, "b": "x"}], [], None]),
        (Array(Scalar.STRING), pa.array([["x", None]], pa.large_list(pa.string_view())), [["x", None]]),
    ],
    ids=str,
)
def test_a_column_takes_the_type_of_the_spec(data_type: DataType, given: pa.Array, found: list[Any]) -> None:
    spec = a_spec(data_type)
    table = conform(pa.table({"c0": given}), spec)
    assert table.schema == arrow_schema(spec.fields)
    assert table["c0"].to_pylist() == found


def test_columns_come_in_the_order_of_the_spec_and_missing_ones_are_null() -> None:
    spec = a_spec(Scalar.LONG, Scalar.STRING, PAIR)
    table = conform(pa.table({"unknown": [1], "c1": ["x"], "c0": [2]}), spec)
    assert table.to_pylist() == [{"c0": 2, "c1": "x", "c2": None}]
    assert conform(table, spec, ("c2", "c0")).column_names == ["c2", "c0"]


def test_no_rows_keep_their_columns() -> None:
    spec = a_spec(Scalar.LONG, PAIR)
    assert conform(pa.table({}), spec).schema == arrow_schema(spec.fields)


@pytest.mark.parametrize(
    ("data_type", "given"),
    [
        (Scalar.LONG, pa.array(["12"])),
        (Scalar.STRING, pa.array([12])),
        (Scalar.INTEGER, pa.array([2**31])),
        (Scalar.LONG, pa.array([1.5])),
        (Scalar.TIMESTAMP, pa.array([1], pa.timestamp("ns", "UTC"))),
        (Decimal(4, 2), pa.array([12345]).cast(pa.decimal128(19, 0))),
        (PAIR, pa.array([[1]])),
    ],
    ids=str,
)
def test_a_value_that_would_lose_something_is_refused(data_type: DataType, given: pa.Array) -> None:
    with pytest.raises(Incompatible, match=r"table odd \(nowhere\): column 'c0' must be .*, the rows have"):
        conform(pa.table({"c0": given}), a_spec(data_type))
