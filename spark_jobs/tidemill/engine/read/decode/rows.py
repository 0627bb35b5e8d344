"""What every decoder promises, and the first and the last step that all decoders share.

The first step sets aside values that no decoder can read (tombstones, empty values, bytes that are not UTF-8). The last
step spreads the columns of the good rows over all rows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.engine.read.decode.faults import EMPTY, TOMBSTONE, clip

_SLICE = 128

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Typed rows, one for each value, in the order of the values.

    `errors[i]` is null when row i is good. Otherwise it is one line of at most 300 characters that says what is wrong,
    what was expected and what was found; then all columns of row i are null.
    """

    columns: pa.RecordBatch
    errors: pa.StringArray


class Decoder(Protocol):
    """A function from the bytes of records to typed rows, made from a contract.

    It gives a row for any bytes and never raises. Each row depends only on the bytes of its record, not on how records
    are divided into calls. A decoder can be pickled.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of the contract, all nullable; then `_extra` (text) if the contract keeps extra fields."""
        ...

    def decode(self, values: pa.BinaryArray | pa.ChunkedArray) -> Decoded:
        """Decode records; a null is a tombstone. At most 2 GiB in one call, Arrow's limit for one array."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """The values that are text: `texts[k]` belongs to row `where[k]`; `errors` has the other rows."""

    count: int
    texts: pa.StringArray
    where: Positions
    errors: dict[int, str]


def one_array(values: pa.BinaryArray | pa.ChunkedArray) -> pa.BinaryArray:
    """The values as one array of Arrow's type `binary`."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.cast(pa.binary())


def readable(values: pa.BinaryArray, *, allow_empty: bool = False) -> Readable:
    """Set aside tombstones, values that are not UTF-8 and, unless allowed, empty values."""
    errors = dict.fromkeys(true_positions(values.is_null()), TOMBSTONE)
    if not allow_empty:
        empty = pc.fill_null(pc.equal(pc.binary_length(values), 0), False)
        errors.update(dict.fromkeys(true_positions(empty), EMPTY))
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid:
        errors.update(_not_utf8(values))
    where = np.delete(np.arange(len(values)), list(errors))
    if errors:
        texts = values.take(pa.array(where)).cast(pa.string())
    return Readable(count=len(values), texts=texts, where=where, errors=errors)


def assemble(
    schema: pa.Schema, count: int, columns: Sequence[pa.Array], where: Positions, errors: Mapping[int, str]
) -> Decoded:
    """Spread columns over `count` rows: element k goes to row `where[k]`, unless that row has an error."""
    if not errors and len(where) == count and (where[:-1] < where[1:]).all():
        nothing = pa.nulls(count, pa.string())
        return Decoded(columns=pa.RecordBatch.from_arrays(list(columns), schema=schema), errors=nothing)
    source = np.full(count, -1, dtype=np.int64)
    source[where] = np.arange(len(where))
    source[list(errors)] = -1
    index = pa.array(source, mask=source < 0)
    texts: list[str | None] = [None] * count
    for row, text in errors.items():
        texts[row] = clip(text)
    spread = [column.take(index) for column in columns]
    return Decoded(columns=pa.RecordBatch.from_arrays(spread, schema=schema), errors=pa.array(texts, pa.string()))


def true_positions(flags: Any) -> list[int]:
    """The positions at which an array of booleans is true; it is of Arrow or numpy, and has no nulls."""
    found: list[int] = np.flatnonzero(np.asarray(flags)).tolist()
    return found


def _not_utf8(values: pa.BinaryArray) -> dict[int, str]:
    errors: dict[int, str] = {}
    for start in range(0, len(values), _SLICE):
        part = values[start : start + _SLICE]
        try:
            part.cast(pa.string())
        except pa.ArrowInvalid:
            errors.update(_bad_bytes(start, part.to_pylist()))
    return errors


def _bad_bytes(start: int, values: Sequence[bytes | None]) -> Iterator[tuple[int, str]]:
    for row, value in enumerate(values, start):
        try:
            (value or b"").decode()
        except UnicodeDecodeError as fault:
            yield row, f"not UTF-8 at byte {fault.start}"
