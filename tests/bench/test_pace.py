"""Batches keep up with a topic that is written to all the time; `make bench-pace` does so with 47,000 a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.pace import Pace, measured


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_batches_keep_up_with_what_is_written_and_count_every_record_once(tmp_path: Path, spark: Any) -> None:
    found = measured(spark, tmp_path, Pace(rate=2_000, seconds=20, every=4), print)
    assert (found["records"], found["lost"], found["doubled"]) == (44_000, 0, 0)
    assert found["batches"] >= 2
    assert found["behind_s"] <= 12, "batches fall behind"
