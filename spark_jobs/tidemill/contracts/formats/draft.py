"""A contract that is being made: what was found elsewhere, before it is written as YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as with_default
from typing import Any, assert_never

from tidemill.contracts.standard import WRITTEN
from tidemill.core.contract.contract import Severity
from tidemill.core.contract.row_checks import Plain
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar

_LOGICAL: Mapping[Scalar, Mapping[str, str]] = {
    Scalar.STRING: {"logicalType": "string"},
    Scalar.BINARY: {"logicalType": "string", "physicalType": "binary"},
    Scalar.BOOLEAN: {"logicalType": "boolean"},
    Scalar.INTEGER: {"logicalType": "integer", "physicalType": "int"},
    Scalar.LONG: {"logicalType": "integer"},
    Scalar.DOUBLE: {"logicalType": "number"},
    Scalar.DATE: {"logicalType": "date"},
    Scalar.TIMESTAMP: {"logicalType": "timestamp"},
}


@dataclass(frozen=True, slots=True)
class Allowed:
    """The only values of a column, and how much it matters."""

    values: tuple[Plain, ...] = ()
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A field with its rules. `options` are keys of `logicalTypeOptions`; `allowed` are the only values, if any.

    `more` are further lists of allowed values. `warned` are metrics that shall find nothing, and only warn.
    """

    field: Field
    key: bool = False
    unique: bool = False
    options: Mapping[str, Plain] = with_default(default_factory=dict)
    allowed: tuple[Plain, ...] = ()
    severity: Severity = Severity.ERROR
    more: tuple[Allowed, ...] = ()
    warned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A rule over several columns: Spark SQL over one row."""

    predicate: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A contract of records (`format` is given) or of a table. `losses` says what could not be taken over.

    `timestamp` is how records write moments; empty for texts.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    format: str = ""
    extra_fields: str = ""
    delimiter: str = ""
    timestamp: str = ""
    rules: tuple[Stated, ...] = ()
    version: str = "0.1.0"
    status: str = "draft"
    losses: tuple[str, ...] = ()


def whole_key(columns: Sequence[Column], key: Sequence[str], losses: list[str]) -> list[Column]:
    """The columns without a key of which a column is missing: the others do not identify a row. `key` is in lower case.

    What is left out is noted in `losses`.
    """
    names = {column.field.name.lower() for column in columns}
    missing = [name for name in key if name not in names]
    if not missing:
        return list(columns)
    losses.append(f"the primary key ({', '.join(key)}) is left out: there is no `{missing[0]}` in the contract")
    return [replace(column, key=False) for column in columns]


def document_of(draft: Draft) -> dict[str, Any]:
    """The draft as the keys and values of a contract file."""
    schema: dict[str, Any] = {"name": draft.name, "logicalType": "object", "description": draft.description}
    given = {"format": draft.format, "extraFields": draft.extra_fields, "delimiter": draft.delimiter}
    given["timestamp"] = draft.timestamp
    if draft.format:
        schema["customProperties"] = [{"property": name, "value": value} for name, value in given.items() if value]
    positions = {c.field.name: n for n, c in enumerate((c for c in draft.columns if c.key), 1)}
    if draft.rules:
        schema["quality"] = [_of_rule(rule) for rule in draft.rules]
    schema["properties"] = [_of_column(column, positions) for column in draft.columns]
    return {
        "apiVersion": WRITTEN,
        "kind": "DataContract",
        "id": draft.name,
        "version": draft.version,
        "status": draft.status,
        "schema": [schema],
    }


def _of_rule(rule: Stated) -> dict[str, Any]:
    named = {"name": rule.name} if rule.name else {}
    return {"type": "custom", "engine": "tidemill", **named, "implementation": rule.predicate}


def _of_column(column: Column, positions: Mapping[str, int]) -> dict[str, Any]:
    """A property; what is inside comes last, so that the line of a fault shows what it belongs to."""
    found = _of_field(column.field)
    inside = {key: found.pop(key) for key in ("items", "properties") if key in found}
    if column.key:
        found |= {"primaryKey": True, "primaryKeyPosition": positions[column.field.name]}
    if column.unique:
        found["unique"] = True
    if column.options:
        found["logicalTypeOptions"] = dict(column.options)
    lists = [Allowed(column.allowed, column.severity)] if column.allowed else []
    for number, each in enumerate([*lists, *column.more], 1):
        rule: dict[str, Any] = {"metric": "invalidValues", "arguments": {"validValues": list(each.values)}}
        # Rules of one column have names of their own.
        named = {"name": f"{column.field.name}.invalidValues{number}"} if number > 1 else {}
        found.setdefault("quality", []).append(named | rule | {"mustBe": 0, "severity": each.severity.value})
    for metric in column.warned:
        found.setdefault("quality", []).append({"metric": metric, "mustBe": 0, "severity": Severity.WARNING.value})
    return found | inside


def _of_field(field_: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field_.name}
    typed = _of_type(field_.type)
    inside = {key: typed.pop(key) for key in ("items", "properties") if key in typed}
    found |= typed
    if field_.required:
        found["required"] = True
    if field_.description:
        found["description"] = field_.description
    return found | inside


def _of_type(data_type: DataType) -> dict[str, Any]:
    match data_type:
        case Scalar():
            return dict(_LOGICAL[data_type])
        case Decimal(precision, scale):
            return {"logicalType": "number", "physicalType": f"decimal({precision},{scale})"}
        case Array(item):
            return {"logicalType": "array", "items": _of_type(item)}
        case Object(fields):
            return {"logicalType": "object", "properties": [_of_field(each) for each in fields]}
        case _:
            assert_never(data_type)
