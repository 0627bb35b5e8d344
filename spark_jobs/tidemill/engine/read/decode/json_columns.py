"""Arrow columns from structs that msgspec decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, assert_never

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar
from tidemill.engine.read.decode.faults import shortened, shown, wrong
from tidemill.engine.read.decode.json_structs import NULL, attribute, read_raw
from tidemill.engine.read.decode.options import TimeUnit
from tidemill.engine.read.decode.rows import true_positions
from tidemill.engine.read.decode.texts import typed
from tidemill.tables.arrow_types import arrow_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A text that is not a value of its type, or a null (`found` is None) that is not allowed.

    It is in row `position`, at `path` below the column: `[2].price`, or empty for the column itself.
    """

    position: int
    path: str
    data_type: DataType
    found: str | None

    def explain(self, name: str, unit: TimeUnit) -> str:
        """The error text for the column `name`."""
        if self.found is None:
            return f"`{name}{self.path}`: required, but null"
        return wrong(f"{name}{self.path}", self.data_type, self.found, unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A column, and the values that do not fit, in the order of rows."""

    array: pa.Array
    misfits: list[Misfit]


def build(values: Sequence[Any], field: Field, unit: TimeUnit) -> Built:
    """The column of a field from its decoded values; None is null."""
    built = _build(values, field.type, unit)
    if not (field.required and read_raw(field.type, unit) and built.array.null_count):
        return built
    # For msgspec, a raw null is a value.
    nulls = [Misfit(position=k, path="", data_type=field.type, found=None) for k, v in enumerate(values) if v == NULL]
    return Built(array=built.array, misfits=sorted(built.misfits + nulls, key=lambda m: m.position))


def _build(values: Sequence[Any], data_type: DataType, unit: TimeUnit) -> Built:
    match data_type:
        case Decimal():
            written = _written(values)
            return _read(written, _unquoted(written), data_type, unit)
        case Scalar.TIMESTAMP if unit is not TimeUnit.ISO:
            written = _written(values)
            return _read(written, written, data_type, unit)
        case Scalar.DATE | Scalar.TIMESTAMP:
            texts = pa.array(values, pa.string())
            return _read(texts, texts, data_type, unit)
        case Scalar():
            return Built(array=pa.array(values, arrow_type(data_type)), misfits=[])
        case Array(item):
            return _lists(values, item, unit)
        case Object(fields):
            return _objects(values, fields, unit)
        case _:
            assert_never(data_type)


def _read(written: pa.StringArray, texts: pa.StringArray, data_type: Scalar | Decimal, unit: TimeUnit) -> Built:
    column = typed(texts, data_type, unit)
    show = shortened if read_raw(data_type, unit) else shown
    misfits = [
        Misfit(position=k, path="", data_type=data_type, found=show(written[k].as_py()))
        for k in true_positions(column.bad)
    ]
    return Built(array=column.array, misfits=misfits)


def _written(values: Sequence[msgspec.Raw]) -> pa.StringArray:
    """The values as they are written in the JSON; null for null."""
    texts = pa.array(list(map(bytes, values)), pa.binary()).cast(pa.string())
    return pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts)


def _unquoted(texts: pa.StringArray) -> pa.StringArray:
    """The texts, with JSON strings replaced by their content."""
    if not pc.any(pc.starts_with(texts, '"')).as_py():
        return texts
    if pc.any(pc.match_substring(texts, "\\")).as_py():
        plain = [msgspec.json.decode(t) if t and t.startswith('"') else t for t in texts.to_pylist()]
        return pa.array(plain, pa.string())
    return pc.replace_substring_regex(texts, '^"([^"]*)"$', r"\1")


def _lists(values: Sequence[list[Any] | None], item: DataType, unit: TimeUnit) -> Built:
    lengths = np.fromiter((len(v) if v is not None else 0 for v in values), dtype=np.int64, count=len(values))
    ends = lengths.cumsum()
    inner = _build([x for v in values if v is not None for x in v], item, unit)
    absent = np.fromiter((v is None for v in values), dtype=np.bool_, count=len(values))
    offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
    array = pa.ListArray.from_arrays(offsets, inner.array, arrow_type(Array(item)), mask=pa.array(absent))
    misfits = []
    for misfit in inner.misfits:
        owner = int(np.searchsorted(ends, misfit.position, side="right"))
        index = misfit.position - int(ends[owner] - lengths[owner])
        misfits.append(replace(misfit, position=owner, path=f"[{index}]{misfit.path}"))
    return Built(array=array, misfits=misfits)


def _objects(values: Sequence[Any], fields: Sequence[Field], unit: TimeUnit) -> Built:
    present = [v for v in values if v is not None]
    where = np.flatnonzero(np.fromiter((v is not None for v in values), dtype=np.bool_, count=len(values)))
    built = [build(list(map(attrgetter(attribute(i)), present)), f, unit) for i, f in enumerate(fields)]
    misfits = [
        replace(misfit, position=int(where[misfit.position]), path=f".{field.name}{misfit.path}")
        for field, column in zip(fields, built, strict=True)
        for misfit in column.misfits
    ]
    array = pa.StructArray.from_arrays([b.array for b in built], fields=list(arrow_type(Object(tuple(fields)))))
    if len(present) < len(values):
        source = np.full(len(values), -1, dtype=np.int64)
        source[where] = np.arange(len(present))
        array = array.take(pa.array(source, mask=source < 0))
    return Built(array=array, misfits=misfits)
