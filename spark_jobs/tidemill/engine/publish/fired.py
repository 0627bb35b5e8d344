"""What fires in a batch: of tables whose rows are updated, only the newest firing of each window and key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.engine.aggregate.ordered_fold import TOLD
from tidemill.engine.storage.chains import numbered
from tidemill.tables.keys import with_key_of

_START = "_start"
"""The start of a window in microseconds, where windows have one."""


class _Told(msgspec.Struct):
    """Of what is told of a firing: its number within its task, its window, and the starts of those it replaces."""

    n: int
    window: tuple[int, int] | None
    replaces: list[int] = []


class _Event(NamedTuple):
    """What happened to a window, in the order of sorting: it fired, or another one that fired took its place."""

    part: int
    n: int
    fires: bool
    row: int
    start: int | None


def _events(parts: Sequence[int], told: Iterable[_Told]) -> Iterator[_Event]:
    """What happened to windows. Firings of one key are told in their order; Spark may have mixed several keys."""
    for row, (part, each) in enumerate(zip(parts, told, strict=True)):
        for start in each.replaces:
            yield _Event(part, each.n, False, row, start)
        yield _Event(part, each.n, True, row, None if each.window is None else each.window[0])


@dataclass(frozen=True)
class Fired:
    """The firings to publish, by key and with what is told of each (`TOLD`).

    `touched` has key and start of each window that fired, or whose place another one took, some of them twice; None
    where rows are appended.
    """

    rows: pa.Table
    touched: pa.Table | None = None

    @staticmethod
    def of(sink: FiringSink, parts: Sequence[pa.Table]) -> Fired | None:
        """What to publish of firings in parts, the later ones last; None if nothing fired."""
        found = pa.concat_tables(parts, promote_options="permissive") if parts else None
        if found is None or not found.num_rows:
            return None
        if not sink.replaces:
            return Fired(found)
        part = np.repeat(np.arange(len(parts)), [each.num_rows for each in parts]).tolist()
        events = sorted(_events(part, map(msgspec.json.Decoder(_Told).decode, found[TOLD].to_pylist())))
        owners = pa.array([event.row for event in events], pa.int64())
        keys = {key: found[key].take(owners) for key in sink.keys}
        windows = pa.table({**keys, _START: pa.array([event.start for event in events], pa.int64())})
        numbers = numbered(windows, windows.column_names)
        # The sort is stable: the last event of each window comes last.
        order = np.argsort(numbers, kind="stable")
        last = order[np.append(numbers[order][1:] != numbers[order][:-1], True)]
        fired = [events[event].row for event in last if events[event].fires]
        return Fired(found.take(pa.array(fired, pa.int64())), windows)

    def without(self, sink: FiringSink, staged: pa.Table) -> pa.Table:
        """The touched windows by their row key, without those that are staged to be published.

        Where there is one row for all records, a row of some other column stands for it.
        """
        assert self.touched is not None
        if not sink.row_key:
            return self.touched.slice(0, 0 if staged.num_rows else 1)
        columns = {key: self.touched[key].cast(staged.schema.field(key).type) for key in sink.keys}
        if sink.bounds:
            columns = {sink.bounds[0]: self.touched[_START].cast(staged.schema.field(sink.bounds[0]).type), **columns}
        touched = pa.table(columns)
        there = np.ones(touched.num_rows, np.bool_)
        there[with_key_of(touched, staged, sink.row_key)] = False
        rows = touched.filter(pa.array(there))
        return rows.group_by(list(sink.row_key)).aggregate([])
