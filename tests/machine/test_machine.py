"""Everything that can happen to a pipeline, in any order, against a model of a few dictionaries."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
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
from support.projects import Mill, an_event, rows_of, somebody, sums
from tidemill import batch
from tidemill.amend.backfill import backfill
from tidemill.amend.errand import Errand
from tidemill.amend.repair import repair
from tidemill.amend.rewind import rewind
from tidemill.core import failpoints
from tidemill.core.amendments import Aside, Reason
from tidemill.core.aside import Choice
from tidemill.core.asked import OfOffsets
from tidemill.core.coverage import coverage
from tidemill.core.errors import AmendmentError, OffsetsLost, TidemillError
from tidemill.core.events import Committed
from tidemill.core.offsets import TopicPartition
from tidemill.core.plan import Kind
from tidemill.maintenance import maintain

SIZE, LATENESS = 10, 20
PLACES = (
    "planned",
    "scan",
    "records:sums",
    "state:sums",
    "panes:sums",
    "audited",
    "quarantine",
    "late",
    "published:sums",
    "committed",
)
Place = tuple[int, int]


@dataclass
class Model:
    """What one computation in the order of arrival gives: what became of each record, and how far time is."""

    fates: dict[Place, str] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    watermark: int | None = None


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
        self._ran(self.mill.run(limit=limit))

    @rule(
        place=st.sampled_from(PLACES),
        side=st.sampled_from(["before", "after"]),
        action=st.sampled_from(["raise", "lose"]),
    )
    def crash_and_try_again(self, place: str, side: str, action: str) -> None:
        """A batch fails somewhere, or the answer of a write is lost; somebody else takes it over."""
        failure = (
            f"{place}=lose"
            if action == "lose" and place not in ("scan", "records:sums", "panes:sums")
            else f"{side}:{place}=raise"
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(failpoints, "_lost", set())
            patch.setenv(failpoints.VARIABLE, failure)
            try:
                outcome = self.mill.run(executor=somebody("the first"))
            except TidemillError:
                outcome = None
        if outcome is None:
            last = self._position().batch_id
            committed = last not in self.past and self.mill.project.ledger("sums").view().last_commit
            outcome = committed or self.mill.run(executor=somebody("the first"))
        self._ran(outcome)

    @rule()
    def admit(self) -> None:
        """Late records are let in."""
        for commit in repair(self._errand(), Aside.LATE, Choice()):
            self._amended(commit, "late", "aggregated", self._places(commit))

    @rule()
    def replay(self) -> None:
        """Rejected records are tried once more; nothing was mended."""
        for commit in repair(self._errand(), Aside.QUARANTINE, Choice()):
            self._amended(commit, "rejected", "rejected", self._places(commit))

    @rule(
        partition=st.integers(0, 1),
        since=st.integers(0, 20),
        length=st.integers(1, 20),
        most=st.sampled_from([None, 2, 5]),
    )
    def backfill_some(self, partition: int, since: int, length: int, most: int | None) -> None:
        """Offsets are read again, in one batch or several, live ones in between."""
        tp = TopicPartition("events", partition)
        known = self._position().topics.get("events")
        end = known.offsets.get(partition, 0) if known else 0
        wanted = OfOffsets(since={tp: min(since, end)}, until={tp: min(since + length, end)})
        taken: set[Place] = set()
        with suppress(AmendmentError, OffsetsLost):
            for commit in backfill(self._errand(most), wanted):
                if commit.kind is Kind.LIVE:
                    self._ran(commit)
                    continue
                taken |= set(self._places(commit))
                done = commit.position.backfill is None
                self._amended(commit, "late", "aggregated", taken if done else ())

    @rule(back=st.integers(1, 4))
    def rewind_some(self, back: int) -> None:
        """Some batches never were."""
        known = [b for b in sorted(self.past) if b]
        if len(known) <= back:
            return
        to = known[-1 - back]
        with suppress(OffsetsLost):
            for commit in rewind(self._errand(), to):
                self.model = deepcopy(self.past[to])
                self.past[commit.batch_id] = deepcopy(self.model)

    @rule()
    def tidy(self) -> None:
        """Files are folded, what nobody can go back to is removed."""
        list(maintain(self.mill.project, "sums", keep=timedelta(days=1), now=datetime.now(UTC)))

    @invariant()
    def readers_see_what_one_computation_gives(self) -> None:
        """Published windows, late and rejected records, and the account of all."""
        if not hasattr(self, "mill"):
            return
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

    def _ran(self, outcome: Any) -> None:
        if not isinstance(outcome, Committed) or outcome.batch_id in self.past:
            return
        model = self.model
        offsets = outcome.position.topics["events"].offsets
        for partition, until in sorted(offsets.items()):
            model.newest.setdefault(partition, -1)
            for offset in range(model.offsets.get(partition, 0), until):
                self._place(partition, offset)
            model.offsets[partition] = until
        for partition, until in offsets.items():
            times = [f[0] for o in range(until) if (f := self.records[partition, o]) is not None]
            model.newest[partition] = max(times, default=-1)
        least = min(model.newest.values())
        if least >= 0:
            model.watermark = max(least, -1 if model.watermark is None else model.watermark)
        self.past[outcome.batch_id] = deepcopy(model)

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

    def _amended(self, commit: Committed, before: str, after: str, places: Any) -> None:
        for place in places:
            if self.model.fates[place] == before:
                self.model.fates[place] = after
        self.past[commit.batch_id] = deepcopy(self.model)

    def _expected(self) -> dict[tuple[float, str], tuple[int, int]]:
        sums_: dict[tuple[float, str], list[int]] = {}
        from support.projects import NOW

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

    def _places(self, commit: Committed) -> list[Place]:
        plans = [e.event.plan for e in self.mill.project.ledger("sums").entries() if hasattr(e.event, "plan")]
        [plan] = [p for p in plans if p.batch_id == commit.batch_id]
        ranges = plan.reads.get("events", ())
        return [(r.topic_partition.partition, o) for r in ranges for o in range(r.from_offset, r.until_offset)]

    def _position(self) -> Any:
        return self.mill.project.ledger("sums").view().position

    def _errand(self, most: int | None = None) -> Errand:
        reason = Reason(by="the machine")
        return Errand(project=self.mill.project, pipeline="sums", reason=reason, most=most, session=lambda: None)  # type: ignore[arg-type,return-value]


def test_whatever_happens_readers_see_what_one_computation_gives() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=25, stateful_step_count=15))


@pytest.mark.long
def test_whatever_happens_for_long_readers_see_what_one_computation_gives() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=60, stateful_step_count=30))
