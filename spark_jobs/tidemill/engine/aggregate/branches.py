"""From typed rows to the columns of every sink, all on one row, so that one pass can count where rows end.

A *branch* is one path from an input to one sink. Its columns have a prefix of their own; `alive` says that the row
passed the operators of the path, `late` that every window of the sink refuses it. Expressions of an operator are
computed only for rows that reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import RowSink, Sink, StatefulSink, WindowedSink
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.declare.columns import RECORD_COLUMNS, added_to
from tidemill.core.declare.graph import Step
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Reading, replay_of
from tidemill.core.sql.text import quoted, renamed, select
from tidemill.core.time.panes import EvenPanes
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import END
from tidemill.core.time.window_expressions import is_late, refusing_windows
from tidemill.engine.read.typed_rows import MARK, bounded
from tidemill.engine.spark.query import ROWS

HIDDEN = (*RECORD_COLUMNS, "_time")
"""The columns with a row's place in the log and its event time; every sink gets them."""

_BEHIND = "_behind"
_OF_ROWS = (*HIDDEN, _BEHIND, "_block", "_error", "_broken", "_raw", "_held", "_rejected")
_ENDED = 2**61
"""How far each event time, at least, is behind the watermark once the log has ended."""

_TOGETHER = 8
"""The branches of one statement: each is some steps inside the others, and what Spark and a parser do with a statement
takes as much time as the square of its depth. Forty in one took Spark 40 seconds, and a hundred it refused to parse."""

_ALIVE = "_alive"
_KEPT = "_kept_"


@dataclass(frozen=True, slots=True)
class Branch:
    """The columns of one path to one sink: each logical column `c` is kept as `prefix + c`.

    Windows take records until the watermark is `lateness` microseconds past their end. Rows with an event time in one
    of the half-open ranges `spared` are never late. `behind` is SQL for how many microseconds the watermark is after
    the event time; may be null. If `closed`, no window takes records any more; `ended` is SQL that says the same of a
    row, None where there is nothing to say. If `replayed`, each row is late by the watermark of the batch of then.
    """

    prefix: str
    sink: Sink
    columns: tuple[str, ...]
    lateness: int = 0
    spared: tuple[tuple[int, int], ...] = ()
    behind: str = _BEHIND
    closed: bool = False
    ended: str | None = None
    replayed: bool = False

    @property
    def alive(self) -> str:
        """The column that says whether the row reached the sink."""
        return self.prefix + _ALIVE

    @property
    def late(self) -> str:
        """The column that says whether every window of the sink refused the row."""
        return f"{self.prefix}_late"

    @property
    def refused(self) -> str:
        """The column that says how many windows refused a row that others took."""
        return f"{self.prefix}_refused"

    @property
    def tells_missed(self) -> bool:
        """Whether some windows may refuse a row that others take, all by one watermark."""
        panes = None if isinstance(self.sink, RowSink) else self.sink.panes
        overlap = isinstance(panes, EvenPanes) and panes.size > panes.slide
        return overlap and not self.replayed

    @property
    def taken(self) -> str:
        """An SQL predicate: the row entered the sink."""
        return f"{self.alive} AND NOT {self.late}"


Path = tuple[Step, ...]


def branches_of(flow: Flow, source: Input, plan: BatchPlan | None = None) -> tuple[tuple[Branch, Path], ...]:
    """The branches that start at an input, each with its path. The plan decides what is late; None is a live plan."""
    return tuple(
        (_branch(f"_s{number}p{way}_", number, sink, plan), path)
        for number, sink in enumerate(flow.sinks)
        for way, path in enumerate(sink.paths.get(source.name, ()))
    )


def _branch(prefix: str, number: int, sink: Sink, plan: BatchPlan | None) -> Branch:
    columns, closed = needed_columns(sink), False
    if isinstance(sink, FiringSink) and plan is not None and replay_of(plan.work) is not None:
        return _replayed(prefix, sink, number)
    if isinstance(sink, FiringSink) and plan is not None and not isinstance(plan.work, Reading):
        watermark = plan.position.watermark_of(sink.table)
        closed = watermark >= END and sink.ends_with_log
        if not plan.live:
            # A repair cannot open windows again that have fired: their records stay late.
            return Branch(
                prefix, sink, columns, micros(sink.allowed_lateness), (), f"({bounded(watermark)}L - _time)", closed
            )
    return Branch(prefix, sink, columns, *_allowed(sink, plan), _behind(sink, plan), closed)


