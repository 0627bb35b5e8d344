"""Every construct of the Open Data Contract Standard, each in a contract of its own, made of the standard's schema.

A construct is a key, or a value on which other keys depend. The schema is that of 3.2, the newest version; it also has
every key of 3.0 and 3.1. What properties and rules have inside is tried wherever these may stand, what anything else
has inside (a tag, a custom property) at its first place.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

Json = Any
Pointer = tuple[str | int, ...]

_TEXTS = {"date": "2024-01-31", "date-time": "2024-01-31T00:00:00Z", "uri": "https://example.org/a"}
_GIVEN: dict[str, Json] = {
    "type": "custom",
    "query": "SELECT COUNT(*) FROM ${object} WHERE x IS NULL",
    "pattern": "a+",
    "from": "t.x",
    "to": "t.y",
    "dateIn": "2024-01-31",
    "dateOut": "2024-01-31",
    "engine": "greatExpectations",
    "implementation": {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 0}},
    "unit": "rows",
    "mustBeLessThan": 5,
    "minimum": 1,
    "maximum": 9,
    "defaultTimezone": "Etc/UTC",
    "dimension": "accuracy",
    "severity": "warning",
    "arguments": {"properties": ["x"]},
    "schema": [{"name": "t", "properties": [{"name": "x", "logicalType": "string"}]}],
    "properties": [{"name": "x", "logicalType": "string"}],
}
"""Values of keys whose meaning the schema does not give."""

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_BY_TYPE: dict[tuple[str, str], Json] = {
    **{(name, key): "2024-01-31" for name in ("date", "timestamp", "time") for key in _BOUNDS},
    ("integer", "format"): "i64",
    ("number", "format"): "f64",
    ("date", "format"): "yyyy-MM-dd",
    ("string", "format"): "uuid",
    ("string", "enum"): [{"value": "a"}],
}
_ALSO: dict[str, dict[str, Json]] = {
    "primaryKeyPosition": {"primaryKey": True},
    "unit": {"mustBe": 0},
    "arguments": {"mustBe": 0},
    "rule": {"mustBe": 0},
    "properties": {"logicalType": "object"},
}
"""What else must stand beside a key."""

_SIGNS = ("", "GreaterThan", "GreaterOrEqualTo", "LessThan", "LessOrEqualTo", "Between")
_OPERATORS = frozenset([*(f"mustBe{sign}" for sign in _SIGNS), "mustNotBe", "mustNotBeBetween"])
_OF_COLUMN = {"metric": "invalidValues", "arguments": {"validValues": ["a"]}}
_OF_ROWS = {"arguments": {"properties": ["x"]}}
_MOST_NESTED = 2
_EVERYWHERE = ("SchemaObject", "SchemaProperty", "SchemaItemProperty", "DataQuality")


@dataclass(frozen=True, slots=True)
class Construct:
    """A contract that uses one construct, and the same without it. `pointer` leads to the construct."""

    place: str
    key: str
    pointer: Pointer
    document: Json
    without: Json

    @property
    def path(self) -> str:
        """For example `schema[].properties[].logicalTypeOptions (string).minLength`."""
        return f"{self.place}.{self.key}" if self.place else self.key


@dataclass(frozen=True, slots=True)
class _Here:
    """A mapping in a document, its definition, and the definitions around it."""

    document: Json
    pointer: Pointer
    place: str
    definition: Mapping[str, Json]
    around: tuple[str, ...] = ()
    type: str = ""
    seen: set[str] = field(default_factory=set)


@cache
def schema() -> Mapping[str, Json]:
    """The schema of the newest version."""
    text = (resources.files("open_data_contract_standard") / "schema.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Json] = json.loads(text)
    return loaded


def base(*, is_input: bool, version: str = "v3.2.0") -> Json:
    """A contract of one column, about the records of a topic or the rows of a table."""
    custom = {"customProperties": [{"property": "format", "value": "json"}]} if is_input else {}
    one: Json = {"name": "t", **custom, "properties": [{"name": "x", "logicalType": "string"}]}
    top = {"apiVersion": version, "kind": "DataContract", "id": "t", "version": "1.0.0", "status": "active"}
    return {**top, "schema": [one]}


def constructs(*, is_input: bool, version: str = "v3.2.0") -> Iterator[Construct]:
    """All constructs, in the order of the schema."""
    yield from _inside(_Here(base(is_input=is_input, version=version), (), "", schema()))


def _inside(here: _Here) -> Iterator[Construct]:
    variants = _variants(here.definition)
    chosen = {key for _, given, _ in variants for key in given}
    for label, given, properties in variants:
        place = f"{here.place} ({label})" if label else here.place
        needed = _needed(here, given)
        for key, definition in properties.items():
            if key not in given and key not in chosen:
                inner = _Here(
                    here.document, here.pointer, place, definition, here.around, label or here.type, here.seen
                )
                yield from _key(inner, key, needed)
        if label:
            yield from _value(here, label, given, needed)


def _value(here: _Here, label: str, given: Mapping[str, Json], needed: Json) -> Iterator[Construct]:
    """The value of an enumeration that other keys depend on."""
    [key] = (key for key, value in given.items() if value == label)
    document = _merged(here.document, here.pointer, needed)
    without = _removed(_merged(here.document, here.pointer, needed), (*here.pointer, key))
    yield Construct(here.place, f"{key}: {label}", (*here.pointer, key), document, without)


def _key(here: _Here, key: str, given: Json) -> Iterator[Construct]:
    """One key, and everything inside it."""
    definition, pointer = _resolved(here.definition), (*here.pointer, key)
    if key == "unit" and "quality" in pointer and "type" in given:
        given = {"metric": "nullValues"} if "properties" in pointer else {"metric": "duplicateValues", **_OF_ROWS}
    if key == "arguments":
        given = given | (_OF_COLUMN if "properties" in pointer else {"metric": "duplicateValues"})
    if "slaProperties" in here.pointer and len(here.pointer) == len(("slaProperties", 0)):
        given = given | {"property": "latency", "value": 4, "unit": "h"}
    also = {
        name: value
        for name, value in _ALSO.get(key, {}).items()
        if "quality" in pointer or "properties" in here.pointer
    }
    host = _merged(here.document, here.pointer, given | also)
    if key in _OPERATORS:
        host = _without_operators(host, here.pointer)
    value = given[key] if key in given else _minimal(here.definition, key, here.type)
    value = here.document["schema"] if pointer == ("schema",) else value
    document = _merged(host, here.pointer, {key: value})
    yield Construct(here.place, key, pointer, document, _removed(document, pointer))
    listed = definition.get("items") if definition.get("type") == "array" else None
    inner_place = f"{here.place}.{key}" if here.place else key
    if listed is not None:
        # What the contract is about stands in its schema object: keep it.
        kept = document if pointer == ("schema",) else None
        document = kept or _set(document, pointer, [_minimal(listed, key, here.type)])
        inner = _Here(document, (*pointer, 0), f"{inner_place}[]", listed, here.around, here.type, here.seen)
    else:
        inner = _Here(document, pointer, inner_place, here.definition, here.around, here.type, here.seen)
    yield from _below(inner)


def _below(here: _Here) -> Iterator[Construct]:
    branches = _resolved(here.definition).get("oneOf", ())
    for definition in [*(b for b in branches if "required" not in b), here.definition]:
        name = str(definition.get("$ref", "")).rpartition("/")[2]
        if _is_tried(name, here) and _has_keys(definition):
            here.seen.add(name)
            empty = None if name == "SchemaObject" else _minimal(definition, "", "")
            plain = not isinstance(_at(here.document, here.pointer), dict)
            document = _set(here.document, here.pointer, empty) if empty or plain else here.document
            around = (*here.around, name)
            yield from _inside(_Here(document, here.pointer, here.place, definition, around, here.type, here.seen))


def _is_tried(name: str, here: _Here) -> bool:
    """Whether the keys of this definition are tried at this place."""
    depth = sum(around in ("SchemaProperty", "SchemaItemProperty") for around in here.around)
    if name in _EVERYWHERE or not name:
        return depth < _MOST_NESTED and "map" not in here.pointer[:-1]
    return name not in here.seen


def _has_keys(definition: Mapping[str, Json]) -> bool:
    return _resolved(definition).get("type") == "object" and any(v[2] for v in _variants(definition))


def _variants(definition: Mapping[str, Json]) -> list[tuple[str, dict[str, Json], dict[str, Json]]]:
    """The shapes of a mapping: the value on which a shape depends, the keys it needs, and all keys of its own."""
    found: list[tuple[str, dict[str, Json], dict[str, Json]]] = [("", {}, dict(definition.get("properties", {})))]
    parts = [*definition.get("allOf", ()), *definition.get("oneOf", ())]
    if "$ref" in definition:
        parts.append(_resolved(definition))
    for part in parts:
        refused = part.get("not", {}).get("required", ())
        found[0] = (*found[0][:2], {key: value for key, value in found[0][2].items() if key not in refused})
        if "if" in part:
            found += [(v, {k: v}, _all_keys(part["then"])) for k, v in _conditions(part["if"])]
        else:
            first, *more = _variants(part)
            found[0][2].update(first[2])
            found += more
    return found


def _conditions(condition: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for branch in condition.get("anyOf", [condition]):
        for key, value in branch["properties"].items():
            if "const" in value:
                yield key, value["const"]


def _all_keys(definition: Mapping[str, Json]) -> dict[str, Json]:
    return _variants(definition)[0][2]


def _resolved(definition: Mapping[str, Json]) -> Mapping[str, Json]:
    if "$ref" not in definition:
        return definition
    found: Json = schema()
    for step in definition["$ref"].split("/")[1:]:
        found = found[step]
    return _resolved(found) if set(found) == {"$ref"} else found


def _needed(here: _Here, given: Mapping[str, Json]) -> dict[str, Json]:
    """What a mapping of this shape must have."""
    needed: dict[str, Json] = dict(given)
    if "quality" in here.pointer and here.pointer[-2:-1] == ("quality",):
        return needed | _rule(here, str(given.get("type", "")))
    if given.get("type") and here.place == "servers[]":
        [keys] = (v for v in _variants(here.definition) if v[1] == given)
        required = _required(here.definition, given)
        return needed | {key: _minimal(keys[2][key], key, "") for key in required}
    return needed | _TYPED.get(str(given.get("logicalType", "")), {})


_TYPED: dict[str, dict[str, Json]] = {
    "array": {"items": {"logicalType": "string"}},
    "object": {"properties": [{"name": "y", "logicalType": "string"}]},
    "map": {"map": {"key": {"logicalType": "string"}, "value": {"logicalType": "string"}}},
    "vector": {"logicalTypeOptions": {"dimensions": 3}},
}


def _required(definition: Mapping[str, Json], given: Mapping[str, Json]) -> list[str]:
    for part in _resolved(definition).get("allOf", ()):
        if "if" in part and next(iter(given.items())) in list(_conditions(part["if"])):
            return list(_resolved(part["then"]).get("required", ()))
    return []


def _rule(here: _Here, kind: str) -> dict[str, Json]:
    metric = "nullValues" if "properties" in here.pointer else "rowCount"
    is_input = "customProperties" in here.document["schema"][0]
    predicate = {"type": "custom", "engine": "tidemill", "implementation": "char_length(x) > 0"}
    return {
        "": predicate if is_input else {"metric": metric, "mustBe": 0},
        "library": {"metric": metric, "mustBe": 0},
        "sql": {"query": _GIVEN["query"], "mustBe": 0},
        "custom": predicate if is_input else {key: _GIVEN[key] for key in ("engine", "implementation")},
    }[kind]


def _minimal(definition: Mapping[str, Json], key: str, kind: str) -> Json:
    """The smallest value that fits a definition, and that means something under this key."""
    if key in _OPERATORS:
        return [0, 9] if key.endswith("Between") else 0 if key == "mustBe" else 5
    found = _resolved(definition)
    known = _BY_TYPE.get((kind, key), _GIVEN.get(key))
    fits = found.get("type") != "string" or isinstance(known, str)
    if known is not None and fits and known in found.get("enum", [known]):
        return copy.deepcopy(known)
    for word in ("oneOf", "anyOf"):
        if word in found and "properties" not in found:
            return _minimal(found[word][0], key, kind)
    return found["enum"][0] if "enum" in found else _of_kind(definition, kind)


def _of_kind(definition: Mapping[str, Json], kind: str) -> Json:
    found = _resolved(definition)
    match found.get("type"):
        case "array":
            return [_minimal(found.get("items", {}), "", kind)] if found.get("minItems") else []
        case "object":
            return _object(definition)
        case "integer" | "number" | ["integer", "string"]:
            return 1
        case "boolean":
            return True
        case _:
            scheme = str(found.get("pattern", "")).strip("^.*")
            return f"{scheme}example.org/a" if "://" in scheme else _TEXTS.get(found.get("format", ""), "a")


def _object(definition: Mapping[str, Json]) -> Json:
    found = _resolved(definition)
    name = str(definition.get("$ref", "")).rpartition("/")[2]
    special: dict[str, Json] = {
        "SchemaObject": {"name": "t", "properties": [{"name": "x", "logicalType": "string"}]},
        "SchemaProperty": {"name": "x", "logicalType": "string"},
        "SchemaItemProperty": {"logicalType": "string"},
        "DataQuality": {},
        "Server": {"server": "a", "type": "custom"},
        "ServiceLevelAgreementProperty": {"property": "latency", "value": 4, "unit": "h"},
        "RelationshipSchemaLevel": {"from": "t.x", "to": "u.y"},
        "RelationshipPropertyLevel": {"to": "u.y"},
        "CustomProperty": {"property": "costCentre", "value": 1},
    }
    if name in special:
        return special[name]
    keys = _all_keys(definition)
    return {key: _minimal(keys[key], key, "") for key in found.get("required", ()) if key in keys}


def _at(document: Json, pointer: Pointer) -> Json:
    for step in pointer:
        document = document[step]
    return document


def _set(document: Json, pointer: Pointer, value: Json) -> Json:
    changed = copy.deepcopy(document)
    _at(changed, pointer[:-1])[pointer[-1]] = value
    return changed


def _merged(document: Json, pointer: Pointer, more: Mapping[str, Json]) -> Json:
    changed = copy.deepcopy(document)
    _at(changed, pointer).update(copy.deepcopy(dict(more)))
    return changed


def _removed(document: Json, pointer: Pointer) -> Json:
    changed = copy.deepcopy(document)
    _at(changed, pointer[:-1]).pop(pointer[-1], None)
    return changed


def _without_operators(document: Json, pointer: Pointer) -> Json:
    changed = copy.deepcopy(document)
    owner = _at(changed, pointer)
    for key in _OPERATORS:
        owner.pop(key, None)
    return changed
