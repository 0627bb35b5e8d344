"""`tidemill contract`: look at data contracts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.commands.contract_diff import diff_contracts
from tidemill.cli.output import AsJson, console, many, open_project, styled
from tidemill.cli.views.log import print_json
from tidemill.core.errors import InputError
from tidemill.core.exit_code import ExitCode

if TYPE_CHECKING:
    from tidemill.contracts.findings import Finding

_COLOURS = {"error": "red", "warning": "yellow", "information": "cyan"}

app = typer.Typer(no_args_is_help=True, help="Data contracts: check them, and say what a change breaks.")
app.command("diff")(diff_contracts)


@app.command("lint")
def lint_contracts(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Files or folders. Default: the project's contracts."),
    ] = None,
    as_json: AsJson = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List what Tidemill does not use, too: it promises nothing about values.")
    ] = False,
) -> None:
    """Say everything that is wrong, or could be better, in contract files."""
    from tidemill.contracts.findings import Level
    from tidemill.contracts.lint import lint

    places = paths or [Path(open_project(ctx).settings.contracts)]
    for place in places:
        if not place.exists():
            raise InputError(f"{place}: there is no such file or folder", fix="name contract files, or their folder")
    told = (Level.ERROR, Level.WARNING, *([Level.INFORMATION] if verbose else []))
    findings = [finding for place in places for finding in lint(place) if finding.severity in told]
    if as_json:
        for finding in findings:
            print_json(_json(finding))
    else:
        _show(findings, places)
    if any(f.severity is Level.ERROR for f in findings):
        raise typer.Exit(ExitCode.WRONG)


def _show(findings: list[Finding], places: list[Path]) -> None:
    from tidemill.contracts.files import contract_files

    out = console()
    for finding in findings:
        where, severity = f"{finding.file}:{finding.line}: ", (finding.severity.value, _COLOURS[finding.severity.value])
        out.print(styled(where, severity, f": {finding.message}"))
        if finding.fix:
            out.print(f"  fix: {finding.fix}")
    found = Counter(finding.severity.value for finding in findings)
    errors, warnings = many(found["error"], "error"), many(found["warning"], "warning")
    if found["error"]:
        out.print(f"{errors}, {warnings}")
    else:
        files = sum(len(contract_files(place)) if place.is_dir() else 1 for place in places)
        out.print(f"{many(files, 'contract')}, no errors, {warnings}")


def _json(finding: Finding) -> dict[str, object]:
    return {
        "file": finding.file,
        "line": finding.line,
        "severity": finding.severity.value,
        "message": finding.message,
        "fix": finding.fix,
    }
