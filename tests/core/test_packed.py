"""Many offsets as short text, and which batches belong together, at sizes that would never end if it were quadratic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.test_range_laws import offsets, ranges
from support.builders import a_commit, a_flow, a_plan, tp
from tidemill.core.history.coverage import Cover, coverage
from tidemill.core.history.linking import with_all_of
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.log.packed_offsets import packed, unpacked
from tidemill.core.plan.amendments import Ranges, Reason, Repair, SideOutput
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.codec import from_json, to_json
from tidemill.core.protocol.events import Planned
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_repair
from tidemill.ledger.process import this_process

MANY = 100_000


def by_topic(items: Sequence[OffsetRange]) -> Ranges:
    return {t: tuple(r for r in items if r.topic_partition.topic == t) for t in ("a", "b")}


def scattered(count: int, *, first: int = 0, step: int = 3) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(tp(), n, n + 1) for n in range(first, first + step * count, step))


def a_repair(records: Ranges) -> BatchPlan:
    asked = Repair(source=SideOutput.QUARANTINE, version=3, batches=(BatchRange(1, 2),), reason=Reason(by="me"))
    return plan_repair(a_flow(), View(), asked, records, clock=a_plan().clock)


def covers_of(*parts: tuple[OffsetRange, ...]) -> tuple[Cover, ...]:
    """Batches that read these."""
    found = []
    for number, part in enumerate(parts, start=1):
        plan = a_repair({"t": part})
        commit = a_commit(a_plan(batch_id=1))
        event = Planned(plan=plan, executor=this_process(), at=plan.clock)
        [cover] = coverage([event, commit], commit.position.slices)
        found.append((number, cover))
    return tuple(numbered(cover, number) for number, cover in found)


def numbered(cover: Cover, number: int) -> Cover:
    """The same as another batch."""
    return replace(cover, batch=replace(cover.batch, batch_id=number))


def reach(wanted: Ranges, covers: Sequence[Cover]) -> set[int]:
    """What belongs together, by its definition: as slow as that is."""
    chosen: set[int] = set()
    while more := {c.batch_id for c in covers if c.batch_id not in chosen and c.touches(wanted)}:
        chosen |= more
        wanted = {"t": tuple(r for c in covers if c.batch_id in chosen for r in c.ranges["t"])}
    return chosen


@given(st.lists(ranges()))
def test_packed_offsets_are_the_same_and_each_once(items: list[OffsetRange]) -> None:
    back = unpacked(packed(by_topic(items)))
    assert offsets(r for found in back.values() for r in found) == offsets(items)
    assert all(found for found in back.values())
    assert packed(back) == packed(by_topic(items))


@pytest.mark.parametrize("text", ["x", "1+2+3", "-1", "5 -9"])
def test_what_was_not_packed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|not a range"):
        unpacked({"packed": {0: text}})


def test_a_plan_of_many_scattered_records_is_short_and_survives_the_ledger() -> None:
    records = {"t": scattered(MANY)}
    plan = a_repair(records)
    text = to_json(plan)
    assert len(text) < 4 * MANY
    back = from_json(BatchPlan, text)
    assert back == plan
    assert back.reads == records
    assert (back.records, back.known_topics, back.ranges("other")) == (MANY, ("t",), ())


def test_a_plan_of_before_names_its_records_in_another_place() -> None:
    plan = a_repair({"t": scattered(3)})
    assert isinstance(plan.work, Repair)
    old = replace(plan, work=replace(plan.work, again=plan.work.ranges, records=None))
    assert '"records"' not in to_json(old)
    assert from_json(BatchPlan, to_json(old)).reads == plan.reads
    assert to_json(from_json(BatchPlan, to_json(old))) == to_json(old)


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), max_size=8), st.integers(0, 30))
def test_batches_belong_together_that_share_offsets_or_are_linked_by_others(parts: list[list[int]], at: int) -> None:
    spans = [tuple(OffsetRange(tp(), n, n + 4) for n in part) for part in parts]
    covers = covers_of(*spans)
    wanted = {"t": (OffsetRange(tp(), at, at + 1),)}
    assert {c.batch_id for c in with_all_of(wanted, covers)} == reach(wanted, covers)


def test_what_belongs_together_is_found_among_many_scattered_records_of_many_batches() -> None:
    covers = covers_of(*(scattered(1_000, first=n, step=30) for n in range(30)))
    assert [c.batch_id for c in with_all_of({"t": scattered(MANY // 2, first=7, step=30)}, covers)] == [8]
    assert len(with_all_of({"t": scattered(30_000, step=1)}, covers)) == 30
