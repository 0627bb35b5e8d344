"""Which rows have the same key: Arrow tables, compared as Spark groups rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]


def repeated(columns: Sequence[str], rows: pa.Table, beside: pa.Table | None = None) -> pa.Int64Array:
    """The positions of rows that agree with another row in all of these columns; a null there agrees with nothing.

    The other row may also be one of `beside`.
    """
    keys = _keys(columns, rows)
    if beside is not None:
        keys = pa.concat_tables([keys, _keys(columns, beside).cast(keys.schema)])
    keys = keys.append_column("row", pa.array(range(len(keys)), pa.int64()))
    whole = keys.filter(reduce(pc.and_, [pc.is_valid(keys.column(name)) for name in columns]))
    found = whole.group_by(list(columns)).aggregate([("row", "list"), ("row", "count")])
    alike = found.filter(pc.greater(found.column("row_count"), 1)).column("row_list")
    places = pc.list_flatten(alike).combine_chunks()
    return places.filter(pc.less(places, len(rows))).sort()


def agreeing(columns: Sequence[str], rows: pa.Table, others: pa.Table) -> pa.Table:
    """Those of `rows` that agree with one of `others` in all of these columns; a null there agrees with nothing."""
    keys, wanted = _keys(columns, rows), _keys(columns, others)
    keys = keys.append_column("row", pa.array(range(len(rows)), pa.int64()))
    there = keys.join(wanted.cast(keys.drop_columns("row").schema), list(columns), join_type="left semi")
    return rows.take(there.column("row"))


def with_key_of(rows: pa.Table, others: pa.Table, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    """The positions, in order, of the rows whose key `others` have, too; null is a key like others.

    Without keys, all rows have the same one.
    """
    if not keys:
        return np.arange(rows.num_rows if others.num_rows else 0)
    names = {key: f"k{number}" for number, key in enumerate(keys)}
    mine, theirs = (pl.DataFrame(pl.from_arrow(part.select(list(keys)))).rename(names) for part in (rows, others))
    theirs = theirs.cast(mine.schema).unique()
    found = mine.with_row_index("row").join(theirs, on=list(names.values()), how="semi", nulls_equal=True)
    return found["row"].sort().to_numpy().astype(np.int64)


def _keys(columns: Sequence[str], rows: pa.Table) -> pa.Table:
    return pa.table({name: one_zero(rows.column(name)) for name in columns})


def one_zero(values: Any) -> Any:
    """Doubles with one zero and one NaN, as Spark groups them."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), float("nan"), pc.add(values, 0.0))
