"""From the statements of a batch to a native pass, if DuckDB gives the same for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import RowSink, StatefulSink, WindowedSink, named_windows
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.sql.text import quoted, renamed, select
from tidemill.core.time.sessions import SessionPanes
from tidemill.core.time.window_expressions import pane_start
from tidemill.engine.aggregate.aggregate_sql import partials_of
from tidemill.engine.aggregate.branches import HIDDEN, Branch, branch_out, branches_of, columns_of
from tidemill.engine.aggregate.counting import Counter
from tidemill.engine.aggregate.firing_sql import columns_folded, columns_left, grouped_pieces, of_no_piece
from tidemill.engine.aggregate.fold_rows import PIECE, ROW, TOLD
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.aggregate.native_pass import PANE, PANE_END, Aggregation, NativePass, Stretches
from tidemill.engine.aggregate.native_strays import LateRows, Strays, is_written
from tidemill.engine.aggregate.window_sql import folded_state
from tidemill.engine.native.statement import run
from tidemill.engine.native.translation import Translation, translated
from tidemill.engine.read.fitted import fitted
from tidemill.engine.read.typed_rows import MARK, DecodeBatches, EventTimes, checked
from tidemill.engine.spark.query import ROWS
from tidemill.tables.arrow_types import arrow_schema, schema_fields

_HELD_BYTES = 16 * 2**20
"""The most bytes of side outputs that a task brings back."""

_MOST_BYTES = 2**28
"""The most bytes that all tasks of a batch give together. Java's heap, 1 GB by default, holds them several times."""

_TIMES = EventTimes(earliest=-(2**62), latest=2**62)
"""Bounds of event times, as those of a batch."""

_PART, _LEAST_PART = 250_000, 100_000
"""So many records are decoded and aggregated at once; fewer if they go to several tables, each of which copies them."""

_INNER = re.compile(r"\b_(?:s\d+p\d+_|kept_)")
"""The prefixes of columns of branches."""

FOLDED = (
    Field(name=ROW, type=Scalar.INTEGER),
    Field(name=PIECE, type=Scalar.LONG),
    Field(name=TOLD, type=Scalar.STRING),
)
"""The columns that a fold adds to records."""

_COUNTED = ("_partition", "_time", "_error", "_broken", "_rejected")


def native_passes(streams: Sequence[Stream], *, here: bool) -> tuple[NativePass, ...]:
    """The passes over all inputs; none if Spark has to do one of them.

    With `here`, they are for this process, and may bring back rows.
    """
    try:
        # The rows of this process do not come into Java's heap; what all its parts give has a bound of its own.
        tasks = 1 if here else sum(stream.tasks for stream in streams)
        return _united(
            native_pass(s.decode, s.statements, s.branches, s.counter, tasks=tasks, here=here) for s in streams
        )
    except LeftToSpark:
        return ()


def _united(passes: Iterable[NativePass]) -> tuple[NativePass, ...]:
    """The passes, if all that they give for a table has the same types: Spark widens the types of a union.

    Raises:
        LeftToSpark: it has not.
    """
    found, types = tuple(passes), dict[str, tuple[Field, ...]]()
    for each in (aggregation for native in found for aggregation in native.aggregations):
        if types.setdefault(each.table, each.given.output) != each.given.output:
            raise LeftToSpark(f"{each.table}: streams whose columns have different types")
    return found


def left_to_spark_sql(flow: Flow, *, here: bool = False) -> str:
    """What keeps a pipeline from being aggregated by DuckDB, as text; empty if nothing does.

    With `here`, batches are small, and this process would do it. A pattern is looked at as one topic.
    """
    flow = replace(flow, inputs=flow.sources)
    try:
        _united(pass_anywhere(flow, source, here=here) for source in flow.sources)
    except LeftToSpark as reason:
        return _INNER.sub("", str(reason))
    return ""


def pass_anywhere(flow: Flow, source: Input, *, here: bool) -> NativePass:
    """The pass over an input in some batch.

    Raises:
        LeftToSpark: Spark has to do it.
    """
    decode, ways = DecodeBatches.anywhere(source), branches_of(flow, source)
    branches, columns = [branch for branch, _ in ways], [f.name for f in decode.decoder.schema]
    texts = branch_out(checked(source, _TIMES), columns, ways, marked=source.watermark is not None)
    return native_pass(decode, texts, branches, Counter(source, [0], branches), tasks=1, here=here)


def nothing_here(flow: Flow, sink: FiringSink) -> pa.Table | None:
    """One row: the partial aggregates of a table of firings over no record; None if Spark has to compute it."""
    try:
        passes = _united(pass_anywhere(flow, source, here=True) for source in flow.sources)
    except LeftToSpark:
        return None
    entering = [a.given.output for native in passes for a in native.aggregations if a.table == sink.table]
    return run(of_no_piece(sink), arrow_schema(entering[0]).empty_table()) if entering else None


class LeftToSpark(Exception):
    """A batch uses something that is not known to give the same in DuckDB; the text says what."""


