"""Fingerprints of contracts: a fingerprint changes with the meaning of the contract, and with nothing else.

As in `tidemill.core.identity.declarations`, never change the tags and names: stored fingerprints depend on them.
"""

from __future__ import annotations

from typing import Any, assert_never

from tidemill.core.contract.contract import (
    Argument,
    Between,
    Check,
    Compare,
    Contract,
    Expectation,
    ExtraFields,
    Format,
    Holds,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    TableRule,
    Unique,
)
from tidemill.core.contract.long_number import json_of
from tidemill.core.contract.row_checks import (
    Bounded,
    ItemsBetween,
    ItemsDistinct,
    MultipleOf,
    NoneOf,
    NotNullInside,
    RowCheck,
)
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar
from tidemill.core.contract.scope import Scope
from tidemill.core.identity.declarations import digest


def fingerprint_of(contract: Contract) -> str:
    """A SHA-256 of what a contract means: columns, types, format, keys and rules with their names.

    The contract's own name, its version, descriptions, comments, and the file's place and layout do not matter.
    """
    return digest(
        {
            "fields": [field_meaning(f) for f in contract.fields],
            "format": None if contract.format is None else contract.format.value,
            "extra_fields": extra_meaning(contract),
            "primary_key": list(contract.primary_key),
            "options": dict(contract.options),
            "row_rules": [[r.name, r.predicate, r.severity.value] for r in contract.row_rules],
            "table_rules": [_rule_meaning(rule) for rule in contract.table_rules],
        }
    )


def _rule_meaning(rule: TableRule) -> list[Any]:
    meaning: list[Any] = [rule.name, *_check_meaning(rule.check), rule.severity.value]
    told = rule.tolerance
    if told is not None:
        meaning.append([told.comparison, [json_of(n) for n in told.numbers], told.percent])
    return meaning if rule.scope is Scope.BATCH else [*meaning, rule.scope.value]


def extra_meaning(contract: Contract) -> str:
    """What happens to fields that the contract does not name. Only JSON has such fields; other formats give KEEP."""
    return (contract.extra_fields if contract.format is Format.JSON else ExtraFields.KEEP).value


def field_meaning(field: Field) -> list[Any]:
    """A column as JSON values: its name, its type, and whether null is refused."""
    return [field.name, type_meaning(field.type), field.required]


def type_meaning(data_type: DataType) -> Any:
    """A type as JSON values."""
    match data_type:
        case Scalar() as scalar:
            return scalar.value
        case Decimal(precision, scale):
            return ["decimal", precision, scale]
        case Array(item):
            return ["array", type_meaning(item)]
        case Object(fields):
            return ["object", [field_meaning(f) for f in fields]]
        case _:
            assert_never(data_type)


def _check_meaning(check: Check) -> tuple[str, dict[str, Any]]:
    """A check of a table as its tag and its settings, without bounds that are None."""
    match check:
        case NotNull():
            return "NotNull", {"column": check.column}
        case Unique():
            return "Unique", {"columns": list(check.columns)}
        case Between():
            strict = {"exclusive_minimum": check.exclusive_minimum, "exclusive_maximum": check.exclusive_maximum}
            return "Between", {"column": check.column, **_bounds(check), **strict}
        case OneOf():
            return "OneOf", {"column": check.column, "values": [json_of(v) for v in check.values]}
        case Matches():
            return "Matches", {"column": check.column, "pattern": check.pattern}
        case LengthBetween():
            return "LengthBetween", {"column": check.column, **_bounds(check)}
        case RowCountBetween():
            return "RowCountBetween", _bounds(check)
        case Compare() | Holds() | Expectation():
            return _stated_meaning(check)
        case _:
            return _row_check_meaning(check)


def _stated_meaning(check: Compare | Holds | Expectation) -> tuple[str, dict[str, Any]]:
    match check:
        case Compare():
            return "Compare", {"left": check.left, "operator": check.operator, "right": check.right}
        case Holds():
            return "Holds", {"columns": list(check.columns), "predicate": check.predicate}
        case Expectation():
            arguments = [[_argument(part) for part in pair] for pair in check.arguments]
            return "Expectation", {"column": check.column, "kind": check.kind, "arguments": arguments}


def _argument(value: Argument) -> Any:
    return [json_of(each) for each in value] if isinstance(value, tuple) else json_of(value)


def _row_check_meaning(check: RowCheck) -> tuple[str, dict[str, Any]]:
    match check:
        case Bounded():
            return "Bounded", {"column": check.column, "operator": check.operator, "bound": check.bound}
        case MultipleOf():
            return "MultipleOf", {"column": check.column, "factor": json_of(check.factor)}
        case NoneOf():
            return "NoneOf", {
                "column": check.column,
                "values": [json_of(v) for v in check.values],
                "null_too": check.null_too,
            }
        case ItemsBetween():
            return "ItemsBetween", {"column": check.column, **_bounds(check)}
        case ItemsDistinct():
            return "ItemsDistinct", {"column": check.column}
        case NotNullInside():
            return "NotNullInside", {"column": check.column, "path": list(check.path)}
        case _:
            assert_never(check)


def _bounds(check: Between | LengthBetween | RowCountBetween | ItemsBetween) -> dict[str, Any]:
    bounds = {"minimum": check.minimum, "maximum": check.maximum}
    return {name: json_of(bound) for name, bound in bounds.items() if bound is not None}
