"""How `tidemill contract diff` shows changes, in each format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from tidemill.cli.output import console, styled
from tidemill.cli.reports.formats import FailOn, ReportFormat, report
from tidemill.cli.reports.remark import Remark
from tidemill.cli.views.log import print_json
from tidemill.contracts.changes.change import Change
from tidemill.contracts.changes.review import Review
from tidemill.contracts.changes.waivers import Waiver
from tidemill.contracts.findings import Finding, Level
from tidemill.core.counts import many
from tidemill.inspect.contract_uses import Use, use_json

_COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.INFORMATION: "green"}
_TOLD = {
    Level.ERROR: ("breaking", "red"),
    Level.WARNING: ("warning", "yellow"),
    Level.INFORMATION: ("compatible", "green"),
}
Users = Mapping[str, Sequence[Use]]


@dataclass(frozen=True, slots=True)
class Shown:
    """How files are called in reports, by the place that they were read from: copies of files have other names."""

    names: Mapping[Path, Path]

    def of(self, file: str) -> str:
        """The name of a file."""
        for read, named in self.names.items():
            if Path(file) == read:
                return str(named)
            if Path(file).is_relative_to(read):
                return str(named / Path(file).relative_to(read))
        return file


def remark_of(finding: Finding, shown: Shown, *, spared: bool = False) -> Remark:
    """A finding about a contract or a waiver; one that is `spared` fails nothing."""
    return Remark(
        level=finding.severity,
        rule="contract",
        message=finding.message,
        fix=finding.fix,
        file=shown.of(finding.file),
        line=finding.line,
        spared=spared,
    )


def show(form: ReportFormat, shown: Shown, found: Review, fail_on: FailOn, users: Users) -> None:
    """Print what changed; `users` are the pipelines that use a contract."""
    changes = tuple((replace(change, file=shown.of(change.file)), waiver) for change, waiver in found.changes)
    found = replace(found, changes=changes)
    others = [*(remark_of(r, shown) for r in found.remarks), *(remark_of(r, shown, spared=True) for r in found.done)]
    remarks = [*(_changed(found, *each, users) for each in found.changes), *others]
    text = report(form, "contract diff", sorted({r.file for r in remarks}), remarks, fail_on)
    if text is not None:
        typer.echo(text, nl=False)
    elif form is ReportFormat.JSON:
        _show_json(found, users)
    else:
        _show(found, others, users)


def _changed(found: Review, change: Change, waiver: Waiver | None, users: Users) -> Remark:
    level = found.level(change, waiver)
    parts = [str(change), *([f"breaks: {', '.join(sorted(change.breaks))}"] if change.breaks else [])]
    parts += [str(waiver)] if waiver is not None else []
    return Remark(
        level=level,
        rule=change.kind,
        message="\n".join([*parts, *map(str, users.get(change.contract, ()) if change.breaks else ())]),
        file=change.file,
        line=change.line,
        spared=level is Level.WARNING,
    )


def _show(found: Review, remarks: Sequence[Remark], users: Users) -> None:
    out = console()
    for change, waiver in found.changes:
        what = _TOLD[found.level(change, waiver)] if waiver is None else ("waived", "yellow")
        out.print(styled(f"{change.file}:{change.line}: ", what, f": {change}"))
        if change.breaks:
            out.print(f"  breaks: {', '.join(sorted(change.breaks))}")
            for use in users.get(change.contract, ()):
                out.print(f"  {use}")
        if waiver is not None:
            out.print(f"  {waiver}")
    for remark in remarks:
        level = (remark.level.value, _COLOURS[remark.level])
        out.print(styled(f"{remark.file}:{remark.line}: ", level, f": {remark.message}"))
        if remark.fix:
            out.print(f"  fix: {remark.fix}")
    counts = {"warned": found.warned, "waived": sum(waiver is not None for _, waiver in found.changes)}
    counted = f"{many(len(found.changes), 'change')}, {found.breaking} breaking"
    out.print(counted + "".join(f", {count} {what}" for what, count in counts.items() if count))


def _show_json(found: Review, users: Users) -> None:
    for change, waiver in found.changes:
        print_json(
            {
                "file": change.file,
                "line": change.line,
                "contract": change.contract,
                "change": change.kind,
                "where": change.where,
                "message": str(change),
                "breaks": sorted(change.breaks),
                "severity": found.level(change, waiver).value,
                "bump": change.bump.name.lower(),
                "waived": None
                if waiver is None
                else {"until": waiver.until.isoformat(), "owner": waiver.owner, "reason": waiver.reason},
                "pipelines": [use_json(use) for use in users.get(change.contract, ())] if change.breaks else [],
            }
        )
    for remark in (*found.remarks, *found.done):
        print_json(
            {
                "file": remark.file,
                "line": remark.line,
                "severity": remark.severity.value,
                "message": remark.message,
                "fix": remark.fix,
            }
        )
