"""`tidemill contract diff`: what a change of contracts breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import AsJson, console, many, open_project, styled
from tidemill.cli.views.log import print_json
from tidemill.core.errors import InputError

if TYPE_CHECKING:
    from tidemill.contracts.changes.change import Change
    from tidemill.contracts.changes.described import Described

BREAKING, INVALID = 1, 2
"""The exit codes of `contract diff` besides 0, which programs of other projects for contracts use, too."""


class FailOn(StrEnum):
    """From which findings on the command does not end with 0."""

    ERROR = "error"
    WARNING = "warning"


def diff_contracts(
    ctx: typer.Context,
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[OLD] [NEW]", help="Two files or folders; with --base only NEW. Default: the project's contracts."
        ),
    ] = None,
    base: Annotated[str, typer.Option("--base", metavar="REVISION", help="Compare with this revision of git.")] = "",
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Also end with 1 where a version was not raised: warning.")
    ] = FailOn.ERROR,
    as_json: AsJson = False,
) -> None:
    """Say what changed between two versions of contracts. Ends with 0 (compatible), 1 (breaking) or 2 (invalid)."""
    from tidemill.contracts.changes.compare import changes_of
    from tidemill.contracts.changes.described import described

    with _two(ctx, places or [], base) as (old, new):
        first, wrong_first = ({}, []) if old is None else described(old)
        second, wrong = described(new)
    before, after = _paired(first, second)
    for finding in (*wrong_first, *wrong):
        typer.echo(f"{finding}\n  fix: {finding.fix}" if finding.fix else str(finding), err=True)
    if wrong_first or wrong:
        raise typer.Exit(INVALID)
    changes = changes_of(before, after)
    behind = _not_raised(before, after, changes)
    _show_json(changes) if as_json else _show(changes, behind)
    if any(c.breaks for c in changes) or (behind and fail_on is FailOn.WARNING):
        raise typer.Exit(BREAKING)


@contextmanager
def _two(ctx: typer.Context, places: list[Path], base: str) -> Iterator[tuple[Path | None, Path]]:
    """The old place, None if there was none, and the new one."""
    if (len(places) != 2 and not base) or len(places) > (1 if base else 2):
        raise InputError(
            f"expected OLD and NEW, or --base REVISION, found {many(len(places), 'place')}"
            + (" and --base" if base else ""),
            fix="tidemill contract diff OLD NEW, or tidemill contract diff --base main",
        )
    for place in places:
        if not place.exists():
            raise InputError(f"{place}: there is no such file or folder", fix="name contract files, or their folders")
    if not base:
        yield places[0], places[1]
        return
    from tidemill.contracts.changes.revision import at_revision

    new = places[0] if places else Path(open_project(ctx).settings.contracts)
    with at_revision(new, base) as old:
        yield old, new


def _paired(
    before: Mapping[str, Described], after: Mapping[str, Described]
) -> tuple[Mapping[str, Described], Mapping[str, Described]]:
    """Two single contracts are versions of one, whatever their files are called."""
    if len(before) == len(after) == 1:
        (old,), (name,) = before.values(), after
        return {name: old}, after
    return before, after


def _not_raised(
    before: Mapping[str, Described], after: Mapping[str, Described], changes: list[Change]
) -> Mapping[str, str]:
    """What to say of each contract whose version did not rise as its changes need it."""
    from tidemill.contracts.changes.change import Bump
    from tidemill.contracts.changes.compare import bump_needed, is_raised

    said = {}
    for name in before.keys() & after.keys():
        needed = bump_needed([c for c in changes if c.contract == after[name].contract.name])
        old, new = before[name].contract.version, after[name].contract.version
        if needed is not Bump.NONE and not is_raised(old, new, needed):
            said[name] = f"{name}: version {old}, now {new}; these changes need another {needed.name.lower()} version"
    return said


def _show(changes: list[Change], behind: Mapping[str, str]) -> None:
    out = console()
    for change in changes:
        what = ("breaking", "red") if change.breaks else ("compatible", "green")
        out.print(styled(f"{change.file}:{change.line}: ", what, f": {change}"))
        if change.breaks:
            out.print(f"  breaks: {', '.join(sorted(change.breaks))}")
    for text in behind.values():
        out.print(styled("", ("warning", "yellow"), f": {text}"))
    breaking = sum(bool(change.breaks) for change in changes)
    out.print(f"{many(len(changes), 'change')}, {breaking} breaking")


def _show_json(changes: list[Change]) -> None:
    for change in changes:
        print_json(
            {
                "file": change.file,
                "line": change.line,
                "contract": change.contract,
                "change": change.kind,
                "where": change.where,
                "message": str(change),
                "breaks": sorted(change.breaks),
                "bump": change.bump.name.lower(),
            }
        )
