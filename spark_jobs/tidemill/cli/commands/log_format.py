"""In which format `tidemill log append` reads its files: the given one, else the one that their names tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import typer

from tidemill.core.errors import LogInputError
from tidemill.log.append_formats.fields import TimeUnit

if TYPE_CHECKING:
    from tidemill.log.loading import InputFormat


class InputKind(StrEnum):
    """The format of an input: how it is split into records."""

    LINES = "lines"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


_BY_NAME = {
    ".jsonl": InputKind.JSONL,
    ".ndjson": InputKind.JSONL,
    ".json": InputKind.JSONL,
    ".csv": InputKind.CSV,
    ".parquet": InputKind.PARQUET,
}
_WITH_FIELDS = (InputKind.JSONL, InputKind.CSV, InputKind.PARQUET)
_MEANT_FOR = {
    "key": _WITH_FIELDS,
    "timestamp_field": _WITH_FIELDS,
    "key_regex": (InputKind.LINES,),
    "raw": (InputKind.CSV,),
}


def format_of(given: Mapping[str, Any], inputs: Sequence[str]) -> InputFormat:
    """How to read the inputs, by the options of the command. Says on standard error which format it assumed.

    Raises:
        LogInputError: the format is neither given nor clear, or an option has no effect with it.
    """
    from tidemill.log.append_formats.fields import FieldChoice
    from tidemill.log.append_formats.lines import JsonLines, Lines
    from tidemill.log.append_formats.tables import Csv, ParquetRows

    chosen = InputKind(given["input_format"]) if given["input_format"] else _assumed(given, inputs)
    _refuse_foreign_options(given, chosen)
    if not given["input_format"] and not given["raw"] and chosen is not InputKind.LINES:
        typer.echo(f"(read as {chosen.value}, as the name says; --format takes another)", err=True)
    unit = TimeUnit(given["timestamp_unit"])
    fields = FieldChoice(key=given["key"], time=given["timestamp_field"], unit=unit)
    match chosen:
        case InputKind.LINES:
            return Lines(key_regex=given["key_regex"])
        case InputKind.JSONL:
            return JsonLines(fields=fields)
        case InputKind.CSV:
            return Csv(fields=fields, delimiter=given["delimiter"], raw=given["raw"])
        case InputKind.PARQUET:
            return ParquetRows(fields=fields)


def _assumed(given: Mapping[str, Any], inputs: Sequence[str]) -> InputKind:
    """The format of inputs for which the command gives none: what its options or the names of the files leave.

    Without a field as key or time, JSON lines and lines are the same records, so that lines are no assumption there.

    Raises:
        LogInputError: the files are of several formats, or can be read in two ways, or their names do not say.
    """
    for option, formats in _MEANT_FOR.items():
        if given[option] and len(formats) == 1:
            return formats[0]
    field = next((name for name in ("key", "timestamp_field") if given[name]), None)
    by_name = {source: _BY_NAME.get(PurePath(source).suffix.lower()) for source in inputs}
    if field is None and set(by_name.values()) <= {None, InputKind.JSONL}:
        return InputKind.LINES
    if len(set(by_name.values())) > 1:
        raise _several(by_name)
    name, kind = next(iter(by_name.items()))
    if kind is None:
        raise LogInputError(
            f"{_option(field or 'key')} needs records with fields, and the name of {_shown(name)} does not say their "
            "format",
            fix=f"give --format {_or(_WITH_FIELDS)}; lines of text take their key with --key-regex",
        )
    if kind is InputKind.CSV and field is None:
        raise LogInputError(
            f"{name} can be appended in two ways: each row as a JSON object with the names of the header, or each line "
            "as it is, the header too",
            fix="give --format csv for rows (with --raw they stay text, without the header), or --format lines",
        )
    return kind


def _several(by_name: Mapping[str, InputKind | None]) -> LogInputError:
    names = ", ".join(f"{_shown(name)} {kind or 'no format'}" for name, kind in list(by_name.items())[:5])
    return LogInputError(
        f"the names of the files say several formats: {names}",
        fix="append the files of each format by a command of their own, or give --format, which holds for all files",
    )


def _shown(name: str) -> str:
    return "standard input" if name == "-" else name


def _refuse_foreign_options(given: Mapping[str, Any], chosen: InputKind) -> None:
    """Refuse an option that would have no effect with this format."""
    for name, formats in _MEANT_FOR.items():
        if given[name] and chosen not in formats:
            other = "; lines take their key with --key-regex" if (name, chosen) == ("key", InputKind.LINES) else ""
            raise LogInputError(
                f"{_option(name)} means nothing for --format {chosen.value}",
                fix=f"use it with --format {_or(formats)}{other}",
            )
    if len(str(given["delimiter"])) != 1:
        raise LogInputError(f"--delimiter {given['delimiter']!r} is not one character")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _or(kinds: Sequence[InputKind]) -> str:
    return " or ".join(sorted(kind.value for kind in kinds))
