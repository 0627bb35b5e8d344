"""Compares a document with the JSON schema of the Open Data Contract Standard, and says each difference with its line.

The schema is the one of ODCS 3.2.0, which the package `open-data-contract-standard` ships; it takes documents of
earlier versions, too. The schema sees one contract, object or property at a time, without the properties inside: it
would look at these again and again, 3 times as often at each level.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft201909Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]
from referencing import Registry
from referencing.jsonschema import DRAFT201909

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings, Level
from tidemill.contracts.nodes import closest, shown, without_quotes, written
from tidemill.contracts.standard import NEWEST, VERSIONS

_URI = "odcs"
_KINDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
}
_TITLES = {
    "schema": "a schema object",
    "properties": "a property",
    "items": "the items of an array",
    "quality": "a quality rule",
    "enum": "a value of an enum",
    "synonyms": "a synonym",
    "customProperties": "a custom property",
    "authoritativeDefinitions": "an authoritative definition",
    "description": "a description",
    "servers": "a server",
    "support": "a support channel",
    "price": "a price",
    "team": "a team",
    "members": "a team member",
    "roles": "a role",
    "slaProperties": "an SLA property",
}
_ITEM = {"logicalType": "string"}
_INSIDE: Mapping[str, Any] = {"schema": [], "properties": [], "items": _ITEM, "key": _ITEM, "value": _ITEM}
"""What stands in for the parts of a document that are compared on their own."""

_NEWER = frozenset({"deprecated", "synonyms", "context", "semanticType", "enum", "map"})
"""Keys of objects and properties, and of the whole contract, that came with the newest version."""

_EXPLAINED = {"logicalTypeOptions", "arguments", "relationships"}
"""Keys whose values are explained where their meaning is read."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A contract, object or property, what it is called, and its definition in the schema."""

    node: Node
    definition: str
    title: str


def check_structure(root: Node, objects: Iterable[Node], findings: Findings, *, with_root: bool = True) -> None:
    """Note all that the standard's schema refuses in these objects of a document and, `with_root`, in itself.

    Unknown keys, missing keys and wrong kinds of values are always noted. Other differences are noted only in lines
    where no error has been noted before: call this after all that reads the document's meaning.
    """
    good: set[str] = set()
    for part in _parts(root if with_root else None, objects):
        _note_newer(part, root.text("apiVersion"), findings)
        seen = _seen(part)
        shape = _shape(part, seen)
        errors = [] if shape in good else list(_validator(part.definition).iter_errors(seen))
        good |= set() if errors else {shape}
        differences = [leaf for error in errors for leaf in _leaves(error)]
        for error in sorted(differences, key=lambda e: e.validator not in ("type", "required")):
            _note(error, part, findings)


def _parts(root: Node | None, objects: Iterable[Node]) -> Iterator[_Part]:
    yield from () if root is None else (_Part(root, "#", "a contract"),)
    for item in objects:
        yield _Part(item, "#/$defs/SchemaObject", _TITLES["schema"])
        for node in item.items("properties"):
            yield from _property(_Part(node, "#/$defs/SchemaProperty", _TITLES["properties"]))


def _property(part: _Part) -> Iterator[_Part]:
    yield part
    for node in part.node.items("properties"):
        yield from _property(_Part(node, "#/$defs/SchemaProperty", _TITLES["properties"]))
    pairs = part.node.child("map")
    inner = [("items", part.node), *(((key, pairs) for key in ("key", "value")) if pairs else ())]
    for key, owner in inner:
        child = owner.child(key)
        if child is not None:
            title = _TITLES["items"] if key == "items" else f"the {key} of a map"
            yield from _property(_Part(child, "#/$defs/SchemaItemProperty", title))


