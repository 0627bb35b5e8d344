"""Tables that do not fit the ledger: the batch is refused by name, and nothing is counted twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from support.projects import an_event, rows_of, sums
from tidemill.core.errors import Fenced

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("writer", ["delta-rs", "spark"])
def test_a_batch_that_is_planned_again_cannot_double_its_state(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sums(tmp_path, spark, writer=writer)
    mill.feed([an_event(1), an_event(2)])
    mill.run()
    shutil.rmtree(tmp_path / "lake/pipelines/sums/ledger")
    with pytest.raises(Fenced, match=r"state of sums .*batch 1 attempt 1 .* another plan"):
        mill.run()
    assert [r["attempt"] for r in rows_of(f"{tmp_path}/lake/pipelines/sums/state/sums")] == [1]
