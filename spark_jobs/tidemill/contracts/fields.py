"""Converts the properties of a contract to typed fields."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidemill.contracts.document import Node
from tidemill.contracts.findings import UNUSABLE, Findings
from tidemill.contracts.nodes import closest
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar, nameable

_SCALARS: dict[str, dict[str, Scalar]] = {
    "string": {"": Scalar.STRING, "string": Scalar.STRING, "binary": Scalar.BINARY},
    "integer": {
        "": Scalar.LONG,
        "bigint": Scalar.LONG,
        "long": Scalar.LONG,
        "int": Scalar.INTEGER,
        "integer": Scalar.INTEGER,
    },
    "number": {"": Scalar.DOUBLE, "double": Scalar.DOUBLE},
    "boolean": {"": Scalar.BOOLEAN, "boolean": Scalar.BOOLEAN},
    "date": {"": Scalar.DATE, "date": Scalar.DATE},
    "timestamp": {"": Scalar.TIMESTAMP, "timestamp": Scalar.TIMESTAMP},
}
_DECIMAL = re.compile(r"(?:decimal|numeric|number)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)")
_EXACT = re.compile(r"(decimal|numeric|number)\s*\(")
_TYPES = (*_SCALARS, "array", "object")
_MEANT = {
    **dict.fromkeys(("text", "str", "varchar", "char", "uuid", "time"), "string"),
    **dict.fromkeys(("binary", "bytes"), "string with physicalType: binary"),
    **dict.fromkeys(("int", "int32", "int64", "long", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "real"), "number"),
    **dict.fromkeys(("decimal", "numeric"), "number with physicalType: decimal(p,s)"),
    "bool": "boolean",
    **dict.fromkeys(("datetime", "instant"), "timestamp"),
    "list": "array",
    **dict.fromkeys(("struct", "record"), "object"),
}
"""What to write for names of types in other languages."""

_PHYSICAL = {
    "string": "string text varchar char nvarchar nchar character varying uuid",
    "integer": "bigint long int64 int integer int32 smallint tinyint int4 int8",
    "number": "double float float64 float8 real decimal numeric",
    "boolean": "boolean bool",
    "date": "date",
    "timestamp": "timestamp timestamptz timestamp_tz timestamp_ntz timestamp_ltz datetime",
}
_OF_PHYSICAL = {name: logical for logical, names in _PHYSICAL.items() for name in names.split()}
"""The logical types of well-known physical types, for properties that have no other."""

_UNUSED = {
    "physicalName": "a column is called by its name",
    "partitioned": "the pipeline decides how its tables are partitioned",
    "partitionKeyPosition": "the pipeline decides how its tables are partitioned",
}
"""Keys that say how the source keeps its data. They promise nothing about values."""

_ONLY_ON_COLUMNS = ("primaryKey", "unique", "enum", "logicalTypeOptions", "quality")


def fields_of(properties: Iterable[Node], findings: Findings) -> tuple[Field, ...]:
    """Return the columns of a contract, in the order of the file. Properties that cannot be columns are noted."""
    return _fields(properties, findings, nested=False)


def lack_parts(properties: Iterable[Node]) -> bool:
    """Whether some array has no items, or some object no properties, at any depth: then nobody knows its type."""
    return any(_lacks_parts(node) for node in properties)


def _lacks_parts(node: Node) -> bool:
    if node.text("logicalType") == "array":
        items = node.child("items")
        return items is None or _lacks_parts(items)
    inner = node.items("properties")
    return node.text("logicalType") == "object" and (not inner or lack_parts(inner))


def _fields(properties: Iterable[Node], findings: Findings, *, nested: bool) -> tuple[Field, ...]:
    found: list[Field] = []
    lines: dict[str, int] = {}
    for node in properties:
        name = node.text("name")
        _check_property(node, findings, nested=nested)
        data_type = _type_of(node, findings)
        if not name:
            findings.error(node.line, "a property has no name", fix="add name")
        elif not nameable(name):
            said = f"property {name!r} has a quote, a backslash or a control character in its name"
            findings.error(node.line, said, fix="rename the property")
        elif name.lower() in lines:
            said = f"property `{name}` stands twice, first in line {lines[name.lower()]}; case does not matter"
            findings.error(node.line, said, fix="rename or remove one of them")
        else:
            lines[name.lower()] = node.line
            required = node.is_true("required") or node.is_true("primaryKey")
            if data_type is not None:
                found.append(Field(name=name, type=data_type, required=required, description=_description(node)))
    return tuple(found)


def _description(node: Node) -> str:
    return " ".join(node.text("description").split())


def _type_of(node: Node, findings: Findings) -> DataType | None:
    logical = node.child("logicalType") or _logical_of_physical(node, findings)
    if logical is None:
        findings.error(
            node.line, f"{_named(node)} has no logicalType", fix=f"add logicalType: one of {', '.join(_TYPES)}"
        )
        return None
    match logical.value:
        case "array":
            return _array(node, findings)
        case "object":
            return _object(node, findings)
        case str() as name if name in _SCALARS:
            return _scalar(node, name, findings)
        case str() as name:
            findings.error(
                logical.line,
                f"logicalType `{name}` cannot be run; supported: {', '.join(_TYPES)}",
                fix=_type_meant(name),
            )
    return None


def _logical_of_physical(node: Node, findings: Findings) -> Node | None:
    """The logical type that a well-known physical type has; None for any other.

    Also None with `logicalTypeOptions`, whose meaning the standard ties to a logical type that is written down.
    """
    physical = node.child("physicalType")
    name = node.text("physicalType").lower().partition("(")[0].strip()
    logical = _OF_PHYSICAL.get(name)
    if physical is None or logical is None or node.child("logicalTypeOptions") is not None:
        return None
    said = f"{_named(node)} has no logicalType; its physicalType `{node.text('physicalType')}` is read as {logical}"
    findings.information(physical.line, said)
    return Node(logical, physical.line)


def _type_meant(name: str) -> str:
    meant = _MEANT.get(name.lower().partition("(")[0].strip())
    return f"write logicalType: {meant}" if meant else closest(name, _TYPES)


def _scalar(node: Node, logical: str, findings: Findings) -> DataType | None:
    physical = node.text("physicalType")
    child = node.child("physicalType")
    line = child.line if child else node.line
    exact = _DECIMAL.fullmatch(physical.lower()) if logical == "number" else None
    if exact or (logical == "number" and _EXACT.match(physical.lower())):
        try:
            return Decimal(int(exact[1]), int(exact[2] or 0)) if exact else Decimal(0)
        except ValueError:
            message = f"physicalType `{physical}` cannot be run; supported: decimal(p,s) with s <= p <= 38"
            findings.error(line, message, fix="remove physicalType, or write both numbers, at most 38")
            return None
    found = _SCALARS[logical].get(physical.lower())
    if found is None:
        found = _SCALARS[logical][""]
        # Without a logical type, this is said already.
        if node.child("logicalType") is not None:
            findings.information(
                line, f"physicalType `{physical}` is the source's own; values are read as {found.value}"
            )
    return found


def _array(node: Node, findings: Findings) -> DataType | None:
    items = node.child("items")
    _name_physical_type(node, "array", findings)
    if items is None:
        said = f"{_named(node)} is an array without items, so {UNUSABLE}"
        findings.warning(node.line, said, fix="add items with a logicalType")
        return None
    _check_property(items, findings, nested=True)
    if items.is_true("required"):
        findings.error(items.line, "`required` cannot be run for the items of an array", fix="remove it")
    item = _type_of(items, findings)
    return None if item is None else Array(item)


def _object(node: Node, findings: Findings) -> DataType | None:
    _name_physical_type(node, "struct", findings)
    inner = _fields(node.items("properties"), findings, nested=True)
    if not node.items("properties"):
        said = f"{_named(node)} is an object without properties, so {UNUSABLE}"
        findings.warning(node.line, said, fix="add properties")
    return Object(inner) if inner else None


def _name_physical_type(node: Node, same: str, findings: Findings) -> None:
    physical = node.child("physicalType")
    if physical is not None and isinstance(physical.value, str) and physical.value.lower() != same:
        findings.information(
            physical.line, f"physicalType `{physical.value}` is the source's own; the parts of {_named(node)} say more"
        )


def _check_property(node: Node, findings: Findings, *, nested: bool) -> None:
    """Note what ODCS allows for a property but Tidemill cannot do."""
    named = _named(node)
    for key, reason in _refusals(node).items():
        child = node.child(key)
        if child is not None and reason:
            findings.error(child.line, f"`{key}` of {named} cannot be run: {reason}", fix="remove it")
    for key, reason in _UNUSED.items():
        child = node.child(key)
        if child is not None and child.value not in (False, -1):
            findings.information(child.line, f"`{key}` of {named} is not used: {reason}")
    for key, owner in (("items", "array"), ("properties", "object")):
        child = node.child(key)
        if child is not None and node.text("logicalType") != owner:
            findings.error(child.line, f"`{key}` of {named} belongs to logicalType {owner}", fix="remove it")
    for key in _ONLY_ON_COLUMNS if nested else ():
        child = node.child(key)
        if child is not None and child.value is not False:
            findings.error(
                child.line,
                f"`{key}` cannot be run inside an array or object: only columns have rules",
                fix="give the column a quality rule of type custom, engine tidemill, with an SQL predicate",
            )


def _refusals(node: Node) -> dict[str, str]:
    """Why each key cannot be used; empty if it can."""
    return {
        "relationships": "foreign keys are not checked" if node.items("relationships") else "",
        "map": "there is no type for maps",
        "semanticType": "a measure is no column" if node.text("semanticType") == "measure" else "",
    }


def _named(node: Node) -> str:
    name = node.text("name")
    return f"property `{name}`" if name else "the items"
