"""Replaces files of a Delta table by others, without a JVM.

Delta's MERGE writes kept rows and new rows into one file. If batch after batch touches the newest windows, that file
grows with the table: 20 ms for the 20th batch of 300 rows, 73 ms for the 1,000th. Here, the kept rows of a file stay in
a file of their own, and new rows get a new file, both sorted. So the range of values in a file stays narrow, and a
batch rewrites only files that hold its windows.

Every commit of these actions must land exactly on the state that they were computed from: `max_commit_retries=0`.
delta-rs 1.6 does not notice that a file which it removes was folded meanwhile, and would bring its rows back (its own
`optimize.compact` doubles all rows if two of them run at once).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pyarrow.fs as pafs  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction

from tidemill.tables.interface import BOUND_TYPES, Between, TableSpec
from tidemill.tables.keys import with_key_of
from tidemill.tables.predicates import datafusion

Action = AddAction | RemoveAction

# A late row rewrites its whole file: 200,000 rows take about 0.1 s.
ROWS_PER_FILE = 200_000
_ROWS_PER_GROUP = 20_000
_TRIES = 3
# The number of columns for which Delta has statistics by default.
_FIRST_COLUMNS = 32
_INDEX = "__index"
_AT_ONCE = 2
"""So many files of an upsert are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one state of the table, and the place for new ones."""

    handle: DeltaTable
    spec: TableSpec

    def schema(self) -> pa.Schema:
        """The columns of the table, including those that the spec does not name."""
        return pa.schema(self.handle.schema().to_arrow())

    def overlapping(self, within: Between) -> dict[str, ds.Fragment]:
        """The files that may hold rows inside `within`, by their path in the log."""
        # By default, Spark writes timestamps as INT96; Arrow would read them as nanoseconds, which end in 2262.
        options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        dataset = self.handle.to_pyarrow_dataset(
            filesystem=self._filesystem(),
            parquet_read_options=options,
            file_pruning_predicate=datafusion((within.coarse,)),
        )
        return {fragment.path: fragment for fragment in dataset.get_fragments()}

    def gone(self, paths: Iterable[str]) -> list[str]:
        """Those of these files that the storage no longer has."""
        found = self._filesystem().get_file_info(list(paths))
        return [info.path for info in found if info.type is pafs.FileType.NotFound]

    def write(
        self, rows: pa.Table, sort_by: str, *, rows_per_file: int = ROWS_PER_FILE, data_change: bool = True
    ) -> list[AddAction]:
        """Write these rows to new files, sorted, each of one partition and of at most `rows_per_file` rows.

        The files belong to the table once the actions are committed; until then, a vacuum would delete them.
        """
        return [
            self._write_file(part.slice(start, rows_per_file), sort_by, values, data_change)
            for values, part in _partitions(rows.sort_by(sort_by), self.spec.partition_by)
            for start in range(0, part.num_rows, rows_per_file)
        ]

    def _write_file(self, rows: pa.Table, sort_by: str, values: dict[str, str | None], data_change: bool) -> AddAction:
        bounded = sorted({*self._pruned_by(), sort_by} - set(self.spec.partition_by))
        left = _TRIES
        while True:
            path, left = f"part-{uuid.uuid4()}.parquet", left - 1
            try:
                with self._filesystem().open_output_stream(path) as sink:
                    pq.write_table(
                        rows, sink, row_group_size=_ROWS_PER_GROUP, store_schema=False, write_statistics=bounded
                    )
                    size = sink.tell()
                break
            except OSError:
                # If its answer was lost, a store refuses the same object at the second try: use a new name.
                if not left:
                    raise
        return AddAction(path, size, values, _now(), data_change, _statistics(rows, bounded))

    def _pruned_by(self) -> tuple[str, ...]:
        """The columns with bounds in every file: `pruned_by`, or those of the first columns whose types have bounds."""
        first = self.spec.fields[:_FIRST_COLUMNS]
        return self.spec.pruned_by or tuple(f.name for f in first if f.type in BOUND_TYPES)

    def _filesystem(self) -> pafs.FileSystem:
        return pafs.PyFileSystem(DeltaStorageHandler(self.handle.table_uri, self.spec.options))


def removal(path: str, *, data_change: bool = True) -> RemoveAction:
    """An action that removes a file from the newest state; readers of older versions still find it."""
    return RemoveAction(path, data_change, _now())


def removed_paths(actions: list[Action]) -> set[str]:
    """The files that the actions remove."""
    return {action.path for action in actions if isinstance(action, RemoveAction)}


def upsert_actions(
    files: Files, rows: pa.Table, keys: tuple[str, ...], within: Between, gone: pa.Table | None = None
) -> list[Action]:
    """The actions that replace the rows with the same keys by `rows`, add the others, and remove those of `gone`."""
    schema = files.schema()
    replaced = pa.concat_tables([rows.select(keys), *([] if gone is None else [gone.select(keys)])])

    def rewritten(item: tuple[str, ds.Fragment]) -> list[Action]:
        path, fragment = item
        old = fragment.to_table(schema=schema)
        kept = old.filter(unmatched(old, replaced, keys, within))
        return [removal(path), *files.write(kept, within.column)] if kept.num_rows < old.num_rows else []

    # Reading, joining and writing leave Python: files are rewritten side by side, few at a time.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        actions = [action for part in pool.map(rewritten, files.overlapping(within).items()) for action in part]
    return actions + files.write(rows, within.column)


@dataclass(frozen=True, slots=True)
class Picked:
    """A selection of rows by the values of `columns`: `meant` gives a flag for each row."""

    columns: tuple[str, ...]
    meant: Callable[[pa.Table], npt.NDArray[np.bool_]]


def replace_actions(
    files: Files, rows: pa.Table, within: tuple[Between, ...], sort_by: str, only: Picked | None = None
) -> list[Action]:
    """The actions that replace all rows inside any of `within` by `rows`.

    With `only`, they replace just the rows that it means: a file without such rows stays, and only the columns of
    `only` are read from it.
    """
    schema = files.schema()
    actions: list[Action] = []
    touched = {path: part for bounds in within for path, part in files.overlapping(bounds).items()}
    for path, fragment in touched.items():
        if only is not None and not only.meant(fragment.to_table(schema=schema, columns=list(only.columns))).any():
            continue
        old = fragment.to_table(schema=schema)
        gone = reduce(pc.or_, [inside(old[bounds.column], bounds) for bounds in within])
        gone = gone if only is None else pc.and_(gone, pa.chunked_array([only.meant(old)]))
        kept = old.filter(pc.invert(gone))
        if kept.num_rows < old.num_rows:
            actions.append(removal(path))
            actions.extend(files.write(kept, sort_by))
    return actions + files.write(rows, sort_by)


def without(files: Files, where: tuple[Between, ...], sort_by: str) -> tuple[list[Action], int]:
    """The actions that remove all rows which meet every condition of `where`, and the number of these rows."""
    schema = files.schema()
    actions: list[Action] = []
    count = 0
    for path, fragment in files.overlapping(where[0]).items():
        old = fragment.to_table(schema=schema)
        kept = old.filter(pc.invert(reduce(pc.and_, [inside(old[bounds.column], bounds) for bounds in where])))
        if kept.num_rows < old.num_rows:
            count += old.num_rows - kept.num_rows
            actions.append(removal(path))
            actions.extend(files.write(kept, sort_by))
    return actions, count


def count_meeting(files: Files, where: tuple[Between, ...]) -> int:
    """The number of rows that meet every condition of `where`."""
    found = 0
    for fragment in files.overlapping(where[0]).values():
        rows = fragment.to_table(columns=[bounds.column for bounds in where])
        found += pc.sum(reduce(pc.and_, [inside(rows[b.column], b) for b in where]), min_count=0).as_py()
    return found


def rows_inside(files: Files, within: tuple[Between, ...]) -> int:
    """The number of rows inside any of `within`; all must be about one column and must not overlap."""
    found = 0
    for bounds in within:
        for fragment in files.overlapping(bounds).values():
            column = fragment.to_table(columns=[bounds.column])[bounds.column]
            found += pc.sum(inside(column, bounds), min_count=0).as_py()
    return found


def inside(column: pa.ChunkedArray, within: Between) -> pa.ChunkedArray:
    """For each value, whether it is inside; null is inside only if there is no bound."""
    mask = pa.chunked_array([pa.array(np.ones(len(column), dtype=bool))])
    if within.low is not None:
        mask = pc.and_(mask, pc.greater_equal(column, pa.scalar(within.low, column.type)))
    if within.high is not None:
        mask = pc.and_(mask, pc.less(column, pa.scalar(within.high, column.type)))
    return pc.fill_null(mask, False)


def unmatched(old: pa.Table, rows: pa.Table, keys: tuple[str, ...], within: Between) -> pa.Array:
    """For each of the `old` rows whether an upsert of `rows`, which lie inside `within`, leaves it as it is."""
    candidates = pc.indices_nonzero(inside(old[within.column], within))
    found = with_key_of(old.select(keys).take(candidates), rows, keys)
    mask = np.ones(old.num_rows, dtype=bool)
    mask[candidates.to_numpy()[found]] = False
    return pa.array(mask)


def _partitions(rows: pa.Table, by: tuple[str, ...]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    if not by:
        yield {}, rows
        return
    indexed = rows.select(by).append_column(_INDEX, pa.array(np.arange(rows.num_rows)))
    for group in indexed.group_by(list(by)).aggregate([(_INDEX, "list")]).to_pylist():
        values = {c: None if group[c] is None else str(group[c]) for c in by}
        yield values, rows.drop_columns(list(by)).take(sorted(group[f"{_INDEX}_list"]))


def _statistics(rows: pa.Table, columns: list[str]) -> str:
    bounds = {c: pc.min_max(rows[c]).as_py() for c in columns}
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": {c: _json(b["min"]) for c, b in bounds.items() if b["min"] is not None},
            "maxValues": {c: _json(b["max"]) for c, b in bounds.items() if b["max"] is not None},
            "nullCount": {c: rows[c].null_count for c in columns},
        }
    )


def _json(value: datetime | date | int) -> str | int:
    match value:
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        case date():
            return value.isoformat()
        case _:
            return value


def _now() -> int:
    return int(time.time() * 1000)
