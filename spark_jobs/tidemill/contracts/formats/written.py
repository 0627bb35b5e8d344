"""Writes a draft as a contract file that `contract lint` accepts, and says what it had to leave out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from tidemill.contracts.compile import compile_document
from tidemill.contracts.document import Node, parse
from tidemill.contracts.files import SUFFIX
from tidemill.contracts.findings import Findings, Level
from tidemill.contracts.formats.draft import Draft, document_of
from tidemill.contracts.whole import Whole
from tidemill.core.contract.long_number import LongNumber
from tidemill.core.errors import InputError

_PLAIN = re.compile(r"[A-Za-z][\w-]*( [\w(),-]+)*", re.ASCII)
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
_KEPT = ("name", "logicalType", "items")
_ROUNDS, _SHOWN = 100, 5


def written(draft: Draft) -> tuple[str, tuple[str, ...]]:
    """The text of the contract file, and what it leaves out because a contract cannot have it.

    Raises:
        InputError: nothing is left that could be a contract.
    """
    document, losses = document_of(draft), list(draft.losses)
    identifying = [column.field.name for column in draft.columns if column.key]
    for _ in range(_ROUNDS):
        text = _dumped(document)
        findings = Findings(f"{draft.name}{SUFFIX}")
        root = parse(text, findings)
        contract = None if root is None else compile_document(Whole(root), Path(findings.file), findings)
        errors = [f for f in findings.sorted() if f.severity is Level.ERROR]
        if not errors and contract is None:
            reasons = "; ".join(["it has no field", *losses[:_SHOWN]])
            raise InputError(f"no contract can be made of this: {reasons}", fix="give something else")
        if not errors:
            return text, tuple(losses)
        parts = list(_parts(root, document)) if root else []
        removed: set[tuple[int, Any]] = set()
        for error in errors:
            fitting = [part for part in parts if part[0] <= error.line]
            if not fitting:
                reasons = "; ".join([error.message, *losses[:_SHOWN]])
                raise InputError(f"no contract can be made of this: {reasons}", fix=error.fix)
            _, name, holder, key = fitting[-1]
            if (id(holder), str(key)) not in removed:
                removed.add((id(holder), str(key)))
                losses.append(f"{name} is left out: {error.message}")
        _remove(parts, removed)
        losses += _without_part_of_key(document, identifying)
    raise InputError("no contract can be made of this: too much of it is wrong")


Part = tuple[int, str, Any, Any]
"""Where a part that can be left out begins, what it is called, what holds it, and its key or place there."""


def _parts(root: Node, document: dict[str, Any]) -> Iterator[Part]:
    """The parts that can be left out, in the order of the file."""
    for node, plain in zip(root.items("schema"), document["schema"], strict=True):
        for number, rule in enumerate(node.items("quality")):
            yield rule.line, f"the rule {rule.text('implementation')}", plain["quality"], number
        yield from _of_properties(node, plain, "")


def _of_properties(node: Node, plain: dict[str, Any], above: str) -> Iterator[Part]:
    listed = plain.get("properties", [])
    for number, (inner, each) in enumerate(zip(node.items("properties"), listed, strict=True)):
        name = f"{above}{each['name']}"
        yield inner.line, f"`{name}`", listed, number
        yield from _of_property(inner, each, name)


def _of_property(node: Node, plain: dict[str, Any], name: str) -> Iterator[Part]:
    for key, value in plain.items():
        child = node.child(key)
        if child is None or key in _KEPT:
            continue
        if key == "properties":
            yield from _of_properties(node, plain, f"{name}.")
            continue
        yield child.line, f"`{key}` of `{name}`", plain, key
        if key == "logicalTypeOptions":
            yield from ((n.line, f"`{o}` of `{name}`", value, o) for o, n in _pairs(child))
    items = node.child("items")
    if items is not None:
        yield from _of_property(items, plain["items"], f"{name}[]")


def _pairs(node: Node) -> Iterator[tuple[str, Node]]:
    if not isinstance(node.value, dict):
        return
    yield from node.value.items()


def _remove(parts: list[Part], removed: set[tuple[int, Any]]) -> None:
    """Remove parts of a list from its end, so that places stay true."""
    for _, _, holder, key in reversed(parts):
        if (id(holder), str(key)) in removed:
            del holder[key]


def _without_part_of_key(document: dict[str, Any], key: list[str]) -> Iterator[str]:
    """Leave out a primary key of which a column is missing, and say so: the others do not identify a row."""
    keyed = [each for each in document["schema"][0]["properties"] if "primaryKey" in each]
    missing = [name for name in key if name not in [each["name"] for each in keyed]]
    if not keyed or not missing:
        return
    for each in keyed:
        each.pop("primaryKey")
        each.pop("primaryKeyPosition", None)
    yield f"the primary key ({', '.join(key)}) is left out: there is no `{missing[0]}` in the contract"


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes text in quotes unless every reader of YAML takes it as text."""

    def ignore_aliases(self, data: object) -> bool:
        """Write values that stand twice twice."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


def written_number(dumper: yaml.SafeDumper, value: LongNumber) -> yaml.Node:
    """A number with all its digits."""
    return dumper.represent_scalar("tag:yaml.org,2002:float", str(value))


_Dumper.add_representer(str, _text)
_Dumper.add_representer(LongNumber, written_number)


def _dumped(document: dict[str, Any]) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text
