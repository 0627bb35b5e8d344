"""What backfills, repairs and rewinds have in common: how their batches are executed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import LedgerDamaged
from tidemill.core.history.coverage import plans_of
from tidemill.core.history.index import asked_of
from tidemill.core.log.offsets import MAX_OFFSET, TopicPartition
from tidemill.core.plan.amendments import Reason
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed, Executor, Planned
from tidemill.engine.storage.table_layout import Uris
from tidemill.ledger.ledger import Ledger
from tidemill.ledger.process import this_process
from tidemill.log.pipeline_topics import readable
from tidemill.log.side_tables import SideTables
from tidemill.project.project import Project
from tidemill.run.batch import NothingToDo, run_batch
from tidemill.run.claiming import Planner, Request
from tidemill.run.watching import Watcher

if TYPE_CHECKING:
    from tidemill.run.sessions import Opens


@dataclass(kw_only=True)
class AmendmentJob:
    """What a person wants to change in a pipeline, and what it takes to do it.

    `most` is the most records per batch; None means the project's limit. A run with the same `identity` as an earlier
    run continues its open batch at once. `begin`, `silent` and `watcher` have the same meaning as in `Request`.
    """

    project: Project
    pipeline: str
    reason: Reason
    most: int | None = None
    identity: str | None = None
    session: Opens | None = None
    begin: Mapping[TopicPartition, int] | None = None
    silent: Collection[TopicPartition] = ()
    watcher: Watcher = field(default_factory=Watcher)
    _executor: Executor = field(init=False)

    def __post_init__(self) -> None:
        self._executor = this_process(self.identity)

    @cached_property
    def flow(self) -> Flow:
        """The pipeline as it is declared now, with its patterns replaced by the topics they match."""
        flow = self.project.pipeline(self.pipeline)
        if not flow.patterns:
            return flow
        position = None
        # A rebuild starts even if the ledger cannot be read.
        with suppress(LedgerDamaged):
            position = self.ledger.view().position
        return readable(flow, self.project.log(), position)

    @property
    def windowed(self) -> tuple[WindowedSink, ...]:
        """The published tables with windows."""
        return tuple(sink for sink in self.flow.sinks if isinstance(sink, WindowedSink))

    @cached_property
    def ledger(self) -> Ledger:
        """The pipeline's ledger."""
        return self.project.ledger(self.pipeline)

    @property
    def side_tables(self) -> SideTables:
        """The quarantine and the late table of the pipeline."""
        return self.project.side_tables(self.pipeline)

    @property
    def uris(self) -> Uris:
        """The locations of the pipeline's tables."""
        return self.project.uris(self.pipeline)

    def plans_since(self, batch_id: int) -> Iterator[BatchPlan]:
        """The plans of this batch and all later ones, in order."""
        batches = BatchRange(batch_id, MAX_OFFSET)
        return plans_of(entry.event for entry in self.ledger.of_batches(batches, Planned))

    @property
    def first_asked(self) -> int | None:
        """The first batch planned for the same person and reason; None if there is none yet."""
        past = self.ledger.past()
        batches = [b.batch_id for b in past.asked(self.reason.by) if b.asked == self.reason]
        opened = [p.batch_id for p in plans_of(past.events) if asked_of(p) == self.reason]
        return min([*batches, *opened], default=None)

    @property
    def batch_records(self) -> int:
        """The most records of one batch."""
        return self.most or self.project.settings.batch_records

    def within(self, project: Project) -> AmendmentJob:
        """A copy of this job for another project."""
        return replace(self, project=project)

    def execute(self, planner: Planner | None = None, *, drain: bool = False) -> Committed | None:
        """Execute the open batch, else one planned by `planner`, else the next offsets. None if there is nothing to do.

        An open batch comes first, whoever planned it. `drain` says that the input has ended.

        Raises:
            TidemillError: the batch did not commit; the next run continues it.
        """
        request = Request(
            executor=self._executor,
            clock=datetime.now(UTC),
            limit=self.project.limit(self.most),
            planner=planner,
            drain=drain,
            begin=self.begin,
            silent=self.silent,
            watcher=self.watcher,
        )
        outcome = run_batch(self.project, self.pipeline, request, session=self.session, ledger=self.ledger)
        return None if isinstance(outcome, NothingToDo) else outcome

    def by_turns(self, planner: Planner, ended: Callable[[Committed], bool] = lambda _: False) -> Iterator[Committed]:
        """Execute batches of `planner` and live batches in turn, so that new data waits for one batch at most.

        Stops when nothing is left to plan, or after a commit for which `ended` returns True.
        """
        while (commit := self.execute(planner)) is not None:
            yield commit
            if ended(commit):
                return
            if commit.kind is not Kind.LIVE and (live := self.execute()) is not None:
                yield live

    def until_done(self, planner: Planner) -> Iterator[Committed]:
        """Execute batches and yield each commit, until `planner` has nothing left to plan."""
        while (commit := self.execute(planner)) is not None:
            yield commit
