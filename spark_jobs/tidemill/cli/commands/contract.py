"""`tidemill contract`: look at data contracts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import AsJson, console, open_project, styled
from tidemill.cli.views.log import print_json
from tidemill.core.contract.contract import Severity
from tidemill.core.errors import InputError
from tidemill.core.exit_code import ExitCode

if TYPE_CHECKING:
    from tidemill.contracts.findings import Finding

app = typer.Typer(no_args_is_help=True, help="Data contracts: check them.")


@app.command("lint")
def lint_contracts(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Files or folders. Default: the project's contracts."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say everything that is wrong, or could be better, in contract files."""
    from tidemill.contracts.lint import lint
    from tidemill.contracts.load import contract_files

    places = paths or [Path(open_project(ctx).settings.contracts)]
    for place in places:
        if not place.exists():
            raise InputError(f"{place}: there is no such file or folder", fix="name contract files, or their folder")
    findings = [finding for place in places for finding in lint(place)]
    errors = sum(1 for f in findings if f.severity is Severity.ERROR)
    if as_json:
        for finding in findings:
            print_json(_json(finding))
    else:
        files = sum(len(contract_files(p)) if p.is_dir() and not errors else 1 for p in places)
        _show(findings, errors, files)
    if errors:
        raise typer.Exit(ExitCode.WRONG)


def _show(findings: list[Finding], errors: int, files: int) -> None:
    out = console()
    for finding in findings:
        colour = "red" if finding.severity is Severity.ERROR else "yellow"
        where, severity = f"{finding.file}:{finding.line}: ", (finding.severity.value, colour)
        out.print(styled(where, severity, f": {finding.message}"))
        if finding.fix:
            out.print(f"  fix: {finding.fix}")
    warnings = len(findings) - errors
    if errors:
        out.print(f"{errors} error{'' if errors == 1 else 's'}, {warnings} warnings")
    else:
        out.print(f"{files} contract{'' if files == 1 else 's'}, no errors, {warnings} warnings")


def _json(finding: Finding) -> dict[str, object]:
    return {
        "file": finding.file,
        "line": finding.line,
        "severity": finding.severity.value,
        "message": finding.message,
        "fix": finding.fix,
    }
