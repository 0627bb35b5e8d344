r"""JSON records that one program wrote: the same fields in the same order, read by one pattern for all of them.

What a pattern matches is JSON with just these fields, each once, whose values need no unescaping; `json_reading` reads
the others one by one, so the pattern may be narrow. It must be narrow: the next character decides each choice, so that
the regex engine never has to go back. Patterns need a third less CPU than records that are read one by one, and no
Python object for each, so that threads do not wait for one another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.schema import Decimal, Field, Scalar, nameable
from tidemill.engine.read.decode.json_structs import Shape, extra_attribute
from tidemill.engine.read.decode.options import TimeUnit
from tidemill.engine.read.decode.rows import Positions
from tidemill.engine.read.decode.texts import as_series, as_texts, typed, writable
from tidemill.tables.arrow_types import arrow_type

FEWEST = 5_000
"""For fewer records, a pattern takes as long as it saves: about 2 ms for a batch of any size."""

_LAYOUTS = 4
_SAMPLE = 15
_MOST_FIELDS = 15
"""With more than 16 groups, the regex engine needs another method, which takes twice to eight times as long."""

_LONGEST_RECORD = 500
"""So many characters on average: of longer records, most of the time goes into copying them."""

_LONGEST_NAMES = 2_000
"""So many characters of all names: the regex engine refuses patterns that are too large."""

_IS_LAID_OUT = "o"
_TEXT = r'[^"\\\x00-\x1f]*'
_WHOLE = r"0|-?[1-9][0-9]{0,%d}"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?"
_ANYTHING = rf'"{_TEXT}"|{_NUMBER}|true|false|null'

_members: Callable[[bytes], dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """Records of one layout: record `where[k]` is element k of each column, which are those of the fields.

    `extras` has the other fields as JSON objects, or nulls.
    """

    where: Positions
    columns: list[pa.Array]
    extras: pa.StringArray


def laid_out(records: pa.StringArray, shape: Shape, *, keep: bool) -> Iterator[LaidOut]:
    """The records that have common layouts; with `keep`, also those with fields that the shape does not name.

    Which records are found depends on the others, what is found in a record does not.
    """
    if not all(writable(field.type) for field in shape.fields):
        return
    left = np.arange(len(records))
    for _ in range(_LAYOUTS):
        some = records if len(left) == len(records) else records.take(pa.array(left))
        layout = _common_layout(some, shape, keep=keep) if len(left) >= FEWEST else None
        if layout is None:
            return
        found = layout.read(some)
        yield LaidOut(where=left[found.where], columns=found.columns, extras=found.extras)
        if 2 * len(found.where) < len(left):
            return
        left = np.delete(left, found.where)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Names of fields, in their order in the records."""

    names: tuple[str, ...]
    shape: Shape

    @property
    def pattern(self) -> str:
        """Matches a record, with a group for each field."""
        members = ", ?".join(f'"{re.escape(name)}": ?{self._value(name)}' for name in self.names)
        return rf"^(?<{_IS_LAID_OUT}>)\{{{members}\}}$"

    def _value(self, name: str) -> str:
        for index, field in enumerate(self.shape.fields):
            if field.name == name:
                return _value(f"f{index}", field, self.shape.unit)
        return f"(?<{extra_attribute(self.extras.index(name))}>{_ANYTHING})"

    @property
    def extras(self) -> list[str]:
        """The names that are not of the shape, sorted."""
        return sorted({*self.names} - self.shape.names)

    def read(self, records: pa.StringArray) -> LaidOut:
        """The records of this layout whose values fit their fields."""
        found = as_series(records).str.extract_groups(self.pattern).struct.unnest()
        fits = found[_IS_LAID_OUT].is_not_null()
        where = np.flatnonzero(fits.to_numpy())
        if len(where) < len(records):
            found = found.filter(fits)
        columns, bad = self._columns(found)
        extras = self._extras(found)
        if bad.any():
            good = pa.array(~bad)
            where, columns, extras = where[~bad], [c.filter(good) for c in columns], extras.filter(good)
        return LaidOut(where=where, columns=columns, extras=extras)

    def _columns(self, found: pl.DataFrame) -> tuple[list[pa.Array], npt.NDArray[np.bool_]]:
        """The columns, and the rows whose text is no value of its type."""
        columns, bad = [], np.zeros(len(found), dtype=np.bool_)
        for index, field in enumerate(self.shape.fields):
            assert isinstance(field.type, Scalar | Decimal)
            if field.name not in self.names:
                columns.append(pa.nulls(len(found), arrow_type(field.type)))
                continue
            texts = as_texts(found[f"f{index}"])
            column = typed(texts, field.type, self.shape.unit)
            columns.append(column.array)
            bad |= column.bad
            if field.type is Scalar.DOUBLE:
                # An integer, for a reader of JSON, and so no negative zero.
                bad |= np.asarray(pc.fill_null(pc.equal(texts, "-0"), False))
        return columns, bad

    def _extras(self, found: pl.DataFrame) -> pa.StringArray:
        if not self.extras:
            return pa.nulls(len(found), pa.string())
        parts: list[pa.StringArray | str] = []
        for index, name in enumerate(self.extras):
            parts += [("," if parts else "{") + f'"{name}":', as_texts(found[extra_attribute(index)])]
        return pc.binary_join_element_wise(*parts, "}", "")


def _value(group: str, field: Field, unit: TimeUnit) -> str:
    """Matches the value of a field, if it needs no unescaping; the group has its text, or nothing for null."""
    match field.type:
        case Scalar.STRING | Scalar.DATE:
            text = f'"(?<{group}>{_TEXT})"'
        case Scalar.TIMESTAMP if unit is TimeUnit.ISO:
            text = f'"(?<{group}>{_TEXT})"'
        case Scalar.INTEGER | Scalar.LONG:
            # All numbers of so many digits fit.
            text = f"(?<{group}>{_WHOLE % (8 if field.type is Scalar.INTEGER else 17)})"
        case Scalar.BOOLEAN:
            text = f"(?<{group}>true|false)"
        case _:
            text = f"(?<{group}>{_NUMBER})"
    return text if field.required else f"(?:{text}|null)"


def _common_layout(records: pa.StringArray, shape: Shape, *, keep: bool) -> _Layout | None:
    """The layout that most of some records have, if its pattern is for most of these."""
    required = {field.name for field in shape.fields if field.required}
    seen: dict[tuple[str, ...], list[str]] = {}
    for k in range(0, len(records), max(len(records) // _SAMPLE, 1)):
        record = records[k].as_py()
        with suppress(msgspec.DecodeError, RecursionError):
            seen.setdefault(tuple(_members(record.encode())), []).append(record)
    names, some = max(seen.items(), key=lambda found: len(found[1]), default=((), []))
    fits = required <= {*names} and (keep or {*names} <= shape.names)
    if len(some) < 2 or not (fits and 0 < len(names) <= _MOST_FIELDS and all(map(_is_plain, names))):
        return None
    if sum(map(len, names)) > _LONGEST_NAMES or sum(map(len, some)) > _LONGEST_RECORD * len(some):
        return None
    layout = _Layout(names, shape)
    return layout if 2 * as_series(pa.array(some)).str.contains(layout.pattern).sum() > len(some) else None


def _is_plain(name: str) -> bool:
    """Whether a name is written in JSON as it is."""
    return nameable(name) and name.isprintable()
