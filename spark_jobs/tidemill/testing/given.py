"""What a test gives as a record, and the record it stands for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from tidemill.core.errors import LogInputError
from tidemill.log.records import NewRecord

Given: TypeAlias = "Mapping[str, Any] | str | bytes | NewRecord | None"
"""A record: the fields of a JSON object, text, bytes, None for a tombstone, or a `NewRecord` with key and time."""

_FIELDS = "text, numbers, True, False, None, dates, times with a zone, and lists and mappings of them"


class _NoValue(Exception):
    """Something in a field that JSON does not have; `path` leads to it."""

    def __init__(self, path: str, found: str, fix: str) -> None:
        super().__init__(found)
        self.path, self.found, self.fix = path, found, fix


def as_record(topic: str, number: int, given: Given) -> NewRecord:
    """Return the record that `given` stands for. It is the `number`-th that is given to `topic`, from 1.

    Dates and times become ISO 8601, decimals become numbers with all their digits.

    Raises:
        LogInputError: no record can have this value; the text names the field.
    """
    try:
        return _record(given)
    except _NoValue as error:
        where = f", field `{error.path}`" if error.path else ""
        raise LogInputError(f"record {number} given to {topic}{where}: {error.found}", fix=error.fix) from None


def _record(given: Given) -> NewRecord:
    match given:
        case NewRecord(value=None | bytes(), key=None | bytes()):
            return given
        case NewRecord():
            found = f"expected bytes or None as value and as key, found {given.value!r} and {given.key!r}"
            raise _NoValue("", found, "encode them: NewRecord(value=json.dumps(fields).encode(), key=key.encode())")
        case None | bytes():
            return NewRecord(value=given)
        case str():
            return NewRecord(value=_encoded("", given))
        case Mapping():
            return NewRecord(value=_encoded("", _json("", given)))
        case _:
            found = f"expected fields, text, bytes, None or a NewRecord, found {_shown(given)}"
            several = isinstance(given, (list, tuple))
            raise _NoValue("", found, "give(topic, *records) gives each of a list" if several else "give one of them")


def _json(path: str, value: object) -> str:
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            _encoded(path, value)
            return json.dumps(value, ensure_ascii=False)
        case int() | float() | Decimal():
            return _number(path, value)
        case datetime(tzinfo=None):
            raise _NoValue(path, f"the time {value} has no time zone", "write datetime(..., tzinfo=UTC)")
        case date():
            return json.dumps(value.isoformat())
        case list() | tuple():
            return f"[{', '.join(_json(f'{path}[{index}]', each) for index, each in enumerate(value))}]"
        case Mapping():
            return f"{{{', '.join(_member(path, name, each) for name, each in value.items())}}}"
        case bytes():
            raise _NoValue(
                path, f"JSON has no bytes, found {_shown(value)}", "decode them to text as the producer does"
            )
        case _:
            raise _NoValue(path, f"JSON has no {type(value).__name__}, found {_shown(value)}", f"write {_FIELDS}")


def _member(path: str, name: object, value: object) -> str:
    if not isinstance(name, str):
        raise _NoValue(path, f"names of fields are text, found {_shown(name)}", f"write {str(name)!r}")
    inner = f"{path}.{name}" if path else name
    _encoded(path, name)
    return f"{json.dumps(name, ensure_ascii=False)}: {_json(inner, value)}"


def _number(path: str, value: int | float | Decimal) -> str:
    if not isinstance(value, int) and not math.isfinite(value):
        raise _NoValue(path, f"JSON has no number {value}", "write None, or give the whole record as text")
    try:
        return str(value) if isinstance(value, Decimal) else json.dumps(value)
    except ValueError:
        raise _NoValue(path, "a number with too many digits", "give the whole record as text") from None


def _encoded(path: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        found = f"UTF-8 has no character {text[error.start]!r}"
        raise _NoValue(path, found, "write other text, or give the whole record as bytes") from None


def _shown(value: object) -> str:
    """The beginning of a value as Python writes it."""
    written = repr(value)
    return f"{written[:60]}..." if len(written) > 60 else written
