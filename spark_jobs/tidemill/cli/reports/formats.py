"""The formats in which commands about contracts report, and their options."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.core.errors import ConfigError

if TYPE_CHECKING:
    from tidemill.cli.reports.remark import Remark
    from tidemill.contracts.findings import Level


class ReportFormat(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    JUNIT = "junit"
    SARIF = "sarif"


class FailOn(StrEnum):
    """From which findings on a command fails."""

    ERROR = "error"
    WARNING = "warning"


AsFormat = Annotated[
    ReportFormat | None,
    typer.Option(
        "--format",
        help="text for people, json as --json, github for annotations of a pull request, junit and sarif for other "
        "systems of CI.",
    ),
]


def chosen(wanted: ReportFormat | None, *, as_json: bool) -> ReportFormat:
    """The format that `--format` and `--json` ask for.

    Raises:
        ConfigError: they ask for different ones.
    """
    if as_json and wanted not in (None, ReportFormat.JSON):
        raise ConfigError(f"--json and --format {wanted} ask for different formats", fix="leave out --json")
    return ReportFormat.JSON if as_json else wanted or ReportFormat.TEXT


def failing(fail_on: FailOn) -> tuple[Level, ...]:
    """The levels of findings that fail."""
    from tidemill.contracts.findings import Level

    return (Level.ERROR, Level.WARNING) if fail_on is FailOn.WARNING else (Level.ERROR,)


def report(  # noqa: PLR0913, PLR0917  what each format needs
    wanted: ReportFormat,
    suite: str,
    files: Sequence[str],
    remarks: Sequence[Remark],
    fail_on: FailOn,
    passed: Sequence[Remark] = (),
) -> str | None:
    """The whole report of a command that looked at these files; None for text and JSON, which each command has itself.

    `suite` is what the command is called. `passed` are rules that hold.
    """
    text = _written(wanted, suite, files, remarks, fail_on, passed)
    # YAML may say half of a character; output cannot.
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _written(  # noqa: PLR0913, PLR0917  as `report`
    wanted: ReportFormat,
    suite: str,
    files: Sequence[str],
    remarks: Sequence[Remark],
    fail_on: FailOn,
    passed: Sequence[Remark],
) -> str | None:
    match wanted:
        case ReportFormat.GITHUB:
            from tidemill.cli.reports.github import github

            return github(remarks)
        case ReportFormat.JUNIT:
            from tidemill.cli.reports.junit import junit

            return junit(suite, files, remarks, failing(fail_on), passed)
        case ReportFormat.SARIF:
            from tidemill.cli.reports.sarif import sarif

            return sarif(suite, remarks)
        case _:
            return None
