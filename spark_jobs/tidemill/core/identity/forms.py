"""What a written form is: a tag, and for each field its written name and its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ALWAYS: Any = object()
"""The default of a field that is never left out."""


@dataclass(frozen=True, slots=True)
class Part:
    """How one field is written: its name, the default that is left out, and whether it is SQL."""

    name: str
    default: Any = ALWAYS
    sql: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """How one kind is written. `parts` has the name of the Python field as key; `ignored` fields are never written."""

    tag: str
    parts: Mapping[str, Part] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
