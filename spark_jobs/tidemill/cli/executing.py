"""How commands execute batches: one line per commit, and Spark starts when the first batch needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

from tidemill.cli.output import console, open_project
from tidemill.cli.views.batch_lines import JsonLines, Progress, batch_lines
from tidemill.core.counts import many
from tidemill.core.errors import TidemillError
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.summary import account_of

if TYPE_CHECKING:
    import typer

    from tidemill.core.protocol.events import Committed
    from tidemill.engine.spark.session import Spark
    from tidemill.project.project import Project

Batches = Callable[["Project", "Starter"], "Iterator[Committed]"]


def show_batches(
    ctx: typer.Context, pipeline: str, batches: Batches, *, as_json: bool, ended: Callable[[int], str]
) -> int:
    """Execute batches, show each, and return how many committed. `ended` describes that number in a few words."""
    project = open_project(ctx)
    lines: AbstractContextManager[Progress] = nullcontext(JsonLines()) if as_json else batch_lines()
    with lines as progress, ExitStack() as stack:
        try:
            project.pipeline(pipeline)
            progress.phase(f"{pipeline}: reading the ledger")
            count, aside = 0, Account()
            start = Starter(ctx, project, pipeline, progress)
            stack.callback(start.forget)
            for commit in batches(project, start):
                count += 1
                aside += account_of(commit)
                progress.committed(commit)
                progress.phase(f"{pipeline}: batch {commit.batch_id + 1}")
        except TidemillError as error:
            _tell(progress, error)
            raise
        progress.ended(ended(count), count)
        if not as_json:
            _tell_aside(pipeline, aside)
    return count


def _tell(progress: Progress, error: TidemillError) -> None:
    if isinstance(progress, JsonLines):
        from tidemill.cli.failures import failed

        progress.event(failed(error))


def _tell_aside(pipeline: str, account: Account) -> None:
    """Say where to look at records that were put aside."""
    for count, word, command in ((account.rejected, "rejected", "quarantine"), (account.late, "late", "late")):
        if count:
            console().print(f"{many(count, f'{word} record')}: see `tidemill {command} ls {pipeline}`", soft_wrap=True)


class Starter:
    """Starts Spark when it is called first, and meanwhile loads what the audit will need."""

    def __init__(self, ctx: typer.Context, project: Project, pipeline: str, progress: Progress) -> None:
        self._given, self._project, self._pipeline, self._progress = ctx.find_root().obj, project, pipeline, progress
        self._open = ExitStack()
        self._spark: Spark | None = None

    def __call__(self) -> Spark:
        """The Spark of this command."""
        if self._spark is None:
            self._spark = self._started()
        return self._spark

    def forget(self) -> None:
        """Stop it, whatever is left of it: the next call starts another one."""
        self._spark = None
        self._open.close()

    def _started(self) -> Spark:
        from tidemill.cli.spark import started_spark
        from tidemill.run.loop import warm_up_audit

        if self._given is None:
            self._progress.starting_spark(self._pipeline)
        warm_up_audit(self._project.pipeline(self._pipeline))
        spark = self._open.enter_context(started_spark(self._project, self._given, pipeline=self._pipeline))
        self._progress.phase(f"{self._pipeline}: the first batch in Spark, which warms it up")
        return spark
