"""Records without structure: the value itself is the only column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode.faults import TOMBSTONE
from tidemill.engine.read.decode.options import check_options, where
from tidemill.engine.read.decode.rows import Decoded, assemble, one_array, readable, true_positions
from tidemill.tables.arrow_types import arrow_schema


@dataclass(frozen=True, slots=True)
class TextDecoder:
    """Keeps values that are UTF-8 as text, even empty ones."""

    field: Field

    @property
    def schema(self) -> pa.Schema:
        """One column of text."""
        return arrow_schema((self.field,))

    def decode(self, values: pa.BinaryArray | pa.ChunkedArray) -> Decoded:
        """Decode values into typed rows, one each; a bad value gives an error and null columns."""
        text = readable(one_array(values), allow_empty=True)
        return assemble(self.schema, text.count, [text.texts], text.where, text.errors)


@dataclass(frozen=True, slots=True)
class BytesDecoder:
    """Keeps values unchanged, even empty ones; only a tombstone is an error."""

    field: Field

    @property
    def schema(self) -> pa.Schema:
        """One column of bytes."""
        return arrow_schema((self.field,))

    def decode(self, values: pa.BinaryArray | pa.ChunkedArray) -> Decoded:
        """Decode values into typed rows, one each; a bad value gives an error and null columns."""
        values = one_array(values)
        errors = dict.fromkeys(true_positions(values.is_null()), TOMBSTONE)
        return assemble(self.schema, len(values), [values], np.arange(len(values)), errors)


def text_decoder(contract: Contract) -> TextDecoder:
    """The decoder of a contract whose only field is text.

    Raises:
        ContractError: it has other fields, or options.
    """
    return TextDecoder(field=_only_field(contract, Scalar.STRING))


def bytes_decoder(contract: Contract) -> BytesDecoder:
    """The decoder of a contract whose only field is binary.

    Raises:
        ContractError: it has other fields, or options.
    """
    return BytesDecoder(field=_only_field(contract, Scalar.BINARY))


def _only_field(contract: Contract, expected: Scalar) -> Field:
    check_options(contract, ())
    if [f.type for f in contract.fields] == [expected]:
        return contract.fields[0]
    found = ", ".join(f"`{f.name}`" for f in contract.fields)
    raise ContractError(
        f"{where(contract)}: format {contract.format} has exactly one field, of type {expected}; found {found}",
        fix=f"keep one field of type {expected}, or choose another format",
    )
