"""Which records a batch keeps for its later jobs: those that the log may delete meanwhile."""

from __future__ import annotations

import typing
from types import SimpleNamespace
from typing import Any

import pytest

from support.builders import a_flow, a_plan
from tidemill.core.log.scan import KafkaScan, MemoryScan, Scan
from tidemill.engine.aggregate import input_stream
from tidemill.engine.aggregate.input_stream import Stream


class Writer:
    """A writer that says what it keeps."""

    session = None
    spark = SimpleNamespace(session=None)

    started = False

    def before_job(self) -> None:
        self.started = True

    def cache(self, frame: str) -> str:
        return f"kept {frame}"


@pytest.mark.parametrize(
    ("scan", "expected"),
    [
        (KafkaScan(topic="events", ranges=(), java={}, client={}), "kept rows"),
        (MemoryScan(records=(), ranges=()), "rows"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_records_that_a_log_may_delete_are_kept_for_later_jobs(
    monkeypatch: pytest.MonkeyPatch, scan: Scan, expected: str
) -> None:
    monkeypatch.setattr(input_stream, "records", lambda *_: "rows")
    flow, writer = a_flow(), typing.cast("Any", Writer())
    assert Stream.of(flow, flow.inputs[0], a_plan(), scan, writer).records == expected
    assert (
        writer.started
    )  # Spark looks at the log when records are read, so a batch that has lost its place stops first.


def test_every_scan_says_whether_its_records_can_be_read_again() -> None:
    kinds = typing.get_args(Scan)
    assert [kind for kind in kinds if not isinstance(vars(kind).get("rereadable"), property)] == []
    assert [kind for kind in kinds if not kind.rereadable.fget(None)] == [KafkaScan]
