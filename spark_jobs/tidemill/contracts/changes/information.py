"""What changed for people and other tools: keys of a contract by which Tidemill reads and checks nothing."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from tidemill.contracts.document import Node
from tidemill.contracts.extensions import NAMES, VENDOR
from tidemill.contracts.nodes import plain

UNIT = "unit"
"""The custom property with the unit of a column."""

_KINDS = ("description-changed", "information-changed")
_TYPES = ("logicalType", "physicalType")
_OF_CONTRACT = ("kind", "version", "status", "schema", "slaProperties", "description")
_OF_OBJECT = ("properties", "quality", "customProperties", "description", "deprecated")
_OF_PROPERTY = (
    *("name", "logicalTypeOptions", "required", "primaryKey", "primaryKeyPosition", "unique", "quality", "enum"),
    *("customProperties", "description", "deprecated", "properties", "items"),
)
"""Keys whose changes are told by what they do, or one by one."""

_OF_RULE = (
    *("id", "dimension", "businessImpact", "method", "schedule", "scheduler", "tags"),
    *("authoritativeDefinitions", "customProperties"),
)
"""Keys of a quality rule that say something about it."""

Told = tuple[str, str, int]
"""The kind of a change, what it says, and its line."""


def of_contract(old: Node, new: Node) -> Iterator[Told]:
    """Of the contract as a whole."""
    yield from _of_keys(old, new, _OF_CONTRACT)
    before, after = (node.child("description") or Node(None, node.line) for node in (old, new))
    if _said(before) != _said(after):
        parts = [key for key in _keys(before, after) if _part(before, key) != _part(after, key)]
        yield (_KINDS[0], ", ".join(parts), after.line)


def of_object(old: Node, new: Node) -> Iterator[Told]:
    """Of a schema object, without its properties."""
    yield from _of_keys(old, new, _OF_OBJECT)
    yield from _of_custom_properties(old, new, _is_ours)
    yield from _of_rules(old, new)
    yield from _of_description(old, new)


def of_property(old: Node, new: Node, ruled: Container[str], *, same_type: bool) -> Iterator[Told]:
    """Of a property, without its description, and without those inside. `ruled` are its options that are rules."""
    yield from _of_keys(old, new, (*_OF_PROPERTY, *(() if same_type else _TYPES)))
    yield from _of_custom_properties(old, new, lambda node: node.text("property") == UNIT)
    yield from _of_unit(old, new)
    yield from _of_rules(old, new)
    before, after = (node.child("logicalTypeOptions") or Node(None, node.line) for node in (old, new))
    yield from _of_keys(before, after, [key for key in _keys(before, after) if key in ruled or not same_type])


def of_items(old: Node, new: Node, *, same_type: bool) -> Iterator[Told]:
    """Of the items of an array."""
    yield from of_property(old, new, (), same_type=same_type)
    yield from _of_description(old, new)


def _of_description(old: Node, new: Node) -> Iterator[Told]:
    if _part(old, "description") != _part(new, "description"):
        yield (_KINDS[0], "", (new.child("description") or new).line)


def _of_keys(old: Node, new: Node, told: Container[str]) -> Iterator[Told]:
    for key in _keys(old, new):
        before, after = _part(old, key), _part(new, key)
        if key not in told and before != after:
            yield (_KINDS[1], f"{key}{_values(before, after)}", (new.child(key) or new).line)


def _of_custom_properties(old: Node, new: Node, is_told: Callable[[Node], bool]) -> Iterator[Told]:
    nodes = [[n for n in place.items("customProperties") if not is_told(n)] for place in (old, new)]
    first, second = ({(n.text("vendor"), n.text("property")): n for n in each} for each in nodes)
    for key in sorted(first.keys() | second.keys()):
        before, after = first.get(key), second.get(key)
        if _said(before) != _said(after):
            values = (_part(before, "value"), _part(after, "value"))
            yield (_KINDS[1], f"{key[1]}{_values(*values)}", (after or new).line)


def _of_unit(old: Node, new: Node) -> Iterator[Told]:
    """What is said about a unit; the unit itself is told as such."""
    first, second = (
        next((n for n in place.items("customProperties") if n.text("property") == UNIT), None) for place in (old, new)
    )
    if first is not None and second is not None:
        for key in _keys(first, second):
            if key != "value" and _part(first, key) != _part(second, key):
                yield (_KINDS[key != "description"], UNIT, second.line)


def _is_ours(node: Node) -> bool:
    return node.text("property") in NAMES and node.text("vendor") in ("", VENDOR)


def _of_rules(old: Node, new: Node) -> Iterator[Told]:
    """What is said about quality rules. Where one came or went, that is told."""
    first, second = old.items("quality"), new.items("quality")
    for before, after in zip(first, second, strict=True) if len(first) == len(second) else ():
        yield from _of_keys(before, after, [key for key in _keys(before, after) if key not in _OF_RULE])
        yield from _of_description(before, after)


def _keys(*nodes: Node) -> list[str]:
    return list(dict.fromkeys(key for node in nodes if isinstance(node.value, Mapping) for key in node.value))


def _part(node: Node | None, key: str) -> Any:
    return _said(node.child(key)) if node is not None else None


def _said(node: Node | None) -> Any:
    return None if node is None else _in_words(plain(node))


def _in_words(value: Any) -> Any:
    """The value without the blanks and ends of lines of its texts."""
    match value:
        case str():
            return " ".join(value.split())
        case list():
            return [_in_words(each) for each in value]
        case dict():
            return {key: _in_words(each) for key, each in value.items()}
        case _:
            return value


def _values(before: Any, after: Any) -> str:
    """Both values, if they are short."""
    if any(isinstance(value, list | dict) for value in (before, after)):
        return ""
    return " " + ", now ".join("none" if value is None else str(value) for value in (before, after))
