"""From typed rows to what each sink gets of them, all on one row, so that one pass can count where it ends.

A *branch* is one path from an input to one sink. Its columns are kept under a prefix of their own; `alive` says that
the row came through the operators of the path, `late` that every window of the sink refuses it. Expressions of an
operator are computed only for rows that reach it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.core import operators as op
from tidemill.core.columns import RECORD_COLUMNS
from tidemill.core.expressions import columns_of
from tidemill.core.flow import Flow, Input, RowSink, Sink, WindowedSink
from tidemill.core.graph import Step
from tidemill.core.times import micros
from tidemill.core.watermarks import BEGINNING
from tidemill.engine.rows import error_mask

HIDDEN = (*RECORD_COLUMNS, "_time")
_ALIVE = "_alive"
_KEPT = "_kept_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The columns of one path to one sink: each logical column `c` is kept as `prefix + c`."""

    prefix: str
    sink: Sink
    columns: tuple[str, ...]

    @property
    def alive(self) -> str:
        """Whether the row reached the sink."""
        return self.prefix + _ALIVE

    @property
    def late(self) -> str:
        """Whether every window of the sink refused the row."""
        return f"{self.prefix}_late"

    @property
    def refused(self) -> str:
        """How many windows refused a row that others took."""
        return f"{self.prefix}_refused"


def branches_of(flow: Flow, source: Input) -> tuple[tuple[Branch, tuple[Step, ...]], ...]:
    """The branches that start at an input, each with its path."""
    return tuple(
        (Branch(prefix=f"_s{number}p{way}_", sink=sink, columns=needed_columns(sink)), path)
        for number, sink in enumerate(flow.sinks)
        for way, path in enumerate(sink.paths.get(source.name, ()))
    )


def needed_columns(sink: Sink) -> tuple[str, ...]:
    """The columns of a row that the sink uses, keys first; hidden columns are left out."""
    if isinstance(sink, RowSink):
        return sink.columns
    used = {c for a in sink.aggregates.values() for text in a.inputs for c in columns_of(text)}
    return (*sink.keys, *sorted(used - set(sink.keys) - set(HIDDEN)))


def branch_out(
    rows: DataFrame, source: Input, branches: Sequence[tuple[Branch, tuple[Step, ...]]], *, watermark: int
) -> DataFrame:
    """Rows with the columns of every branch, and the hidden ones of `tidemill.engine.rows`.

    `_rejected` says that the contract refused the row; then it is alive in no branch.
    """
    user = [c for c in rows.columns if not c.startswith("_") or c == "_extra"]
    rejects = F.col("_error").isNotNull() | (F.expr(f"_broken & {error_mask(source.contract.row_rules)}L") != 0)
    hidden = [*HIDDEN, "_error", "_broken", "_raw", "_rejected"]
    frame = rows.withColumn("_rejected", rejects).select(*hidden, *[F.col(c).alias(_KEPT + c) for c in user])
    done: list[str] = []
    for branch, path in branches:
        start = frame.select("*", *[F.col(_KEPT + c).alias(c) for c in user], (~F.col("_rejected")).alias(_ALIVE))
        frame = _ending(_walk(start, path), branch, watermark, [*hidden, *[_KEPT + c for c in user], *done])
        done = [c for c in frame.columns if c not in hidden and not c.startswith(_KEPT)]
    return frame.drop(*[_KEPT + c for c in user])


def _walk(frame: DataFrame, path: Sequence[Step]) -> DataFrame:
    for step in path:
        frame = _apply(frame, step)
    return frame


def _apply(frame: DataFrame, step: Step) -> DataFrame:
    match step.operator:
        case op.Filter(predicate):
            return frame.withColumn(_ALIVE, _holds(predicate))
        case op.WithColumns(columns):
            return frame.withColumns({c: F.when(F.col(_ALIVE), F.expr(text)) for c, text in columns.items()})
        case op.Split() as split:
            return frame.withColumn(_ALIVE, _routed(split, step.port))
        case _:
            # Selections and unions only name columns; grouping belongs to the sink.
            return frame


def _holds(predicate: str) -> Column:
    return F.col(_ALIVE) & F.coalesce(F.when(F.col(_ALIVE), F.expr(predicate)), F.lit(False))


def _routed(split: op.Split, port: str) -> Column:
    taken = F.col(_ALIVE)
    for name, predicate in split.routes.items():
        if name == port:
            return taken & _holds(predicate)
        if not split.overlap or port == split.default:
            taken = taken & ~_holds(predicate)
    return taken


def _ending(frame: DataFrame, branch: Branch, watermark: int, kept: Sequence[str]) -> DataFrame:
    columns = [F.col(c).alias(branch.prefix + c) for c in branch.columns]
    late, refused = _lateness(branch.sink, watermark)
    alive = F.col(_ALIVE)
    return frame.select(
        *kept,
        *columns,
        alive.alias(branch.alive),
        (alive & late).alias(branch.late),
        F.when(alive & ~late, refused).otherwise(F.lit(0)).alias(branch.refused),
    )


def _lateness(sink: Sink, watermark: int) -> tuple[Column, Column]:
    """Whether a row is late for all windows of the sink, and how many of its windows refuse it."""
    if isinstance(sink, RowSink) or watermark == BEGINNING:
        return F.lit(False), F.lit(0)
    panes = sink.window.panes
    # A window refuses the row when its start is not after this.
    refused_until = watermark - micros(sink.allowed_lateness) - panes.size
    last_start = f"(_time - pmod(_time - {panes.offset}L, {panes.slide}L))"
    windows = f"(({panes.size}L - (_time - {last_start}) - 1) div {panes.slide}L + 1)"
    accepted = f"(({last_start} - {refused_until}L + {panes.slide}L - 1) div {panes.slide}L)"
    return F.expr(f"{last_start} <= {refused_until}L"), F.expr(f"greatest({windows} - {accepted}, 0L)")


def pane_sql(sink: WindowedSink) -> str:
    """An SQL expression for the start of a row's pane, in microseconds, floored also before 1970."""
    panes = sink.window.panes
    return f"_time - pmod(_time - {panes.offset}L, {panes.pane}L)"


def unpack(frame: DataFrame, branches: Sequence[Branch], extra: Mapping[str, Column] | None = None) -> DataFrame:
    """The rows that entered the sink of these branches, with the sink's own column names and the hidden ones."""
    parts = [
        frame.where(F.col(b.alive) & ~F.col(b.late)).select(
            *HIDDEN, *[F.col(b.prefix + c).alias(c) for c in b.columns], *[v.alias(k) for k, v in (extra or {}).items()]
        )
        for b in branches
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole
