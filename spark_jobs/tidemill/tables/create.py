"""Creates a table, or changes it to fit its spec, without a JVM."""

from __future__ import annotations

from typing import assert_never

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType, VariantType
from deltalake.schema import Field as DeltaField
from deltalake.schema import Schema as DeltaSchema

from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar, spark_type
from tidemill.core.errors import EngineError, Incompatible
from tidemill.stores.refusals import refusal
from tidemill.tables.expected_version import ExpectedVersion
from tidemill.tables.handles import newest, open_table
from tidemill.tables.interface import TableSpec
from tidemill.tables.owner import OWNER, write_owner

PROTOCOL = (1, 2)
_ATTEMPTS = 5

DeltaType = PrimitiveType | ArrayType | MapType | StructType | VariantType

_DELTA_NAMES = {Scalar.INTEGER: "integer", Scalar.LONG: "long"}
_SPARK_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def ensure_table(
    spec: TableSpec, *, expected: ExpectedVersion | None = None, opened: DeltaTable | None = None
) -> DeltaTable:
    """Make sure that the table exists with every column of the spec; return a handle on it.

    A new table has protocol (1, 2), the spec's partitions, and descriptions as comments. An existing table gets missing
    columns and its owner; if it lacks nothing, nothing is written. Several processes may call this at once. The table
    is first checked against what is `expected`. `opened` is a handle that this process has opened before: a write that
    depends on what others have written since then conflicts with it.

    Raises:
        TableDamaged: the table is not what the ledger says.
        LedgerDamaged: the ledger lacks something that the table holds.
        ForeignTable: the table belongs to another pipeline.
        Incompatible: the table has other types or partitions, or needs a newer protocol.
        EngineError: the storage refuses, or other writers keep changing the table.
    """
    attempt = 1
    while True:
        try:
            handle = opened if opened is not None and attempt == 1 else newest(spec)
            if expected is not None:
                expected.check(spec, handle)
            if handle is None:
                _create(spec)
                handle = open_table(spec)
            write_owner(handle, spec)
            _evolve(handle, spec)
        except CommitFailedError as error:
            if attempt == _ATTEMPTS:
                raise EngineError(f"table {spec.name} ({spec.uri}) keeps changing: {error}") from error
            attempt += 1
        else:
            return handle


def check_protocol(handle: DeltaTable, spec: TableSpec) -> None:
    """Refuse a table that needs more of a writer than protocol (1, 2).

    Raises:
        Incompatible: it does.
    """
    found = handle.protocol()[:2]
    if found > PROTOCOL:
        raise Incompatible(
            f"table {spec.name} ({spec.uri}): expected protocol {PROTOCOL}, found {found}",
            fix="a feature was switched on (deletion vectors, change feed, column mapping, ...): "
            "switch it off and drop it, or publish to another table",
        )


def _create(spec: TableSpec) -> None:
    # A checkpoint of 2,000 files takes 5 ms, reading 100 commits one by one 10 ms.
    properties = {"delta.checkpointInterval": "10"}
    pruned_by = [f"`{c}`" for c in spec.pruned_by if c not in spec.partition_by]
    if spec.own:
        properties["delta.deletedFileRetentionDuration"] = "interval 0 seconds"
    if spec.owner:
        properties[OWNER] = spec.owner
    if pruned_by:
        properties["delta.dataSkippingStatsColumns"] = ",".join(pruned_by)
    try:
        DeltaTable.create(
            spec.uri,
            DeltaSchema([_delta_field(f) for f in spec.fields]),
            mode="ignore",
            partition_by=list(spec.partition_by),
            name=spec.name,
            description=spec.description or None,
            configuration=properties,
            raise_if_key_not_exists=False,
            # With retries, the loser of a race would commit its CREATE after the winner's table.
            commit_properties=CommitProperties(max_commit_retries=0),
            storage_options=spec.options,
        )
    except (DeltaError, OSError) as error:
        if newest(spec) is None:
            if refused := refusal(f"table {spec.name} cannot be made at {spec.uri}", error):
                raise refused from error
            raise EngineError(f"table {spec.name} cannot be made at {spec.uri}: {error}") from error


def _evolve(handle: DeltaTable, spec: TableSpec) -> None:
    check_protocol(handle, spec)
    partitions = tuple(handle.metadata().partition_columns)
    if partitions != spec.partition_by:
        raise _incompatible(spec, "the partitions", list(spec.partition_by), list(partitions))
    found = {f.name.lower(): f for f in handle.schema().fields}
    missing = []
    for field in spec.fields:
        column = found.get(field.name.lower())
        if column is None:
            missing.append(_delta_field(field))
        elif column.name != field.name:
            raise _incompatible(spec, "column", field.name, column.name)
        elif type_text(column.type) != spark_type(field.type):
            what = f"column {field.name!r}"
            raise _incompatible(spec, what, spark_type(field.type), type_text(column.type))
    if missing:
        handle.alter.add_columns(missing)


def _incompatible(spec: TableSpec, what: str, expected: object, found: object) -> Incompatible:
    return Incompatible(
        f"table {spec.name} ({spec.uri}): {what}: expected {expected}, found {found}",
        fix="declare what the table has, give the new column another name, or publish to another table",
    )


def _delta_field(field: Field) -> DeltaField:
    metadata = {"comment": field.description} if field.description else None
    return DeltaField(field.name, delta_type(field.type), nullable=True, metadata=metadata)


def delta_type(data_type: DataType) -> DeltaType:
    """The type in Delta's schema; everything inside is nullable."""
    match data_type:
        case Scalar():
            return PrimitiveType(_DELTA_NAMES.get(data_type, data_type.value))
        case Decimal(precision, scale):
            return PrimitiveType(f"decimal({precision},{scale})")
        case Array(item):
            return ArrayType(delta_type(item), contains_null=True)
        case Object(fields):
            return StructType([_delta_field(f) for f in fields])
        case _:
            assert_never(data_type)


def type_text(found: DeltaType) -> str:
    """A type from a table's schema as Spark SQL text, which does not show whether inner values may be null."""
    match found:
        case ArrayType():
            return f"array<{type_text(found.element_type)}>"
        case MapType():
            return f"map<{type_text(found.key_type)}, {type_text(found.value_type)}>"
        case StructType():
            return f"struct<{', '.join(f'`{f.name}`: {type_text(f.type)}' for f in found.fields)}>"
        case PrimitiveType():
            return _SPARK_NAMES.get(found.type, found.type)
        case VariantType():
            return "variant"
        case _:
            assert_never(found)
