"""What a repair changed is told row by row, whatever types the columns have."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidemill.engine.storage.corrections import corrections

AT = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = {
    "window_start": pa.timestamp("us", "UTC"),
    "us%er": pa.string(),
    "n": pa.int64(),
    "share": pa.float64(),
    "price": pa.decimal128(10, 2),
    "day": pa.date32(),
    "raw": pa.binary(),
    "tags": pa.list_(pa.string()),
    "good": pa.bool_(),
}


@dataclass(frozen=True)
class _Contract:
    columns: tuple[str, ...] = tuple(TYPES)


@dataclass(frozen=True)
class _Sink:
    """What of a sink is asked for."""

    table: str = "sums"
    keys: tuple[str, ...] = ("us%er",)
    row_key: tuple[str, ...] = ("window_start", "us%er")
    start: str = "window_start"
    contract: _Contract = _Contract()


values = st.fixed_dictionaries(
    {
        "window_start": st.integers(0, 3).map(lambda n: AT.replace(second=n)),
        "us%er": st.none() | st.text(max_size=2),
        "n": st.none() | st.integers(-3, 3),
        "share": st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
        "price": st.none() | st.sampled_from([Decimal("1.00"), Decimal("-2.50")]),
        "day": st.none() | st.just(date(2026, 1, 2)),
        "raw": st.none() | st.binary(max_size=2),
        "tags": st.none() | st.lists(st.none() | st.text(max_size=2), max_size=2),
        "good": st.none() | st.booleans(),
    }
)
rows = st.lists(values, max_size=6, unique_by=lambda r: (r["window_start"], r["us%er"]))


def table(found: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(found, schema=pa.schema(list(TYPES.items())))


def as_json(row: Mapping[str, Any]) -> str:
    def plain(value: object) -> str:
        return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)

    return json.dumps(row, default=plain, ensure_ascii=False, sort_keys=True)


@given(rows, rows)
def test_each_row_is_told_as_it_was_and_as_it_is(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    told = corrections(_Sink(), table(before), table(after), batch_id=7, at=AT)  # type: ignore[arg-type]
    was = {(r["window_start"], r["us%er"]): as_json(r) for r in before}
    assert told.to_pylist() == [
        {
            "batch_id": 7,
            "table_name": "sums",
            "window_start": r["window_start"],
            "key": as_json({"us%er": r["us%er"]}),
            "before": was.get((r["window_start"], r["us%er"])),
            "after": as_json(r),
            "recorded_at": AT,
        }
        for r in after
    ]


def test_a_table_that_is_not_there_yet_had_no_rows() -> None:
    row = dict.fromkeys(TYPES) | {"window_start": AT, "us%er": "ü"}
    told = corrections(_Sink(), pa.table({}), table([row]), batch_id=7, at=AT)  # type: ignore[arg-type]
    assert told["before"].to_pylist() == [None]
    assert told["key"].to_pylist() == ['{"us%er": "ü"}']
