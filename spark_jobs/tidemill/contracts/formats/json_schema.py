"""Exports a contract as JSON Schema, draft 2020-12."""

from __future__ import annotations

import json
from typing import Any, assert_never

from tidemill.contracts.changes.described import Described
from tidemill.contracts.conditions import Condition
from tidemill.contracts.formats.exporting import Exported, Rules
from tidemill.core.contract.contract import Between, ExtraFields, LengthBetween, Matches, OneOf
from tidemill.core.contract.long_number import LongNumber
from tidemill.core.contract.row_checks import ItemsBetween, ItemsDistinct, MultipleOf
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar, spark_type

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCALARS: dict[Scalar, dict[str, str]] = {
    Scalar.STRING: {"type": "string"},
    Scalar.BINARY: {"type": "string", "contentEncoding": "base64"},
    Scalar.BOOLEAN: {"type": "boolean"},
    Scalar.INTEGER: {"type": "integer", "format": "int32"},
    Scalar.LONG: {"type": "integer"},
    Scalar.DOUBLE: {"type": "number"},
    Scalar.DATE: {"type": "string", "format": "date"},
    Scalar.TIMESTAMP: {"type": "string", "format": "date-time"},
}


def to_json_schema(source: Described) -> Exported:
    """The contract as a JSON Schema of one record or row."""
    contract, rules = source.contract, Rules(source, "JSON Schema")
    properties = {f.name: _property(f, rules) for f in contract.fields}
    closed = contract.format is not None and contract.extra_fields is ExtraFields.REJECT
    document = {
        "$schema": DIALECT,
        "title": contract.name,
        **({"description": contract.description} if contract.description else {}),
        **_object(properties, [f.name for f in contract.fields if rules.required(f.name)]),
        **({"additionalProperties": False} if closed else {}),
    }
    return Exported(text=json.dumps(document, indent=2, ensure_ascii=False) + "\n", losses=rules.losses())


def _property(field: Field, rules: Rules) -> dict[str, Any]:
    found = _field(field, rules, field.name, required=rules.required(field.name))
    used: set[str] = set()

    def takes(condition: Condition) -> bool:
        """Each keyword stands once."""
        keys = _keys(condition).keys()
        fits = bool(keys) and not used & keys and not _is_long(condition)
        used.update(keys)
        return fits

    for condition in rules.of_column(field.name, takes):
        more = _keys(condition)
        if "enum" in more and not rules.required(field.name):
            more = {"enum": [*more["enum"], None]}
        found |= more
    return found


def _field(field: Field, rules: Rules, name: str, *, required: bool) -> dict[str, Any]:
    found = _typed(field.type, rules, name)
    if not required:
        found["type"] = [found["type"], "null"]
    return found | ({"description": field.description} if field.description else {})


def _typed(data_type: DataType, rules: Rules, name: str) -> dict[str, Any]:
    match data_type:
        case Scalar():
            return dict(SCALARS[data_type])
        case Decimal():
            rules.lose(f"`{name}` is a number, not {spark_type(data_type)}: JSON Schema has no decimals")
            return {"type": "number"}
        case Array(item):
            inner = _typed(item, rules, f"{name}[]")
            return {"type": "array", "items": inner | {"type": [inner["type"], "null"]}}
        case Object(fields):
            inside = {f.name: _field(f, rules, f"{name}.{f.name}", required=f.required) for f in fields}
            return _object(inside, [f.name for f in fields if f.required])
        case _:
            assert_never(data_type)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _keys(condition: Condition) -> dict[str, Any]:
    """The keywords that say a condition; empty if there are none."""
    match condition:
        case Between():
            low = "exclusiveMinimum" if condition.exclusive_minimum else "minimum"
            high = "exclusiveMaximum" if condition.exclusive_maximum else "maximum"
            return _given({low: condition.minimum, high: condition.maximum})
        case LengthBetween(minimum=least, maximum=most):
            return _given({"minLength": least, "maxLength": most})
        case Matches(pattern=pattern) if not pattern.startswith("(?"):
            return {"pattern": f"^(?:{pattern})$"}
        case OneOf(values=values):
            return {"enum": list(values)}
        case MultipleOf(factor=factor):
            return {"multipleOf": factor}
        case ItemsBetween(minimum=least, maximum=most):
            return _given({"minItems": least, "maxItems": most})
        case ItemsDistinct():
            return {"uniqueItems": True}
        case _:
            return {}


def _is_long(condition: Condition) -> bool:
    """Whether JSON would round a number of the condition."""
    values = [each for value in _keys(condition).values() for each in (value if isinstance(value, list) else [value])]
    return any(isinstance(each, LongNumber) for each in values)


def _given(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}
