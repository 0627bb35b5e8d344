"""Values of the standard on which no other key depends, so that they are not made of its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from support.odcs_constructs import Construct, Json, base

_METRICS: Mapping[str, tuple[str, ...]] = {
    "nullValues": ("",),
    "missingValues": ("missingValues",),
    "invalidValues": ("validValues", "pattern"),
    "duplicateValues": ("",),
}
_ARGUMENTS: Mapping[str, Json] = {"missingValues": ["", None], "validValues": ["a"], "pattern": "a+"}
_RULES = ("nullValues", "duplicateCount", "validValues")
_MEMBER: Mapping[str, Json] = {
    "username": "a",
    "name": "a",
    "description": "a",
    "role": "a",
    "dateIn": "2024-01-31",
    "dateOut": "2024-01-31",
    "replacedByUsername": "b",
}
_OF_COLUMN = "schema[].properties[].quality[] (library)"
_OF_ROWS = "schema[].quality[] (library)"


def values(*, is_input: bool, version: str = "v3.2.0") -> Iterator[Construct]:
    """Types, metrics with their arguments, the words of 3.0 for metrics, and the list of team members of 3.0."""
    document = base(is_input=is_input, version=version)
    column = {"name": "x", "logicalType": "boolean"}
    where = ("schema", 0, "properties", 0)
    yield Construct("schema[].properties[]", "logicalType: boolean", where, _of_column(document, column), document)
    for metric, arguments in _METRICS.items():
        for argument in arguments:
            given = {"arguments": {argument: _ARGUMENTS[argument]}} if argument else {}
            key = f"metric: {metric}" + (f" with {argument}" if argument else "")
            yield _rule(document, key, {"metric": metric, **given, "mustBe": 0})
    for key, given in (
        ("metric: duplicateValues with properties", {"metric": "duplicateValues", "arguments": {"properties": ["x"]}}),
        ("metric: rowCount", {"metric": "rowCount"}),
    ):
        schema = {**document["schema"][0], "quality": [{**given, "mustBe": 0}]}
        yield Construct(_OF_ROWS, key, ("schema", 0, "quality"), {**document, "schema": [schema]}, document)
    older = base(is_input=is_input, version="v3.0.2")
    for word in _RULES:
        more = {"validValues": ["a"]} if word == "validValues" else {}
        yield _rule(older, f"rule: {word} (3.0)", {"type": "library", "rule": word, **more, "mustBe": 0})
    for key, value in _MEMBER.items():
        member = {"username": "a", key: value}
        yield Construct("team[]", key, ("team", 0, key), {**document, "team": [member]}, document)


def _rule(document: Json, key: str, rule: Json) -> Construct:
    column = {"name": "x", "logicalType": "string", "quality": [rule]}
    where = ("schema", 0, "properties", 0, "quality")
    return Construct(_OF_COLUMN, key, where, _of_column(document, column), document)


def _of_column(document: Json, column: Json) -> Json:
    return {**document, "schema": [{**document["schema"][0], "properties": [column]}]}