@cache
def _schema() -> Mapping[str, Any]:
    text = (resources.files("open_data_contract_standard") / "schema.json").read_text(encoding="utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


@cache
def _validator(definition: str) -> Draft201909Validator:
    known: Registry[Any] = Registry().with_resource(_URI, DRAFT201909.create_resource(_schema()))
    return Draft201909Validator({"$ref": f"{_URI}{definition}"}, registry=known)


def _seen(part: _Part) -> Any:
    """The part as the schema's validator takes it.

    Where a property has no logical type, the schema holds it to the options of all types at once: it gets one.
    """
    plain = _plain(part.node, top=True)
    if isinstance(plain, dict) and part.definition not in ("#", "#/$defs/SchemaObject") and "logicalType" not in plain:
        plain = {key: value for key, value in plain.items() if key not in _EXPLAINED} | _ITEM
    return plain


def _shape(part: _Part, seen: Any) -> str:
    """What the schema says about a part depends on this alone. Most properties differ in names and descriptions."""
    free = {k: "" for k in ("name", "description") if isinstance(seen, dict) and isinstance(seen.get(k), str)}
    return repr((part.definition, seen | free if free else seen))


def _plain(node: Node, *, top: bool = False) -> Any:
    """The value as the schema's validator takes it; with `top`, without the parts that are compared on their own."""
    match node.value:
        case Mapping() as mapping:
            return {key: _stub(key, child) if top else _plain(child) for key, child in mapping.items()}
        case tuple() as items:
            return [_plain(item) for item in items]
        case value:
            return value


def _stub(key: str, child: Node) -> Any:
    if key == "map" and isinstance(child.value, Mapping):
        return _plain(child, top=True)
    empty = _INSIDE.get(key)
    same = isinstance(child.value, tuple if isinstance(empty, list) else Mapping)
    return empty if empty is not None and same else _plain(child)


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """What is wrong in the branch that the writer most likely meant, where a value may have one of several shapes."""
    if not error.context:
        yield error
        return
    branches: dict[object, list[ValidationError]] = {}
    for below in error.context:
        branches.setdefault(below.schema_path[0], []).append(below)
    fitting = [b for b in branches.values() if not any(e.validator == "type" and not e.path for e in b)]
    if len(fitting) == 1:
        for below in fitting[0]:
            yield from _leaves(below)
    else:
        yield error


def _note_newer(part: _Part, version: str, findings: Findings) -> None:
    for key in sorted(_NEWER) if version in VERSIONS and version != NEWEST else ():
        child = part.node.child(key)
        if child is not None:
            message = f"`{key}` came with ODCS {NEWEST}, but this contract says {version}"
            findings.warning(child.line, message, fix=f"write apiVersion: {NEWEST}")


def _note(error: ValidationError, part: _Part, findings: Findings) -> None:
    path = list(error.absolute_path)
    node, names = _place(part.node, path)
    if names == ["apiVersion"]:
        return
    title = next((_TITLES[name] for name in reversed(names) if name in _TITLES), part.title)
    called = _called(path, title)
    explained = bool(_EXPLAINED & set(names))
    match error.validator:
        case "additionalProperties" | "unevaluatedProperties" if not explained:
            _note_unknown(error, node, title, findings)
        case "required" if not explained and "quality" not in names:
            for key in error.validator_value:
                if node.child(key) is None and key != "apiVersion":
                    findings.error(node.line, f"{called}: `{key}` is missing; {title} must have it")
        case "type" if not explained:
            _note_kind(error, node, called, title, findings)
        case _:
            _note_other(error, node, called, findings)


def _place(node: Node, path: Iterable[str | int]) -> tuple[Node, list[str]]:
    """The node at this path, and the keys that lead to it."""
    names: list[str] = []
    for step in path:
        value = node.value
        if isinstance(step, str) and isinstance(value, Mapping):
            node = value[step]
            names.append(step)
        elif isinstance(step, int) and isinstance(value, tuple):
            node = value[step]
    return node, names


def _called(path: Sequence[str | int], title: str) -> str:
    match path:
        case [*_, str() as name, int()]:
            return f"an item of `{name}`"
        case [*_, str() as name]:
            return f"`{name}`"
    return title


def _note_unknown(error: ValidationError, node: Node, title: str, findings: Findings) -> None:
    known = sorted(_keys(error.schema))
    for key, child in node.value.items() if isinstance(node.value, Mapping) else ():
        if key in known:
            continue
        findings.error(
            child.line,
            f"unknown key `{key}` in {title}; ODCS knows {', '.join(known)}",
            fix="write the keys out that `<<` takes from elsewhere"
            if key == "<<"
            else closest(key, known) or "an extension goes into customProperties",
        )


def _keys(schema: Any) -> set[str]:
    """All keys that a definition gives a mapping, whatever they depend on."""
    if not isinstance(schema, Mapping):
        return set()
    found = set(schema.get("properties", ()))
    named = str(schema.get("$ref", ""))
    if named.startswith("#/$defs/"):
        found |= _keys(_schema()["$defs"][named.removeprefix("#/$defs/").partition("/")[0]])
    for word in ("allOf", "anyOf", "oneOf"):
        for below in schema.get(word, ()):
            found |= _keys(below)
    return found | _keys(schema.get("then"))


def _note_kind(error: ValidationError, node: Node, called: str, title: str, findings: Findings) -> None:
    kind = error.validator_value
    kinds = [kind] if isinstance(kind, str) else list(kind)
    expected = " or ".join(_KINDS.get(name, f"the keys of {title}") for name in kinds)
    findings.error(
        node.line, f"{called}: expected {expected}, found {shown(node)}", fix=_fix_of_kind(kinds, node, title)
    )


def _fix_of_kind(kinds: Sequence[str], node: Node, title: str) -> str:
    if title == _TITLES["enum"] and kinds == ["object"]:
        return f"write {{value: {written(node)}}}"
    if set(kinds) <= {"integer", "number"}:
        return without_quotes(node)
    if kinds == ["string"] and not isinstance(node.value, tuple | Mapping):
        return "put it in quotes"
    if kinds == ["boolean"] and isinstance(node.value, str):
        return "write true or false, in lower case and without quotes"
    return "start each item with a dash" if kinds == ["array"] else ""


def _note_other(error: ValidationError, node: Node, called: str, findings: Findings) -> None:
    inside = node.value.values() if isinstance(node.value, Mapping) else ()
    lines = {node.line, *(child.line for child in inside)}
    if any(f.line in lines and f.severity is Level.ERROR for f in findings.all):
        return
    limit = error.validator_value
    match error.validator:
        case "additionalProperties" | "unevaluatedProperties":
            _note_unknown(error, node, called, findings)
            return
        case "enum":
            expected, fix = f"one of {', '.join(map(str, limit))}", closest(str(node.value), map(str, limit))
        case "pattern":
            expected, fix = f"a text that fits the pattern {limit}", ""
        case "uniqueItems":
            findings.error(node.line, f"{called} has an item twice", fix="remove one of them")
            return
        case "anyOf" | "oneOf":
            expected, fix = "one of the shapes that the standard gives", ""
        case "type":
            expected, fix = str(_KINDS.get(limit, "keys and values")), ""
        case name:
            expected, fix = f"{name} {limit if isinstance(limit, int | float | str) else ''}".rstrip(), ""
    findings.error(node.line, f"{called} is {shown(node)}; the schema of ODCS expects {expected}", fix=fix)
