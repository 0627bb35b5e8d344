"""Everything that can happen to a pipeline, in any order, against a model of a few dictionaries."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from machine.tiny import TinyAttempt
from support.projects import NOW, Mill, an_event, rows_of, sums
from tidemill import batch
from tidemill.amend.backfill import backfill, resume
from tidemill.amend.errand import Errand
from tidemill.amend.repair import repair
from tidemill.amend.rewind import rewind
from tidemill.core import failpoints
from tidemill.core.amendments import Aside, Reason
from tidemill.core.aside import Choice
from tidemill.core.asked import OfOffsets
from tidemill.core.coverage import coverage
from tidemill.core.errors import AmendmentError, OffsetsLost, TidemillError
from tidemill.core.events import Committed, Planned
from tidemill.core.offsets import OffsetRange, TopicPartition
from tidemill.core.plan import Kind
from tidemill.ledger.process import this_process
from tidemill.maintenance import maintain

SIZE, LATENESS = 10, 20
READS = ("scan", "records:sums", "panes:sums")
WRITES = ("planned", "state:sums", "audited", "corrections", "quarantine", "late", "published:sums", "committed")
FAILURES = [
    *(f"{side}:{place}=raise" for place in (*READS, *WRITES) for side in ("before", "after")),
    *(f"{place}=lose" for place in WRITES),
]
WHO = "the machine"
Place = tuple[int, int]


@dataclass
class Model:
    """What one computation in the order of arrival gives: what became of each record, and how far time is."""

    fates: dict[Place, str] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    watermark: int | None = None
    job: set[Place] = field(default_factory=set)


@contextmanager
def failing(failure: str | None) -> Iterator[None]:
    """Inside the block, the place fails; what that leads to ends the block."""
    if failure is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch, suppress(TidemillError):
        patch.setattr(failpoints, "_lost", set())
        patch.setenv(failpoints.VARIABLE, failure)
        yield


def offsets_of(item: OffsetRange) -> range:
    """Its offsets."""
    return range(item.from_offset, item.until_offset)


class Machine(RuleBasedStateMachine):
    """A pipeline of two partitions, its model, and the model after each of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tidemill-machine-"))
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(batch, "Attempt", TinyAttempt)
        self.patch.setattr(batch, "project_session", lambda _: None)
        self.records: dict[Place, tuple[int, str, int] | None] = {}
        self.model, self.past = Model(), {0: Model()}
        self.start: dict[int, int] = {0: 0, 1: 0}

    def teardown(self) -> None:
        """Nothing is left."""
        self.patch.undo()
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self) -> None:
        """An empty topic."""
        self.mill: Mill = sums(self.folder, None, lateness=f"{LATENESS} s", partitions=2)  # type: ignore[arg-type]

    # What the world does.

    @rule(
        partition=st.integers(0, 1),
        seconds=st.lists(st.integers(0, 200), min_size=1, max_size=6),
        user=st.sampled_from("abc"),
    )
    def produce(self, partition: int, seconds: list[int], user: str) -> None:
        """Records in any order, some twice."""
        values: list[bytes | None] = [an_event(s, user) for s in seconds]
        self._append(partition, values, [(s, user, 1) for s in seconds])

    @rule(
        partition=st.integers(0, 1),
        bad=st.sampled_from([b"{cut", None, an_event(5, "a", 2_000_000), an_event(7, "nobody")]),
    )
    def produce_odd_ones(self, partition: int, bad: bytes | None) -> None:
        """A record that is rejected, or filtered."""
        facts = (7, "nobody", 1) if bad and b"nobody" in bad else None
        self._append(partition, [bad], [facts])

    @rule()
    @precondition(lambda self: len(self.start) < 4)
    def add_a_partition(self) -> None:
        """The topic grows; the log keeps how many partitions it has in one file."""
        file = Path(self.mill.project.settings.log) / "events" / "topic.json"
        content = json.loads(file.read_text())
        content["partitions"] = len(self.start) + 1
        file.write_text(json.dumps(content))
        self.start[len(self.start)] = 0

    @rule(partition=st.integers(0, 1))
    def forget(self, partition: int) -> None:
        """Retention takes what was read."""
        committed = self._position().topics.get("events")
        if committed is not None and (offset := committed.offsets.get(partition, 0)):
            self.start[partition] = max(
                self.start[partition], self.mill.log.trim("events", partition, offset).from_offset
            )

    # What Tidemill does.

    @rule(limit=st.sampled_from([None, 1, 3, 7]))
    def run(self, limit: int | None) -> None:
        """A batch."""
        self.mill.run(limit=limit, executor=this_process(WHO))

    @rule(failure=st.sampled_from(FAILURES))
    def crash_and_try_again(self, failure: str) -> None:
        """A batch fails somewhere, or the answer of a write is lost; the next run goes on."""
        with failing(failure):
            self.mill.run(executor=this_process(WHO))
        self.mill.run(executor=this_process(WHO))

    @rule(failure=st.sampled_from([None, *FAILURES]))
    def admit(self, failure: str | None) -> None:
        """Late records are let in."""
        with failing(failure):
            list(repair(self._errand(), Aside.LATE, Choice()))

    @rule(failure=st.sampled_from([None, *FAILURES]))
    def replay(self, failure: str | None) -> None:
        """Rejected records are tried once more; nothing was mended."""
        with failing(failure):
            list(repair(self._errand(), Aside.QUARANTINE, Choice()))

    @rule(
        partition=st.integers(0, 1),
        since=st.integers(0, 20),
        length=st.integers(1, 20),
        most=st.sampled_from([None, 2, 5]),
        failure=st.sampled_from([None, *FAILURES]),
    )
    def backfill_some(self, partition: int, since: int, length: int, most: int | None, failure: str | None) -> None:
        """Offsets are read again, in one batch or several, live ones in between; an open job is completed instead."""
        tp = TopicPartition("events", partition)
        position = self._position()
        known = position.topics.get("events")
        end = known.offsets.get(partition, 0) if known else 0
        wanted = OfOffsets(since={tp: min(since, end)}, until={tp: min(since + length, end)})
        with failing(failure), suppress(AmendmentError, OffsetsLost):
            list(resume(self._errand(most)) if position.backfill else backfill(self._errand(most), wanted))

    @rule(back=st.integers(1, 4), failure=st.sampled_from([None, *FAILURES]))
    def rewind_some(self, back: int, failure: str | None) -> None:
        """Some batches never were."""
        known = [b for b in sorted(self.past) if b]
        if len(known) > back:
            with failing(failure), suppress(OffsetsLost):
                list(rewind(self._errand(), known[-1 - back]))

    @rule()
    def tidy(self) -> None:
        """Files are folded, what nobody can go back to is removed."""
        list(maintain(self.mill.project, "sums", keep=timedelta(days=1), now=datetime.now(UTC)))

    @invariant()
    def readers_see_what_one_computation_gives(self) -> None:
        """Published windows, late and rejected records, and the account of all."""
        if not hasattr(self, "mill"):
            return
        self._follow()
        found = {(r["window_start"].timestamp(), r["user"]): (r["n"], r["amount"]) for r in self.mill.published()}
        assert found == self._expected()
        for table, fate in (("quarantine", "rejected"), ("late", "late")):
            rows = rows_of(self.mill.project.table_uri("sums", table))
            assert Counter((r["partition"], r["offset"]) for r in rows) == Counter(self._with(fate)), table
        self._check_coverage()

    # How the model follows.

    def _append(self, partition: int, values: list[bytes | None], facts: list[tuple[int, str, int] | None]) -> None:
        offset = self.mill.log.bounds("events")[partition].until_offset
        self.mill.feed(values, partition=partition)
        for index, fact in enumerate(facts):
            self.records[partition, offset + index] = fact

    def _follow(self) -> None:
        """Let the model do what was committed since it looked last."""
        events = [e.event for e in self.mill.project.ledger("sums").entries()]
        plans = {e.plan.batch_id: e.plan for e in events if isinstance(e, Planned)}
        for commit in (e for e in events if isinstance(e, Committed) and e.batch_id not in self.past):
            plan = plans[commit.batch_id]
            read = [(r.topic_partition.partition, o) for r in plan.reads.get("events", ()) for o in offsets_of(r)]
            match plan.kind:
                case Kind.LIVE:
                    self._live(commit, read)
                case Kind.REPAIR:
                    self._admit(read if plan.repair and plan.repair.source is Aside.LATE else ())
                case Kind.BACKFILL:
                    self.model.job |= set(read)
                    if commit.position.backfill is None:
                        self._admit(self.model.job)
                        self.model.job = set()
                case _:
                    assert plan.rewind is not None
                    self.model = deepcopy(self.past[plan.rewind.position.batch_id])
            self.past[commit.batch_id] = deepcopy(self.model)

    def _live(self, commit: Committed, read: list[Place]) -> None:
        model = self.model
        for partition, offset in read:
            self._place(partition, offset)
        for partition, until in commit.position.topics["events"].offsets.items():
            model.offsets[partition] = until
            times = [f[0] for o in range(until) if (f := self.records[partition, o]) is not None]
            model.newest[partition] = max(times, default=-1)
        least = min(model.newest.values())
        if least >= 0:
            model.watermark = max(least, -1 if model.watermark is None else model.watermark)

    def _place(self, partition: int, offset: int) -> None:
        fact = self.records[partition, offset]
        place = (partition, offset)
        if fact is None:
            self.model.fates[place] = "rejected"
        elif fact[1] == "nobody":
            self.model.fates[place] = "filtered"
        else:
            end = fact[0] // SIZE * SIZE + SIZE
            late = self.model.watermark is not None and end + LATENESS <= self.model.watermark
            self.model.fates[place] = "late" if late else "aggregated"

    def _admit(self, places: Collection[Place]) -> None:
        for place in places:
            if self.model.fates[place] == "late":
                self.model.fates[place] = "aggregated"

    def _expected(self) -> dict[tuple[float, str], tuple[int, int]]:
        sums_: dict[tuple[float, str], list[int]] = {}
        for place in self._with("aggregated"):
            second, user, amount = self.records[place] or (0, "", 0)
            start = second // SIZE * SIZE
            if self.model.watermark is not None and start + SIZE <= self.model.watermark:
                found = sums_.setdefault((NOW.timestamp() + start, user), [0, 0])
                found[0] += 1
                found[1] += amount
        return {key: (n, amount) for key, (n, amount) in sums_.items()}

    def _with(self, fate: str) -> list[Place]:
        return [place for place, found in self.model.fates.items() if found == fate]

    def _check_coverage(self) -> None:
        ledger = self.mill.project.ledger("sums")
        covers = coverage((e.event for e in ledger.entries()), ledger.view().position.slices)
        live = Counter(
            (r.topic_partition.partition, o)
            for c in covers
            if c.plan.kind in (Kind.LIVE, Kind.BACKFILL)
            for r in c.ranges["events"]
            for o in range(r.from_offset, r.until_offset)
        )
        assert live == Counter(self.model.fates.keys())

    def _position(self) -> Any:
        return self.mill.project.ledger("sums").view().position

    def _errand(self, most: int | None = None) -> Errand:
        return Errand(
            project=self.mill.project,
            pipeline="sums",
            reason=Reason(by=WHO),
            most=most,
            identity=WHO,
            session=lambda: None,
        )  # type: ignore[arg-type,return-value]


def test_whatever_happens_readers_see_what_one_computation_gives() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=25, stateful_step_count=15))


@pytest.mark.long
def test_whatever_happens_for_long_readers_see_what_one_computation_gives() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=60, stateful_step_count=30))
