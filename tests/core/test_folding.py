"""Which slices are folded, and what a folded one stands for."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from support.builders import a_commit, a_flow, a_plan, an_executor, tp
from tidemill.core.history.coverage import Cover, batches_of, coverage
from tidemill.core.history.linking import with_all_of
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Fold
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange, SliceSet, batch_ranges
from tidemill.core.protocol.codec import from_json, to_json
from tidemill.core.protocol.events import Committed, Event, Planned
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_fold
from tidemill.core.repair.state_compaction import Folding
from tidemill.core.time.spans import PaneSpan

PANE = 10_000_000
FLOW = a_flow()
EASY = Folding(group=4, overlap=1.0, groups=1)


def committed(plan: BatchPlan, panes: tuple[int, int] | None) -> tuple[Event, Committed]:
    """The events of a batch that left state in these panes, counted from 0."""
    spans = {} if panes is None else {"counts": PaneSpan(panes[0] * PANE, panes[1] * PANE)}
    commit = a_commit(plan)
    if plan.live is None:
        commit = replace(commit, position=plan.position_after(1, {}, {}, shapes={}, panes=spans))
    return Planned(plan=plan, executor=an_executor(), at=plan.clock), replace(commit, panes=spans)


class Story:
    """Batches one after the other."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.position = Position()

    def does(self, plan: BatchPlan, panes: tuple[int, int] | None) -> None:
        """One more batch."""
        planned, commit = committed(plan, panes)
        self.events += [planned, commit]
        self.position = commit.position

    def live(self, *panes: tuple[int, int]) -> Story:
        """A live batch of ten records for each span of panes."""
        for span in panes:
            batch = self.position.batch_id + 1
            self.does(a_plan(batch_id=batch, position=self.position, until={0: 10 * batch}), span)
        return self

    def fold(self, folding: Folding = EASY) -> Story:
        """Fold the first group that is due."""
        view = View(position=self.position, last_batch_id=self.position.batch_id)
        group = folding.due(FLOW, self.position, self.covers)[0]
        self.does(plan_fold(FLOW, view, group, clock=a_plan().clock), (0, 9))
        return self

    @property
    def covers(self) -> tuple[Cover, ...]:
        """What counts now."""
        return coverage(self.events, self.position.slices)


def groups(story: Story, folding: Folding) -> list[list[int]]:
    """The batch ids of the groups that are due."""
    return [[c.batch_id for c in group] for group in folding.due(FLOW, story.position, story.covers)]


def test_neighbours_are_folded_once_no_batch_can_join_them() -> None:
    story = Story().live(*[(0, 0)] * 11)
    assert groups(story, EASY) == [[1, 2, 3], [4, 5, 6, 7]]
    assert groups(story.live((0, 0)), EASY) == [[1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_only_state_of_the_same_panes_is_worth_a_fold() -> None:
    story = Story().live(*[(n, n) for n in range(4)], *[(9, 9)] * 4, (9, 12))
    twice = replace(EASY, overlap=2.0)
    assert groups(story, twice) == [[4, 5, 6, 7]]
    assert groups(story, replace(twice, groups=2)) == []
    assert groups(story, replace(EASY, overlap=4.5)) == []


def test_nothing_is_folded_beside_a_backfill_or_when_positions_would_grow() -> None:
    story = Story().live(*[(0, 0)] * 9)
    job = Backfill(since=10, left={"t": (OffsetRange(tp(), 0, 5),)}, supersedes=(BatchRange(1, 2),), by="me")
    assert EASY.due(FLOW, replace(story.position, backfill=job), story.covers) == ()
    scattered = replace(story.position, slices=story.position.slices.hide([BatchRange(2, 3), BatchRange(5, 6)]))
    assert replace(EASY, most_hidden=1).due(FLOW, scattered, story.covers) == ()


def test_a_fold_stands_for_the_offsets_and_batches_that_it_folded() -> None:
    story = Story().live(*[(n, n) for n in range(9)]).fold()
    assert [c.batch_id for c in story.covers] == [4, 5, 6, 7, 8, 9, 10]
    fold = story.covers[-1]
    assert fold.ranges == {"t": (OffsetRange(tp(), 0, 30),)}
    assert fold.batches == (BatchRange(1, 4), BatchRange(10, 11))
    [planned] = [e.plan.work for e in story.events if isinstance(e, Planned) and isinstance(e.plan.work, Fold)]
    assert planned.panes == {"counts": PaneSpan(0, 2 * PANE)}
    assert groups(story.live((9, 9)), EASY) == [[4, 5, 6, 7]]


def test_offsets_of_a_folded_batch_are_read_again_with_all_of_the_fold() -> None:
    story = Story().live(*[(n, n) for n in range(9)]).fold()
    covers = with_all_of({"t": (OffsetRange(tp(), 12, 13),)}, story.covers)
    assert batches_of(covers) == (BatchRange(1, 4), BatchRange(10, 11))
    assert [c.batch_id for c in with_all_of({"t": (OffsetRange(tp(), 30, 31),)}, story.covers)] == [4]


def test_a_fold_moves_neither_offsets_nor_watermark() -> None:
    story = Story().live(*[(0, 0)] * 9)
    before = story.position
    after = story.fold().position
    assert (after.topics, after.watermark, after.batch_id) == (before.topics, before.watermark, 10)
    assert [b for b in range(1, 11) if after.slices.attempt_of(b)] == [4, 5, 6, 7, 8, 9, 10]


@given(
    through=st.integers(1, 20),
    hidden=st.sets(st.integers(1, 20)),
    chosen=st.sets(st.integers(1, 20)),
)
def test_only_some_of_the_slices(through: int, hidden: set[int], chosen: set[int]) -> None:
    slices = SliceSet(through=through).hide(batch_ranges(b for b in hidden if b <= through))
    wanted = batch_ranges(b for b in chosen if b <= through)
    found = {b for b in range(1, 25) if slices.only(wanted).attempt_of(b)}
    assert found == {b for b in chosen if b <= through} - hidden


def test_a_plan_that_folds_survives_the_ledger() -> None:
    story = Story().live(*[(0, 0)] * 9).fold()
    [plan] = [e.plan for e in story.events if isinstance(e, Planned) and isinstance(e.plan.work, Fold)]
    assert from_json(BatchPlan, to_json(plan)) == plan
    assert '"fold":' not in to_json(a_plan())
