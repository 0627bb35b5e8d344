"""How commands execute batches: one line per commit, and Spark starts when the first batch needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING

from tidemill.cli.output import console, open_project
from tidemill.cli.views.batch_lines import JsonLines, Progress, batch_lines
from tidemill.core.counts import many
from tidemill.core.errors import TidemillError
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.summary import account_of
from tidemill.run.sessions import Opens

if TYPE_CHECKING:
    import typer

    from tidemill.core.protocol.events import Committed
    from tidemill.engine.spark.session import Spark
    from tidemill.project.project import Project

Batches = Callable[["Project", Opens], "Iterator[Committed]"]


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
            for commit in batches(project, _starter(ctx, project, pipeline, progress, stack)):
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


def _starter(ctx: typer.Context, project: Project, pipeline: str, progress: Progress, stack: ExitStack) -> Opens:
    """Return a function that starts Spark, and meanwhile load what the audit will need."""
    from tidemill.cli.spark import started_spark
    from tidemill.run.loop import warm_up_audit

    given = ctx.find_root().obj
    opened = partial(started_spark, project, given, pipeline=pipeline)

    @cache
    def start() -> Spark:
        if given is None:
            progress.starting_spark(pipeline)
        warm_up_audit(project.pipeline(pipeline))
        spark = stack.enter_context(opened())
        progress.phase(f"{pipeline}: the first batch in Spark, which warms it up")
        return spark

    return start
