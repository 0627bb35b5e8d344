"""What the tests of decoders share: contracts, and the comparison with the slow decoders."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from engine.decode.slow_decoders import Digits, slow_decode
from tidemill.core.contract.contract import Contract, Format
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar
from tidemill.engine.read.decode import Decoded, decoder_for

PAGE = {"ts": Scalar.TIMESTAMP, "user": Scalar.STRING, "page": Scalar.STRING, "bytes": Scalar.LONG}
PAGE |= {"status": Scalar.INTEGER}

ORDER = {
    "id": Scalar.LONG,
    "small": Scalar.INTEGER,
    "ratio": Scalar.DOUBLE,
    "paid": Scalar.BOOLEAN,
    "at": Scalar.TIMESTAMP,
    "day": Scalar.DATE,
    "price": Decimal(10, 2),
    "huge": Decimal(38, 0),
    "note": Scalar.STRING,
    "blob": Scalar.BINARY,
    "tags": Array(Scalar.STRING),
    "times": Array(Scalar.TIMESTAMP),
    "place": Object((Field(name="lat", type=Scalar.DOUBLE, required=True), Field(name="tax", type=Decimal(4, 1)))),
    "lines": Array(Object((Field(name="sku", type=Scalar.STRING), Field(name="n", type=Array(Decimal(4, 1)))))),
}

ACCESS = {
    "client": Scalar.STRING,
    "ident": Scalar.STRING,
    "user": Scalar.STRING,
    "ts": Scalar.TIMESTAMP,
    "method": Scalar.STRING,
    "path": Scalar.STRING,
    "protocol": Scalar.STRING,
    "request": Scalar.STRING,
    "status": Scalar.INTEGER,
    "bytes": Scalar.LONG,
    "referrer": Scalar.STRING,
    "agent": Scalar.STRING,
}


def a_contract(
    fields: dict[str, DataType], format: Format | None = Format.JSON, required: Sequence[str] = (), **more: object
) -> Contract:
    columns = tuple(Field(name=n, type=t, required=n in required) for n, t in fields.items())
    return Contract(name="orders", version="1.0.0", fields=columns, format=format, **more)


def decode(contract: Contract, values: Sequence[bytes | None]) -> Decoded:
    """Decode, and check what every answer of every decoder promises."""
    decoder = decoder_for(contract)
    decoded = decoder.decode(pa.array(values, pa.binary()))
    assert decoded.columns.schema == decoder.schema
    assert decoded.columns.num_rows == len(decoded.errors) == len(values)
    decoded.columns.validate(full=True)
    decoded.errors.validate(full=True)
    for row, error in zip(decoded.columns.to_pylist(), decoded.errors.to_pylist(), strict=True):
        if error is not None:
            assert set(row.values()) == {None}
            assert 0 < len(error) <= 300
            assert error.isprintable()
    return decoded


def rows(contract: Contract, values: Sequence[bytes | None]) -> list[dict[str, object] | None]:
    """The good rows, None for each bad one, `_extra` as an object."""
    decoded = decode(contract, values)
    found = []
    for row, error in zip(decoded.columns.to_pylist(), decoded.errors.to_pylist(), strict=True):
        if row.get("_extra") is not None:
            members = json.loads(row["_extra"], parse_int=Digits, parse_float=Digits, object_pairs_hook=list)
            assert [n for n, _ in members] == sorted(n for n, _ in members)
            row["_extra"] = json.loads(row["_extra"], parse_int=Digits, parse_float=Digits)
        found.append(row if error is None else None)
    return found


def row(contract: Contract, value: bytes | str) -> dict[str, object]:
    """The row of a good record."""
    found = decode(contract, [value.encode() if isinstance(value, str) else value])
    assert found.errors.to_pylist() == [None]
    return found.columns.to_pylist()[0]


def error(contract: Contract, value: bytes | str | None) -> str:
    """The error of a bad record."""
    found = decode(contract, [value.encode() if isinstance(value, str) else value]).errors[0].as_py()
    assert found is not None, f"decoded without an error: {value!r}"
    return found


def assert_as_slow(contract: Contract, values: Sequence[bytes | None]) -> list[dict[str, object] | None]:
    """The fast decoder's rows, which are the slow decoder's."""
    found = rows(contract, values)
    for value, fast in zip(values, found, strict=True):
        assert fast == slow_decode(contract, value), f"differs for {value!r}"
    return found
