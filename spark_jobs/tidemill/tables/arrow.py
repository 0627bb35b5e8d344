"""Arrow tables with exactly the columns and types of a spec."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.schema import Field, spark_type
from tidemill.core.errors import Incompatible
from tidemill.tables.arrow_types import arrow_schema, arrow_type
from tidemill.tables.interface import TableSpec


def conform(table: pa.Table, spec: TableSpec, columns: tuple[str, ...] | None = None) -> pa.Table:
    """The rows with the spec's columns and types, in the order of the spec (or of `columns`).

    Text and bytes may be large or views; timestamps may have any unit and zone (without a zone, they are UTC). A
    missing column is null; a column that the spec does not name is dropped.

    Raises:
        Incompatible: a column cannot have the spec's type without loss.
    """
    fields = [spec.field(name) for name in (spec.columns if columns is None else columns)]
    return pa.Table.from_arrays([_column(table, spec, f) for f in fields], schema=arrow_schema(fields))


def padded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows, with a column of nulls for every column of `schema` that they lack."""
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field.name, pa.nulls(table.num_rows, field.type))
    return table


def _column(table: pa.Table, spec: TableSpec, field: Field) -> pa.ChunkedArray:
    wanted = arrow_type(field.type)
    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, wanted)])
    found = table[field.name]
    if found.type == wanted:
        return found
    if pa.types.is_null(found.type):
        return pa.chunked_array([pa.nulls(table.num_rows, wanted)])
    try:
        if _is_text(found.type) != _is_text(wanted):
            raise pa.ArrowTypeError("text is not parsed here")
        return found.cast(wanted)
    except pa.ArrowException as error:
        raise Incompatible(
            f"table {spec.name} ({spec.uri}): column {field.name!r} must be {spark_type(field.type)}, "
            f"the rows have {found.type}: {error}",
            fix="give rows of the declared type, or declare the type that the rows have",
        ) from error


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    return bool(
        pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type)
    )
