"""`tidemill contract`: look at data contracts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.commands.contract_diff import diff_contracts
from tidemill.cli.commands.contract_docs import contract_docs
from tidemill.cli.commands.contract_formats import export_contract, import_contract
from tidemill.cli.commands.contract_infer import infer_contract
from tidemill.cli.commands.contract_test import try_contract
from tidemill.cli.output import AsJson, console, one_line, open_project, styled
from tidemill.cli.reports.formats import AsFormat, FailOn, ReportFormat, chosen, failing, report
from tidemill.cli.reports.given import given, shown_name
from tidemill.cli.views.log import print_json
from tidemill.core.counts import many
from tidemill.core.errors import ContractError
from tidemill.core.exit_code import ExitCode

if TYPE_CHECKING:
    from tidemill.cli.reports.remark import Remark
    from tidemill.contracts.findings import Finding

_COLOURS = {"error": "red", "warning": "yellow", "information": "cyan"}

app = typer.Typer(no_args_is_help=True, help="Data contracts: check them, and say what a change breaks.")
app.command("diff")(diff_contracts)
app.command("test")(try_contract)
app.command("infer")(infer_contract)
app.command("import")(import_contract)
app.command("export")(export_contract)
app.command("docs")(contract_docs)


@app.command("lint")
def lint_contracts(  # noqa: PLR0913, PLR0917  each is an option
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...", help="Files or folders, - for standard input. Default: the project's contracts."
        ),
    ] = None,
    as_json: AsJson = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also list what Tidemill does not use, and which rows rules look at.")
    ] = False,
    wanted: AsFormat = None,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="warning fails with warnings, too.")] = FailOn.ERROR,
) -> None:
    """Say everything that is wrong, or could be better, in contract files and in the waivers of a folder."""
    from tidemill.contracts.changes.waivers import lint_waivers
    from tidemill.contracts.findings import Level
    from tidemill.contracts.lint import lint
    from tidemill.contracts.looks import scopes_of

    form, today = chosen(wanted, as_json=as_json), datetime.now(UTC).date()
    places = paths or [Path(open_project(ctx).settings.contracts)]
    told = (Level.ERROR, Level.WARNING, *([Level.INFORMATION] if verbose else []))
    with given(places) as read:
        found = [f for place in read for f in (*lint(place), *lint_waivers(place, today)) if f.severity in told]
        found += [f for place in read for f in scopes_of(place)] if verbose else []
        files = list(dict.fromkeys(shown_name(file, read, places) for place in read for file in _files(place)))
    findings = list(dict.fromkeys(replace(f, file=shown_name(f.file, read, places)) for f in found))
    text = report(form, "contract lint", files, [_remark(finding) for finding in findings], fail_on)
    if text is not None:
        typer.echo(text, nl=False)
    elif form is ReportFormat.JSON:
        for finding in findings:
            print_json(_json(finding))
    else:
        _show(findings, len(files))
    if any(f.severity in failing(fail_on) for f in findings):
        raise typer.Exit(ExitCode.WRONG)


def _files(place: Path) -> list[str]:
    from tidemill.contracts.files import contract_files

    if not place.is_dir():
        return [str(place)]
    try:
        return [str(path) for path in contract_files(place)]
    except ContractError:
        # This is noted as an error already.
        return []


def _remark(finding: Finding) -> Remark:
    from tidemill.cli.reports.remark import Remark

    level, rule = finding.severity, f"contract-{finding.severity.value}"
    return Remark(
        level=level, rule=rule, message=finding.message, fix=finding.fix, file=finding.file, line=finding.line
    )


def _show(findings: list[Finding], files: int) -> None:
    out = console()
    for finding in findings:
        where, severity = (
            f"{one_line(finding.file)}:{finding.line}: ",
            (finding.severity.value, _COLOURS[finding.severity.value]),
        )
        out.print(styled(where, severity, f": {finding.message}"))
        if finding.fix:
            out.print(f"  fix: {finding.fix}")
    found = Counter(finding.severity.value for finding in findings)
    errors, warnings = many(found["error"], "error"), many(found["warning"], "warning")
    out.print(f"{errors}, {warnings}" if found["error"] else f"{many(files, 'contract')}, no errors, {warnings}")


def _json(finding: Finding) -> dict[str, object]:
    return {
        "file": finding.file,
        "line": finding.line,
        "severity": finding.severity.value,
        "message": finding.message,
        "fix": finding.fix,
    }
