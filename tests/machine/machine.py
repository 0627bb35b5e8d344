"""Everything that can happen to a pipeline, in any order, against a model of a few dictionaries."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from contextlib import AbstractContextManager, suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from machine.failing import FAILURES, allowed_while, failing
from machine.model import LATENESS, Model, Records, offsets_of
from machine.neighbours import beside, called
from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, an_event, rows_of, sums
from support.recovery import paused
from tidemill.core.errors import (
    AmendmentError,
    BackfillOpen,
    EngineError,
    Fenced,
    ForeignTable,
    LogError,
    OffsetsLost,
    UnknownTopic,
)
from tidemill.core.history.coverage import coverage
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason, Rewind, SideOutput
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed, Planned
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.ledger.process import this_process
from tidemill.maintain import maintenance
from tidemill.maintain.state_compaction import fold
from tidemill.project import names
from tidemill.repair.backfill import backfill, cancel, resume
from tidemill.repair.gone import declare_gone
from tidemill.repair.job import AmendmentJob
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind
from tidemill.run import batch
from tidemill.run.batch import NothingToDo
from tidemill.tables.handles import newest

EASY = Folding(group=4, overlap=1.0, groups=1)
WHO = "the machine"
PARTITIONS = st.integers(0, 3)  # of those that there are, by their remainder


class Machine(RuleBasedStateMachine):
    """A pipeline of two partitions, its model, and the model after each of its batches."""

    session: Any = None
    """Spark, or nothing: then the tiny engine executes the batches."""

    model_of: type[Model] = Model

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tidemill-machine-"))
        self.patch = pytest.MonkeyPatch()
        if self.session is None:
            self.patch.setattr(batch, "Attempt", TinyAttempt)
        # A day without the need to go back to, as in a pipeline that has run for years.
        self.patch.setattr(maintenance, "AT_LEAST", 2)
        self.records: Records = {}
        self.model: Any = self.model_of()
        self.past: dict[int, Any] = {0: self.model_of()}
        self.start: dict[int, int] = {0: 0, 1: 0}
        self.shown, self.is_there = 2, True

    def teardown(self) -> None:
        """Nothing is left."""
        self.patch.undo()
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self) -> None:
        """An empty topic."""
        self.mill: Mill = self.declared(self.folder, self.session or NO_SPARK)

    @classmethod
    def declared(cls, folder: Path, session: Any) -> Mill:
        """The pipeline. Of its batches some are small enough to be aggregated without Spark, if there is one."""
        declared: dict[str, Any] = {"window": cls.model_of.window, "lateness": f"{LATENESS} s", "partitions": 2}
        return sums(folder, session, **declared, driver_records=2, maintenance={"state": f"{LATENESS} s"})

    @staticmethod
    def as_shown(rows: list[dict[str, Any]]) -> Any:
        """Published rows, as the model expects them."""
        return {(r["window_start"].timestamp(), r["user"]): (r["n"], r["amount"]) for r in rows}

    # What the world does.

    @rule(
        partition=PARTITIONS,
        seconds=st.lists(st.integers(0, 200), min_size=1, max_size=6),
        user=st.sampled_from("abc"),
        twice=st.booleans(),
    )
    def produce(self, partition: int, seconds: list[int], user: str, twice: bool) -> None:
        """Records in any order; `twice` by a producer that had no answer."""
        values: list[bytes | None] = [an_event(s, user) for s in seconds]
        for _ in range(1 + twice):
            self._append(partition, values, [(s, user, 1) for s in seconds])

    @rule(
        partition=PARTITIONS,
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
        self.take_the_topic_away(there=True)
        self.start[len(self.start)] = 0
        self._show(len(self.start))
        # A partition without a record would hold the watermark back for ever.
        self._append(len(self.start) - 1, [an_event(0)], [(0, "a", 1)])

    @rule(count=st.integers(1, 3))
    def show_fewer_partitions(self, count: int) -> None:
        """The last partitions disappear, until they are shown again."""
        self._show(min(count, len(self.start)))

    @rule()
    def show_all_partitions(self) -> None:
        """What disappeared comes back, as it was."""
        self._show(len(self.start))

    @rule(there=st.booleans())
    def take_the_topic_away(self, there: bool) -> None:
        """The topic disappears, or comes back."""
        if there is not self.is_there:
            old, self.is_there = self._topic, there
            old.rename(self._topic)

    @rule(partition=PARTITIONS)
    def declare_gone(self, partition: int) -> None:
        """A person says that a partition is gone; it may come back all the same."""
        with self._refusing(AmendmentError, LogError):
            list(declare_gone(self._errand(), [TopicPartition("events", partition % len(self.start))]))

    @rule(name=st.sampled_from(["sums", "totals"]))
    def rename(self, name: str) -> None:
        """The pipeline is called otherwise, once it has run; a batch that is open goes on."""
        store = self.mill.project.generations.store
        if name != self.mill.name and self.mill.project.ledger(self.mill.name).exists:
            names.rename(store, self.mill.name, name, Reason(by=WHO), at=datetime.now(UTC))
            self.mill = called(self.mill, name)

    @rule()
    def let_another_project_publish_the_table(self) -> None:
        """Once the table is there, its owner is the only one who writes it."""
        if newest(self.mill.project.uris("sums").published_table(self.mill.project.pipeline(self.mill.name).sinks[0])):
            other = beside(self.mill, Path(tempfile.mkdtemp(dir=self.folder)), "other")
            with suppress(ForeignTable, LogError):
                assert isinstance(other.run(), NothingToDo)

    @rule(partition=PARTITIONS)
    def forget(self, partition: int) -> None:
        """Retention takes what was read."""
        partition %= len(self.start)
        committed = self._position().topics.get("events")
        # A rewind that is half way will read it again.
        half_way = self.mill.project.ledger(self.mill.name).view().open_batch
        if (
            self.is_there
            and half_way is None
            and partition < self.shown
            and committed is not None
            and (offset := committed.offsets.get(partition, 0))
        ):
            self.start[partition] = max(
                self.start[partition], self.mill.log.trim("events", partition, offset).from_offset
            )

    # What Tidemill does.

    @rule(limit=st.sampled_from([None, 1, 3, 7]))
    def run(self, limit: int | None) -> None:
        """A batch."""
        with self._unless_missing():
            self.mill.run(limit=limit, executor=this_process(WHO))

    @rule(failure=st.sampled_from(FAILURES))
    def crash_and_try_again(self, failure: str) -> None:
        """A batch fails somewhere, or the answer of a write is lost; the next run goes on."""
        with failing(failure), self._unless_missing():
            self.mill.run(executor=this_process(WHO))
        with self._unless_missing():
            self.mill.run(executor=this_process(WHO))

    @rule(place=st.sampled_from([f.partition("=")[0] for f in FAILURES if f.endswith("=raise")]))
    def overlap(self, place: str) -> None:
        """While an attempt stands still, another one finishes its batch and the next ones; then it wakes up."""
        with pytest.MonkeyPatch.context() as patch, suppress(Fenced), self._unless_missing():
            paused(patch, place, lambda: self.mill.catch_up(limit=5, drain=False, executor=this_process(WHO)))
            self.mill.run(limit=5, executor=this_process(WHO))

    @rule(failure=st.sampled_from([None, *FAILURES]))
    def admit(self, failure: str | None) -> None:
        """Late records are let in."""
        with failing(failure), self._unless_missing(), self._unless_a_job_is_open():
            list(repair(self._errand(), SideOutput.LATE, Selection()))

    @rule(failure=st.sampled_from([None, *FAILURES]))
    def replay(self, failure: str | None) -> None:
        """Rejected records are tried once more; nothing was mended."""
        with failing(failure), self._unless_missing(), self._unless_a_job_is_open():
            list(repair(self._errand(), SideOutput.QUARANTINE, Selection()))

    @rule(
        partition=PARTITIONS,
        since=st.integers(0, 20),
        length=st.integers(1, 20),
        most=st.sampled_from([None, 2, 5]),
        failure=st.sampled_from([None, *FAILURES]),
    )
    def backfill_some(self, partition: int, since: int, length: int, most: int | None, failure: str | None) -> None:
        """Offsets are read again, in one batch or several, live ones in between; an open job is completed instead."""
        partition %= len(self.start)
        tp = TopicPartition("events", partition)
        position = self._position()
        known = position.topics.get("events")
        end = known.offsets.get(partition, 0) if known else 0
        wanted = OfOffsets(since={tp: min(since, end)}, until={tp: min(since + length, end)})
        with failing(failure), self._refusing(AmendmentError, LogError):
            list(resume(self._errand(most)) if position.backfill else backfill(self._errand(most), wanted))

    @rule(partition=PARTITIONS, since=st.integers(0, 10), length=st.integers(3, 20), batches=st.integers(1, 3))
    def begin_to_backfill(self, partition: int, since: int, length: int, batches: int) -> None:
        """Some batches of a backfill, or of the rest of the one that is open."""
        partition %= len(self.start)
        tp, position = TopicPartition("events", partition), self._position()
        known = position.topics.get("events")
        end = known.offsets.get(partition, 0) if known else 0
        if since < min(since + length, end):
            wanted = OfOffsets(since={tp: since}, until={tp: min(since + length, end)})
            job = resume(self._errand(2)) if position.backfill else backfill(self._errand(2), wanted)
            with self._refusing(AmendmentError, LogError):
                list(islice(job, batches))

    @rule(failure=st.sampled_from([None, *FAILURES]))
    def cancel(self, failure: str | None) -> None:
        """The open backfill is given up."""
        with failing(failure), suppress(AmendmentError), self._unless_missing():
            list(cancel(self._errand()))

    @rule(back=st.one_of(st.integers(1, 4), st.integers(5, 14)), failure=st.sampled_from([None, *FAILURES]))
    def rewind_some(self, back: int, failure: str | None) -> None:
        """Some batches never were, unless maintenance has removed what that would need."""
        known = [b for b in sorted(self.past) if b]
        if len(known) > back:
            with failing(failure), self._refusing(LogError, EngineError, AmendmentError):
                list(rewind(self._errand(), known[-1 - back]))

    @rule(failure=st.sampled_from([None, *FAILURES]))
    def fold_some(self, failure: str | None) -> None:
        """Slices of neighbouring batches become one."""
        with failing(failure), self._unless_missing():
            list(fold(self._errand(), EASY))

    @rule(keep=st.sampled_from([timedelta(0), timedelta(days=1)]))
    def tidy(self, keep: timedelta) -> None:
        """Files are folded, what nobody can go back to is removed."""
        list(maintenance.maintain(self.mill.project, self.mill.name, keep=keep, now=datetime.now(UTC)))

    @rule(second=st.sampled_from([70, 110, 150, 190]), limit=st.sampled_from([None, 3]))
    def live_for_long(self, second: int, limit: int | None) -> None:
        """Time goes on everywhere, and maintenance removes the state of what closed long ago."""
        for number in range(2):
            for partition in range(len(self.start)):
                self._append(partition, [an_event(second + number, "a")], [(second + number, "a", 1)])
            with self._unless_missing():
                self.mill.catch_up(limit=limit, drain=False, executor=this_process(WHO))
        self.tidy(timedelta(0))

    @invariant()
    def readers_see_what_one_computation_gives(self) -> None:
        """Published windows, late and rejected records, and the account of all.

        A batch that was free to publish and has not committed may have written some of its tables: the next one tells.
        """
        if not hasattr(self, "mill"):
            return
        self._follow()
        half_way = self.mill.project.ledger(self.mill.name).view().open_batch
        if half_way is not None and half_way.may_be_published:
            return
        assert self.as_shown(self.mill.published("sums")) == self.model.expected(self.records)
        for table, fate in (("quarantine", "rejected"), ("late", "late")):
            rows = rows_of(self.mill.project.table_uri(self.mill.name, table))
            assert Counter((r["partition"], r["offset"]) for r in rows) == Counter(self.model.places(fate)), table
        self._check_coverage()

    # How the model follows.

    @property
    def _topic(self) -> Path:
        return Path(self.mill.project.settings.log) / "events" if self.is_there else self.folder / "elsewhere"

    def _show(self, count: int) -> None:
        """The log keeps how many partitions a topic has in one file."""
        self.shown, file = count, self._topic / "topic.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"partitions": count}))

    _refusing = staticmethod(suppress)

    def _unless_missing(self) -> AbstractContextManager[Any]:
        """What is inside may be refused for what the log lost only while something is missing."""
        return allowed_while(lambda: not self.is_there or self.shown < len(self.start), OffsetsLost, UnknownTopic)

    def _unless_a_job_is_open(self) -> AbstractContextManager[Any]:
        """What is inside may be refused for a backfill only while one is open."""
        return allowed_while(lambda: self._position().backfill is not None, BackfillOpen)

    def _append(self, partition: int, values: list[bytes | None], facts: list[tuple[int, str, int] | None]) -> None:
        if not self.is_there:
            return
        partition %= self.shown
        offset = self.mill.log.bounds("events")[partition].until_offset
        self.mill.feed(values, partition=partition)
        for index, fact in enumerate(facts):
            self.records[partition, offset + index] = fact

    def _follow(self) -> None:
        """Let the model do what was committed since it looked last."""
        events = [e.event for e in self.mill.project.ledger(self.mill.name).entries()]
        plans = {e.plan.batch_id: e.plan for e in events if isinstance(e, Planned)}
        for commit in (e for e in events if isinstance(e, Committed) and e.batch_id not in self.past):
            plan = plans[commit.batch_id]
            if isinstance(plan.work, Rewind):
                self.model = deepcopy(self.past[plan.work.position.batch_id])
            else:
                self.model.follow(plan, commit, self.records)
            self.past[commit.batch_id] = deepcopy(self.model)

    def _check_coverage(self) -> None:
        ledger = self.mill.project.ledger(self.mill.name)
        events = [e.event for e in ledger.entries()]
        plans = {e.plan.batch_id: e.plan for e in events if isinstance(e, Planned)}
        covers = coverage(events, ledger.view().position.slices)
        batches = [b for c in covers for r in c.batches for b in r.batches]
        assert len(batches) == len(set(batches))
        live = Counter(
            (r.topic_partition.partition, o)
            for plan in map(plans.__getitem__, batches)
            if plan.kind is not Kind.REPAIR
            for r in plan.reads.get("events", ())
            for o in offsets_of(r)
        )
        assert live == Counter(self.model.fates.keys())

    def _position(self) -> Any:
        return self.mill.project.ledger(self.mill.name).view().position

    def _errand(self, most: int | None = None) -> AmendmentJob:
        return AmendmentJob(
            project=self.mill.project,
            pipeline=self.mill.name,
            reason=Reason(by=WHO),
            most=most,
            identity=WHO,
            session=lambda: self.session or NO_SPARK,
        )
