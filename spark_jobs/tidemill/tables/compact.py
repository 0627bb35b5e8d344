"""Folds small files of a table into larger ones, while writers may keep writing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

from tidemill.tables.interface import Between
from tidemill.tables.rewrite import Action, Files, removal

TARGET_SIZE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Folded:
    """How many files were folded, and into how many; 0 and 0 when nothing could or needed to be done."""

    files: int = 0
    into: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    path: str
    size: int
    low: Any
    partition: tuple[Any, ...]


def fold_actions(files: Files, within: Between, target_size: int) -> list[Action]:
    """Actions that fold the small files which lie completely inside `within`; they change no row.

    Small means less than half of `target_size` bytes. Files of one partition that are neighbours in the order of
    `within.column` are joined, up to about `target_size`. A file that is larger than all its neighbours together waits
    until there are more of them.
    """
    fragments = files.overlapping(within)
    schema = files.schema()
    actions: list[Action] = []
    for group in _groups(_small_files(files, within, target_size), target_size):
        parts = [fragments[f.path] for f in group]
        rows = ds.FileSystemDataset(parts, schema, parts[0].format, parts[0].filesystem).to_table()
        actions += [removal(f.path, data_change=False) for f in group]
        actions += files.write(rows, within.column, rows_per_file=rows.num_rows, data_change=False)
    return actions


def foldable_files(files: Files, within: Between, target_size: int) -> int:
    """How many files `fold_actions` would fold; it writes nothing."""
    return sum(len(group) for group in _groups(_small_files(files, within, target_size), target_size))


def _small_files(files: Files, within: Between, target_size: int) -> list[_File]:
    listing = pa.table(files.handle.get_add_actions(flatten=True))
    by = files.spec.partition_by
    least, most = (
        (f"partition.{within.column}",) * 2 if within.column in by else (f"min.{within.column}", f"max.{within.column}")
    )
    if least not in listing.column_names:
        return []
    return [
        _File(
            # The listing has paths as in the log, with one more URL encoding.
            path=unquote(row["path"]),
            size=row["size_bytes"],
            low=row[least],
            partition=tuple(row[f"partition.{c}"] for c in by),
        )
        for row in listing.to_pylist()
        if row["size_bytes"] < target_size / 2 and _encloses(within, row[least], row[most])
    ]


def _encloses(within: Between, least: Any, most: Any) -> bool:
    return (
        least is not None
        and most is not None
        and (within.low is None or within.low <= least)
        and (within.high is None or most < within.high)
    )


def _groups(files: list[_File], target_size: int) -> Iterator[list[_File]]:
    def place(file: _File) -> tuple[str, ...]:
        return tuple(map(repr, file.partition))

    for _, neighbours in groupby(sorted(files, key=lambda f: (place(f), f.low)), key=place):
        group: list[_File] = []
        for file in neighbours:
            if group and sum(f.size for f in group) + file.size > target_size:
                yield from _worthwhile(group)
                group = []
            group.append(file)
        yield from _worthwhile(group)


def _worthwhile(group: list[_File]) -> Iterator[list[_File]]:
    """The parts of a group in which no file outweighs all others: so a row is rewritten a few times, not each time."""
    if len(group) < 2:
        return
    heaviest = max(range(len(group)), key=lambda n: group[n].size)
    if group[heaviest].size * 2 <= sum(f.size for f in group):
        yield group
    else:
        yield from _worthwhile(group[:heaviest])
        yield from _worthwhile(group[heaviest + 1 :])
