"""SQL for tables of firings: records folded into pieces, pieces merged into what is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.contract.schema import Field, Scalar, ddl
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.declare.sketches import ORDER
from tidemill.core.sql.text import quoted, renamed, select
from tidemill.engine.aggregate.aggregate_sql import beyond, finished_values, merges, partials_of, results
from tidemill.engine.aggregate.fold_rows import KEPT, MARKER, PIECE, ROW, TOLD, VALUE
from tidemill.engine.aggregate.ordered_fold import OrderedFold
from tidemill.engine.native.statement import run
from tidemill.engine.read.fitted import fitted
from tidemill.engine.spark.query import ROWS
from tidemill.engine.storage.row_writers import Encode
from tidemill.engine.storage.spark_writer import fields_of

FIRING = "_firing"
"""The number of the firing that a row of state is for."""

START, END = "_start", "_end"
"""The bounds of the window that fires, in microseconds; null where it has none."""

_TOLD = TIMING, INDEX, LAST, OPERATION = "_timing", "_index", "_last", "_operation"
"""What is told of a firing (`FiringColumns`)."""

OF_FIRING: Mapping[str, pa.DataType] = {
    START: pa.int64(),
    END: pa.int64(),
    TIMING: pa.string(),
    INDEX: pa.int64(),
    LAST: pa.bool_(),
    OPERATION: pa.string(),
}
"""The columns of a firing, with their types."""


OF_FIRINGS = (
    *(f"0L AS {column}" for column in (FIRING, START, END, INDEX)),
    *(f"'' AS {column}" for column in (TIMING, OPERATION)),
    f"false AS {LAST}",
)
"""These columns as SQL, for state without rows."""


_PLACE = ("_topic", "_partition", "_offset", "_time")
"""The columns by which records are in order and belong to windows."""


def columns_left(sink: FiringSink, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of records that leave the fold: keys, and those that partial aggregates read."""
    read = {c.lower() for aggregate in sink.aggregates.values() for c in columns_read(aggregate)}
    if any(ORDER in text for text in partials_of(sink).values()):
        read.update(_PLACE)
    keys = {key.lower() for key in sink.keys}
    return (*sink.keys, *(c for c in columns if c.lower() in read - keys))


def columns_folded(sink: FiringSink, left: Sequence[str]) -> list[str]:
    """SQL for the columns of records that are folded: those that are `left`, their place, `VALUE` and `MARKER`.

    `VALUE` and `MARKER` are only there if the sink compares values, and has markers.
    """
    known = {column.lower() for column in left}
    value = [] if sink.attribute is None else [renamed(quoted(sink.attribute), VALUE)]
    marker = [] if sink.marker is None else [renamed(f"coalesce({quoted(sink.marker)}, false)", MARKER)]
    return [*map(quoted, (*left, *(c for c in _PLACE if c not in known))), *value, *marker]


def grouped_pieces(sink: FiringSink) -> str:
    """A statement over folded rows: the partial aggregates of each piece, in the columns of `folded_rows`."""
    names = [ROW, *sink.keys, PIECE, TOLD]
    parts = [renamed(text, name) for name, text in partials_of(sink).items()]
    return select([*map(quoted, names), *parts], ROWS, group_by=names)


def of_no_piece(sink: FiringSink) -> str:
    """A statement over no rows: one row with the partial aggregates over no record, as `nothing_folded` gives."""
    return select([renamed(text, name) for name, text in partials_of(sink).items()], ROWS)


def folded_here(rows: pa.Table, kept: pa.Table | None, sink: FiringSink, fold: OrderedFold) -> pa.Table | None:
    """`folded_rows` in this process; None if Spark has to aggregate the pieces."""
    nothing = {VALUE: pa.scalar(None, pa.int64()), MARKER: pa.scalar(False), KEPT: pa.scalar(None, pa.string())}
    for name, value in nothing.items():
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    whole = rows if kept is None else pa.concat_tables([rows, kept], promote_options="permissive")
    return run(grouped_pieces(sink), fold.over(whole))


def folded_rows(rows: DataFrame, kept: DataFrame | None, sink: FiringSink, fold: OrderedFold) -> DataFrame:
    """One job: records that entered the sink, with what keys have `kept`, folded, and partial aggregates of each piece.

    The columns are `ROW`, the keys, `PIECE`, `TOLD`, and those of partial aggregates, which mean something only for
    pieces. `kept` has the keys and `KEPT`.
    """
    left = fold.columns
    nothing = {} if sink.attribute is not None else {VALUE: "NULL"}
    nothing |= {} if sink.marker is not None else {MARKER: "false"}
    whole = rows.selectExpr(*columns_folded(sink, left), *(renamed(text, name) for name, text in nothing.items()))
    if kept is not None:
        whole = whole.unionByName(kept, allowMissingColumns=True)
    else:
        whole = whole.selectExpr("*", renamed("CAST(NULL AS STRING)", KEPT))
    by_key = whole.repartition(1)
    if not fold.together:
        by_key = whole.repartition(*map(quoted, sink.keys)) if sink.keys else whole.coalesce(1)
    told = {ROW: Scalar.INTEGER, PIECE: Scalar.LONG, TOLD: Scalar.STRING}
    fields = (*fields_of(rows.select(*map(quoted, left))), *(Field(name=name, type=of) for name, of in told.items()))
    folded = by_key.mapInArrow(_plain(fold), ddl(fields))
    parts = [F.expr(renamed(text, name)) for name, text in partials_of(sink).items()]
    grouped = folded.groupBy(ROW, *map(quoted, sink.keys), PIECE, TOLD).agg(*parts)
    return grouped.select(ROW, *map(quoted, sink.keys), PIECE, TOLD, *map(quoted, partials_of(sink)))


def nothing_folded(rows: DataFrame, sink: FiringSink) -> DataFrame:
    """One row: the partial aggregates over no record."""
    return rows.where("false").agg(*(F.expr(renamed(text, name)) for name, text in partials_of(sink).items()))


def merged_firings(state: str, sink: FiringSink) -> str:
    """A statement: the rows to publish, in the types of the contract, and which values do not fit.

    The state is that of `finished_firings`.
    """
    kept, rows = finished_firings(state, sink)
    names = (sink.told.timing, sink.told.index, sink.told.last, sink.told.operation)
    published = [renamed(of, name) for of, name in zip(_TOLD, names, strict=True) if name is not None]
    return select([*published, *fitted(sink.computed, beyond(sink))], rows, where=kept)


def finished_firings(state: str, sink: FiringSink) -> tuple[str, str]:
    """Whether a row is published, and a statement: firings with their results, in the types that these have.

    The state has partial aggregates of pieces, once for each `FIRING` that is made of them, with its `START` and `END`.
    """
    of_firing = [renamed(f"max({column})", column) for column in OF_FIRING]
    parts = [renamed(text, name) for name, text in merges(sink).items()]
    merged = select([FIRING, *map(quoted, sink.keys), *of_firing, *parts], state, group_by=[FIRING, *sink.keys])
    values = finished_values(sink, [f"timestamp_micros({bound})" for bound in (START, END)])
    told = {name: name for name in _TOLD}
    finished = select([renamed(value, c) for c, value in {**values, **told}.items()], merged)
    return results(finished, sink, carried=_TOLD)


def _plain(fold: OrderedFold) -> Encode:
    # It must be a function: Spark's signature check refuses an object with __call__.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return fold.of_partition(batches)

    return run
