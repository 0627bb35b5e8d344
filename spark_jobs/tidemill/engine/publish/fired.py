"""What fires in a batch: of tables whose rows are updated, only the newest firing of each window and key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.engine.aggregate.fold_rows import TOLD
from tidemill.engine.storage.chains import numbered
from tidemill.tables.keys import with_key_of

_START = "_start"
"""The start of a window in microseconds, where windows have one."""


class _Told(msgspec.Struct):
    """Of what is told of a firing: its number within its task and of its window, this window, and those it replaces."""

    n: int
    index: int
    window: tuple[int, int] | None
    replaces: list[int] = []


class _Event(NamedTuple):
    """What happened to a window, in the order of sorting: it fired the nth time, or another one took its place."""

    part: int
    n: int
    fires: bool
    row: int
    start: int | None
    nth: int


def _events(parts: Sequence[int], told: Iterable[_Told]) -> Iterator[_Event]:
    """What happened to windows. Firings of one key are told in their order; Spark may have mixed several keys."""
    for row, (part, each) in enumerate(zip(parts, told, strict=True)):
        for start in each.replaces:
            yield _Event(part, each.n, False, row, start, each.index)
        yield _Event(part, each.n, True, row, None if each.window is None else each.window[0], each.index)


@dataclass(frozen=True)
class Fired:
    """The firings to publish, by key and with what is told of each (`TOLD`).

    `before` has key and start of each window that may have a row from an earlier batch, and that fired again, or whose
    place another one took; None where rows are appended.
    """

    rows: pa.Table
    before: pa.Table | None = None

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
        # The sort is stable: events of a window stay in their order.
        order = np.argsort(numbers, kind="stable")
        edges = numbers[order][1:] != numbers[order][:-1]
        last, first = order[np.append(edges, True)], order[np.append(True, edges)]
        fired = [events[event].row for event in last if events[event].fires]
        old = [event for event in first.tolist() if events[event].nth or not events[event].fires]
        return Fired(found.take(pa.array(fired, pa.int64())), windows.take(pa.array(old, pa.int64())))

    def without(self, sink: FiringSink, staged: pa.Table) -> pa.Table:
        """The windows of `before` by their row key, without those that are staged to be published.

        Where there is one row for all records, a row of some other column stands for it.
        """
        assert self.before is not None
        if not sink.row_key:
            return self.before.slice(0, 0 if staged.num_rows else 1)
        columns = {key: self.before[key].cast(staged.schema.field(key).type) for key in sink.keys}
        if sink.bounds:
            columns = {sink.bounds[0]: self.before[_START].cast(staged.schema.field(sink.bounds[0]).type), **columns}
        before = pa.table(columns)
        gone = np.ones(before.num_rows, np.bool_)
        gone[with_key_of(before, staged, sink.row_key)] = False
        return before.filter(pa.array(gone))
