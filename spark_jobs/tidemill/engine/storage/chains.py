"""Joins rows of state into sessions: which session each row belongs to, which of them fire, and which are absorbed.

It works on all rows of a key together: in the driver, or in Spark's Python workers, one partition of keys at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

KIND, START, END = "_kind", "_start", "_end"
"""What a row is (`FIRES`, `GONE` or `OPEN`), and the bounds of the session that it belongs to, in microseconds."""

FIRES, GONE, OPEN = 0, 1, 2
"""A row of state of a session that fires; a published session that is no more, by its key and start; the start of the
earliest session that records may still join."""

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


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
        found = _Sessions.of(numbered(rows, self.keys), _micros(rows["pane_start"]), _micros(rows["pane_end"]))
        touched = np.asarray(rows["_touched"])
        changed = found.any(touched)
        on_time = (found.ends > self.before) & (found.ends <= self.after)
        again = (found.ends > self.refused_until) & (found.ends <= self.again_until) & changed
        fires = (on_time | again) & (found.starts > self.whole_after)
        there = found.of_rows(fires)
        kept = rows.filter(pa.array(there))
        for name, values in ((START, found.starts), (END, found.ends)):
            kept = kept.append_column(name, pa.array(found.of_rows(values)[there]))
        gone = self._gone(rows, found, found.of_rows(changed) & ~touched, fires)
        parts = [_of_kind(kept, FIRES), gone, self._open(found)]
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

    def _gone(self, rows: pa.Table, found: _Sessions, old: Flags, fires: Flags) -> pa.Table:
        """Sessions that were published and that this batch made part of another one, or longer and open again.

        `old` are the rows of earlier batches in sessions that this batch touched.
        """
        where = np.flatnonzero(old)
        into = found.of_rows(np.arange(len(found.starts)))[where]
        before = _Sessions.of(into, found.first_times[where], found.last_times[where])
        now = before.values(into)
        was_published = (before.ends > self.refused_until) & (before.ends <= self.published_until)
        gone = was_published & (~fires[now] | (before.starts != found.starts[now]))
        picked, taken = (
            pa.array(where[before.values(np.arange(len(where)))[gone]]),
            pa.table({START: before.starts[gone]}),
        )
        for key in self.keys:
            taken = taken.append_column(rows.schema.field(key), rows[key].take(picked))
        return _of_kind(taken, GONE)

    def _open(self, found: _Sessions) -> pa.Table:
        """The start of the earliest session that records may still join, if there is one."""
        first = found.starts[found.ends >= self.open_from]
        return _of_kind(pa.table({START: first[:0] if not len(first) else [first.min()]}), OPEN)


@dataclass(frozen=True)
class _Sessions:
    """Rows with a first and a last time, joined: rows with one key that overlap or touch are of one session.

    `order` sorts the rows by key and time; sessions begin there at `begins`.
    """

    first_times: Numbers
    last_times: Numbers
    order: Numbers
    begins: Numbers

    @staticmethod
    def of(keys: Numbers, first_times: Numbers, last_times: Numbers) -> _Sessions:
        order = np.lexsort((last_times, first_times, keys))
        key, first, last = keys[order], first_times[order], last_times[order]
        new_key = np.append(True, key[1:] != key[:-1])[: len(key)]
        # The latest end so far under each key: keys are in order, so a running maximum begins anew with each of them.
        times, rank = np.unique(last, return_inverse=True)
        reach = times[np.maximum.accumulate(np.cumsum(new_key) * len(times) + rank) % max(len(times), 1)]
        begins = new_key | np.append(True, first[1:] > reach[:-1])[: len(key)]
        return _Sessions(first_times, last_times, order, np.flatnonzero(begins))

    def values(self, column: Numbers) -> Numbers:
        """For each session, the value of its first row."""
        return column[self.order][self.begins]

    def any(self, flags: Flags) -> Flags:
        """For each session, whether the flag of some row is set."""
        return np.logical_or.reduceat(flags[self.order], self.begins) if len(self.begins) else flags[:0]

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """For each row, the value of its session."""
        found = np.empty(len(self.order), values.dtype)
        sizes = np.diff(np.append(self.begins, len(self.order)))
        found[self.order] = np.repeat(values, sizes)
        return found

    @cached_property
    def starts(self) -> Numbers:
        """When each session starts."""
        return self.values(self.first_times)

    @cached_property
    def ends(self) -> Numbers:
        """When each session ends."""
        if not len(self.begins):
            return self.last_times[:0]
        return np.maximum.reduceat(self.last_times[self.order], self.begins)


def joined(keys: Numbers, first_times: Numbers, last_times: Numbers) -> tuple[Numbers, Numbers]:
    """For each row, the start and the end of the session that it belongs to, among these rows."""
    found = _Sessions.of(keys, first_times, last_times)
    return found.of_rows(found.starts), found.of_rows(found.ends)


def _micros(column: pa.ChunkedArray) -> Numbers:
    return np.asarray(column.cast(pa.int64()))


def numbered(rows: pa.Table, keys: Sequence[str]) -> Numbers:
    """A number for each row; rows with the same key have the same, null being a value."""
    if not keys or not rows.num_rows:
        return np.zeros(rows.num_rows, np.int64)
    if len(keys) == 1 and pa.types.is_string(rows.schema.field(keys[0]).type):
        return np.asarray(rows[keys[0]].combine_chunks().dictionary_encode("encode").indices)
    frame = pl.DataFrame(pl.from_arrow(rows.select(list(keys)))).rename(
        {key: f"k{number}" for number, key in enumerate(keys)}
    )
    names = frame.columns
    return frame.with_row_index("_row").select(pl.col("_row").first().over(names)).to_series().cast(pl.Int64).to_numpy()


def _of_kind(rows: pa.Table, kind: int) -> pa.Table:
    return rows.append_column(KIND, pa.repeat(pa.scalar(kind, pa.int32()), rows.num_rows))
