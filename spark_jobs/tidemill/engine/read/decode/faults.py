"""The texts of a decoder's errors: what was expected and what was found, in one short line."""

from __future__ import annotations

import json
import re
from typing import Any, assert_never

from tidemill.core.contract.schema import Array, DataType, Decimal, Object, Scalar
from tidemill.engine.read.decode.options import TimeUnit
from tidemill.engine.read.decode.texts import NUMBER

LIMIT = 300
"""The most characters of an error."""

TOMBSTONE = "tombstone (no value)"
EMPTY = "empty value"

_FOUND = 60

_EXPECTED = {
    Scalar.STRING: "text",
    Scalar.BINARY: "bytes as base64 text",
    Scalar.BOOLEAN: "true or false",
    Scalar.INTEGER: "an integer",
    Scalar.LONG: "an integer",
    Scalar.DOUBLE: "a number",
    Scalar.DATE: "a date like 2024-01-31",
}

_TIMES = {
    TimeUnit.ISO: "a time like 2024-01-31T23:59:59Z",
    TimeUnit.SECONDS: "seconds since 1970",
    TimeUnit.MILLISECONDS: "milliseconds since 1970",
    TimeUnit.MICROSECONDS: "microseconds since 1970",
}


def expected(data_type: DataType, unit: TimeUnit = TimeUnit.ISO) -> str:
    """How an error describes a value of the type."""
    match data_type:
        case Scalar.TIMESTAMP:
            return _TIMES[unit]
        case Scalar():
            return _EXPECTED[data_type]
        case Decimal(precision, scale):
            return f"a number of at most {precision} digits, {scale} of them after the point"
        case Array():
            return "an array"
        case Object():
            return "an object"
        case _:
            assert_never(data_type)


def wrong(name: str, data_type: DataType, found: str, unit: TimeUnit = TimeUnit.ISO) -> str:
    """The error of the field `name`, which should have the type, but is `found`, a text that `shown` gave."""
    return f"`{name}`: expected {expected(data_type, unit)}, found {found}"


def text_fault(name: str, data_type: DataType, found: str, unit: TimeUnit = TimeUnit.ISO) -> str:
    """The error of the field `name` whose text is not a value of the type."""
    match data_type:
        case Scalar.INTEGER | Scalar.LONG if re.fullmatch("[+-]?[0-9]+", found):
            return too_large(name, found, 32 if data_type is Scalar.INTEGER else 64)
        case Scalar.DOUBLE if NUMBER.fullmatch(found):
            return too_large(name, found, 64)
        case _:
            return wrong(name, data_type, shown(found), unit)


def too_large(name: str, digits: str, bits: int) -> str:
    """The error of the field `name` whose integer needs more than `bits` bits."""
    return f"`{name}`: number {shortened(digits)} does not fit {bits} bits"


def shown(found: Any) -> str:
    """A JSON value as JSON, cut after 60 characters."""
    match found:
        case str():
            return json.dumps(found if len(found) <= _FOUND else f"{found[:_FOUND]}…", ensure_ascii=False)
        case list():
            return "an array"
        case _:
            return shortened(json.dumps(found))


def shortened(text: str) -> str:
    """The text, cut after 60 characters."""
    return text if len(text) <= _FOUND else f"{text[:_FOUND]}…"


def clip(text: str) -> str:
    """The text in one line of printable characters, at most 300 of them."""
    head = text[: LIMIT + 1]
    if not head.isprintable():
        head = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in head)
    return head if len(head) <= LIMIT else f"{head[: LIMIT - 1]}…"
