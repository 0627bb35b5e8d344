"""What is wrong with a JSON record. It is slow, so only records that msgspec refused come here.

It does not check texts that should be dates, times or decimals: the columns find those that do not fit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from tidemill.core.contract.schema import Array, DataType, Field, Object, Scalar
from tidemill.engine.read.decode.faults import EMPTY, shortened, shown, too_large, wrong
from tidemill.engine.read.decode.json_structs import Shape, read_raw, record_reader
from tidemill.engine.read.decode.options import TimeUnit

DEEPEST = 128
"""How deep objects and arrays may be nested."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_MALFORMED = re.compile(r"malformed: (.*) \(byte (\d+)\)")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """An object as it is written, including fields that occur twice."""

    __slots__ = ()


def too_deep(record: bytes) -> bool:
    """Whether objects and arrays are nested deeper than DEEPEST, if the record is JSON."""
    if record.count(b"[") + record.count(b"{") <= DEEPEST:
        return False
    steps = _STEPS[np.frombuffer(_TEXT.sub(b"", record), dtype=np.uint8)]
    return bool(np.max(np.cumsum(steps, dtype=np.int32), initial=0) > DEEPEST)


def explain(record: bytes, shape: Shape, *, strict: bool) -> str:
    """Why a record does not fit its contract; with `strict`, unknown fields are a reason."""
    syntax = _syntax_fault(record)
    if syntax:
        return syntax
    value = json.loads(record.decode(), parse_int=_Number, parse_float=_Number, object_pairs_hook=_Members)
    if not isinstance(value, _Members):
        return f"expected a JSON object, found {_show(value)}"
    for fault in _member_faults(value, shape.fields, shape.unit, "", strict):
        return fault
    try:
        record_reader(shape, strict=strict)(record)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"does not fit the contract: {error}"
    return "does not fit the contract"


def _syntax_fault(record: bytes) -> str | None:
    if not record.strip(b" \t\r\n"):
        return EMPTY
    if record.startswith(_BYTE_ORDER_MARK):
        return "malformed JSON at byte 0: a byte order mark"
    try:
        msgspec.json.decode(record, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        known = _MALFORMED.search(str(error))
        if known:
            return _malformed(record, known[1], int(known[2]))
        return f"cut JSON at byte {len(record)}" if _is_cut(record) else "unpaired surrogate escape in JSON text"
    return None


def _malformed(record: bytes, what: str, byte: int) -> str:
    if what == "trailing characters":
        byte -= 1  # msgspec counts the first of them in
    begin = byte
    while begin and record[begin - 1 : begin].isalpha():
        begin -= 1
    found = record[begin : begin + 20].decode(errors="ignore")
    return f"malformed JSON at byte {byte}: {what}" + (f", found {shown(found)}" if found else "")


def _is_cut(record: bytes) -> bool:
    """Whether the JSON ends early; msgspec also reports that for an unpaired surrogate escape near the end."""
    try:
        json.loads(record.decode())
    except (ValueError, RecursionError):
        return True
    return False


def _member_faults(
    members: _Members, fields: Sequence[Field], unit: TimeUnit, path: str, strict: bool
) -> Iterator[str]:
    known = {f.name: f for f in fields}
    for name, value in members:
        field = known.get(name)
        if field is not None:
            yield from _field_faults(value, field, unit, f"{path}{name}", strict)
        elif strict:
            yield f"unknown field `{path}{shortened(name)}`"
    missing = known.keys() - dict(members).keys()
    yield from (f"`{path}{f.name}`: required, but missing" for f in fields if f.required and f.name in missing)


def _field_faults(value: Any, field: Field, unit: TimeUnit, path: str, strict: bool) -> Iterator[str]:
    if value is None and field.required:
        yield f"`{path}`: required, but null"
    yield from _value_faults(value, field.type, unit, path, strict)


def _value_faults(value: Any, data_type: DataType, unit: TimeUnit, path: str, strict: bool) -> Iterator[str]:
    match data_type, value:
        case _, None:
            return
        case (Array(item), list()) if not isinstance(value, _Members):
            for index, inner in enumerate(value):
                yield from _value_faults(inner, item, unit, f"{path}[{index}]", strict)
        case (Object(fields), _Members()):
            yield from _member_faults(value, fields, unit, f"{path}.", strict)
        case (Array() | Object(), _):
            yield wrong(path, data_type, _show(value), unit)
        case (_, _Number()):
            yield from _number_faults(value, data_type, unit, path)
        case _:
            if not _fits(value, data_type, unit):
                yield wrong(path, data_type, _show(value), unit)


def _number_faults(number: _Number, data_type: DataType, unit: TimeUnit, path: str) -> Iterator[str]:
    match data_type:
        case Scalar.INTEGER | Scalar.LONG if re.fullmatch("-?[0-9]+", number):
            bits = 32 if data_type is Scalar.INTEGER else 64
            if len(number) > 20 or not -(2 ** (bits - 1)) <= int(number) < 2 ** (bits - 1):
                yield too_large(path, number, bits)
        case Scalar.DOUBLE:
            if math.isinf(float(number)):
                yield too_large(path, number, 64)
        case _ if not read_raw(data_type, unit):
            yield wrong(path, data_type, shortened(number), unit)


def _fits(value: Any, data_type: DataType, unit: TimeUnit) -> bool:
    match data_type:
        case _ if read_raw(data_type, unit):
            return True
        case Scalar.STRING | Scalar.DATE | Scalar.TIMESTAMP:
            return isinstance(value, str)
        case Scalar.BOOLEAN:
            return isinstance(value, bool)
        case Scalar.BINARY:
            return _is_base64(value)
        case _:
            return False


def _is_base64(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        msgspec.convert(value, bytes)
    except msgspec.ValidationError:
        return False
    return True


def _show(value: Any) -> str:
    match value:
        case _Number():
            return shortened(value)
        case _Members():
            return "an object"
        case _:
            return shown(value)
