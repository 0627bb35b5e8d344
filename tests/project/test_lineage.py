"""What `explain --window` says of a batch that touched a window: why it was published, if it was."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from support.builders import NOW, a_flow
from tidemill import Sliding
from tidemill.core.history.index import IndexedBatch
from tidemill.core.plan.work import Kind
from tidemill.core.time.panes import Window
from tidemill.core.time.trigger import Trigger
from tidemill.inspect.firings import timing_of

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("trigger", "end", "before", "after", "said"),
    [
        (Trigger.ON_CLOSE, 30, 20, 40, "ON_TIME"),
        (Trigger.ON_CLOSE, 30, 31, 40, "LATE"),
        (Trigger.ON_CLOSE, 30, 34, 40, "LATE"),
        (Trigger.ON_CLOSE, 30, 35, 40, None),
        (Trigger.ON_CLOSE, 30, 99, 99, None),
        (Trigger.ON_CLOSE, 50, 20, 40, None),
        (Trigger.ON_UPDATE, 50, 20, 40, "EARLY"),
        (Trigger.ON_UPDATE, 30, 20, 40, "ON_TIME"),
        (Trigger.ON_UPDATE, 30, 34, 40, "LATE"),
        (Trigger.ON_UPDATE, 30, 35, 40, None),
    ],
)
def test_a_window_that_is_closed_for_good_is_not_published_by_who_touches_a_pane_of_it(
    trigger: Trigger, end: int, before: int, after: int, said: str | None
) -> None:
    (sink,) = a_flow(window=Sliding("20 seconds", "10 seconds")).sinks
    sink = replace(sink, trigger=trigger, allowed_lateness=timedelta(seconds=5))
    window = Window((end - 20) * SECOND, end * SECOND)
    batch = IndexedBatch(
        sequence=1,
        batch_id=1,
        attempt=1,
        kind=Kind.LIVE,
        started=NOW,
        at=NOW,
        before=before * SECOND,
        after=after * SECOND,
        reads={},
        panes={},
        tables={},
    )
    assert timing_of(sink, window, batch, touched=True) == said
