"""Rejected and late rows are the same however they come: with the counts of a batch, or by a second pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill, an_event, sums
from support.ways import WAYS
from support.writers import WRITERS
from tidemill.engine.aggregate import native_plan
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.read import typed_rows

pytestmark = pytest.mark.spark

BAD: list[bytes | None] = [b"{cut", None, b"", b"\xff\x00", '{"näme": 1}'.encode(), b"[" * 50, an_event(1, "x", -1)]


def put_aside(folder: Path, spark: Any, writer: str, way: str = "spark") -> tuple[list[Any], list[Any]]:
    """The rows of quarantine and late table after two batches, the second of which has records of every fate."""
    mill: Mill = sums(
        folder, spark, window='Sliding("10 seconds", "4 seconds")', lateness="8 s", writer=writer, **WAYS[way]
    )
    mill.feed([an_event(5_000)])
    mill.run()
    late = [an_event(second, f"u{second % 3}\n\"'", second) for second in range(20)]
    mill.feed([*BAD, *late, an_event(5_001), *BAD])
    done = mill.run()
    account = done.accounts["events"]
    assert (account.rejected, account.late) == (2 * len(BAD) - 2, 22)
    return mill.own("quarantine"), mill.own("late")


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_that_come_with_the_counts_are_those_of_a_second_pass(
    tmp_path: Path, spark: Any, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    read = Stream.side_outputs
    monkeypatch.setattr(Stream, "side_outputs", lambda *given: passes.append("second") or read(*given))
    held = put_aside(tmp_path / "held", spark, writer)
    assert passes == []
    with monkeypatch.context() as patch:
        patch.setattr(typed_rows, "_HELD_RECORDS", 0)
        never = put_aside(tmp_path / "never", spark, writer)
    assert passes
    passes.clear()
    with monkeypatch.context() as patch:
        patch.setattr(typed_rows, "_HELD_BYTES", 40)
        over = put_aside(tmp_path / "over", spark, writer)
    assert passes
    passes.clear()
    in_workers = put_aside(tmp_path / "in_workers", spark, writer, "workers")
    assert put_aside(tmp_path / "here", spark, writer, "here") == in_workers
    assert passes == []
    monkeypatch.setattr(native_plan, "_HELD_BYTES", 3_000)
    assert put_aside(tmp_path / "over_in_workers", spark, writer, "workers") == in_workers
    assert passes
    assert [len(rows) for rows in held] == [12, 22]
    assert held == in_workers
    assert held == never == over
