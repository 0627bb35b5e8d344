"""The shape of a JSON record as a struct type of msgspec, made from a contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, assert_never

import msgspec

from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar
from tidemill.engine.read.decode.options import TimeUnit

ABSENT = msgspec.Raw(b"")
"""Marks an extra field that a record does not have. Compare by identity."""

NULL = msgspec.Raw(b"null")
"""The raw value of a field that is null or missing in the record."""

_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_PLAIN: dict[Scalar, Any] = {
    Scalar.STRING: str,
    Scalar.BINARY: bytes,
    Scalar.BOOLEAN: bool,
    Scalar.INTEGER: _INT32,
    Scalar.LONG: _INT64,
    Scalar.DOUBLE: float,
    Scalar.DATE: str,
    Scalar.TIMESTAMP: str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The fields of a JSON record, without any rule about extra fields."""

    fields: tuple[Field, ...]
    unit: TimeUnit

    @property
    def names(self) -> frozenset[str]:
        """The names of the top-level fields."""
        return frozenset(f.name for f in self.fields)


def attribute(index: int) -> str:
    """The struct's attribute for the field of this index."""
    return f"f{index}"


def extra_attribute(index: int) -> str:
    """The struct's attribute for the extra field of this index."""
    return f"x{index}"


def read_raw(data_type: DataType, unit: TimeUnit) -> bool:
    """Whether a value is kept as the bytes it was written in, because a float would not be exact."""
    return isinstance(data_type, Decimal) or (data_type is Scalar.TIMESTAMP and unit is not TimeUnit.ISO)


@lru_cache(maxsize=64)
def record_reader(shape: Shape, *, strict: bool, extras: tuple[str, ...] = ()) -> Callable[[bytes], Any]:
    """A function from the bytes of one record to a struct with an attribute per field and per extra.

    The function raises `msgspec.DecodeError` (or `RecursionError`) for records that do not fit; with `strict` also for
    unknown fields, at any depth. Extra fields are `msgspec.Raw`, or ABSENT.
    """
    wide = [(extra_attribute(i), msgspec.Raw, ABSENT) for i in range(len(extras))]
    names = {extra_attribute(i): name for i, name in enumerate(extras)}
    record = _struct(shape.fields, shape.unit, strict, wide, names)
    return msgspec.json.Decoder(record).decode


@lru_cache(maxsize=64)
def value_reader(data_type: DataType, unit: TimeUnit) -> Callable[[bytes], Any]:
    """A function that raises `msgspec.DecodeError` for a value of the type that holds unknown fields."""
    return msgspec.json.Decoder(_type(data_type, unit, strict=True)).decode


def _struct(
    fields: Sequence[Field],
    unit: TimeUnit,
    strict: bool,
    more: Sequence[tuple[str, Any, Any]] = (),
    more_names: dict[str, str] | None = None,
) -> Any:
    members: list[Any] = []
    for index, field in enumerate(fields):
        member = (attribute(index), _type(field.type, unit, strict))
        if field.required:
            members.append(member)
        elif read_raw(field.type, unit):
            members.append((*member, NULL))
        else:
            members.append((member[0], member[1] | None, None))
    names = {attribute(i): f.name for i, f in enumerate(fields)} | (more_names or {})
    # The garbage collector does not track them: thousands of live structs would trigger it again and again.
    return msgspec.defstruct(
        "Record", [*members, *more], rename=names, kw_only=True, gc=False, forbid_unknown_fields=strict
    )


def _type(data_type: DataType, unit: TimeUnit, strict: bool) -> Any:
    if read_raw(data_type, unit):
        return msgspec.Raw
    match data_type:
        case Scalar():
            return _PLAIN[data_type]
        case Array(item):
            inner = _type(item, unit, strict)
            return list[msgspec.Raw if read_raw(item, unit) else inner | None]  # type: ignore[misc]
        case Object(fields):
            return _struct(fields, unit, strict)
        case Decimal():
            return msgspec.Raw
        case _:
            assert_never(data_type)
