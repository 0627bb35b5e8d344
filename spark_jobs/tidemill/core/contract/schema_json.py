"""Reads a schema that is written in JSON, as Spark writes its own."""

from __future__ import annotations

import json
import re
from typing import Any

from tidemill.core.contract.schema_tokens import MOST_NESTED, SchemaFaultError

_PLAIN = re.compile(
    r"boolean|byte|short|integer|long|float|double|date|timestamp(?:_ntz|_ltz)?|string(?: collate .+)?|binary|null|void"
    r"|variant|interval(?: .+)?|time\([0-6]\)|decimal(?:\(\s*\d+\s*,\s*-?\d+\s*\))?"
)
_KEYS = {
    "array": {"type", "elementType", "containsNull"},
    "map": {"type", "keyType", "valueType", "valueContainsNull"},
    "struct": {"type", "fields"},
}
_FIELD = {"name", "type", "nullable", "metadata"}


class JsonSchema:
    """A schema from its JSON. `outermost` is its type, `keys` are the types of the keys of maps in it.

    Raises:
        SchemaFaultError: it is no JSON, or Spark knows no such type in it.
    """

    def __init__(self, text: str) -> None:
        self.keys: set[str] = set()
        self.is_nested = False
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise SchemaFaultError("it begins like JSON, and is none") from None
        self.outermost = self._type(found, 0)

    def _type(self, found: Any, depth: int) -> str:
        if depth > MOST_NESTED:
            raise SchemaFaultError(f"types are nested at most {MOST_NESTED} deep")
        if isinstance(found, str):
            if not _PLAIN.fullmatch(found):
                raise SchemaFaultError(f"JSON has no type `{found}`: it has integer, long, double, string and so on")
            return {"integer": "int", "long": "bigint"}.get(found, found)
        kind = found.get("type") if isinstance(found, dict) else None
        if not isinstance(kind, str) or kind not in _KEYS:
            raise SchemaFaultError("a type is a name, or has type: array, map or struct")
        if set(found) != _KEYS[kind]:
            raise SchemaFaultError(f"`{kind}` has {', '.join(sorted(_KEYS[kind]))}, and nothing else")
        self.is_nested |= depth > 0
        self._inside(kind, found, depth + 1)
        return kind

    def _inside(self, kind: str, found: dict[str, Any], depth: int) -> None:
        nulls = found.get("containsNull", found.get("valueContainsNull", True))
        if not isinstance(nulls, bool):
            raise SchemaFaultError("whether there are nulls is true or false")
        match kind:
            case "array":
                self._type(found["elementType"], depth)
            case "map":
                self.keys.add(self._type(found["keyType"], depth))
                self._type(found["valueType"], depth)
            case _:
                fields = found["fields"]
                if not isinstance(fields, list):
                    raise SchemaFaultError("the fields of a struct are a list")
                for field in fields:
                    self._field(field, depth)

    def _field(self, field: Any, depth: int) -> None:
        if not isinstance(field, dict) or not {"name", "type"} <= set(field) <= _FIELD:
            raise SchemaFaultError(f"a field has {', '.join(sorted(_FIELD))}, and nothing else")
        right = isinstance(field["name"], str) and isinstance(field.get("nullable", True), bool)
        if not right or not isinstance(field.get("metadata", {}), dict):
            raise SchemaFaultError("the name of a field is a text, nullable is true or false, metadata is an object")
        self._type(field["type"], depth)
