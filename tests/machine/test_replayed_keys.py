"""Records that are let in later count where they lie in the log, for the keys that they touch, on the tiny engine."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from amend.conftest import an_amendment, done
from support.projects import NO_SPARK, Mill
from support.replayed_keys import KINDS, a_mill, drawn, fed, let_in_later, never_rejected
from support.short_forms import shortened
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.work import Kind
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.state_compaction import Folding
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")


def disturbed(seed: int) -> Callable[[Mill, int], None]:
    """Something that changes no result: a backfill, a fold of state, maintenance, a rewind behind a repair."""
    luck = random.Random(seed)

    def disturb(mill: Mill, number: int) -> None:
        match luck.choice(["nothing", "backfill", "fold", "maintenance", "rewind"]):
            case "backfill":
                read = mill.project.ledger(mill.name).view().position.topics["events"].offsets
                first = {TopicPartition("events", p): luck.randrange(end) for p, end in read.items() if end}
                done(backfill(an_amendment(mill), OfOffsets(since=first, until={})))
            case "fold":
                list(fold(an_amendment(mill), Folding(group=3, overlap=0.1, groups=1)))
            case "maintenance":
                days = luck.choice([0, 1])
                list(maintain(mill.project, mill.name, keep=timedelta(0), now=datetime.now(UTC) + timedelta(days=days)))
            case "rewind":
                last = mill.project.ledger(mill.name).view().last_commit
                if last is not None and last.kind is Kind.REPAIR:
                    done(rewind(an_amendment(mill), to=last.batch_id - 1))
            case _:
                pass

    return disturb


CASES = [(kind, seed) for kind in KINDS for seed in range(40)]
SHORT = [*((kind, 3) for kind in ("count", "retracting", "sessions")), ("replacing", 25)]
"""In the last one, a key has no row left."""


@pytest.mark.parametrize(("kind", "seed"), shortened(CASES, SHORT))
def test_in_the_end_all_is_as_if_no_record_had_been_rejected(tmp_path: Path, kind: str, seed: int) -> None:
    story = drawn(seed)
    expected = never_rejected(a_mill(tmp_path / "expected", NO_SPARK, kind, collect=False), story)
    mill = let_in_later(a_mill(tmp_path / "mill", NO_SPARK, kind, collect=False), story, disturbed(seed))
    assert mill.own("quarantine") == []
    assert mill.published() == expected.published()
    # Keys go on from the same.
    more = drawn(seed + 1_000, batches=4).batches
    for number, batch in enumerate(more, start=20):
        fed(expected, batch, number)
        fed(mill, batch, number)
    for each in (mill, expected):
        each.run(drain=True)
    assert mill.published() == expected.published()
