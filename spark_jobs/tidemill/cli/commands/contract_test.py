"""`tidemill contract test`: try a contract on records or on a table, without a batch."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.commands.contract_named import ContractName, described_contract
from tidemill.cli.commands.log_format import InputKind
from tidemill.cli.output import AsJson, console, one_line, open_project, styled
from tidemill.cli.reports.formats import AsFormat, FailOn, ReportFormat, chosen, failing, report
from tidemill.cli.views.log import print_json
from tidemill.core.contract.contract import Format
from tidemill.core.counts import many
from tidemill.core.errors import InputError, LogInputError
from tidemill.core.exit_code import ExitCode

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

    from tidemill.cli.reports.remark import Remark
    from tidemill.contracts.changes.described import Described
    from tidemill.inspect.contract_trial.outcome import Outcome, Sample, Tried

_RECORDS = 50_000


def try_contract(
    ctx: typer.Context,
    contract: ContractName,
    data: Annotated[
        str,
        typer.Argument(metavar="FILE|TABLE", help="A file of records, - for standard input, or a Delta table."),
    ],
    input_format: Annotated[
        InputKind | None,
        typer.Option(
            "--input-format", help="How the file is split into records. Default: as its name and the contract say."
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Also end with 5 where only rules of severity warning are broken.")
    ] = FailOn.ERROR,
    as_json: AsJson = False,
    wanted: AsFormat = None,
) -> None:
    """Try a contract on records or on a table, and count what breaks each rule. Nothing is written.

    Records are decoded as a pipeline decodes them. Exit code 5 says that a rule of severity error is broken, 7 that
    there was nothing to look at.
    """
    form, found = chosen(wanted, as_json=as_json), described_contract(ctx, contract)
    with ExitStack() as stack:
        tried = _tried(ctx, found, data, input_format, _spark(ctx, stack))
    if hint := _hint(found, tried, data, input_format):
        typer.echo(f"({hint})", err=True)
    held = [outcome for outcome in tried.outcomes if outcome.holds]
    text = report(form, "contract test", [tried.file], _remarks(tried, tried.broken), fail_on, _remarks(tried, held))
    if text is not None:
        typer.echo(text, nl=False)
    else:
        _show_json(tried) if form is ReportFormat.JSON else _show(tried)
    if any(outcome.severity.value in failing(fail_on) for outcome in tried.broken):
        raise typer.Exit(ExitCode.WRONG)
    if not tried.count:
        raise typer.Exit(ExitCode.NOTHING_TO_DO)


def _tried(
    ctx: typer.Context, found: Described, data: str, kind: InputKind | None, spark: Callable[[str], SparkSession]
) -> Tried:
    from tidemill.inspect.contract_trial.records import try_records
    from tidemill.inspect.contract_trial.tables import rows_of_parquet, try_json_rows, try_rows

    if _is_table(data):
        _check_of_table(found, data)
        return try_rows(found, _delta_rows(ctx, found, data), spark)
    chosen = kind or _by_name(found, data)
    if not found.is_input and chosen is InputKind.PARQUET and data != "-":
        return try_rows(found, rows_of_parquet(data), spark)
    chunks = _chunks(found, data, chosen)
    return try_records(found, chunks, spark) if found.is_input else try_json_rows(found, chunks, spark)


def _hint(found: Described, tried: Tried, data: str, kind: InputKind | None) -> str:
    """What a person may have meant who gives a file with a header, or one without; empty otherwise."""
    if not tried.count and kind is InputKind.CSV:
        return "the first line of CSV is its header: leave out --input-format csv if it has none"
    if found.contract.format is not Format.CSV or kind is not None:
        return ""
    first = next((s.text for o in tried.broken for s in o.samples if s.number == 1), "")
    line, columns = first.rpartition(": ")[2].lower(), found.contract.columns
    if not any(column.lower() in line for column in columns):
        return ""
    return "line 1 looks like a header, and records of a topic have none: --input-format csv leaves it out"


def _is_table(data: str) -> bool:
    return "://" in data or (Path(data) / "_delta_log").is_dir()


def _check_of_table(found: Described, data: str) -> None:
    if found.is_input:
        raise InputError(
            f"{data} is a table, and {found.contract.source} is about records of the format {found.contract.format}",
            fix="give the contract of the table, or a file of records",
        )


def _delta_rows(ctx: typer.Context, found: Described, uri: str) -> pa.Table:
    from tidemill.inspect.contract_trial.tables import rows_of_delta
    from tidemill.project.settings import is_remote

    options = open_project(ctx).access.delta() if is_remote(uri) else {}
    return rows_of_delta(uri, found.contract.columns, options)


def _by_name(found: Described, data: str) -> InputKind:
    """How a file is split: a contract of lines takes lines; one of JSON also rows of CSV and Parquet."""
    by_suffix = {".csv": InputKind.CSV, ".parquet": InputKind.PARQUET}.get(PurePath(data).suffix.lower())
    takes_rows = found.contract.format in (None, Format.JSON)
    return by_suffix if by_suffix and takes_rows else InputKind.LINES


def _chunks(found: Described, data: str, kind: InputKind) -> Iterator[pa.ChunkedArray]:
    from tidemill.log import loading
    from tidemill.log.append_formats.chunks import ChunkSize
    from tidemill.log.append_formats.lines import Lines
    from tidemill.log.append_formats.tables import Csv, ParquetRows

    loading.total_bytes([data])
    # A contract of CSV takes the lines as they are, without the header.
    options = found.contract.options
    lines = Csv(raw=True, delimiter=options.get("delimiter", ",")) if found.contract.format is Format.CSV else Csv()
    known: dict[InputKind, loading.InputFormat] = {InputKind.CSV: lines, InputKind.PARQUET: ParquetRows()}
    try:
        for chunk in loading.chunks_of(data, known.get(kind, Lines()), ChunkSize(records=_RECORDS)):
            yield chunk.records.column("value")
    except LogInputError as error:
        raise LogInputError(error.message, fix=_fix_here(error.fix)) from error


def _fix_here(fix: str) -> str:
    """What `log append` advises, without the options that this command has not."""
    for option in (", or use --raw", " and --delimiter"):
        fix = fix.replace(option, "")
    return fix.replace("--format", "--input-format")


def _spark(ctx: typer.Context, stack: ExitStack) -> Callable[[str], SparkSession]:
    """Opens Spark for the first rule that needs it, and says so."""
    opened: list[SparkSession] = []

    def session(rule: str) -> SparkSession:
        if not opened:
            from tidemill.cli.spark import spark_session

            typer.echo(f"(rule `{rule}` needs Spark, which starts now)", err=True)
            project = open_project(ctx)
            opened.append(stack.enter_context(spark_session(project, ctx.find_root().obj)))
        return opened[0]

    return session


def _remarks(tried: Tried, outcomes: Sequence[Outcome]) -> list[Remark]:
    from tidemill.cli.reports.remark import Remark
    from tidemill.contracts.findings import Level

    return [
        Remark(
            level=Level(outcome.severity.value),
            rule=outcome.rule,
            message=f"{outcome.rule}: {outcome.told}",
            fix=outcome.fix,
            file=tried.file,
            line=outcome.line,
            samples=tuple(_shown(sample) for sample in outcome.samples),
        )
        for outcome in outcomes
    ]


def _show(tried: Tried) -> None:
    from tidemill.contracts.meanings import ONE_BATCH

    out = console()
    for outcome in tried.broken:
        level = (outcome.severity.value, "red" if outcome.severity == "error" else "yellow")
        out.print(
            styled(
                f"{one_line(tried.file)}:{outcome.line}: ",
                level,
                f": {one_line(outcome.rule)}: {one_line(outcome.told)}",
            )
        )
        for sample in outcome.samples:
            out.print(f"  {_shown(sample)}")
        if outcome.looks_at == ONE_BATCH:
            out.print("  in a pipeline, this rule looks at the rows of one batch; here it looked at all rows")
        out.print(f"  fix: {one_line(outcome.fix)}")
    out.print(_counted(tried) if tried.count else "nothing to look at")


def _counted(tried: Tried) -> str:
    """How many rules hold, and what else is wrong, which no rule says."""
    held, rules = sum(outcome.holds for outcome in tried.rules), len(tried.rules)
    others = sum(not outcome.is_rule for outcome in tried.broken)
    said = f"{held} of {many(rules, 'rule')} hold{'s' if rules == 1 else ''}" if rules else "no rule to look at"
    beside = f", and {many(others, 'other thing')} {'is' if others == 1 else 'are'} wrong" if others else ""
    return f"{many(tried.count, tried.noun)}: {said}{beside}"


def _shown(sample: Sample) -> str:
    return f"{f'record {sample.number}: ' if sample.number else ''}{one_line(sample.text)}"


def _show_json(tried: Tried) -> None:
    for outcome in tried.outcomes:
        print_json({"file": tried.file, "line": outcome.line, "contract": tried.contract} | _json(outcome, tried))


def _json(outcome: Outcome, tried: Tried) -> dict[str, object]:
    samples = [{"record": s.number, "text": s.text} if s.number else {"text": s.text} for s in outcome.samples]
    return {
        "rule": outcome.rule,
        "severity": outcome.severity.value,
        "is_rule": outcome.is_rule,
        "holds": outcome.holds,
        "message": outcome.observed,
        "expected": outcome.expected,
        "looks_at": outcome.looks_at,
        "fix": "" if outcome.holds else outcome.fix,
        "looked_at": tried.count,
        "samples": samples,
    }
