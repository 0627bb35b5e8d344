"""What the commands that change the past share: who asks, which records are selected, how batches are executed."""

# Parameters are options of the commands, so there may be many.
# ruff: noqa: PLR0913

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.executing import show_batches
from tidemill.cli.output import MOST, open_project
from tidemill.core.errors import ConfigError
from tidemill.core.exit_code import ExitCode
from tidemill.run.sessions import Opens

if TYPE_CHECKING:
    from tidemill.core.plan.amendments import Reason
    from tidemill.core.protocol.events import Committed
    from tidemill.project.project import Project
    from tidemill.repair.job import AmendmentJob

By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Your name, for the ledger. Default: the user of this machine."),
]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Your reason; the ledger keeps it.")]
BatchRecords = Annotated[
    int | None,
    typer.Option(
        "--batch-records",
        min=1,
        max=MOST,
        metavar="N",
        help="The most records in a batch. Default: the project's setting.",
    ),
]
Mixed = Annotated[
    bool,
    typer.Option(
        "--mixed",
        help="Include records from before a change of meaning; they count by today's declaration.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen, and change nothing.")]
OfBatches = Annotated[
    str | None, typer.Option("--batch", metavar="N[-M]", help="Only what this batch, or one of these, put aside.")
]
OfTopic = Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Only records of this topic.")]
OfPartition = Annotated[
    int | None, typer.Option("--partition", min=0, max=MOST, metavar="N", help="Only records of this partition.")
]
OfOffset = Annotated[
    int | None, typer.Option("--offset", min=0, max=MOST, metavar="N", help="Only the record with this offset.")
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Only what was put aside at this time or later, by the batch's clock."
    ),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only what was put aside before this time.")]


def an_amendment(
    project: Project, pipeline: str, *, by: str | None, why: str, most: int | None = None, start: Opens | None = None
) -> AmendmentJob:
    """Something to be done, by whom and why."""
    from tidemill.core.plan.amendments import Reason
    from tidemill.repair.job import AmendmentJob

    reason = Reason(by=by or getpass.getuser(), why=why)
    return AmendmentJob(project=project, pipeline=pipeline, reason=reason, most=most, session=start)


def execute(
    ctx: typer.Context,
    pipeline: str,
    amendment: Callable[[AmendmentJob], Iterator[Committed]],
    *,
    by: str | None,
    why: str,
    as_json: bool,
    most: int | None = None,
    nothing: str = "nothing to do",
) -> None:
    """Execute the batches of an amendment. If there were none, print `nothing` and exit with NOTHING_TO_DO."""

    def batches(project: Project, start: Opens) -> Iterator[Committed]:
        return amendment(an_amendment(project, pipeline, by=by, why=why, most=most, start=start))

    count = show_batches(ctx, pipeline, batches, as_json=as_json, ended=lambda n: "done" if n else nothing)
    raise typer.Exit(ExitCode.DONE if count else ExitCode.NOTHING_TO_DO)


def looked_at(
    ctx: typer.Context, pipeline: str, *, most: int | None = None, by: str | None = "", why: str = ""
) -> AmendmentJob:
    """The job for a command that executes no batch.

    Raises:
        DeclarationError: the pipeline does not exist.
    """
    project = open_project(ctx)
    project.pipeline(pipeline)
    return an_amendment(project, pipeline, by=by, why=why, most=most)


def needed_reason(by: str | None, why: str) -> Reason:
    """Return who decided and why.

    Raises:
        ConfigError: no reason is given.
    """
    from tidemill.core.plan.amendments import Reason

    if not why.strip():
        raise ConfigError("a decision needs a reason, which the ledger keeps", fix='add --why "..."')
    return Reason(by=by or getpass.getuser(), why=why)
