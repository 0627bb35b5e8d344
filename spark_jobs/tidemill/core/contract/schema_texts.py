"""Which texts Spark can read as the schema of a text in JSON, CSV or XML. In doubt, it can."""

from __future__ import annotations

from tidemill.core.contract.schema_json import JsonSchema
from tidemill.core.contract.schema_tokens import SchemaFaultError
from tidemill.core.contract.schema_words import SchemaReader

SCHEMA_AT = {"from_json": 1, "from_csv": 1, "from_xml": 1}
"""Functions, and the place of the argument that is a schema."""

_BEYOND = ("--", "/*", "\\")
"""Comments, and what makes a text another one to Spark."""

_OUTERMOST = {
    "from_json": ("struct", "array", "map", "variant"),
    "from_csv": ("struct",),
    "from_xml": ("struct", "variant"),
}


def fault_of_schema(text: str, name: str = "from_json") -> str:
    """Why a function cannot read a schema; empty if it may."""
    if any(sign in text for sign in _BEYOND):
        return ""
    if not text.strip():
        return "it is empty"
    try:
        outermost, keys, _ = _read(text)
    except SchemaFaultError as fault:
        return str(fault)
    if outermost not in _OUTERMOST[name]:
        return f"`{name}` reads {' or '.join(_OUTERMOST[name])}, not {outermost}"
    other = next((key for key in sorted(keys) if key != "string" and name != "from_csv"), "")
    return f"the keys of a map are texts, not {other}: MAP<STRING, INT>" if other else ""


def fails_always(text: str, name: str) -> str:
    """Why a function fails for every record with a schema that it takes; empty if it does not."""
    try:
        is_nested = name == "from_csv" and not any(sign in text for sign in _BEYOND) and _read(text)[2]
    except SchemaFaultError:
        return ""
    return "the fields of CSV are plain: no ARRAY, MAP or STRUCT" if is_nested else ""


def _read(text: str) -> tuple[str, set[str], bool]:
    """The outermost type of a schema, the types of the keys of its maps, and whether fields have types inside.

    It is JSON, one type, or fields.
    """
    if text.lstrip().startswith("{"):
        written = JsonSchema(text)
        return written.outermost, written.keys, written.is_nested
    reader = SchemaReader(text)
    return reader.whole(reader.type if reader.is_type else reader.fields), reader.keys, reader.is_nested
