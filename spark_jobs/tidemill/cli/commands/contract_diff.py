"""`tidemill contract diff`: what a change of contracts breaks."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import AsJson, open_project
from tidemill.cli.reports.formats import AsFormat, FailOn, ReportFormat, chosen, failing, report
from tidemill.cli.reports.given import STANDARD_INPUT, given
from tidemill.core.counts import many
from tidemill.core.errors import InputError, TidemillError

if TYPE_CHECKING:
    from tidemill.cli.reports.changes import Shown
    from tidemill.contracts.changes.described import Described
    from tidemill.contracts.changes.waivers import Waiver
    from tidemill.contracts.findings import Finding
    from tidemill.inspect.contract_uses import Use

BREAKING, INVALID = 1, 2
"""The exit codes of `contract diff` besides 0, which programs of other projects for contracts use, too."""


def diff_contracts(
    ctx: typer.Context,
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[OLD] [NEW]",
            help="Two files or folders, - for standard input; with --base only NEW. Default: the project's contracts.",
        ),
    ] = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REVISION", help="Compare with where HEAD left this revision of git.")
    ] = "",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="WHAT",
            help="What ends with 1: error (whatever breaks something), or a list of what must not break, of readers, "
            "writers, backfills and state; the rest warns. warning, alone or in the list, also ends with 1 if a "
            "version was not raised or a new waiver is idle.",
        ),
    ] = "error",
    as_json: AsJson = False,
    wanted: AsFormat = None,
) -> None:
    """Say what changed between two versions of contracts, and what it breaks.

    Ends with 0 (compatible), 1 (breaking), 2 (a contract or waiver is invalid) or 5 (there is nothing to compare with:
    a place or a revision is missing, or no repository of git is there).
    """
    from tidemill.cli.reports.changes import show
    from tidemill.cli.reports.diff_failing import failing_of
    from tidemill.contracts.changes.review import review

    form, (failing_breaks, fail_on_level) = chosen(wanted, as_json=as_json), failing_of(fail_on)
    with _two(ctx, places or [], base) as (old, new, shown):
        both = _read(old, new, base)
        if both.wrong:
            _refuse(form, both.wrong, shown)
        before = both.before if base or not _are_files(old, new) else _renamed(both)
        today = datetime.now(UTC).date()
        found = review(before, both.after, both.waivers, today, once=both.once_waived, failing=failing_breaks)
        users, faults = _users(ctx, places or [], both) if any(c.breaks for c, _ in found.changes) else ({}, ())
        found = replace(found, remarks=(*both.once_wrong, *found.remarks, *faults))
        show(form, shown, found, fail_on_level, users)
    if found.fails(failing(fail_on_level)):
        raise typer.Exit(BREAKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Both:
    """The contracts of both places by name, the waivers of both, and what cannot be used, once and now."""

    before: Mapping[str, Described]
    after: Mapping[str, Described]
    waivers: Sequence[Waiver]
    once_waived: Sequence[Waiver]
    once_wrong: Sequence[Finding]
    wrong: Sequence[Finding]


def _read(old: Path | None, new: Path, base: str) -> _Both:
    """What is compared. Contracts that could not be used before are new ones: a change may mend them."""
    from tidemill.contracts.changes.described import described
    from tidemill.contracts.changes.waivers import read_waivers
    from tidemill.contracts.findings import Level

    before, once_wrong = ({}, []) if old is None else described(old)
    # Git keeps no empty folder: where all contracts were removed, it is gone.
    all_gone = old is not None and old.is_dir() and not new.exists()
    after, wrong = ({}, []) if all_gone else described(new)
    waivers, faults = read_waivers(new)
    where = f"at {base}: " if base else "in the old version: "
    told = [replace(f, severity=Level.INFORMATION, message=f"{where}{f.message}", fix="") for f in once_wrong]
    once, _ = ([], []) if old is None else read_waivers(old)
    return _Both(
        before=before, after=after, waivers=waivers, once_waived=once, once_wrong=told, wrong=[*wrong, *faults]
    )


def _refuse(form: ReportFormat, wrong: Sequence[Finding], shown: Shown) -> None:
    """Show contracts and waivers that cannot be used, and end."""
    from tidemill.cli.reports.changes import remark_of

    remarks = [remark_of(finding, shown) for finding in wrong]
    text = report(form, "contract diff", [], remarks, FailOn.ERROR)
    if text is not None:
        typer.echo(text, nl=False)
    for remark in remarks if text is None else ():
        typer.echo(f"{remark.file}:{remark.line}: {remark.message}", err=True)
        if remark.fix:
            typer.echo(f"  fix: {remark.fix}", err=True)
    raise typer.Exit(INVALID)


def _users(
    ctx: typer.Context, places: Sequence[Path], both: _Both
) -> tuple[Mapping[str, Sequence[Use]], Sequence[Finding]]:
    """The uses of the project's contracts, and pipelines that could not be loaded; nothing for contracts of no project.

    Contracts are the project's if one of the places is. Of the columns that pipelines name, those of the contract stay.
    """
    from tidemill.contracts.findings import Finding, Level
    from tidemill.inspect.contract_uses import not_loaded, uses_of

    with suppress(TidemillError):
        project = open_project(ctx)
        folder = Path(project.settings.contracts).resolve()
        if places and not any(place.resolve().is_relative_to(folder) for place in places):
            return {}, ()
        where, told = str(project.settings.pipelines), "it is not known which contracts it uses"
        faults = [
            Finding(file=where, line=1, severity=Level.INFORMATION, message=f"{told}: {fault}")
            for fault in not_loaded(project)
        ]
        return {
            name: [_of_contract(use, name, both) for use in uses] for name, uses in uses_of(project).items()
        }, faults
    return {}, ()


def _of_contract(use: Use, name: str, both: _Both) -> Use:
    known = [c for one in (both.before, both.after) if name in one for c in one[name].contract.columns]
    return replace(use, columns=tuple(column for column in use.columns if column in known))


@contextmanager
def _two(ctx: typer.Context, places: list[Path], base: str) -> Iterator[tuple[Path | None, Path, Shown]]:
    """The old place, None if there was none, the new one, and how their files are called in reports."""
    from tidemill.cli.reports.changes import Shown

    if (len(places) != 2 and not base) or len(places) > (1 if base else 2):
        raise InputError(
            f"expected OLD and NEW, or --base REVISION, found {many(len(places), 'place')}"
            + (" and --base" if base else ""),
            fix="tidemill contract diff OLD NEW, or tidemill contract diff --base main",
        )
    if base and STANDARD_INPUT in places:
        raise InputError(
            "--base compares a file with its revisions, and standard input (-) has none",
            fix="name the file, or both versions: git show main:FILE | tidemill contract diff - FILE",
        )
    with given(places) as read:
        if not base:
            yield read[0], read[1], Shown(dict(zip(read, places, strict=True)))
            return
        from tidemill.contracts.changes.revision import at_revision

        new = read[0] if read else Path(open_project(ctx).settings.contracts)
        with at_revision(new, base) as old:
            names = dict(zip(read, places, strict=True))
            yield old, new, Shown(names if old is None else {**names, old: new})


def _are_files(old: Path | None, new: Path) -> bool:
    return old is not None and old.is_file() and new.is_file()


def _renamed(both: _Both) -> Mapping[str, Described]:
    """The old contracts by their new names: two single ones are versions of one, whatever their files are called."""
    if len(both.before) == len(both.after) == 1:
        (old,), (name,) = both.before.values(), both.after
        return {name: old}
    return both.before
