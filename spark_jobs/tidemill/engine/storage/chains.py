"""Joins rows of state into sessions: which session each row belongs to, which of them fire, and which are absorbed.

It works on all rows of a key together: in the driver, or in Spark's Python workers, one partition of keys at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

KIND, START, END = "_kind", "_start", "_end"
"""What a row is (`FIRES`, `GONE` or `OPEN`), and the bounds of the session that it belongs to, in microseconds."""

FIRES, GONE, OPEN = 0, 1, 2
"""A row of state of a session that fires; a published session that is no more, by its key and start; the start of the
earliest session that records may still join."""

_KEY, _FROM, _UNTIL, _TOUCHED = "_key", "_from", "_until", "_touched"


Rows = TypeVar("Rows")


@dataclass(frozen=True)
class Chained(Generic[Rows]):
    """Joined rows, apart and counted.

    `fires` are of sessions that fire, with their bounds; `gone` have key and start of sessions that are published and
    are no more. `open_since` is when the earliest session starts that records may still join, in microseconds; None if
    there is none.
    """

    fires: tuple[Rows, int]
    gone: tuple[Rows, int]
    open_since: int | None


@dataclass(frozen=True, kw_only=True)
class Chain:
    """How rows of state are joined; times are microseconds.

    Input rows have the columns `keys`, `pane_start`, `pane_end` and `_touched`, true for rows of this batch. A session
    fires on time if `before < end <= after`; if the batch touched it, it fires if `refused_until < end <= again_until`.
    Sessions that start at `whole_after` or earlier may lack records and never fire. Sessions that ended by
    `published_until` are published. Records may join sessions that end at `open_from` or later.
    """

    keys: tuple[str, ...]
    before: int
    after: int
    refused_until: int
    again_until: int
    published_until: int
    whole_after: int
    open_from: int

    def over(self, rows: pa.Table) -> pa.Table:
        """The rows of sessions that fire, then those of other kinds, with `KIND`, `START` and `END`."""
        found = self._joined(rows)
        ends, touched = found[END].to_numpy(), found["_any"].to_numpy()
        on_time = (ends > self.before) & (ends <= self.after)
        fires = on_time | ((ends > self.refused_until) & (ends <= self.again_until) & touched)
        fires &= found[START].to_numpy() > self.whole_after
        kept = rows.filter(pa.array(fires))
        for name in (START, END):
            kept = kept.append_column(name, found[name].filter(pl.Series(fires)).to_arrow())
        parts = [_of_kind(kept, FIRES), self._gone(rows, found, fires), self._open(found)]
        return pa.concat_tables(parts, promote_options="default").select([*kept.column_names, KIND])

    def apart(self, rows: pa.Table) -> Chained[pa.Table]:
        """The rows of `over`, by their kind."""
        fires, gone, first = (rows.filter(pc.equal(rows[KIND], kind)) for kind in (FIRES, GONE, OPEN))
        gone = gone.select([*self.keys, START])
        gone = gone.set_column(len(self.keys), START, gone[START].cast(pa.timestamp("us", "UTC")))
        since = pc.min(first[START]).as_py() if first.num_rows else None
        return Chained((fires.drop_columns([KIND]), fires.num_rows), (gone, gone.num_rows), since)

    def of_partition(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """`over` for one partition of keys in a Python worker."""
        together = list(batches)
        if together:
            yield from self.over(pa.Table.from_batches(together)).to_batches()

    def _joined(self, rows: pa.Table) -> pl.DataFrame:
        """For each row, in its order: its key as a number, its bounds, and those of its session."""
        frame = pl.DataFrame(
            {
                _KEY: _numbered(rows, self.keys),
                _FROM: np.asarray(rows["pane_start"].cast(pa.int64())),
                _UNTIL: np.asarray(rows["pane_end"].cast(pa.int64())),
                _TOUCHED: np.asarray(rows["_touched"]),
            }
        ).with_row_index("_row")
        joined = _sessions(frame, [_KEY])
        whole = [_KEY, "_number"]
        bounds = [
            pl.col(_FROM).min().over(whole).alias(START),
            pl.col(_UNTIL).max().over(whole).alias(END),
            pl.col(_TOUCHED).any().over(whole).alias("_any"),
        ]
        return joined.with_columns(bounds).sort("_row")

    def _gone(self, rows: pa.Table, found: pl.DataFrame, fires: np.ndarray) -> pa.Table:
        """Sessions that were published and that this batch made part of another one, or longer and open again."""
        old = found.with_columns(pl.Series("_fires", fires)).filter(pl.col("_any") & ~pl.col(_TOUCHED))
        parts = _sessions(old.drop("_number"), [_KEY, START]).group_by([_KEY, START, "_number"])
        before = parts.agg(
            pl.col(_FROM).min().alias("_old"), pl.col(_UNTIL).max(), pl.col("_fires").first(), pl.col("_row").first()
        )
        was_published = (pl.col(_UNTIL) > self.refused_until) & (pl.col(_UNTIL) <= self.published_until)
        gone = before.filter(was_published & (~pl.col("_fires") | (pl.col("_old") != pl.col(START))))
        picked = rows.select(list(self.keys)).take(gone["_row"].to_arrow())
        return _of_kind(picked.append_column(START, gone["_old"].to_arrow()), GONE)

    def _open(self, found: pl.DataFrame) -> pa.Table:
        """The start of the earliest session that records may still join, if there is one."""
        first = found.filter(pl.col(END) >= self.open_from)[START].min()
        return _of_kind(pa.table({START: pa.array([] if first is None else [first], pa.int64())}), OPEN)


def _sessions(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The rows, sorted, with the number of their session among those with the same values of `by`.

    A row that starts at the end of another one belongs to the same session.
    """
    ordered = frame.sort(*by, _FROM, _UNTIL)
    reach = pl.col(_UNTIL).cum_max().shift(1).over(by)
    begins = (reach.is_null() | (pl.col(_FROM) > reach)).cast(pl.Int64).alias("_number")
    return ordered.with_columns(begins).with_columns(pl.col("_number").cum_sum())


def _numbered(rows: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """A number for each row; rows with the same key have the same, null being a value."""
    if not keys or not rows.num_rows:
        return np.zeros(rows.num_rows, np.int64)
    frame = pl.DataFrame(pl.from_arrow(rows.select(list(keys)))).rename(
        {key: f"k{number}" for number, key in enumerate(keys)}
    )
    names = frame.columns
    return frame.with_row_index("_row").select(pl.col("_row").first().over(names)).to_series().cast(pl.Int64).to_numpy()


def _of_kind(rows: pa.Table, kind: int) -> pa.Table:
    return rows.append_column(KIND, pa.repeat(pa.scalar(kind, pa.int32()), rows.num_rows))
