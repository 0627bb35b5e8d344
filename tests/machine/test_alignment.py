"""Fast and slow partitions through whole batches, on the tiny engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, an_event, sums
from tidemill.run import batch


def test_a_fast_partition_waits_until_the_slow_one_has_come_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    mill = sums(tmp_path, NO_SPARK, partitions=2)
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace('every="1 minute"', 'every="1 minute", max_drift="30 s"'))
    mill = type(mill)(mill.project.load(tmp_path), NO_SPARK, "sums")
    mill.feed([an_event(second) for second in (0, 42, 60)])
    mill.feed([an_event(0, "b"), an_event(5, "b")], partition=1)
    offsets = []
    for _ in range(4):
        at = mill.run(limit=2).position.topics["events"].offsets
        offsets.append((at[0], at[1]))
        if len(offsets) == 2:
            # The next event of partition 0 is at second 42, and partition 1 has come to second 5.
            mill.feed([an_event(40, "b")], partition=1)
    assert offsets == [(1, 1), (1, 2), (2, 3), (3, 3)]
