"""Plans and events as JSON: the only place that writes and reads persisted values.

The JSON follows from the type: a dataclass is an object with a key for each field, a mapping an object with text keys,
a datetime an ISO 8601 text in UTC, an enum its value. Types must be unambiguous: the only union is with None. A field
with default None is left out when it is None, so that a new field does not change what is already written: every new
field must default to None. A field that was renamed in Python says under which name it is `stored`. A class that is
stored in another form names it as `stored_form`, and has `stored()` and `restored(form)`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from typing import Any, TypeVar

from tidemill.core.errors import LedgerDamaged

T = TypeVar("T")
Decoder = Callable[[Any], Any]
_STORED = "stored"


def stored(name: str) -> Mapping[str, str]:
    """Metadata for a dataclass field that is persisted under this name, whatever Python calls it."""
    return {_STORED: name}


def stored_name(field: dataclasses.Field[Any]) -> str:
    """The key under which a field is persisted."""
    return str(field.metadata.get(_STORED, field.name))


def encode(value: Any) -> Any:
    """The value as something that `json` can write."""
    kind: Any = type(value)
    if hasattr(kind, "stored_form"):
        return encode(value.stored())
    if (fields := _written(kind)) is not None:
        held = ((key, getattr(value, name), optional) for key, name, optional in fields)
        return {key: encode(v) for key, v, optional in held if v is not None or not optional}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in value]
    return value.value if isinstance(value, StrEnum) else value


@cache
def _written(kind: Any) -> tuple[tuple[str, str, bool], ...] | None:
    """For each field of a dataclass: its key, its name, and whether it is left out when None; None for other types."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple((stored_name(f), f.name, f.default is None) for f in dataclasses.fields(kind))


def to_json(value: Any) -> str:
    """The value as canonical JSON: equal values always give the same text."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(value: Any) -> str:
    """A SHA-256 of the canonical JSON of a value."""
    return hashlib.sha256(to_json(value).encode()).hexdigest()


def from_json(kind: type[T], text: str) -> T:
    """The value of type `kind` that `to_json` wrote.

    Raises:
        LedgerDamaged: the text is not JSON, or does not have the shape of `kind`.
    """
    try:
        return typing.cast("T", decode(kind, json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerDamaged(
            f"expected a {kind.__name__}, found {text[:200]!r}: {error}",
            fix="a newer version of Tidemill may have written it: upgrade, or restore the ledger",
        ) from error


def decode(kind: Any, data: Any) -> Any:
    """A value of type `kind` from `data`, which `json` has read.

    Raises:
        ValueError: `data` does not have the shape of `kind`. It may also be a KeyError, TypeError or AttributeError.
    """
    return _decoder(kind)(data)


@cache
def _decoder(kind: Any) -> Decoder:
    """The function that decodes values of this type; cached, because thousands of events have dozens of values each."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _union_decoder([a for a in arguments if a is not type(None)])
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda data: tuple(map(item, data))
    if origin is Mapping:
        key, value = arguments[0], _decoder(arguments[1])
        return lambda data: {key(k): value(v) for k, v in data.items()}
    if hasattr(kind, "stored_form"):
        form = _decoder(kind.stored_form)
        return lambda data: kind.restored(form(data))
    if dataclasses.is_dataclass(kind):
        return partial(_decode_object, kind)
    if kind is datetime:
        return datetime.fromisoformat
    return kind if issubclass(kind, StrEnum) else partial(_checked, kind)


def _union_decoder(options: list[Any]) -> Decoder:
    if len(options) > 1:
        return lambda data: data
    only = _decoder(options[0])
    return lambda data: None if data is None else only(data)


def _decode_object(kind: Any, data: Any) -> Any:
    return kind(**{name: value(data[key]) for key, name, value in _fields(kind) if key in data})


def _checked(kind: type, data: Any) -> Any:
    if not isinstance(data, kind):
        raise TypeError(f"expected {kind.__name__}, found {data!r}")
    return data


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Decoder], ...]:
    """For each field of a dataclass: its key, its name, and the function that decodes its values."""
    hints = typing.get_type_hints(kind)
    return tuple((stored_name(f), f.name, _decoder(hints[f.name])) for f in dataclasses.fields(kind))