def native_pass(  # noqa: PLR0913  what it reads, and where it runs
    decode: DecodeBatches,
    statements: Sequence[str],
    branches: Sequence[Branch],
    counter: Counter,
    *,
    tasks: int,
    here: bool = False,
) -> NativePass:
    """The pass over one input whose rows `statements` spread over `branches`; the batch has about `tasks` tasks.

    Only a pass that runs `here`, in the process of the batch, brings back rows.

    Raises:
        LeftToSpark: Spark has to do it.
    """
    of_rows = [branch for branch in branches if not isinstance(branch.sink, WindowedSink)]
    if of_rows and not here:
        raise LeftToSpark(f"{of_rows[0].sink.table}: rows are published one by one, or their order counts")
    source = counter.source
    told = [MARK] if source.watermark is not None else []
    wanted = [
        *dict.fromkeys([*_COUNTED, *told, *(["_offset"] if counter.bounds else []), *(HIDDEN if of_rows else ())]),
        *_columns(branches),
    ]
    *first, last = statements
    branched = _one_after_another([*first, select(map(quoted, wanted), last)], tuple(schema_fields(decode.schema)))
    there = branched[-1].output
    counts = [renamed(text, name) for name, text in counter.expressions.items()]
    rules, late = source.contract.row_rules, [branch.late for branch in branches]
    return NativePass(
        topic=source.topic,
        decode=decode,
        branched=branched,
        counted=natively(select(counts, ROWS), there),
        missing=tuple((branch.sink.table, branch.refused) for branch in branches if branch.tells_missed),
        aggregations=tuple(_of_branch(branch, there) for branch in branches),
        held=min(_HELD_BYTES, _MOST_BYTES // tasks // 2),
        most=_MOST_BYTES // tasks // 2,
        part=max(_PART // max(len(branches), 1), min(_PART, _LEAST_PART)),
        strays=Strays(topic=source.topic, rules=rules, refusing=tuple(late), late=_late(branches, there)),
    )


def _columns(branches: Sequence[Branch]) -> Iterator[str]:
    for branch in branches:
        yield from (branch.prefix + column for column in branch.columns)
        yield from (branch.alive, branch.late, branch.refused)


def _of_branch(branch: Branch, columns: tuple[Field, ...]) -> Aggregation:
    match branch.sink:
        case WindowedSink() as sink:
            return _aggregation(branch, sink, columns)
        case RowSink() as sink:
            published = select(fitted(sink.contract.fields), select(columns_of(branch), ROWS, where=branch.taken))
            return Aggregation(sink.table, natively(published, columns))
        case FiringSink() as sink:
            return _folded(branch, sink, columns)
        case _:
            assert_never(branch.sink)


def _folded(branch: Branch, sink: FiringSink, columns: tuple[Field, ...]) -> Aggregation:
    """How rows of a branch are folded here: they enter it, and pieces of them are aggregated."""
    there = columns_of(branch)
    left = columns_left(sink, [*HIDDEN, *branch.columns])
    entering = natively(select(columns_folded(sink, left), select(there, ROWS, where=branch.taken)), columns)
    natively(grouped_pieces(sink), (*(f for f in entering.output if f.name in left), *FOLDED))
    return Aggregation(sink.table, entering)


def _aggregation(branch: Branch, sink: WindowedSink, columns: tuple[Field, ...]) -> Aggregation:
    """How rows of a branch become state: they enter it, and are grouped by pane and key."""
    read = {"_time"}
    for aggregate in sink.aggregates.values():
        read |= columns_read(aggregate)
    hidden = [column for column in HIDDEN if column in read and column not in branch.columns]
    taken = [*hidden, *(renamed(quoted(branch.prefix + c), c) for c in branch.columns)]
    entering, panes = select(taken, ROWS, where=branch.taken), sink.window.panes
    partials = [renamed(text, name) for name, text in partials_of(sink).items()]
    if isinstance(panes, SessionPanes):
        enters, names = natively(entering, columns), [PANE, PANE_END, *sink.keys]
        grouped = select([*map(quoted, names), *partials], ROWS, group_by=names)
        given = natively(grouped, (*enters.output, *_times(enters.output)))
        return Aggregation(sink.table, given, stretches=Stretches(enters, sink.keys, panes))
    placed, names = select(["*", renamed(pane_start(panes, "_time"), PANE)], entering), [PANE, *sink.keys]
    given = natively(select([*map(quoted, names), *partials], placed, group_by=names), columns)
    return Aggregation(sink.table, given, natively(folded_state(ROWS, sink, given.output, (PANE,)), given.output))


def _times(there: Sequence[Field]) -> Iterator[Field]:
    """The columns of times that a worker adds to rows of sessions."""
    [time] = [field for field in there if field.name == "_time"]
    return (Field(name=name, type=time.type) for name in (PANE, PANE_END))


def _late(branches: Sequence[Branch], columns: Sequence[Field]) -> tuple[LateRows, ...] | None:
    """The late rows that a worker can write; None if some table has columns that only Spark writes as JSON."""
    types, found = {field.name: field.type for field in columns}, []
    for branch in branches:
        if not isinstance(branch.sink, StatefulSink):
            continue
        names = {branch.prefix + column: column for column in branch.columns}
        if not all(is_written(types[name]) for name in names):
            return None
        found.append(LateRows(branch.late, branch.sink.table, named_windows(branch.sink), names))
    return tuple(found)


def _one_after_another(statements: Sequence[str], columns: tuple[Field, ...]) -> tuple[Translation, ...]:
    """Statements of which each is over the rows of the one before, and the first over rows with these columns."""
    found = list[Translation]()
    for statement in statements:
        found.append(natively(statement, found[-1].output if found else columns))
    return tuple(found)


def natively(statement: str, columns: tuple[Field, ...]) -> Translation:
    """A statement for DuckDB over rows with these columns.

    Raises:
        LeftToSpark: Spark has to compute it.
    """
    found = translated(statement, columns)
    if isinstance(found, str):
        raise LeftToSpark(found)
    return found