def closed_until(sink: StatefulSink, plan: BatchPlan) -> int:
    """The windows of a sink that end at this time or earlier refuse the records of a batch."""
    if plan.live:
        return plan.late_until(sink.table) - micros(sink.allowed_lateness)
    if isinstance(sink, WindowedSink):
        return plan.lateness_watermark
    return plan.position.watermark_of(sink.table) - micros(sink.allowed_lateness)


def _behind(sink: Sink, plan: BatchPlan | None) -> str:
    """SQL for how far a row is behind the watermark of the sink, which may stay behind that of the plan."""
    lag = 0 if plan is None else bounded(plan.lateness_watermark) - bounded(plan.late_until(sink.table))
    return f"({_BEHIND} - {lag}L)" if lag else _BEHIND


def behind_then(number: int) -> str:
    """The column that says how far rows were behind the watermark when the sink with this number was to take them."""
    return f"_behind_{number}"


def _replayed(prefix: str, sink: FiringSink, number: int) -> Branch:
    """The branch of a table that a backfill folds again: a record is late if it was late for the batch of then."""
    behind = behind_then(number)
    ended = f"{behind} >= {_ENDED}L" if sink.ends_with_log else None
    return Branch(
        prefix, sink, needed_columns(sink), micros(sink.allowed_lateness), (), behind, ended=ended, replayed=True
    )


def _allowed(sink: Sink, plan: BatchPlan | None) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The allowed lateness in microseconds, and the ranges of event time in which no row is late."""
    if isinstance(sink, RowSink):
        return 0, ()
    if plan is None or plan.live:
        return micros(sink.allowed_lateness), ()
    whole = (plan.job.whole or {}).get(sink.table, ()) if plan.job is not None else ()
    return 0, tuple((span.first, sink.panes.end_of(span.last)) for span in whole)


def needed_columns(sink: Sink) -> tuple[str, ...]:
    """The columns of a row that the sink uses, keys first, without hidden columns."""
    if isinstance(sink, RowSink):
        return sink.columns
    used = {c.lower(): c for a in sink.aggregates.values() for c in sorted(columns_read(a))}
    if isinstance(sink, FiringSink):
        used |= {c.lower(): c for c in (sink.attribute, sink.marker) if c is not None}
    known = {c.lower() for c in (*sink.keys, *HIDDEN)}
    return (*sink.keys, *sorted(c for lower, c in used.items() if lower not in known))


def branch_out(
    checked: str, user_columns: Sequence[str], branches: Sequence[tuple[Branch, Path]], *, marked: bool = False
) -> tuple[str, ...]:
    """Statements that add the columns of every branch to the rows of `tidemill.engine.read.typed_rows`.

    Each is over the rows of the one before: `_TOGETHER` branches are one. A row that the contract rejects is alive in
    no branch. The hidden columns stay; `_mark` is one if they are `marked`.
    """
    own = [branch.behind for branch, _ in branches if branch.replayed]
    hidden = (*_OF_ROWS, *dict.fromkeys(own), *((MARK,) if marked else ()))
    kept = [f"{_KEPT}{c}" for c in user_columns]
    text = select([*hidden, *(renamed(quoted(c), _KEPT + c) for c in user_columns)], checked)
    done, texts = list[str](), list[str]()
    for number, (branch, path) in enumerate(branches):
        if number and number % _TOGETHER == 0:
            texts, text = [*texts, text], ROWS
        beneath = [*hidden, *map(quoted, [*kept, *done])]
        start = [renamed(quoted(_KEPT + c), c) for c in user_columns]
        walked = _Walk(select([*beneath, *start, renamed("NOT _rejected", _ALIVE)], text), tuple(user_columns), beneath)
        for step in path:
            walked = walked.after(step)
        ending = _ending(branch)
        text = select([*beneath, *(renamed(value, name) for name, value in ending.items())], walked.text)
        done += ending
    return (*texts, select([*hidden, *map(quoted, done)], text))


@dataclass(frozen=True, slots=True)
class _Walk:
    """A statement at some step of a path: `columns` are the user's columns there, `beneath` are passed through."""

    text: str
    columns: tuple[str, ...]
    beneath: Sequence[str]

    def after(self, step: Step) -> _Walk:
        """The statement after one more step."""
        match step.operator:
            case op.Filter(predicate):
                return self._where(_holds(predicate))
            case op.Split() as split:
                return self._where(_routed(split, step.port))
            case op.WithColumns(added):
                columns = (*self.columns, *added_to(self.columns, added))
                new = {c.lower(): text for c, text in added.items()}
                values = [renamed(_if_alive(new[low]), c) if (low := c.lower()) in new else quoted(c) for c in columns]
                return _Walk(select([*self.beneath, *values, _ALIVE], self.text), columns, self.beneath)
            case _:
                # Selections and unions only name columns; grouping belongs to the sink.
                return self

    def _where(self, alive: str) -> _Walk:
        columns = [*self.beneath, *map(quoted, self.columns), renamed(alive, _ALIVE)]
        return _Walk(select(columns, self.text), self.columns, self.beneath)


