"""CSV records: one row each, columns by position in the order of the contract.

Options: `delimiter`, one ASCII character, by default a comma; `null`, the text that means null unless it is quoted, by
default the empty text; `timestamp`, how times are written (`TimeUnit`). One line break at the end of a record is
ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Decimal, Field, Scalar, spark_type
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode.csv_split import split
from tidemill.engine.read.decode.faults import EMPTY, text_fault
from tidemill.engine.read.decode.options import TimeUnit, check_options, time_unit, where
from tidemill.engine.read.decode.rows import Decoded, Readable, assemble, one_array, readable, true_positions
from tidemill.engine.read.decode.texts import typed, writable
from tidemill.tables.arrow_types import arrow_schema

_AT_ONCE = 1 << 24
"""Bytes that are split at once: the flags take several times as much memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDecoder:
    """Decodes CSV records."""

    fields: tuple[Field, ...]
    delimiter: str
    null: str
    unit: TimeUnit

    @property
    def schema(self) -> pa.Schema:
        """The columns of the contract."""
        return arrow_schema(self.fields)

    def decode(self, values: pa.BinaryArray | pa.ChunkedArray) -> Decoded:
        """Decode records into typed rows, one each; a bad record gives an error and null columns."""
        values = one_array(values)
        if len(values) > 1 and (pc.sum(pc.binary_length(values)).as_py() or 0) > _AT_ONCE:
            half = len(values) // 2
            parts = [self.decode(values[:half]), self.decode(values[half:])]
            columns = pa.concat_batches([p.columns for p in parts])
            return Decoded(columns=columns, errors=pa.concat_arrays([p.errors for p in parts]))
        return self._decode(_without_line_end(readable(values)))

    def _decode(self, text: Readable) -> Decoded:
        if not len(text.texts):
            nothing = [pa.nulls(0, column.type) for column in self.schema]
            return assemble(self.schema, text.count, nothing, text.where, text.errors)
        cut = split(text.texts, self.delimiter, len(self.fields))
        faults = {int(text.where[k]): fault for k, fault in cut.errors.items()}
        rows = text.where[cut.where]
        columns = []
        for index, field in enumerate(self.fields):
            fields = cut.fields.take(pa.array(np.arange(index, len(cut.fields), len(self.fields))))
            fields = self._nulls(fields, cut.quoted[:, index])
            column, bad = self._typed(fields, field)
            columns.append(column)
            for k, fault in bad.items():
                faults.setdefault(int(rows[k]), fault)
        return assemble(self.schema, text.count, columns, rows, text.errors | faults)

    def _nulls(self, fields: pa.StringArray, quoted: npt.NDArray[np.bool_]) -> pa.StringArray:
        null = pc.and_(pc.equal(fields, self.null), pa.array(~quoted))
        return pc.if_else(null, pa.scalar(None, pa.string()), fields)

    def _typed(self, fields: pa.StringArray, field: Field) -> tuple[pa.Array, dict[int, str]]:
        assert isinstance(field.type, Scalar | Decimal)
        column = typed(fields, field.type, self.unit)
        faults = {
            k: text_fault(field.name, field.type, fields[k].as_py(), self.unit) for k in true_positions(column.bad)
        }
        if field.required and fields.null_count:
            missing = f"`{field.name}`: required, but null"
            faults |= dict.fromkeys(true_positions(fields.is_null()), missing)
        return column.array, faults


def csv_decoder(contract: Contract) -> CsvDecoder:
    """The decoder of a CSV contract.

    Raises:
        ContractError: an option is unknown or impossible, or a field has a type that CSV cannot carry.
    """
    check_options(contract, ("delimiter", "null", "timestamp"))
    for field in contract.fields:
        if not writable(field.type):
            raise ContractError(
                f"{where(contract)}: field `{field.name}` has type {spark_type(field.type)}, which CSV cannot carry",
                fix="give it a type that is written as one text, or choose another format",
            )
    delimiter = contract.options.get("delimiter", ",")
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ContractError(
            f"{where(contract)}: option `delimiter` is {delimiter!r}, expected one ASCII character, "
            "neither a quote nor a line break",
            fix="set `delimiter` to a single character such as ; or a tab",
        )
    return CsvDecoder(
        fields=contract.fields,
        delimiter=delimiter,
        null=contract.options.get("null", ""),
        unit=time_unit(contract),
    )


def _without_line_end(text: Readable) -> Readable:
    ended = pc.ends_with(text.texts, "\n")
    if not pc.any(ended).as_py():
        return text
    texts = pc.replace_substring_regex(text.texts, "\r?\n$", "")
    full = np.asarray(pc.greater(pc.binary_length(texts), 0))
    empty = dict.fromkeys(text.where[~full].tolist(), EMPTY)
    return Readable(
        count=text.count,
        texts=texts.filter(pa.array(full)),
        where=text.where[full],
        errors=text.errors | empty,
    )
