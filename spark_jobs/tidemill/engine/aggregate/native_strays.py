"""Rejected and late rows of a native pass: what `side_outputs` says in Spark's SQL, said of Arrow rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.contract import RowRule, Severity
from tidemill.core.contract.row_rules import rules_of
from tidemill.core.contract.schema import DataType, Field, Scalar
from tidemill.core.contract.schema import Decimal as DecimalType
from tidemill.core.time.panes import OnePane, Panes
from tidemill.engine.aggregate.side_outputs import LATE_COLUMNS, REJECTED_COLUMNS
from tidemill.engine.storage.chains import Numbers
from tidemill.tables.arrow_types import arrow_schema

REJECTED, LATE = "rejected", "late"

_WRITTEN = frozenset(
    {Scalar.STRING, Scalar.INTEGER, Scalar.LONG, Scalar.BOOLEAN, Scalar.DATE, Scalar.TIMESTAMP, Scalar.DOUBLE}
)

_DIGITS, _LEAST, _MOST = 15, 1e-3, 1e7
"""Java and Python write a double of up to so many digits, from the one number up to the other, in the same way. Beyond,
Java before version 19 may write a digit too many, and writes exponents otherwise."""

_FIRST_YEAR = 1000
"""Java and Python pad the years before with zeros in ways of their own."""

_ESCAPE = re.compile(r"\\(?:u(00[0-9a-f]{2})|.)")
_PLACE = ("_partition", "_offset", "_timestamp")


class LateRows(NamedTuple):
    """Rows of `branched` that the windows of a table refuse: those where the column `late` is true.

    `columns` maps columns of rows to the names that the table knows them by.
    """

    late: str
    table: str
    panes: Panes
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strays:
    """The rules whose bits rejected rows tell, and the rows that each table refuses: None if Spark must write them.

    `refusing` are the columns of `branched` that say so.
    """

    topic: str
    rules: tuple[RowRule, ...]
    refusing: tuple[str, ...]
    late: tuple[LateRows, ...] | None

    def where(self, branched: pa.Table) -> Numbers:
        """The numbers of the rows that are rejected, or late for some table."""
        stray = np.asarray(branched["_rejected"])
        for column in self.refusing:
            stray = stray | np.asarray(branched[column])
        return np.flatnonzero(stray)

    def of(self, branched: pa.Table, rows: pa.Table, stray: Numbers) -> Mapping[str, pa.Table]:
        """The side outputs among some rows; `rows` are the decoded rows that `branched` was made of."""
        few, raw = branched.take(pa.array(stray)), rows.select([*_PLACE, "_raw"]).take(pa.array(stray))
        rejected, found = np.flatnonzero(np.asarray(few["_rejected"])), {}
        if len(rejected):
            found[REJECTED] = self._rejected(few, raw, rejected)
        try:
            late = [part for each in self.late or () if (part := self._late(each, few, raw)).num_rows]
        except NotCertain:
            return found
        if late:
            found[LATE] = pa.concat_tables(late)
        return found

    def _rejected(self, few: pa.Table, raw: pa.Table, where: Numbers) -> pa.Table:
        here = pa.array(where)
        masks, errors = few["_broken"].take(here).to_pylist(), few["_error"].take(here).to_pylist()
        reasons = [self._reasons(error, mask) for error, mask in zip(errors, masks, strict=True)]
        return _table([*self._places(raw, here), reasons, raw["_raw"].take(here)], REJECTED_COLUMNS)

    def _reasons(self, error: str | None, mask: int) -> list[str]:
        broken = (rule.name for rule in rules_of(mask, self.rules) if rule.severity is Severity.ERROR)
        return [*([] if error is None else [error]), *broken]

    def _late(self, what: LateRows, few: pa.Table, raw: pa.Table) -> pa.Table:
        here = pa.array(np.flatnonzero(np.asarray(few[what.late])))
        times = few["_time"].take(here).to_pylist()
        starts, ends = zip(*(_bounds(what.panes, time) for time in times), strict=True) if times else ((), ())
        names = list(what.columns.values())
        # A table without columns has no rows that `to_pylist` could give.
        try:
            values = few.select(list(what.columns)).take(here).rename_columns(names).to_pylist() or [{}] * len(here)
        except (ValueError, OverflowError) as error:
            raise NotCertain("a time that Python does not know") from error
        columns = [
            times,
            [what.table] * len(times),
            list(starts),
            list(ends),
            [as_json(row) for row in values],
            raw["_raw"].take(here),
        ]
        return _table([*self._places(raw, here), *columns], LATE_COLUMNS)

    def _places(self, raw: pa.Table, here: pa.Array) -> list[Any]:
        return [[self.topic] * len(here), *(raw[column].take(here) for column in _PLACE)]


def _table(columns: Sequence[Any], fields: Sequence[Field]) -> pa.Table:
    schema = arrow_schema(fields)
    arrays = [
        c if isinstance(c, pa.ChunkedArray) else pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


class NotCertain(Exception):
    """It is not known how Spark would write a value: it writes the rows itself."""


def is_written(of: DataType) -> bool:
    """Whether `as_json` writes values of this type, or most of them, as Spark's `to_json` does."""
    return of in _WRITTEN or isinstance(of, DecimalType)


def as_json(row: Mapping[str, Any]) -> str:
    """A row as Spark's `to_json` writes it: without nulls, and control characters in capital digits.

    Raises:
        NotCertain: Spark might write a value in another way.
    """
    there = (f"{_written(name)}:{_written(value)}" for name, value in row.items() if value is not None)
    return f"{{{','.join(there)}}}"


def _written(value: Any) -> str:
    if isinstance(value, Decimal):
        # With all digits of its type, as Java writes it.
        return str(value)
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, datetime):
        return _moment(value)
    text = json.dumps(value.isoformat() if isinstance(value, date) else value, ensure_ascii=False)
    return _ESCAPE.sub(_capital, text)


def _double(value: float) -> str:
    text = repr(value)
    if value and not (_LEAST <= abs(value) < _MOST and len(text.strip("-0").replace(".", "")) <= _DIGITS):
        raise NotCertain(f"the double {text}")
    return text


def _moment(value: datetime) -> str:
    """A time with milliseconds; Spark cuts off what is smaller."""
    if value.year < _FIRST_YEAR:
        raise NotCertain(f"the time {value}")
    return f'"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"'


def _capital(escape: re.Match[str]) -> str:
    return escape[0] if escape[1] is None else f"\\u{escape[1].upper()}"


def _bounds(panes: Panes, time: int) -> tuple[int | None, int | None]:
    """Start and end of the last window of a time (`last_window_start`, `last_window_end`); null where it has none."""
    if isinstance(panes, OnePane):
        return None, None
    window = panes.last_window_of(time)
    return window.start, window.end
