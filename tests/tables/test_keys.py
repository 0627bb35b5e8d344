"""Rows with the same key, in memory: rows of a batch, and rows that a table has already."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.tables.keys import agreeing, repeated

VALUES: dict[str, tuple[pa.DataType, Any, Any]] = {
    "integers": (pa.int64(), 2**63 - 1, -(2**63)),
    "texts": (pa.string(), "a", "A"),
    "bytes": (pa.binary(), b"\x00", b""),
    "booleans": (pa.bool_(), True, False),
    "decimals": (pa.decimal128(38, 2), Decimal("1.00"), Decimal("-1.00")),
    "dates": (pa.date32(), dt.date(9999, 12, 31), dt.date(1, 1, 1)),
    "times": (
        pa.timestamp("us", "UTC"),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_each_type_agree_with_themselves(kind: str) -> None:
    data_type, one, other = VALUES[kind]
    rows = pa.table({"k": pa.array([one, None, other], data_type)})
    held = pa.table({"k": pa.array([None, one, one], data_type)})
    assert repeated(["k"], rows).to_pylist() == []
    assert repeated(["k"], rows, held).to_pylist() == [0]
    assert agreeing(["k"], held, rows)["k"].to_pylist() == [one, one]


def test_both_zeros_are_one_key() -> None:
    rows, held = (pa.table({"k": pa.array([value])}) for value in (0.0, -0.0))
    assert repeated(["k"], rows, held).to_pylist() == [0]
    assert agreeing(["k"], held, rows).num_rows == 1


KEY = st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, "a", "b"]))


@given(rows=st.lists(KEY, max_size=8), held=st.lists(KEY, max_size=8))
def test_a_row_repeats_when_another_one_has_its_key(rows: list[Any], held: list[Any]) -> None:
    def table(keys: list[Any]) -> pa.Table:
        columns = zip(*keys, strict=True) if keys else ([], [])
        return pa.table(dict(zip("xy", columns, strict=True)), schema=pa.schema([("x", pa.int64()), ("y", "string")]))

    whole = [None not in key for key in rows]
    twice = [n for n, key in enumerate(rows) if whole[n] and (rows.count(key) > 1 or key in held)]
    assert repeated(["x", "y"], table(rows), table(held)).to_pylist() == twice
    same = agreeing(["x", "y"], table(held), table(rows)).to_pylist()
    assert sorted((r["x"], r["y"]) for r in same) == sorted(k for k in held if None not in k and k in rows)
