"""Fields that a JSON Schema allows and a contract cannot say must not make it reject records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidemill.contracts.formats.json_schema_reading import of_json_schema

ID = {"id": {"type": "integer"}}


@pytest.mark.parametrize(
    ("properties", "kept", "named"),
    [
        (ID, "reject", ""),
        ({**ID, "any": {}}, "keep", "`any`"),
        ({**ID, "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "keep", "`either`"),
        ({**ID, "o": {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}}, "keep", "`o.b`"),
        ({**ID, "list": {"type": "array", "items": {}}}, "keep", "`list`"),
    ],
)
def test_closed_schema_whose_property_is_left_out_keeps_what_it_does_not_know(
    tmp_path: Path, properties: dict[str, Any], kept: str, named: str
) -> None:
    path = tmp_path / "it.json"
    path.write_text(json.dumps({"type": "object", "properties": properties, "additionalProperties": False}))
    found = of_json_schema(path)
    assert found.extra_fields == kept
    told = [loss for loss in found.losses if loss.startswith("`additionalProperties: false` is left out")]
    assert [named in loss for loss in told] == ([True] if named else [])
