"""What backfills, repairs and rewinds have in common: how their batches come to be executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from tidemill.batch import NothingToDo, run_batch
from tidemill.claiming import Planner, Request
from tidemill.core.amendments import Reason
from tidemill.core.events import Committed, Executor
from tidemill.core.flow import Flow
from tidemill.core.planning import ReadLimit
from tidemill.ledger.ledger import Ledger
from tidemill.ledger.process import this_process
from tidemill.log.aside import AsideTables
from tidemill.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(kw_only=True)
class Errand:
    """Something that a person wants done to a pipeline, and the means to do it.

    `most` is the most records of one batch, else the project's limit. A run with the `identity` of another takes over
    at once what that one left open.
    """

    project: Project
    pipeline: str
    reason: Reason
    most: int | None = None
    identity: str | None = None
    session: Callable[[], SparkSession] | None = None
    _executor: Executor = field(init=False)

    def __post_init__(self) -> None:
        self._executor = this_process(self.identity)

    @cached_property
    def flow(self) -> Flow:
        """The pipeline as it is declared now."""
        return self.project.pipeline(self.pipeline)

    @cached_property
    def ledger(self) -> Ledger:
        """The pipeline's ledger."""
        return self.project.ledger(self.pipeline)

    @cached_property
    def aside(self) -> AsideTables:
        """What the pipeline put aside."""
        return AsideTables(partial(self.project.table_uri, self.pipeline))

    @property
    def batch_records(self) -> int:
        """The most records of one batch."""
        return self.most or self.project.settings.batch_records

    def within(self, project: Project) -> Errand:
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
            limit=ReadLimit(self.batch_records),
            planner=planner,
            drain=drain,
        )
        outcome = run_batch(self.project, self.pipeline, request, session=self.session, ledger=self.ledger)
        return None if isinstance(outcome, NothingToDo) else outcome

    def until_done(self, planner: Planner) -> Iterator[Committed]:
        """Batches as they commit, until `planner` has nothing left to plan."""
        while (commit := self.execute(planner)) is not None:
            yield commit
