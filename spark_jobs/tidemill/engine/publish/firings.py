"""The firings that a batch publishes, and the state of ordered windows that it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.shapes import is_of_firings
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.foldable import waits_for_time
from tidemill.core.ordered.records import Moment
from tidemill.core.plan.amendments import Repair
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import SliceSet
from tidemill.core.plan.work import replay_of
from tidemill.core.time.times import micros
from tidemill.engine.aggregate.epochs import Epoch, History
from tidemill.engine.aggregate.firing_sql import columns_left, folded_here, folded_rows
from tidemill.engine.aggregate.fold_rows import FIRING as FIRES
from tidemill.engine.aggregate.fold_rows import ROW, TOLD
from tidemill.engine.aggregate.ordered_fold import OrderedFold
from tidemill.engine.publish.fired import Fired
from tidemill.engine.publish.firing_results import FiringResults, Nothing
from tidemill.engine.publish.kept_pieces import is_outgrown, needed
from tidemill.engine.publish.kept_reader import KeptReader
from tidemill.engine.publish.noted import Noted
from tidemill.engine.publish.ordered_keys import OrderedKeys
from tidemill.engine.publish.ordered_state import (
    CLOCK,
    SINCE,
    Kept,
    lost,
    new_pieces,
    of_keys,
    state_rows,
    told_keys,
    waiting,
)
from tidemill.engine.publish.pieces import picked, together
from tidemill.engine.storage.expected_versions import ExpectedVersions
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.engine.storage.table_layout import Uris


@dataclass(frozen=True)
class Fires:
    """What a batch brings forth: rows to publish or to remove, and rows of state to append; None if there are none."""

    rows: StagedRows | None
    state: StagedRows | None
    gone: StagedRows | None = None


@dataclass(kw_only=True)
class Firings:
    """Folds the records of a batch, lets time pass, and merges what fires.

    `found` is for the position and the commit. `histories` has, by table, the batches whose records are folded again:
    by a backfill those of all keys, by a repair those of the keys that it has `touched`.
    """

    flow: Flow
    plan: BatchPlan
    uris: Uris
    writers: RowWriters
    expected: ExpectedVersions
    histories: Mapping[str, History] = field(default_factory=dict)
    found: Noted = field(default_factory=Noted)
    touched: dict[str, pa.Table] = field(default_factory=dict)
    results: FiringResults = field(init=False)
    _kept: dict[str, Kept | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results = FiringResults(writers=self.writers)

    def kept(self, sink: FiringSink) -> Kept | None:
        """The state of a sink before the first batch that is folded; None when there is none. It is read once.

        If a repair folds keys again, it is their state before the first of these batches, and of all other keys that
        of now.

        Raises:
            EngineError: maintenance has removed some of it since the batch was planned.
        """
        if sink.table not in self._kept:
            self._kept[sink.table] = self._found_kept(sink)
        return self._kept[sink.table]

    def _found_kept(self, sink: FiringSink) -> Kept | None:
        keys, replay = self.touched.get(sink.table), self._replay
        if replay is None or (self._of_some_keys and keys is None):
            return self._state_of.now(sink)
        then = self._state_of.then(sink, replay)
        if keys is None or (now := self._state_of.now(sink)) is None:
            return then
        return now.with_keys_of(sink, then, keys)

    def touch(self, sink: FiringSink, keys: pa.Table) -> None:
        """Fold all records of these keys again."""
        self.touched[sink.table] = keys
        self._kept.pop(sink.table, None)

    @property
    def _of_some_keys(self) -> bool:
        """Whether only keys that the records of a repair touch are folded again."""
        return isinstance(self.plan.work, Repair)

    def _folded_again(self, sink: FiringSink) -> History | None:
        """The batches that are folded again; None where only the records of this batch are folded."""
        known = self.histories.get(sink.table)
        return None if self._of_some_keys and sink.table not in self.touched else known

    @property
    def _replay(self) -> Replay | None:
        return replay_of(self.plan.work)

    @cached_property
    def _state_of(self) -> KeptReader:
        return KeptReader(plan=self.plan, uris=self.uris, driver=self.writers.driver, expected=self.expected)

    @cached_property
    def writes_anew(self) -> bool:
        """Whether the batch writes all that keys keep: it folds keys again, or little else is left of earlier slices.

        It writes that of all tables of firings, because one number says which slices count for them. State of one that
        the declaration lacks may be needed again.
        """
        if self.plan.live is None:
            return self._of_some_keys and self._replay is not None
        sinks = [sink for sink in self.flow.sinks if isinstance(sink, FiringSink)]
        known = {table for table, shape in self.plan.position.shapes.items() if is_of_firings(shape)}
        if known - {sink.table for sink in sinks}:
            return False
        return is_outgrown([(sink, kept) for sink in sinks if (kept := self.kept(sink)) is not None])

    @property
    def noted(self) -> Noted:
        """What all tables of firings leave for the position and the commit."""
        return replace(self.found, anew=self.writes_anew)

    def job(self, sink: FiringSink, rows: DataFrame, kept: Kept | None, history: History | None = None) -> DataFrame:
        """The job that folds the records of a batch, or of the batches of a `history`; by default that of the sink."""
        fold = self.fold(sink, columns_left(sink, rows.columns), history or self.history(sink))
        fold = fold if history is None else replace(fold, most=sink.most_keys)
        old = None if kept is None else waiting(sink, self._folded_keys(sink, kept))
        frame = self.writers.frame([self.writers.in_driver(old)]) if old is not None and old.num_rows else None
        return folded_rows(rows, frame, sink, fold)

    def folded_here(self, sink: FiringSink, rows: pa.Table) -> pa.Table | None:
        """What `job` gives, of records that this process has; None if Spark has to aggregate their pieces."""
        kept, fold = self.kept(sink), self.fold(sink, columns_left(sink, rows.column_names), self.history(sink))
        if kept is None:
            return folded_here(rows, None, sink, fold)
        keys = of_keys(kept.keys, rows, sink) if self.folds_apart(sink) else self._folded_keys(sink, kept)
        return folded_here(rows, waiting(sink, keys), sink, fold)

    def _folded_keys(self, sink: FiringSink, kept: Kept) -> pa.Table:
        """What is kept of the keys that are folded, where others than those of records are."""
        keys = self.touched.get(sink.table)
        return kept.keys if keys is None else of_keys(kept.keys, keys, sink)

    def folds_apart(self, sink: FiringSink) -> bool:
        """Whether only keys that have records are folded with them, because time passes later for all.

        With a history it passes in between. A repair notes the clock of keys of which nobody noted when they were used.
        """
        return self._folded_again(sink) is None and (self.plan.live is not None or sink.timeout is None)

    def fold(self, sink: FiringSink, columns: tuple[str, ...], history: History) -> OrderedFold:
        """The fold of records with these columns. Surplus keys of a batch are forgotten later, once its time passed."""
        return OrderedFold(
            keys=sink.keys,
            window=sink.window,
            history=history,
            columns=columns,
            marked=sink.marker is not None,
            together=sink.most_keys is not None,
            most=sink.most_keys if self._folded_again(sink) is not None else None,
        )

    def history(self, sink: FiringSink) -> History:
        """The batches whose records the plan folds.

        No time passes in the batch itself: it passes after its records, for all keys at once (`fire`).
        """
        before = Moment(self.plan.position.watermark_of(sink.table), micros(self.plan.clock))
        own = Epoch(self.plan.batch_id, before, Moment(before.watermark))
        return self._folded_again(sink) or History(epochs=(own,))

    def fire(self, sink: FiringSink, found: pa.Table | None, after: int, nothing: Nothing) -> Fires:
        """What fires once the watermark has come to `after`, of the rows that `job` found, if it ran."""
        kept, self.found.fired = self.kept(sink), True
        parts = [] if found is None else [found]
        keys = OrderedKeys.of(sink, kept, parts, self._stamp)
        if keys is None:
            # There is no state, and no record came.
            return Fires(None, None)
        passed = self._let_time_pass(sink, keys, self._time_left(sink, after, folded=found is not None))
        if passed is not None:
            parts.append(passed)
            keys = keys.then(told_keys(sink, passed, self._stamp + 1))
        if self._folded_again(sink) is None:
            keys = keys.at_most(sink.most_keys, self._stamp + 1)
        self._note(sink, keys, parts)
        own = None if found is None else new_pieces(sink, found)
        fired = Fired.of(sink, [picked(part, ROW, FIRES).select([*sink.keys, TOLD]) for part in parts])
        if fired is None and not self.writes_anew:
            return Fires(None, self._state(sink, keys, own, kept))
        each = self.results.one_each(sink, [part for part in (own, self._old(sink, keys, kept)) if part is not None])
        if sink.keeps_wholes:
            # What firings are made of is needed again: it is merged once, for them and for what the keys keep.
            nodes = self.results.nodes(sink, keys.folded, each)
            each, own = pa.concat_tables([each, nodes]), together(own, nodes)
        state = self._state(sink, keys, own, kept)
        if fired is None:
            return Fires(None, state)
        rows = self.results.merged(sink, fired.rows, each, nothing)
        gone = None if sink.table in self.touched else self.results.gone(sink, fired, rows)
        return Fires(rows, state, gone)

    def again(self, sink: FiringSink, rows: DataFrame, history: History) -> StagedRows | None:
        """All rows of a table, of the records of its whole history; None when nothing has fired."""
        staged = self.writers.stage(self.job(sink, rows, None, history), at_most=self.plan.records)
        found = staged.writer.arrow(staged.rows)
        fired = Fired.of(sink, [picked(found, ROW, FIRES)])
        if fired is None:
            return None
        each = self.results.one_each(sink, [new_pieces(sink, found)])
        return self.results.merged(sink, fired.rows, each, partial(self.results.of_nothing, sink, rows))

    def folded(self, sink: FiringSink, slices: SliceSet) -> StagedRows | None:
        """The state of some slices as one: the newest of each key, and the pieces that keys still need."""
        whole, some = self.kept(sink), self._state_of.of(sink, slices)
        if whole is None or some is None:
            return None
        pieces = needed(sink, whole.keys, some.pieces, beside=whole.pieces)
        return self._taken(sink, some.keys, self.results.one_each(sink, [pieces]))

    def _old(self, sink: FiringSink, keys: OrderedKeys, kept: Kept | None) -> pa.Table | None:
        """The pieces that there were before of the keys that this batch has folded: only these keys fire."""
        return None if kept is None else of_keys(kept.pieces, keys.folded, sink)

    @property
    def _stamp(self) -> int:
        """`AS_OF` of what the records of this batch leave; time that passes after them leaves the next number."""
        return self.plan.batch_id * 2

    def _time_left(self, sink: FiringSink, after: int, *, folded: bool) -> History | None:
        """The time that passes once records are folded; None where it has passed with them, or passes for no key."""
        if (known := self._folded_again(sink)) is not None:
            return None if folded else known
        if self.plan.live is None:
            return None
        before, clock = self.plan.position.watermark_of(sink.table), micros(self.plan.clock)
        return History(epochs=(Epoch(self.plan.batch_id, Moment(before, clock), Moment(after, clock)),))

    def _let_time_pass(self, sink: FiringSink, keys: OrderedKeys, history: History | None) -> pa.Table | None:
        """Fold, without records, the keys that wait for a watermark or clock that comes in these batches."""
        if history is None or not (waits_for_time(sink.window) or sink.most_keys is not None):
            return None
        # A history may set the clock back, so its last moment does not say what comes in it.
        left = keys.everything() if self._folded_again(sink) is not None else keys.woken(history.epochs[-1].after)
        if not left.num_rows:
            return None
        return self.fold(sink, sink.keys, history).over(waiting(sink, left))

    def _note(self, sink: FiringSink, keys: OrderedKeys, parts: Sequence[pa.Table]) -> None:
        """Note when the clock is due and when the oldest open window starts, and count the records that were lost."""
        if sink.uses_clock and (due := keys.earliest(CLOCK)) is not None:
            self.found.due[sink.table] = due
        if (since := keys.earliest(SINCE)) is not None:
            self.found.oldest_open[sink.table] = since
        # What was lost of keys that a repair folds again, their batches have counted.
        if isinstance(sink.window, EventWindows) and sink.window.accept_loss and sink.table not in self.touched:
            self.found.lost += sum(map(lost, parts))

    def _state(self, sink: FiringSink, keys: OrderedKeys, own: pa.Table | None, kept: Kept | None) -> StagedRows | None:
        """The rows of state that this batch adds: what it left of the keys that it touched, and their new pieces.

        What folds keys again adds all that keys keep from now on, for it replaces the state from before; now and then,
        so does a live batch.
        """
        if self._replay is not None or self.writes_anew:
            every, pieces = keys.everything(), together(own, kept and kept.pieces)
            return self._taken(sink, every, pieces and self.results.one_each(sink, [needed(sink, every, pieces)]))
        new = keys.told()
        if own is not None and own.num_rows:
            own = needed(sink, new, own, beside=self._old(sink, keys, kept) if sink.keeps_wholes else None)
        return self._taken(sink, new, own)

    def _taken(self, sink: FiringSink, keys: pa.Table, pieces: pa.Table | None) -> StagedRows | None:
        rows = state_rows(sink, keys, pieces)
        return None if rows is None else self.writers.appended(rows)
