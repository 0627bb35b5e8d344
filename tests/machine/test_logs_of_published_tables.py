"""The log of a published table follows its own property, which people may change while batches run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from machine.tiny import TinyAttempt
from support.firings import firings
from support.projects import NO_SPARK, an_event
from tidemill.run import after_commit, batch


@pytest.mark.parametrize("shorter", [True, False])
def test_batches_go_on_and_obey_a_shorter_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shorter: bool
) -> None:
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    monkeypatch.setattr(after_commit, "EVERY", 4)
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(1))", collect=False)
    published = Path(mill.project.published_uri("firings"))
    for number in range(16):
        mill.feed([an_event(number, "a", 1)])
        mill.run()
        if not number and shorter:
            DeltaTable(published).alter.set_table_properties({"delta.logRetentionDuration": "interval 1 days"})
    for entry in (published / "_delta_log").glob("0*"):
        os.utime(entry, (time.time() - 2 * 86_400,) * 2)
    for number in range(8):
        mill.feed([an_event(number, "a", 1)])
        mill.run()
    left = sorted(int(entry.name[:20]) for entry in (published / "_delta_log").glob("0*.json"))
    assert (left[0] >= 10) == shorter
    assert left == [*range(left[0], left[-1] + 1)]
    assert len(mill.published()) == 24
