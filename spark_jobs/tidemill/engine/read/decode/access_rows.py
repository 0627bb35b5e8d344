r"""Lines of an access log in the common or the combined format.

`-` means null. A line that is cut after its status is accepted: parts that are missing or incomplete are null. A
request is a method, a path (which may contain blanks) and, since HTTP/1.0, a protocol. Escapes that servers write into
quoted parts (`\"`, `\\`, `\n`, `\xc3`) are undone if the result is UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Decimal, Field, Scalar, spark_type
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode.access_line import mismatch, read_line
from tidemill.engine.read.decode.options import check_options, where
from tidemill.engine.read.decode.rows import Decoded, Positions, assemble, one_array, readable, true_positions
from tidemill.engine.read.decode.texts import Column, as_series, as_texts, log_times, typed
from tidemill.tables.arrow_types import arrow_schema

COLUMNS: Mapping[str, tuple[Scalar, ...]] = {
    "client": (Scalar.STRING,),
    "ident": (Scalar.STRING,),
    "user": (Scalar.STRING,),
    "ts": (Scalar.TIMESTAMP,),
    "method": (Scalar.STRING,),
    "path": (Scalar.STRING,),
    "protocol": (Scalar.STRING,),
    "request": (Scalar.STRING,),
    "status": (Scalar.INTEGER, Scalar.LONG),
    "bytes": (Scalar.LONG,),
    "referrer": (Scalar.STRING,),
    "agent": (Scalar.STRING,),
}
"""The columns that a contract may name, and the types that each may have."""

_TIME = "time"
_NOTHING = frozenset({"client", "ident", "user", "bytes", "referrer", "agent"})

# Nearly all lines match this. `read_line` reads the others, so the pattern may be narrow. It must be narrow: the next
# character decides each choice, so that the regex engine never has to go back.
_WORD = r"[^ \r\n]+"
_TARGET = r'[^ "\\\r\n]+'
_TEXT = r'[^"\\\r\n]*'
_USUAL = (
    rf"^(?<client>{_WORD}) (?<ident>{_WORD}) (?<user>{_WORD}) \[(?<time>[^\]\r\n]{{26}})\] "
    rf'"(?<request>(?<method>{_TARGET}) (?<path>{_TARGET})(?: (?<protocol>HTTP/[0-9.]+))?)" '
    rf"(?<status>[0-9]{{3}})"
    rf'(?: (?<bytes>[0-9]{{1,18}}|-)(?: "(?<referrer>{_TEXT})" "(?<agent>{_TEXT})")?)?$'
)


@dataclass(frozen=True, slots=True)
class AccessLogDecoder:
    """Decodes lines of an access log. Which columns are wanted does not change what counts as an error."""

    fields: tuple[Field, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the contract."""
        return arrow_schema(self.fields)

    def decode(self, values: pa.BinaryArray | pa.ChunkedArray) -> Decoded:
        """Decode lines into typed rows, one each; a bad line gives an error and null columns."""
        lines = readable(one_array(values))
        texts, at, faults = _read_all(lines.texts, self._wanted())
        times = log_times(texts[_TIME])
        for k in true_positions(times.bad):
            faults[int(at[k])] = mismatch(_TIME, f"[{texts[_TIME][k].as_py()}]")
        columns = []
        for field in self.fields:
            column = times.array if field.name == "ts" else _typed(texts[field.name], field)
            columns.append(column)
            if field.required and column.null_count:
                for k in true_positions(column.is_null()):
                    faults.setdefault(int(at[k]), f"`{field.name}`: required, but null")
        errors = lines.errors | {int(lines.where[k]): fault for k, fault in faults.items()}
        return assemble(self.schema, lines.count, columns, lines.where[at], errors)

    def _wanted(self) -> tuple[str, ...]:
        return tuple(sorted({_TIME, *(f.name for f in self.fields)} - {"ts"}))


def access_log_decoder(contract: Contract) -> AccessLogDecoder:
    """The decoder of an access log's contract.

    Raises:
        ContractError: the contract has a column that access logs lack, a column with another type, or an option.
    """
    check_options(contract, ())
    for field in contract.fields:
        types = COLUMNS.get(field.name)
        if types is None:
            raise ContractError(
                f"{where(contract)}: field `{field.name}` is not in an access log, which has {', '.join(COLUMNS)}",
                fix="remove the field, or correct its name",
            )
        if field.type not in types:
            expected = " or ".join(types)
            raise ContractError(
                f"{where(contract)}: field `{field.name}` has type {spark_type(field.type)}, expected {expected}",
                fix=f"give it the type {expected}",
            )
    return AccessLogDecoder(fields=contract.fields)


def _read_all(
    lines: pa.StringArray, wanted: tuple[str, ...]
) -> tuple[dict[str, pa.StringArray], Positions, dict[int, str]]:
    """The wanted texts of readable lines, the positions of these lines, and the errors of the others by position."""
    found = as_series(lines).str.extract_groups(_pattern(wanted)).struct.unnest()
    usual = found[_TIME].is_not_null()
    fitting = found if usual.all() else found.filter(usual)
    texts = {name: _text(fitting[name], name) for name in wanted}
    at = np.flatnonzero(usual.to_numpy())
    if len(at) == len(lines):
        return texts, at, {}
    rest = np.flatnonzero(~usual.to_numpy()).tolist()
    read = {k: read_line(lines[k].as_py()) for k in rest}
    errors = {k: line for k, line in read.items() if isinstance(line, str)}
    unusual = {k: line for k, line in read.items() if not isinstance(line, str)}
    for name in wanted:
        more = pa.array([line[name] for line in unusual.values()], pa.string())
        texts[name] = pa.concat_arrays([texts[name], more])
    return texts, np.concatenate([at, np.array([*unusual], dtype=np.int64)]), errors


def _pattern(wanted: tuple[str, ...]) -> str:
    """The pattern of usual lines, with groups only for the wanted parts."""
    pattern = _USUAL
    for name in (*COLUMNS, _TIME):
        if name not in wanted:
            pattern = pattern.replace(f"(?<{name}>", "(?:")
    return pattern


def _text(series: pl.Series, name: str) -> pa.StringArray:
    texts = as_texts(series)
    if name in _NOTHING:
        return pc.if_else(pc.equal(texts, "-"), pa.scalar(None, pa.string()), texts)
    return texts


def _typed(texts: pa.StringArray, field: Field) -> pa.Array:
    assert isinstance(field.type, Scalar | Decimal)
    column: Column = typed(texts, field.type)
    return column.array
