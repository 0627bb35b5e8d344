"""`tidemill verify`: compare published tables with a new computation over the log."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import an_amendment
from tidemill.cli.output import AsJson, PipelineName, console, many, open_project, whole
from tidemill.cli.views.log import print_json
from tidemill.core.exit_code import ExitCode
from tidemill.core.plan.slices import show_batches
from tidemill.core.protocol.events import told
from tidemill.core.repair.selection import windows_of
from tidemill.core.time.times import show_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tidemill.core.time.windows import Window
    from tidemill.inspect.verify import Scope, Verified

_SHOWN = 5
"""The most ranges of windows that a line names."""


def verify(
    ctx: typer.Context,
    pipeline: PipelineName,
    windows: Annotated[
        str | None, typer.Option(metavar="FROM/TO", help="Only windows that start at these event times, in ISO 8601.")
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
    from tidemill.cli.spark import spark_session
    from tidemill.inspect.verify import verify as compare

    project = open_project(ctx)
    project.pipeline(pipeline)
    scope = _scope(windows, sample, seed)
    with ExitStack() as stack:
        session = stack.enter_context(spark_session(project, ctx.find_root().obj))
        amendment = an_amendment(project, pipeline, by="", why="", start=lambda: session)
        found = []
        for each in compare(amendment, scope):
            found.append(each)
            _show(each, as_json=as_json)
    if not all(each.agrees for each in found):
        raise typer.Exit(ExitCode.DIFFERENT)
    raise typer.Exit(_proved(found, part=windows is not None or sample < 1, as_json=as_json))


def _proved(found: Sequence[Verified], *, part: bool, as_json: bool) -> ExitCode:
    """How the command ends without a difference: nothing is proved if all rows were left out, or not chosen."""
    if any(each.differences.compared for each in found) or not (part or any(map(_left_out, found))):
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
                **({"not_compared": left_out} if (left_out := _left_out(found)) else {}),
                "examples": [{"expected": _text(d.expected), "found": _text(d.found)} for d in differences.examples],
            }
        )
        return
    out = console()
    sides = f": {differences.missing:,} missing, {differences.extra:,} too many" if differences.count else ""
    out.print(f"{found.table}: {many(differences.compared, 'row')} compared, {differences.count:,} different{sides}")
    if left_out := _left_out(found):
        out.print(f"  not compared: {left_out}", soft_wrap=True)
    for each in differences.examples:
        out.print(f"  expected {_text(each.expected)}\n  found    {_text(each.found)}", soft_wrap=True)


def _text(row: Mapping[str, Any] | None) -> dict[str, str] | None:
    return None if row is None else {name: str(value) for name, value in row.items()}


def _left_out(found: Verified) -> str:
    """What cannot be compared, and why; empty if everything was compared."""
    return "; ".join(text for text in (_of_before(found), _parted(found.parted)) if text)


def _parted(windows: Sequence[Window]) -> str:
    if not windows:
        return ""
    return (
        f"windows that start {_stretches(windows)}: a record came when they had closed, and counts only in those "
        "of its windows that were open"
    )


def _stretches(windows: Sequence[Window]) -> str:
    where = ", ".join(map(_stretch, windows[:_SHOWN]))
    return f"{where}, and {len(windows) - _SHOWN:,} more stretches" if len(windows) > _SHOWN else where


def _stretch(window: Window) -> str:
    first, last = show_moment(window.start), show_moment(window.end - 1)
    return f"at {first}" if first == last else f"from {first} to {last}"


def _of_before(found: Verified) -> str:
    """What another declaration computed; empty if there is nothing."""
    if found.since is None or (not found.earlier and found.since.event_time is None):
        return ""
    where = f", in windows that start {_stretches(found.left_out)}" if found.left_out else ""
    parts = [f"what {show_batches(found.earlier)} made{where}"] if found.earlier else []
    if found.since.event_time is not None:
        parts.append(f"windows that start up to {whole(found.since)}, when batches had left the table out")
    said = f"since batch {found.since.batch_id} numbers mean something else ({told(found.since.by, found.since.why)})"
    return f"{', and '.join(parts)}; {said}"
