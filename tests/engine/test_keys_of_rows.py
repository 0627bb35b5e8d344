"""Rows with the keys of other rows, and numbers of keys: null is a value, NaN is one, and 0.0 is -0.0."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidemill.engine.storage.chains import numbered
from tidemill.tables.keys import with_key_of

NAN = math.nan
KEYS: dict[str, list[Any]] = {
    "text": ["a", None, "b", "a", ""],
    "number": [1, None, 2, 1, 0],
    "double": [1.5, None, NAN, 1.5, -0.0],
    "decimal": [Decimal("1.0"), None, Decimal("2.5"), Decimal("1.0"), Decimal("0.0")],
    "moment": [datetime(2026, 1, d, tzinfo=UTC) if d else None for d in (1, 0, 2, 1, 3)],
    "list": [[1], None, [2], [1], []],
    "struct": [{"x": 1}, None, {"x": 2}, {"x": 1}, {"x": None}],
}


@pytest.mark.parametrize("kind", KEYS)
def test_rows_keep_their_order_and_are_those_whose_key_others_have(kind: str) -> None:
    values = KEYS[kind]
    rows = pa.table({kind: pa.array(values), "row": range(5)})
    for chosen, expected in (([0], [0, 3]), ([1, 1], [1]), ([2, 4], [2, 4]), ([], [])):
        others = rows.take(pa.array(chosen, pa.int64())).select([kind])
        assert with_key_of(rows, others, [kind]).tolist() == expected
    assert with_key_of(rows, rows.slice(1, 1), []).tolist() == [0, 1, 2, 3, 4]
    assert with_key_of(rows, rows.slice(0, 0), []).tolist() == []


def test_keys_of_two_columns_are_equal_only_in_both() -> None:
    rows = pa.table({"a": [1, 1, None, None], "b": ["x", None, "x", None], "row": range(4)})
    assert with_key_of(rows, rows.slice(1, 2), ["b", "a"]).tolist() == [1, 2]


@pytest.mark.parametrize("kind", KEYS)
def test_numbers_of_keys_are_equal_where_keys_are(kind: str) -> None:
    numbers = numbered(pa.table({kind: pa.array(KEYS[kind])}), [kind]).tolist()
    assert numbers[0] == numbers[3]
    assert len(set(numbers)) == 4


def test_nan_and_zero_are_one_key_each_whatever_their_bits() -> None:
    numbers = numbered(pa.table({"x": [NAN, -NAN, 0.0, -0.0]}), ["x"]).tolist()
    assert (numbers[0] == numbers[1], numbers[2] == numbers[3], numbers[0] == numbers[2]) == (True, True, False)
    zero = pa.table({"x": [0.0]})
    assert with_key_of(pa.table({"x": [-0.0, 1.0]}), zero, ["x"]).tolist() == [0]