def _if_alive(expression: str) -> str:
    return f"CASE WHEN {_ALIVE} THEN ({expression}) END"


def _holds(predicate: str) -> str:
    return f"({_ALIVE} AND coalesce({_if_alive(predicate)}, false))"


def _routed(split: op.Split, port: str) -> str:
    taken = [_ALIVE]
    for name, predicate in split.routes.items():
        if name == port:
            return " AND ".join([*taken, _holds(predicate)])
        if not split.overlap or port == split.default:
            taken.append(f"NOT {_holds(predicate)}")
    return " AND ".join(taken)


def _ending(branch: Branch) -> dict[str, str]:
    late, refused = ("true", "0L") if branch.closed else _lateness(branch.sink, branch.behind, branch.lateness)
    if branch.ended is not None:
        late = f"(coalesce({branch.ended}, false) OR {late})"
    if branch.spared:
        spared = " OR ".join(f"(_time >= {low}L AND _time < {high}L)" for low, high in branch.spared)
        late, refused = f"({late} AND NOT ({spared}))", _unless(spared, refused)
    return {
        **{branch.prefix + c: quoted(c) for c in branch.columns},
        branch.alive: _ALIVE,
        branch.late: f"{_ALIVE} AND {late}",
        branch.refused: _unless(f"NOT {_ALIVE} OR {late}", refused),
    }


def _unless(condition: str, number: str) -> str:
    """A number, or 0 where the condition holds."""
    return number if number == "0L" else f"CASE WHEN {condition} THEN 0L ELSE {number} END"


def _lateness(sink: Sink, behind: str, allowed: int) -> tuple[str, str]:
    """SQL: whether a row is late for all windows of the sink, and how many of its windows refuse it."""
    if isinstance(sink, RowSink):
        return "false", "0L"
    told = (sink.panes, "_time", behind, allowed)
    late = is_late(*told)
    if isinstance(sink, FiringSink) and (nothing := nothing_to_compare(sink)) is not None:
        late = f"({late} OR {nothing})"
    return late, refusing_windows(*told)


def nothing_to_compare(sink: FiringSink) -> str | None:
    """SQL for whether a row has no value of the attribute that a delta compares; None where none is compared."""
    if sink.attribute is None:
        return None
    value = f"CAST({quoted(sink.attribute)} AS DOUBLE)"
    return f"({value} IS NULL OR isnan({value}) OR abs({value}) = double('Infinity'))"


def unpack(frame: DataFrame, branches: Sequence[Branch]) -> DataFrame:
    """The rows that entered the sink of these branches, with the sink's column names and the hidden columns."""
    parts = [frame.where(b.taken).selectExpr(*columns_of(b)) for b in branches]
    return reduce(DataFrame.unionByName, parts)


def columns_of(branch: Branch) -> list[str]:
    """The sink's columns and the hidden ones, as SQL over rows of all branches."""
    own = {c.lower() for c in branch.columns}
    hidden = [c for c in HIDDEN if c not in own]
    return [*hidden, *(renamed(quoted(branch.prefix + c), c) for c in branch.columns)]
