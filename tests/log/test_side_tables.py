"""Looks at rejected records hold the places of a part of them at a time, and the values of those that are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import selection
from tidemill.core.repair.side_outputs import FIELDS
from tidemill.log import side_tables
from tidemill.log.side_tables import Chosen, SideTables

BATCHES, RECORDS = 16, 5


@pytest.fixture
def rejected(tmp_path: Path) -> SideTables:
    for batch in range(1, BATCHES + 1):
        rows = [
            {"batch_id": batch, "topic": "t", "partition": 0, "offset": offset, "value": b"x", "reasons": ["r"]}
            for offset in range(batch * RECORDS, (batch + 1) * RECORDS)
        ]
        times = {"timestamp": datetime.now(UTC), "recorded_at": datetime.now(UTC)}
        whole = [
            {field.name: ({**row, **times}).get(field.name) for field in FIELDS[SideOutput.QUARANTINE]} for row in rows
        ]
        table = pa.Table.from_pylist(whole)
        nulls = [name for name in table.column_names if pa.types.is_null(table.schema.field(name).type)]
        write_deltalake(tmp_path / "quarantine", table.drop(nulls), mode="append")
    return SideTables(lambda name: str(tmp_path / name))


@pytest.mark.parametrize(("most", "shown"), [(1, 1), (7, 7), (1000, 80), (None, 80)])
def test_all_are_counted_and_a_part_is_held(
    rejected: SideTables, monkeypatch: Any, most: int | None, shown: int
) -> None:
    monkeypatch.setattr(side_tables, "_AT_ONCE", RECORDS)
    held: list[int] = []

    def noted(self: SideTables, *given: Any) -> Chosen:
        found = chosen(self, *given)
        held.append(found.rows.num_rows)
        return found

    chosen = SideTables._chosen
    monkeypatch.setattr(SideTables, "_chosen", noted)
    first = rejected.first(SideOutput.QUARANTINE, selection(), most)
    assert first is not None
    assert first.total == BATCHES * RECORDS
    offsets = first.chosen.rows["offset"].to_pylist()
    assert offsets == list(range(RECORDS, RECORDS + shown))
    *places, _ = held
    assert max(places) < BATCHES * RECORDS


def test_a_selection_without_a_record_is_empty(rejected: SideTables) -> None:
    first = rejected.first(SideOutput.QUARANTINE, selection(topic="other"), 10)
    assert first is not None
    assert (first.total, first.chosen.rows.num_rows) == (0, 0)
    for batch in ("99", "9" * 18, "9" * 19):
        first = rejected.first(SideOutput.QUARANTINE, selection(batch=batch), 10)
        assert first is not None
        assert first.total == 0
        oldest = rejected.oldest(SideOutput.QUARANTINE, selection(batch=batch), 10)
        assert oldest is not None
        assert oldest.rows.num_rows == 0
