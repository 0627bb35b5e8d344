"""What the keys of a table of firings keep in the course of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.ordered.records import Moment
from tidemill.engine.aggregate.fold_rows import KEPT, sorted_by
from tidemill.engine.publish.ordered_state import (
    AS_OF,
    CLOCK,
    LAST,
    NEVER,
    SINCE,
    USED,
    WATERMARK,
    Kept,
    told_keys,
)
from tidemill.engine.publish.pieces import newest_of
from tidemill.tables.keys import with_key_of


@dataclass(frozen=True)
class OrderedKeys:
    """What keys kept `before` a batch, which of them it has left alone, and what it has `folded`, by key.

    The work of a batch follows what it folds: of all others it looks only at numbers.
    """

    sink: FiringSink
    before: pa.Table
    left_alone: npt.NDArray[np.bool_]
    folded: pa.Table

    @staticmethod
    def of(sink: FiringSink, kept: Kept | None, parts: Sequence[pa.Table], stamp: int) -> OrderedKeys | None:
        """What is there once these parts are folded, with one `AS_OF` after the other; None if there is nothing."""
        told = [told_keys(sink, part, stamp + number) for number, part in enumerate(parts)]
        if kept is None and not told:
            return None
        before = told[0].slice(0, 0) if kept is None else kept.keys
        keys = OrderedKeys(sink, before, np.ones(before.num_rows, np.bool_), before.slice(0, 0))
        for part in told:
            keys = keys.then(part)
        return keys

    def then(self, told: pa.Table) -> OrderedKeys:
        """The same after a further fold, with a greater `AS_OF`."""
        left = self.left_alone.copy()
        left[with_key_of(self.before, told, self.sink.keys)] = False
        both = pa.concat_tables([self.folded, told.cast(self.folded.schema)]) if self.folded.num_rows else told
        return replace(self, left_alone=left, folded=newest_of(both, self.sink.keys, AS_OF))

    def at_most(self, most: int | None, stamp: int) -> OrderedKeys:
        """The same once surplus keys are forgotten, in the order of their last records."""
        if most is None or (every := self.everything()).num_rows <= most:
            return self
        gone = every.take(sorted_by(every, [LAST, *self.sink.keys])[: every.num_rows - most])
        nothing = {AS_OF: stamp, WATERMARK: NEVER, CLOCK: None, USED: None, SINCE: None, LAST: None, KEPT: None}
        for name, value in nothing.items():
            column = pa.repeat(pa.scalar(value, every.schema.field(name).type), gone.num_rows)
            gone = gone.set_column(gone.column_names.index(name), name, column)
        left = np.ones(self.folded.num_rows, np.bool_)
        left[with_key_of(self.folded, gone, self.sink.keys)] = False
        return replace(self, folded=self.folded.filter(pa.array(left))).then(gone)

    def everything(self) -> pa.Table:
        """What all keys keep that keep something."""
        others = self.before.filter(pc.and_(self.before[KEPT].is_valid(), pa.array(self.left_alone)))
        return pa.concat_tables([others, _keeping(self.folded)], promote_options="permissive")

    def told(self) -> pa.Table:
        """What state does not say yet. Nothing has to be said of a key that kept nothing and keeps nothing."""
        told = self.folded[KEPT].is_valid().to_numpy().copy()
        told[with_key_of(self.folded, self.before.filter(pa.array(~self.left_alone)), self.sink.keys)] = True
        return self.folded.filter(pa.array(told))

    def earliest(self, column: str) -> int | None:
        """The least value of one of `LOOKS`, over all keys; None if there is none."""
        found = (self.before[column].filter(pa.array(self.left_alone)), self.folded[column])
        return min((value for each in found if (value := pc.min(each).as_py()) is not None), default=None)

    def woken(self, after: Moment) -> pa.Table:
        """The keys that wait for a watermark or a clock that has come."""
        others = self.before.filter(pc.and_(self._wakes(self.before, after), pa.array(self.left_alone)))
        folded = self.folded.filter(self._wakes(self.folded, after))
        return pa.concat_tables([others, folded], promote_options="permissive")

    def _wakes(self, rows: pa.Table, after: Moment) -> pa.ChunkedArray:
        """Whether each of these keys keeps something and waits for what has come."""
        comes = pc.and_(pc.not_equal(rows[WATERMARK], NEVER), pc.less_equal(rows[WATERMARK], after.watermark))
        wakes = pc.or_(comes, pc.fill_null(pc.less_equal(rows[CLOCK], after.clock), False))
        if (timeout := self.sink.timeout) is not None:
            # The time of a key begins when it is first looked at, if nobody noted when its last record came.
            wakes = pc.or_(wakes, pc.fill_null(pc.less(rows[USED], after.clock - timeout), True))
        return pc.and_(pc.fill_null(wakes, False), rows[KEPT].is_valid())


def _keeping(keys: pa.Table) -> pa.Table:
    return keys.filter(keys[KEPT].is_valid())
