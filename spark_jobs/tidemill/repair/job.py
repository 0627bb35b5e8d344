"""What backfills, repairs and rewinds have in common: how their batches come to be executed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.core.bind.flow import Flow, WindowedSink
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(kw_only=True)
class AmendmentJob:
    """Something that a person wants done to a pipeline, and the means to do it.

    `most` is the most records of one batch, else the project's limit. A run with the `identity` of another takes over
    at once what that one left open. `begin` and `silent` are as a request has them.
    """

    project: Project
    pipeline: str
    reason: Reason
    most: int | None = None
    identity: str | None = None
    session: Callable[[], SparkSession] | None = None
    begin: Mapping[TopicPartition, int] | None = None
    silent: Collection[TopicPartition] = ()
    _executor: Executor = field(init=False)

    def __post_init__(self) -> None:
        self._executor = this_process(self.identity)

    @cached_property
    def flow(self) -> Flow:
        """The pipeline as it is declared now, with what its patterns match."""
        flow = self.project.pipeline(self.pipeline)
        if not flow.patterns:
            return flow
        position = None
        # A rebuild begins from a ledger that nobody can read.
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
        """What the pipeline put aside."""
        return self.project.side_tables(self.pipeline)

    @property
    def uris(self) -> Uris:
        """Where the pipeline's tables lie."""
        return self.project.uris(self.pipeline)

    def plans_since(self, batch_id: int) -> Iterator[BatchPlan]:
        """The plans of this batch and later ones, in their order."""
        batches = BatchRange(batch_id, MAX_OFFSET)
        return plans_of(entry.event for entry in self.ledger.of_batches(batches, Planned))

    @property
    def first_asked(self) -> int | None:
        """The first batch that was planned for the same reason; None before there is one."""
        past = self.ledger.past()
        batches = [b.batch_id for b in past.asked(self.reason.by) if b.asked == self.reason]
        opened = [p.batch_id for p in plans_of(past.events) if asked_of(p) == self.reason]
        return min([*batches, *opened], default=None)

    @property
    def batch_records(self) -> int:
        """The most records of one batch."""
        return self.most or self.project.settings.batch_records

    def within(self, project: Project) -> AmendmentJob:
        """The same in another project."""
        return replace(self, project=project)

    def execute(self, planner: Planner | None = None, *, drain: bool = False) -> Committed | None:
        """The open batch, whoever planned it, or the one that `planner` plans, or the next offsets; None for none.

        `drain` says that the input has ended.

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
        )
        outcome = run_batch(self.project, self.pipeline, request, session=self.session, ledger=self.ledger)
        return None if isinstance(outcome, NothingToDo) else outcome

    def by_turns(self, planner: Planner, ended: Callable[[Committed], bool] = lambda _: False) -> Iterator[Committed]:
        """Batches of `planner` and live ones by turns: the newest data waits for one batch at most.

        Until nothing is left to plan, or one of them `ended` it.
        """
        while (commit := self.execute(planner)) is not None:
            yield commit
            if ended(commit):
                return
            if commit.kind is not Kind.LIVE and (live := self.execute()) is not None:
                yield live

    def until_done(self, planner: Planner) -> Iterator[Committed]:
        """Batches as they commit, until `planner` has nothing left to plan."""
        while (commit := self.execute(planner)) is not None:
            yield commit
