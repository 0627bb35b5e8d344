"""An attempt that is overtaken in its middle, and goes on, changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.projects import somebody
from tidemill.batch import NothingToDo
from tidemill.core.errors import Fenced
from tidemill.core.events import Committed

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("point", "writer"),
    [
        ("state:sums", "delta-rs"),
        ("audited", "delta-rs"),
        ("published:sums", "delta-rs"),
        pytest.param("published:sums", "spark", marks=pytest.mark.long),
    ],
)
def test_an_attempt_that_is_overtaken_is_fenced_and_every_table_is_right(  # noqa: PLR0917
    tmp_path: Path, begun: Any, unbroken: Any, monkeypatch: pytest.MonkeyPatch, point: str, writer: str
) -> None:
    mill = begun(tmp_path, writer)
    overtaking: list[Any] = []

    def overtake(side: str, name: str, batch_id: int) -> None:
        if (side, name) == ("after", point) and not overtaking:
            overtaking.append(None)
            tomorrow = datetime.now(UTC) + timedelta(days=1)
            overtaking[0] = mill.run(executor=somebody("the faster"), clock=tomorrow, drain=True)

    monkeypatch.setattr("tidemill.core.failpoints._reach", overtake)
    with pytest.raises(Fenced, match="batch 2 is not open any more"):
        mill.run(executor=somebody("the slower"), drain=True)
    commits = [e.event for e in mill.project.ledger("sums").entries() if isinstance(e.event, Committed)]
    assert [(c.batch_id, c.attempt) for c in commits] == [(1, 1), (2, 2)]
    assert overtaking == commits[1:]
    assert isinstance(mill.run(drain=True), NothingToDo)
    assert mill.everything() == unbroken
