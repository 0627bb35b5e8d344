"""Finds bounds that no value, or no allowed value, of a column can keep."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import is_number, shown
from tidemill.contracts.units import limits_of, units_of
from tidemill.contracts.values import bound, is_number_type
from tidemill.core.contract.long_number import exact_of
from tidemill.core.contract.schema import Field, Scalar

_SIDES = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
_SIZES = (("minLength", "maxLength"), ("minItems", "maxItems"))


def check_range(options: Node, field: Field, findings: Findings) -> None:
    """Note bounds that exclude each other, duplicate each other, or lie beyond all values of the column."""
    for one, other in _SIDES:
        second = options.child(other)
        if options.child(one) and second is not None:
            findings.error(second.line, f"`{field.name}` has both {one} and {other}", fix="keep one of them")
    low, high = (_first(options, side) for side in _SIDES)
    _check_beyond([low, high], field, findings)
    if low is not None and high is not None:
        _check_order(low, high, field, findings)
    for least, most in _SIZES:
        first, last = options.child(least), options.child(most)
        if first and last and is_number(first) and is_number(last):
            _check_order((least, first), (most, last), field, findings)


def check_enum(node: Node, options: Node | None, field: Field, findings: Findings) -> None:
    """Note an allowed value that the bounds of the same column refuse."""
    bounds = [] if options is None else [found for side in _SIDES if (found := _first(options, side)) is not None]
    for key, limit in bounds:
        limit_and_value = (key, limit), ("maximum", node)
        if not key.lower().endswith("minimum"):
            limit_and_value = ("minimum", node), (key, limit)
        if _is_above(*limit_and_value, field):
            said = f"`{field.name}`.enum: {shown(node)} can never be, because {key} is {limit.value}"
            findings.error(node.line, said, fix="remove it, or change the bound")


def _first(options: Node, keys: tuple[str, ...]) -> tuple[str, Node] | None:
    return next(((key, child) for key in keys if (child := options.child(key)) is not None), None)


def _check_order(low: tuple[str, Node], high: tuple[str, Node], field: Field, findings: Findings) -> None:
    if not _is_above(low, high, field):
        return
    (least, first), (most, last) = low, high
    turned = _is_above((least, last), (most, first), field)
    said = f"`{field.name}`: {least} {first.value} is above {most} {last.value}; no value can pass"
    if turned:
        said = f"`{field.name}`: no value is between {least} {first.value} and {most} {last.value}"
    findings.error(last.line, said, fix="" if turned else "exchange them")


def _is_above(low: tuple[str, Node], high: tuple[str, Node], field: Field) -> bool:
    """Whether no value keeps to both bounds. Bounds that are no values of the column are noted elsewhere."""
    exclusive = any(key.startswith("exclusive") for key, _ in (low, high))
    if field.type in (Scalar.LONG, Scalar.INTEGER) and all(
        bound(node, field.type) is not None for _, node in (low, high)
    ):
        least, most = (
            units_of(_number(node), field.type, lower=lower, exclusive=key.startswith("exclusive"))
            for (key, node), lower in ((low, True), (high, False))
        )
        return least > most
    values = list(_values([low[1], high[1]], field))
    return len(values) == 2 and (values[0] > values[1] or (exclusive and values[0] == values[1]))


def _values(nodes: list[Node], field: Field) -> Iterator[Any]:
    """The bounds as values that can be compared, without those that are no values of the column."""
    for node in nodes:
        if field.type not in (Scalar.DATE, Scalar.TIMESTAMP):
            if is_number(node):
                yield node.value if field.type is Scalar.DOUBLE else exact_of(node.value)
            continue
        try:
            moment = dt.datetime.fromisoformat(str(node.value))
        except ValueError:
            continue
        yield moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _check_beyond(bounds: list[tuple[str, Node] | None], field: Field, findings: Findings) -> None:
    if not is_number_type(field.type) or field.type is Scalar.DOUBLE:
        return
    lowest, highest = limits_of(field.type)
    for key, node in filter(None, bounds):
        if bound(node, field.type) is None:
            continue
        lower = key.lower().endswith("minimum")
        units = units_of(_number(node), field.type, lower=lower, exclusive=key.startswith("exclusive"))
        if (units > highest) if lower else (units < lowest):
            said = f"`{field.name}`: no value of this type keeps to {key} {node.value}; no value can pass"
            findings.error(node.line, said, fix="correct the number, or give the property a wider physicalType")


def _number(node: Node) -> int | float:
    assert isinstance(node.value, int | float)
    return node.value
