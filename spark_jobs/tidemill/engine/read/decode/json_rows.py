"""JSON records: one object each, in UTF-8, read by msgspec into a struct made from the contract.

- JSON follows RFC 8259: NaN, Infinity, comments, a byte order mark, unpaired surrogate escapes and any text after the
  object are errors; so are objects and arrays nested deeper than 128 levels.
- An integer has neither point nor exponent: 3.0 is not an integer. A double is any number that is not too large; a
  decimal is a number or text, and must fit without rounding. Binary is base64 text.
- A required field must be present and not null; for other fields, missing and null are the same.
- If a field occurs twice, the last value counts, but each value must have the field's type.
- `ExtraFields` says what happens to fields that the contract does not name, `json_extras` how `_extra` holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.contract import Contract, ExtraFields
from tidemill.core.contract.schema import Array, DataType, Field, Object, nameable
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode.json_columns import build
from tidemill.engine.read.decode.json_faults import DEEPEST, explain, too_deep
from tidemill.engine.read.decode.json_layouts import LaidOut, laid_out
from tidemill.engine.read.decode.json_reading import Found, read_records
from tidemill.engine.read.decode.json_structs import Shape, attribute
from tidemill.engine.read.decode.options import check_options, time_unit, where
from tidemill.engine.read.decode.rows import Decoded, Positions, assemble, one_array, readable
from tidemill.tables.arrow_types import arrow_schema

EXTRA = "_extra"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDecoder:
    """Decodes JSON records. Struct types are made in each process that needs them, and are not pickled."""

    shape: Shape
    keep: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of the contract, then `_extra` if extra fields are kept."""
        schema = arrow_schema(self.shape.fields)
        return schema.append(pa.field(EXTRA, pa.string())) if self.keep else schema

    def decode(self, values: pa.BinaryArray | pa.ChunkedArray) -> Decoded:
        """Decode records into typed rows, one each; a bad record gives an error and null columns."""
        text = readable(one_array(values))
        parts = list(laid_out(text.texts, self.shape, keep=self.keep))
        left = _others(len(text.texts), [part.where for part in parts])
        faults: dict[int, str] = {}
        if len(left) or not parts:
            records = text.texts if not parts else text.texts.take(pa.array(left))
            part, found = self._one_by_one(records)
            faults = {int(left[k]): fault for k, fault in found.items()}
            parts.append(LaidOut(where=left[part.where], columns=part.columns, extras=part.extras))
        columns = [_joined([part.columns[n] for part in parts]) for n in range(len(self.shape.fields))]
        if self.keep:
            columns.append(_joined([part.extras for part in parts]))
        errors = text.errors | {int(text.where[k]): fault for k, fault in faults.items()}
        where = np.concatenate([part.where for part in parts])
        return assemble(self.schema, text.count, columns, text.where[where], errors)

    def _one_by_one(self, texts: pa.StringArray) -> tuple[LaidOut, dict[int, str]]:
        """Records that need not have a layout, and what is wrong with records, by position."""
        records = texts.cast(pa.binary()).to_pylist()
        faults = _too_deep(texts, records)
        for k in faults:
            records[k] = b""  # refused at once, and nothing below meets the depth
        found = read_records(records, self.shape, keep=self.keep)
        faults |= {k: explain(records[k], self.shape, strict=not self.keep) for k in found.refused if k not in faults}
        columns = []
        for index, field in enumerate(self.shape.fields):
            built = build(list(map(attrgetter(attribute(index)), found.rows)), field, self.shape.unit)
            columns.append(built.array)
            for misfit in built.misfits:
                position = int(found.where[misfit.position])
                faults.setdefault(position, misfit.explain(field.name, self.shape.unit))
        return LaidOut(where=found.where, columns=columns, extras=_extra_column(found)), faults


def json_decoder(contract: Contract) -> JsonDecoder:
    """The decoder of a JSON contract.

    Raises:
        ContractError: an option is unknown, or a field has a name that JSON decoding cannot support.
    """
    check_options(contract, ("timestamp",))
    keep = contract.extra_fields is ExtraFields.KEEP
    if keep and EXTRA in contract.columns:
        raise ContractError(
            f"{where(contract)}: field `{EXTRA}` has the name of the column that keeps extra fields",
            fix="rename the field, or reject extra fields",
        )
    for field in contract.fields:
        _check_names(contract, field)
    return JsonDecoder(shape=Shape(fields=contract.fields, unit=time_unit(contract)), keep=keep)


def _check_names(contract: Contract, field: Field) -> None:
    if not nameable(field.name):
        raise ContractError(
            f"{where(contract)}: field {field.name!r} has a quote, a backslash or a control character in its name",
            fix="rename the field",
        )
    for inner in _fields_within(field.type):
        _check_names(contract, inner)


def _fields_within(data_type: DataType) -> tuple[Field, ...]:
    match data_type:
        case Object(fields):
            return fields
        case Array(item):
            return _fields_within(item)
        case _:
            return ()


def _too_deep(texts: pa.StringArray, records: Sequence[bytes]) -> dict[int, str]:
    """Errors of records that are nested too deep. msgspec's own limit depends on the caller's stack."""
    long = np.flatnonzero(np.asarray(pc.binary_length(texts)) > 2 * DEEPEST).tolist()
    fault = f"nested deeper than {DEEPEST} levels"
    return {k: fault for k in long if too_deep(records[k])}


def _extra_column(found: Found) -> pa.StringArray:
    if not found.extras:
        return pa.nulls(len(found.rows), pa.string())
    return pa.array(found.extras, pa.binary()).cast(pa.string())


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _others(count: int, known: Sequence[Positions]) -> Positions:
    """The positions that are not known, of `count` positions."""
    others = np.ones(count, dtype=np.bool_)
    for positions in known:
        others[positions] = False
    return np.flatnonzero(others)
