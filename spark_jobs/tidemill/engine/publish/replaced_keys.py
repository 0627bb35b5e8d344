"""The rows of a table of firings that a repair replaces: those of the keys that it folds again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange
from tidemill.core.plan.work import replay_of
from tidemill.engine.spark.query import without_key
from tidemill.engine.storage.corrections import corrections
from tidemill.engine.storage.table_layout import EVERY_ROW
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.interface import Between, of_batches
from tidemill.tables.keys import with_key_of
from tidemill.tables.rewrite import Picked


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedKeys:
    """The rows with one of `keys` that lie `within` these bounds: of batches that are folded again."""

    sink: FiringSink
    keys: pa.Table
    within: tuple[Between, ...]

    @staticmethod
    def of(plan: BatchPlan, sink: FiringSink, keys: pa.Table) -> ReplacedKeys:
        """What a repair with this plan replaces. Rows that firings update are computed from the first batch on."""
        replay = replay_of(plan.work)
        assert replay is not None
        folded = of_batches([BatchRange(replay.since, plan.batch_id)])
        return ReplacedKeys(sink=sink, keys=keys, within=(EVERY_ROW,) if sink.replaces else tuple(folded))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns by which rows are found."""
        return (*self.sink.keys, EVERY_ROW.column)

    @property
    def picked(self) -> Picked:
        """The rows with one of the keys."""
        return Picked(self.columns, self._have_key)

    def _have_key(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        found = np.zeros(rows.num_rows, np.bool_)
        found[with_key_of(rows, self.keys, self.sink.keys)] = True
        return found

    def others(self, rows: pa.Table) -> pa.Table:
        """Of rows of any batch, those that stay."""
        [bounds] = self.within
        gone = self._have_key(rows)
        if bounds.low is not None:
            gone &= np.asarray(rows[bounds.column]) >= bounds.low
        return rows.filter(pa.array(~gone))

    def others_in_spark(self, rows: DataFrame, keys: DataFrame) -> DataFrame:
        """The same in Spark; `keys` are those of `keys`."""
        [bounds] = self.within
        later = F.lit(True) if bounds.low is None else F.col(bounds.column) >= F.lit(bounds.low)
        return without_key(rows, keys, self.sink.keys, later) if self.sink.keys else rows.where(~later)

    def vanished(self, before: Iterable[pa.Table], after: pa.Table) -> pa.Table:
        """The rows with one of the keys that were there before, of windows and keys that `after` does not have."""
        there = self._replaced(before)
        gone = np.ones(there.num_rows, np.bool_)
        gone[with_key_of(there, after, self.sink.row_key)] = False
        return there.filter(pa.array(gone)).select(list(self.sink.row_key) or there.column_names[:1])

    def changes(self, plan: BatchPlan, before: Iterable[pa.Table], after: pa.Table) -> pa.Table:
        """The rows of `corrections`, without those of rows that stay the same."""
        there = self._replaced(before)
        rows = corrections(
            self.sink, there, after, batch_id=plan.batch_id, at=plan.clock, gone=self.vanished([there], after)
        )
        texts: Mapping[str, list[str | None]] = {name: rows[name].to_pylist() for name in ("before", "after")}
        return rows.filter(pa.array([a != b for a, b in zip(texts["before"], texts["after"], strict=True)], pa.bool_()))

    def _replaced(self, parts: Iterable[pa.Table]) -> pa.Table:
        empty = arrow_schema(self.sink.contract.fields).empty_table()
        found = [rows.filter(pa.array(self._have_key(rows))).select(empty.column_names) for rows in parts]
        return pa.concat_tables([empty, *found], promote_options="permissive")
