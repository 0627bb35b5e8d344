"""`tidemill contract infer`: a first contract from a sample."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import MOST, open_project
from tidemill.core.errors import InputError, printable

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from tidemill.contracts.formats.draft import Draft

_DELIMITERS = ";\t|,"
_OF_CSV = "records of this contract are lines without a header: `tidemill log append TOPIC FILE --format csv --raw`"
_OF_PARQUET = "records of this contract are lines of JSON, as `tidemill log append TOPIC FILE.parquet` writes them"
_NAME = re.compile(r"[^\w-]+", re.ASCII)


class Of(StrEnum):
    """What a contract is about."""

    TABLE = "table"
    RECORDS = "records"


def infer_contract(
    ctx: typer.Context,
    sample: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TABLE",
            help="JSON lines (- for standard input), CSV with a header, Parquet, or a Delta table.",
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="The name of the contract. Default: as the file is called.")] = "",
    records: Annotated[
        int, typer.Option("--records", min=1, max=MOST, metavar="N", help="Look at the first N.")
    ] = 100_000,
    delimiter: Annotated[str, typer.Option(help="What divides the columns of CSV.")] = ",",
    of: Annotated[
        Of | None,
        typer.Option(
            "--of",
            help="What the contract is about; Parquet may also hold records to append to a topic. "
            "Default: a table for Parquet and Delta tables, records for JSON and CSV.",
        ),
    ] = None,
) -> None:
    """Print a first contract for the records or rows of a sample.

    A field is required if it is always there, and has the one type that all its values have. What cannot be taken over
    is said on standard error. The same sample gives the same contract.
    """
    from tidemill.contracts.formats.written import written

    if _NAME.search(name):
        raise InputError(f"--name {name!r} cannot be the name of a file", fix="use letters, digits, - and _")
    _check_of(sample, of)
    called = name or _NAME.sub("_", "records" if sample == "-" else PurePath(sample).name.split(".")[0]).strip("_")
    text, losses = written(_draft(ctx, called or "records", sample, records, delimiter, of))
    for loss in losses:
        typer.echo(f"warning: {printable(loss)}", err=True)
    if _is_csv(sample):
        typer.echo(f"({_OF_CSV})", err=True)
    if of is Of.RECORDS and PurePath(sample).suffix.lower() == ".parquet":
        typer.echo(f"({_OF_PARQUET})", err=True)
    typer.echo(text, nl=False)


def _is_csv(sample: str) -> bool:
    return PurePath(sample).suffix.lower() == ".csv"


def _draft(ctx: typer.Context, name: str, sample: str, most: int, delimiter: str, of: Of | None) -> Draft:
    from tidemill.contracts.inference.infer import draft_of_lines, draft_of_rows

    if _is_delta(sample):
        return draft_of_rows(name, _of_delta(ctx, sample, most), is_table=True)
    if PurePath(sample).suffix.lower() == ".parquet":
        return draft_of_rows(name, _of_parquet(sample, most), is_table=of is not Of.RECORDS)
    if _is_csv(sample):
        header, *rows = _cells(sample, most, delimiter)
        _check_delimiter(sample, header, delimiter)
        return draft_of_lines(name, header, rows, delimiter if delimiter != "," else "")
    return _of_json(name, sample, most)


def _check_of(sample: str, of: Of | None) -> None:
    """Refuse a contract of what the sample is not.

    Raises:
        InputError: the sample is a Delta table, or records.
    """
    is_delta = _is_delta(sample)
    if of is Of.RECORDS and is_delta:
        raise InputError(f"{sample} is a Delta table, and no records", fix="leave out --of records")
    if of is Of.TABLE and not is_delta and PurePath(sample).suffix.lower() != ".parquet":
        raise InputError(
            f"{sample} holds records: only Parquet and Delta tables say the types of a table",
            fix="leave out --of table",
        )


def _is_delta(sample: str) -> bool:
    return "://" in sample or (Path(sample) / "_delta_log").is_dir()


def _check_delimiter(sample: str, header: list[str], delimiter: str) -> None:
    """Refuse a header in one piece that has other delimiters inside.

    Raises:
        InputError: the columns are divided by something else.
    """
    other = next((sign for sign in _DELIMITERS if len(header) == 1 and sign in header[0] and sign != delimiter), None)
    if other is not None:
        shown = "$'\\t'" if other == "\t" else f"'{other}'"
        raise InputError(f"{sample}: the header is one cell, {header[0]!r}", fix=f"give --delimiter {shown}")


def _of_json(name: str, sample: str, most: int) -> Draft:
    import dataclasses

    from tidemill.contracts.inference.infer import draft_of_objects
    from tidemill.contracts.inference.objects import Objects

    objects = Objects(islice(_lines(sample), most))
    try:
        draft = draft_of_objects(name, objects)
    except InputError as error:
        if not (said := objects.said()):
            raise
        fix = "write one object a line, in UTF-8, for example with jq -c ."
        raise InputError(f"{sample}: nothing can be inferred: {'; '.join(said)}", fix=fix) from error
    return dataclasses.replace(draft, losses=(*objects.said(), *draft.losses))


def _lines(sample: str) -> Iterator[bytes | None]:
    from tidemill.log import loading
    from tidemill.log.append_formats.chunks import ChunkSize
    from tidemill.log.append_formats.lines import Lines

    loading.total_bytes([sample])
    for chunk in loading.chunks_of(sample, Lines(), ChunkSize(records=10_000)):
        yield from chunk.records.column("value").to_pylist()


def _cells(sample: str, most: int, delimiter: str) -> list[list[str]]:
    """The header and the first rows of CSV.

    Raises:
        InputError: the file is no CSV, or its rows have another number of cells than its header.
    """
    import csv

    if len(delimiter) != 1:
        raise InputError(f"--delimiter {delimiter!r} is not one character")
    found: list[list[str]] = []
    try:
        with Path(sample).open(encoding="utf-8-sig", newline="") as file:
            for row in csv.reader(file, delimiter=delimiter, strict=True):
                if row and found and len(row) != len(found[0]):
                    what = f"row {len(found) + 1}: expected {len(found[0])} cells, found {len(row)}"
                    raise InputError(f"{sample}: {what}", fix="check --delimiter, or mend the row")
                found += [row] if row else []
                if len(found) > most:
                    break
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{sample} cannot be read as CSV in UTF-8: {error}", fix="convert the file") from error
    except OSError as error:
        raise InputError(f"{sample} cannot be read: {error.strerror}", fix="give a file") from error
    if not found:
        raise InputError(f"{sample} is empty", fix="give a file with a header and some rows")
    return found


def _of_parquet(sample: str, most: int) -> pa.Table:
    from tidemill.inspect.contract_trial.tables import rows_of_parquet

    return rows_of_parquet(sample).slice(0, most)


def _of_delta(ctx: typer.Context, uri: str, most: int) -> pa.Table:
    from tidemill.inspect.contract_trial.tables import rows_of_delta
    from tidemill.project.settings import is_remote

    options = open_project(ctx).access.delta() if is_remote(uri) else {}
    return rows_of_delta(uri, None, options).slice(0, most)
