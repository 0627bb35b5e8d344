"""What is indexed of batches says what their events say, and bounds never leave out a batch that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.test_folding import Story
from support.builders import NOW, a_commit, a_plan, tp
from tidemill.core.history.coverage import coverage
from tidemill.core.history.index import IndexedBatch, indexed
from tidemill.core.history.past import Past
from tidemill.core.history.zones import MOST_ASKED, Reach, Zone, whole_of, zone_of
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.log.packed_offsets import packed
from tidemill.core.plan.amendments import Reason
from tidemill.core.plan.slices import BatchRange, SliceSet
from tidemill.core.plan.work import Kind, Live
from tidemill.core.protocol.codec import from_json, to_json
from tidemill.core.protocol.events import Planned
from tidemill.core.time.spans import PaneSpan

spans = st.tuples(st.integers(0, 60), st.integers(1, 8)).map(lambda s: (s[0], s[0] + s[1]))


@st.composite
def batches(draw: st.DrawFn) -> tuple[IndexedBatch, ...]:
    """Batches that read and left this and that, here and there."""
    count = draw(st.integers(1, 12))
    return tuple(a_batch(n, draw(st.lists(spans, max_size=2)), draw(spans), draw(spans)) for n in range(1, count + 1))


def a_batch(
    number: int, reads: Sequence[tuple[int, int]], panes: tuple[int, int], watermarks: tuple[int, int]
) -> IndexedBatch:
    at = NOW + timedelta(minutes=number % 5)
    return IndexedBatch(
        sequence=3 * number,
        batch_id=number,
        attempt=1,
        kind=Kind.SWITCH if number % 7 == 0 else Kind.LIVE,
        started=at,
        at=at,
        before=watermarks[0],
        after=watermarks[1],
        reads=packed({"t": [OffsetRange(tp(), *r) for r in reads]}),
        panes={"counts": PaneSpan(*panes)},
        tables={"counts": number, "late": number} if number % 3 == 0 else {"counts": number},
    )


def in_zones(found: Sequence[IndexedBatch], size: int) -> Past:
    """The same batches, all but the last ones in an index with blocks of this size, and blocks of so many blocks."""
    whole = len(found) // size * size
    blocks = [found[n : n + size] for n in range(0, whole, size)]
    zones = [zone_of(block[0].sequence - 2, block[-1].sequence, block) for block in blocks]
    of = dict(zip([z.first for z in zones], blocks, strict=True))
    parts: dict[tuple[int, int], Sequence[Zone]] = {}
    while len(zones) > size > 1:
        groups = [zones[n : n + size] for n in range(0, len(zones) // size * size, size)]
        wider = [whole_of(group) for group in groups]
        parts |= {(z.first, z.last): group for z, group in zip(wider, groups, strict=True)}
        zones = [*wider, *zones[len(groups) * size :]]
    return Past(
        zones=tuple(zones),
        parts=lambda zone: parts.get((zone.first, zone.last), ()),
        load=lambda zone: of[zone.first],
        recent=tuple(found[whole:]),
    )


def inside(past: Past, zone: Zone) -> Sequence[IndexedBatch]:
    """All batches of a zone."""
    return [b for block in replace(past, zones=(zone,)).blocks() for b in past.load(block)]


def all_zones(past: Past) -> list[Zone]:
    """The zones of a past, those within others, and so on."""
    found = list(past.zones)
    for zone in found:
        found += past.parts(zone)
    return found


@given(batches(), st.integers(1, 5), st.lists(spans, min_size=1, max_size=3))
def test_batches_that_belong_to_offsets_are_those_that_all_of_them_say(
    found: tuple[IndexedBatch, ...], size: int, wanted: list[tuple[int, int]]
) -> None:
    ranges, slices = {"t": tuple(OffsetRange(tp(), *w) for w in wanted)}, SliceSet(through=len(found))
    assert in_zones(found, size).covers_of(ranges, slices) == Past(recent=found).covers_of(ranges, slices)


@given(batches(), st.integers(1, 5), spans)
def test_bounds_leave_out_no_batch_that_fits(
    found: tuple[IndexedBatch, ...], size: int, wanted: tuple[int, int]
) -> None:
    low, high = wanted
    past, reach = in_zones(found, size), Reach({"t": (OffsetRange(tp(), low, high),)})
    for zone in all_zones(past):
        own = inside(past, zone)
        assert zone.has_of([BatchRange(low + 1, high + 1)]) or not any(low < b.batch_id <= high for b in own)
        assert zone.has_read(reach) or not any(r.from_offset < high and r.until_offset > low for r in reads(own))
        assert zone.has_panes("counts", low, high) or not any(
            b.panes["counts"].first < high and b.panes["counts"].last >= low for b in own
        )
        assert all(zone.watermarks[0] <= w <= zone.watermarks[1] for b in own for w in (b.before, b.after))
        assert (own[0].batch_id, own[-1].batch_id) == zone.batches
        assert all(zone.tables[table] >= (b.batch_id, 0) for b in own for table in b.tables)
        assert from_json(Zone, to_json(zone)) == zone
    assert [*(b for zone in past.zones for b in inside(past, zone)), *past.recent] == list(found)


def test_of_very_many_who_asked_no_zone_tells_the_names() -> None:
    found = [replace(a_batch(n, [], (0, 1), (0, 1)), asked=Reason(by=f"run {n}")) for n in range(1, MOST_ASKED + 2)]
    few, many = (zone_of(1, 400, some) for some in (found[:-1], found))
    assert few.has_asked("run 1")
    assert not few.has_asked("nobody")
    assert many.asked is None
    assert many.has_asked("nobody")
    assert whole_of([few, many]).asked is None
    past = Past(zones=(many,), load=lambda _: found)
    assert [b.batch_id for b in past.asked("run 7")] == [7]


def reads(found: Sequence[IndexedBatch]) -> list[OffsetRange]:
    return [r for b in found for r in b.ranges.get("t", ())]


@given(batches(), st.integers(1, 5), st.integers(0, 14), st.integers(1, 14))
def test_looking_back_finds_what_all_batches_say(
    found: tuple[IndexedBatch, ...], size: int, through: int, since: int
) -> None:
    past = in_zones(found, size)
    assert [b.batch_id for b in past.backwards()] == [b.batch_id for b in reversed(found)]
    switches = [b for b in found if b.kind is Kind.SWITCH]
    assert past.switch == (switches[-1] if switches else None)
    late = [b.tables["late"] for b in found if since <= b.batch_id <= through and "late" in b.tables]
    assert past.version("late", since=since, through=through) == (late[-1] if late else None)
    assert past.batch(through) == next((b for b in found if b.batch_id == through), None)


def test_a_fold_is_indexed_with_what_it_folded_wherever_that_is() -> None:
    story = Story().live(*[(n, n) for n in range(9)]).fold()
    numbered = list(enumerate(story.events, start=1))
    whole = list(indexed(numbered, lambda _: ()))
    before = Past(recent=tuple(whole[:5]))
    parts = list(indexed(numbered[10:], before.with_ids))
    assert parts == whole[5:]
    assert whole[-1].folded == (BatchRange(1, 4),)
    assert [from_json(IndexedBatch, to_json(b)) for b in whole] == whole
    assert Past(recent=tuple(whole)).covers(story.position.slices) == coverage(story.events, story.position.slices)


def test_where_batches_began_to_read_is_known_of_each_partition() -> None:
    story = Story().live((0, 0))
    plan = a_plan(batch_id=2, position=story.position, until={0: 20, 1: 7})
    ranges = (OffsetRange(tp(0), 10, 20), OffsetRange(tp(1), 4, 7))
    later = replace(plan, work=Live(topics={"t": replace(plan.topics["t"], ranges=ranges)}))
    story.does(later, (0, 0))
    found = list(indexed(enumerate(story.events, start=1), lambda _: ()))
    assert [b.began for b in found] == [{"t": {0: 0}}, {"t": {1: 4}}]
    assert in_zones(found, 1).begin == {tp(0): 0, tp(1): 4}


@pytest.mark.parametrize(("planned", "kept"), [(None, None), (1, None), (2, 2)])
def test_the_first_version_of_semantics_is_left_out_so_that_older_indexes_stay_what_they_are(
    planned: int | None, kept: int | None
) -> None:
    plan = replace(a_plan(), semantics=planned)
    events = [(1, Planned(plan=plan, executor=cast("Any", None), at=NOW)), (2, a_commit(plan))]
    [batch] = indexed(events, lambda _: ())
    assert batch.semantics == kept
    assert ("semantics" in to_json(batch)) == (kept is not None)
