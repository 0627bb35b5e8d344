"""Contract types and Arrow types stand for each other."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar
from tidemill.tables.arrow_types import arrow_schema, arrow_type, data_type, schema_fields

decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))
types = st.recursive(
    st.sampled_from(Scalar) | decimals,
    lambda inner: st.one_of(
        inner.map(Array),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda ts: Object(tuple(Field(name=f"f{n}", type=t) for n, t in enumerate(ts)))
        ),
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("contract", "arrow"),
    [
        (Scalar.STRING, pa.string()),
        (Scalar.BINARY, pa.binary()),
        (Scalar.BOOLEAN, pa.bool_()),
        (Scalar.INTEGER, pa.int32()),
        (Scalar.LONG, pa.int64()),
        (Scalar.DOUBLE, pa.float64()),
        (Scalar.DATE, pa.date32()),
        (Scalar.TIMESTAMP, pa.timestamp("us", "UTC")),
        (Decimal(10, 2), pa.decimal128(10, 2)),
        (Array(Scalar.LONG), pa.list_(pa.int64())),
        (Object((Field(name="a", type=Scalar.LONG),)), pa.struct([("a", pa.int64())])),
    ],
)
def test_each_type_has_one_arrow_type(contract, arrow):
    assert arrow_type(contract) == arrow


@given(types)
def test_a_type_comes_back_from_arrow(contract):
    def optional(kind):
        match kind:
            case Object(fields):
                return Object(tuple(Field(name=f.name, type=optional(f.type)) for f in fields))
            case Array(item):
                return Array(optional(item))
        return kind

    assert data_type(arrow_type(contract)) == optional(contract)


def test_narrower_and_larger_arrow_types_have_a_type_that_holds_them():
    found = [data_type(t) for t in (pa.int8(), pa.uint32(), pa.float32(), pa.large_string(), pa.timestamp("ns", "CET"))]

    assert found == [Scalar.INTEGER, Scalar.LONG, Scalar.DOUBLE, Scalar.STRING, Scalar.TIMESTAMP]


@pytest.mark.parametrize("arrow", [pa.timestamp("us"), pa.uint64(), pa.map_(pa.string(), pa.int64()), pa.null()])
def test_a_type_that_no_contract_has_is_refused(arrow):
    with pytest.raises(ValueError, match="no contract type for Arrow's"):
        data_type(arrow)


def test_columns_are_nullable_whatever_the_contract_requires():
    fields = (Field(name="a", type=Scalar.LONG, required=True), Field(name="b", type=Scalar.STRING))

    assert [(f.name, f.nullable) for f in arrow_schema(fields)] == [("a", True), ("b", True)]
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    assert schema_fields(schema) == fields
