"""What is wrong with the rules of columns whose type nobody knows: only what would be wrong with any type.

A wrong type must not hide what else is wrong with its column, and must not make faults of rules that are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings, common
from tidemill.contracts.options import check_options
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar, nameable

_NUMBERS: tuple[DataType, ...] = (Scalar.DOUBLE, Decimal(38, 18))
_ANY: tuple[DataType, ...] = (
    *(Scalar.STRING, Scalar.LONG, *_NUMBERS, Scalar.BOOLEAN, Scalar.DATE, Scalar.TIMESTAMP, Scalar.BINARY),
    *(Array(Scalar.STRING), Array(Scalar.LONG), Object(())),
)

Check = Callable[[Mapping[str, Field], Findings], object]
"""Checks the rules of columns by name."""


def names_without_type(properties: Sequence[Node], typed: Sequence[Field]) -> tuple[str, ...]:
    """The names of those properties that are no columns only because their type is wrong or unknown."""
    known = {field.name.lower() for field in typed}
    return tuple(name for name in _columns(properties) if name.lower() not in known)


def check_untyped(
    properties: Sequence[Node], typed: Mapping[str, Field], names: Sequence[str], findings: Findings, check: Check
) -> None:
    """Note what `check` notes whichever types the columns of these names have, and options that no type has."""
    for name, node in _columns(properties).items():
        if name in names:
            check_options(node, name, _types_of(node), findings)
    guesses = _guesses(properties, typed, names)
    for each in common(_noted(check, fields, findings.file) for fields in guesses):
        findings.add(each)


def _noted(check: Check, fields: Mapping[str, Field], file: str) -> Findings:
    findings = Findings(file)
    check(fields, findings)
    return findings


def _columns(properties: Sequence[Node]) -> Mapping[str, Node]:
    """The first property of each name that a column can have."""
    first: dict[str, Node] = {}
    for node in properties:
        first.setdefault(node.text("name").lower(), node)
    return {node.text("name"): node for name, node in first.items() if name and nameable(name)}


def _types_of(node: Node) -> tuple[DataType, ...]:
    return _NUMBERS if node.text("logicalType") == "number" else _ANY


def _guesses(
    properties: Sequence[Node], typed: Mapping[str, Field], names: Sequence[str]
) -> Iterator[Mapping[str, Field]]:
    """The columns in the order of the file, with each type in turn for those that have none."""
    for number in range(len(_ANY)):
        fields: dict[str, Field] = {}
        for name, node in _columns(properties).items():
            types = _types_of(node)
            if name in typed:
                fields[name] = typed[name]
            elif name in names:
                required = node.is_true("required") or node.is_true("primaryKey")
                fields[name] = Field(name=name, type=types[number % len(types)], required=required)
        yield fields
