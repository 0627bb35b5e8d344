"""JSON fields that the contract does not name, kept as one JSON object in text.

The object has the fields in the order of their names (by code point), each value as the record wrote it. A top-level
field of the contract that contains unknown fields is also kept there, complete, besides its own column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from tidemill.core.contract.schema import Array, DataType, Field, Object, nameable
from tidemill.engine.read.decode.json_structs import (
    ABSENT,
    Shape,
    extra_attribute,
    value_reader,
)

_SAMPLE = 200
_MOST = 32

_parts: Callable[[bytes], dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def common_extras(records: Sequence[bytes], shape: Shape) -> tuple[str, ...]:
    """Names of unknown fields that at least about one record in a hundred has; at most 32, in order.

    They only make decoding faster; they do not change what is kept. Fewer than 200 records give none.
    """
    if len(records) < _SAMPLE:
        return ()
    seen: Counter[str] = Counter()
    names = shape.names
    for record in records[:: len(records) // _SAMPLE]:
        try:
            seen.update(_parts(record).keys() - names)
        except (msgspec.DecodeError, RecursionError):
            continue
    often = [name for name, count in seen.most_common(_MOST) if count > 1 and nameable(name)]
    return tuple(sorted(often))


def extras_of_rows(rows: Sequence[Any], names: Sequence[str]) -> list[bytes | None]:
    """The extra fields of decoded structs, which have an attribute for each of the sorted names; None for no field."""
    columns = [list(map(attrgetter(extra_attribute(i)), rows)) for i in range(len(names))]
    keys = [msgspec.json.encode(name) + b":" for name in names]
    whole = b"{%b}" % b",".join(key.replace(b"%", b"%%") + b"%b" for key in keys)
    nothing = (ABSENT,) * len(names)
    return [
        None if values == nothing else _joined(keys, values) if ABSENT in values else whole % values
        for values in zip(*columns, strict=True)
    ]


def extras_of_record(record: bytes, shape: Shape) -> bytes | None:
    """The extra fields of one record that fits its contract; None for no field."""
    types = {f.name: f for f in shape.fields}
    parts = sorted(_parts(record).items())
    kept = ((name, raw) for name, raw in parts if name not in types or _holds_unknown(raw, types[name], shape))
    return _object([b"%b:%b" % (msgspec.json.encode(name), raw) for name, raw in kept])


def _joined(keys: Sequence[bytes], values: Sequence[msgspec.Raw]) -> bytes:
    return b"{%b}" % b",".join([k + bytes(v) for k, v in zip(keys, values, strict=True) if v is not ABSENT])


def _object(members: Iterable[bytes]) -> bytes | None:
    text = b",".join(members)
    return b"{%b}" % text if text else None


def _holds_unknown(raw: msgspec.Raw, field: Field, shape: Shape) -> bool:
    if not _has_fields(field.type) or bytes(raw) == b"null":
        return False
    try:
        value_reader(field.type, shape.unit)(bytes(raw))
    except msgspec.ValidationError:
        return True
    return False


def _has_fields(data_type: DataType) -> bool:
    match data_type:
        case Object():
            return True
        case Array(item):
            return _has_fields(item)
        case _:
            return False
