"""Which texts Spark can read as the schema of a text in JSON, CSV or XML. In doubt, it can."""

from __future__ import annotations

import re

SCHEMA_AT = {"from_json": 1, "from_csv": 1, "from_xml": 1}
"""Functions, and the place of the argument that is a schema."""

_FIELD = r"\s*\w+\s*(?::\s*|\s)(\w+)\s*"
_PLAIN = re.compile(rf"{_FIELD}(?:,{_FIELD})*")
_TYPE_OF_FIELD = re.compile(_FIELD)
_WORD = re.compile(r"\s*([A-Za-z]\w*)\s*")
_TYPES = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double"),
    *("date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "char", "character", "varchar"),
    *("binary", "decimal", "dec", "numeric", "void", "interval", "variant", "object", "array", "map", "struct"),
    *("geometry", "geography"),
)


def fault_of_schema(text: str) -> str:
    """Why Spark cannot read a schema that consists of plain names and types; empty if it may."""
    if not text.strip():
        return ""
    types = [*_TYPE_OF_FIELD.findall(text)] if _PLAIN.fullmatch(text) else _WORD.findall(text)
    if not (_PLAIN.fullmatch(text) or _WORD.fullmatch(text)):
        return ""
    unknown = next((word for word in types if word.lower() not in _TYPES), "")
    return f"`{unknown}` is no type" if unknown else ""
