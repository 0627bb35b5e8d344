"""`tidemill verify`: compare published tables with a new computation over the log."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import an_amendment
from tidemill.cli.output import AsJson, PipelineName, console, open_project
from tidemill.cli.views.log import print_json
from tidemill.core.exit_code import ExitCode
from tidemill.core.repair.selection import windows_of
from tidemill.inspect.lines import not_compared, row_text, verified_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.inspect.verify import Scope, Verified


def verify(
    ctx: typer.Context,
    pipeline: PipelineName,
    windows: Annotated[
        str | None,
        typer.Option(
            metavar="FROM/TO", help="Only windows that start at these event times, in ISO 8601; of firings, all rows."
        ),
    ] = None,
    sample: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, metavar="P", help="Compare only this share of the windows, chosen at random."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the random choice.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compute published tables again from the log, and print every difference. Exit code 8 says that there is one.

    Exit code 7 says that no row was compared: all rows are left out, or none is in the windows that were asked for.
    """
    from tidemill.cli.spark import say_start, started_spark
    from tidemill.inspect.verify import verify as compare

    project = open_project(ctx)
    project.pipeline(pipeline)
    scope = _scope(windows, sample, seed)
    say_start(ctx, pipeline, as_json=as_json)
    with ExitStack() as stack:
        spark = stack.enter_context(started_spark(project, ctx.find_root().obj))
        amendment = an_amendment(project, pipeline, by="", why="", start=lambda: spark)
        found = []
        for each in compare(amendment, scope):
            found.append(each)
            _show(each, as_json=as_json)
    if not all(each.agrees for each in found):
        raise typer.Exit(ExitCode.DIFFERENT)
    raise typer.Exit(_proved(found, part=windows is not None or sample < 1, as_json=as_json))


def _proved(found: Sequence[Verified], *, part: bool, as_json: bool) -> ExitCode:
    """How the command ends without a difference: nothing is proved if all rows were left out, or not chosen."""
    if any(each.differences.compared for each in found) or not (part or any(map(not_compared, found))):
        return ExitCode.DONE
    if not as_json:
        console().print("nothing was compared, so this proves nothing")
    return ExitCode.NOTHING_TO_DO


def _scope(windows: str | None, sample: float, seed: int) -> Scope:
    from tidemill.inspect.verify import Scope

    return Scope(windows=windows_of("--windows", windows) if windows else None, sample=sample, seed=seed)


def _show(found: Verified, *, as_json: bool) -> None:
    differences = found.differences
    if as_json:
        print_json(
            {
                "table": found.table,
                "rows": differences.compared,
                "different": differences.count,
                "missing": differences.missing,
                "extra": differences.extra,
                **({"not_compared": left_out} if (left_out := not_compared(found)) else {}),
                "examples": [
                    {"expected": row_text(d.expected), "found": row_text(d.found)} for d in differences.examples
                ],
            }
        )
        return
    for line in verified_lines(found):
        console().print(line, soft_wrap=True)
