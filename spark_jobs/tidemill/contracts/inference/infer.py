"""Makes a draft of a contract from what was seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.compile import is_hidden
from tidemill.contracts.formats.draft import Column, Draft
from tidemill.contracts.inference.seen import Seen
from tidemill.core.contract.contract import Severity
from tidemill.core.contract.schema import DataType, Field, Scalar, nameable
from tidemill.core.counts import many
from tidemill.core.errors import InputError
from tidemill.tables.arrow_types import data_type

_OWN = ("batch_id", "published_at")


def draft_of_objects(name: str, objects: Iterable[Mapping[str, Any]]) -> Draft:
    """A contract of records in JSON.

    Raises:
        InputError: there is no object, or no field has one type.
    """
    whole = Seen()
    for each in objects:
        whole.add(each)
    _check_some(whole.values)
    lost: list[str] = []
    columns = [_column(field, whole.inside[field.name]) for field in whole.fields("", whole.values, lost)]
    return Draft(
        name=name,
        description=f"Inferred from {many(whole.values, 'record')}.",
        columns=tuple(_described(column, whole.inside[column.field.name], whole.values) for column in columns),
        format="json",
        extra_fields="keep",
        losses=tuple(lost),
    )


def draft_of_lines(name: str, header: list[str], rows: Iterable[list[str]], delimiter: str = "") -> Draft:
    """A contract of records in CSV, whose columns have the names of the header.

    Raises:
        InputError: there is no row.
    """
    seen = [Seen() for _ in header]
    count = 0
    for row in rows:
        count += 1
        for column, text in zip(seen, row, strict=True):
            column.add(_of_text(text))
    _check_some(count)
    columns = []
    names, lost = _names(header)
    for called, column in zip(names, seen, strict=True):
        field = Field(name=called, type=_csv_type(column), required=column.values == count)
        columns.append(_described(_column(field, column), column, count))
        lost += [] if column.values else [f"`{called}` is always empty: that it is a string is a guess"]
    return Draft(
        name=name,
        description=f"Inferred from {many(count, 'record')}.",
        columns=tuple(columns),
        format="csv",
        delimiter=delimiter,
        losses=tuple(lost),
    )


def _names(header: list[str]) -> tuple[list[str], list[str]]:
    """A name for each column of a header, and what to tell about it. A column that is left out would shift the others.

    A name that stands twice, or that no contract can have, becomes `column_` and the number of the column.
    """
    names: list[str] = []
    lost: list[str] = []
    for number, title in enumerate(header, 1):
        reason = "stands twice" if title.lower() in map(str.lower, names) else ""
        if title and (not nameable(title) or is_hidden(title)):
            reason = "is no name that a column can have"
        names.append(f"column_{number}" if reason or not title else title)
        lost += [f"the header {title!r} {reason}: column {number} is called `{names[-1]}`"] if reason else []
    return names, lost


def draft_of_rows(name: str, rows: pa.Table, *, is_table: bool) -> Draft:
    """A contract of rows that have types: of a table, or of records that are appended from Parquet as JSON.

    Raises:
        InputError: there is no row.
    """
    _check_some(rows.num_rows)
    columns, lost = [], []
    for field in rows.schema:
        if is_table and field.name in _OWN:
            continue
        found = _of_arrow(field.type, is_table=is_table)
        if found is None:
            lost.append(f"`{field.name}` is left out: {_why_not(field.type)}")
            continue
        column = rows.column(field.name)
        values = rows.num_rows - column.null_count
        described = f"In {values:,} of {many(rows.num_rows, 'row')}."
        known = Field(name=field.name, type=found, required=column.null_count == 0, description=described)
        columns.append(Column(field=known))
    return Draft(
        name=name,
        description=f"Inferred from {many(rows.num_rows, 'row')}.",
        columns=tuple(columns),
        format="" if is_table else "json",
        losses=tuple(lost),
    )


def _check_some(count: int) -> None:
    if not count:
        raise InputError("there is no record, so nothing can be inferred", fix="give a file with some records")


def _column(field: Field, seen: Seen) -> Column:
    allowed = seen.allowed() if field.type is Scalar.STRING else ()
    return Column(field=field, allowed=allowed, severity=Severity.WARNING)


def _described(column: Column, seen: Seen, count: int) -> Column:
    field = column.field
    said = f"In {seen.values:,} of {many(count, 'record')}."
    if not seen.values:
        said = f"Empty in {many(count, 'record')}: the type is a guess, check it."
    if column.allowed:
        said = f"{said[:-1]}, with {len(column.allowed)} different values."
    named = Field(name=field.name, type=field.type, required=field.required, description=said)
    return Column(field=named, allowed=column.allowed, severity=column.severity)


def _of_arrow(arrow: pa.DataType, *, is_table: bool) -> DataType | None:
    if pa.types.is_timestamp(arrow) and arrow.tz is None and not is_table:
        return Scalar.TIMESTAMP
    try:
        return data_type(arrow)
    except ValueError:
        return None


def _why_not(arrow: pa.DataType) -> str:
    if pa.types.is_timestamp(arrow) and arrow.tz is None:
        return "its times have no zone, and those of a table must have one; --of records takes them as UTC"
    return "it is always null, so it has no type" if pa.types.is_null(arrow) else f"contracts have no type for {arrow}"


_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,37})", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)


def _of_text(text: str) -> Any:
    """A cell of CSV as the value that it spells. Numbers with leading zeros are texts: they are codes."""
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _csv_type(seen: Seen) -> DataType:
    return seen.type("", []) or Scalar.STRING
