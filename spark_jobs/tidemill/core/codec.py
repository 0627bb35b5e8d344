"""Plans and events as JSON: the only place where persisted shapes are written and read.

Every shape is derived from its type: a dataclass is an object with a key per field, a mapping an object with text keys,
a moment an ISO 8601 text in UTC, an enum its value. Types without ambiguity only: no unions but with None. A field that
is None by default is left out when it is None, so that a new one does not change what is already written: every new
field is None by default. One that gets another name in Python says under which name it is `stored`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from tidemill.core.errors import LedgerDamaged

T = TypeVar("T")
_STORED = "stored"


def stored(name: str) -> Mapping[str, str]:
    """The metadata of a data class's field that is persisted under this name, whatever Python calls it."""
    return {_STORED: name}


def stored_name(field: dataclasses.Field[Any]) -> str:
    """The key of a field in what is persisted."""
    return str(field.metadata.get(_STORED, field.name))


def encode(value: Any) -> Any:
    """The value as what `json` can write."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {f: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {stored_name(f): encode(v) for f, v in held.items() if v is not None or f.default is not None}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in value]
    return value.value if isinstance(value, StrEnum) else value


def to_json(value: Any) -> str:
    """Canonical JSON: the same value always gives the same text."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(value: Any) -> str:
    """A SHA-256 of the canonical JSON of a value."""
    return hashlib.sha256(to_json(value).encode()).hexdigest()


def from_json(kind: type[T], text: str) -> T:
    """The value of type `kind` that `to_json` wrote.

    Raises:
        LedgerDamaged: the text is no JSON, or of another shape.
    """
    try:
        return typing.cast("T", decode(kind, json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerDamaged(
            f"expected a {kind.__name__}, found {text[:200]!r}: {error}",
            fix="a newer version of Tidemill may have written it: upgrade, or restore the ledger",
        ) from error


def decode(kind: Any, data: Any) -> Any:
    """`data`, as `json` read it, as a value of type `kind`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _decode_union([a for a in arguments if a is not type(None)], data)
    if origin is tuple:
        return tuple(decode(arguments[0], item) for item in data)
    if origin is Mapping:
        return {arguments[0](k): decode(arguments[1], v) for k, v in data.items()}
    return _decode_plain(kind, data)


def _decode_union(options: list[Any], data: Any) -> Any:
    return decode(options[0], data) if len(options) == 1 and data is not None else data


def _decode_plain(kind: Any, data: Any) -> Any:
    if hasattr(kind, "__dataclass_fields__"):
        there = ((f, type_) for f, type_ in _fields(kind) if stored_name(f) in data)
        return kind(**{f.name: decode(type_, data[stored_name(f)]) for f, type_ in there})
    if kind is datetime:
        return datetime.fromisoformat(data)
    if issubclass(kind, StrEnum):
        return kind(data)
    if not isinstance(data, kind):
        raise TypeError(f"expected {kind.__name__}, found {data!r}")
    return data


@cache
def _fields(kind: Any) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((f, hints[f.name]) for f in dataclasses.fields(kind))
