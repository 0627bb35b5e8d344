"""Streams of rows in a declaration, and the steps that can be applied to them, one after the other.

What follows `key_by` and `window` is in `tidemill.core.declare.windowed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, Protocol

from tidemill.core.declare import operators as op
from tidemill.core.declare import windowed as win
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.arguments import check_keys
from tidemill.core.declare.names import checked_column, checked_contract, checked_name, no_step
from tidemill.core.declare.windowing import aggregated_by, default_of, window_by
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.evictors import Evictor
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import Global, WindowSpec

_OF_ROWS = ("filter", "with_columns", "select", "union", "split", "key_by", "window", "aggregate", "publish", "discard")


class Builder(Protocol):
    """What a stream needs from the pipeline that is being declared."""

    name: str

    def add(self, operator: op.Operator, kind: str, feeds: tuple[Stream, ...], name: str | None = None) -> str:
        """Add an operator fed by streams, in the order of its ports, and return its name."""
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of rows: what `read` and the steps of rows give."""

    pipeline: Builder
    node: str
    port: str

    def filter(self, predicate: str, *, name: str | None = None) -> Stream:
        """The rows for which a predicate is true; the others count as filtered.

        Args:
            predicate: Spark SQL over one row that gives true, false or null; null is not true.
            name: the step's name in `explain` and in errors; by default its kind and a number: `filter_1`.
        """
        return self.then(op.Filter(predicate), "filter", name)

    def with_columns(self, *, name: str | None = None, **columns: str) -> Stream:
        """The rows with columns added or replaced.

        Args:
            columns: a Spark SQL expression over one row for each column; it sees the columns as they were before.
            name: the step's name in `explain` and in errors; by default its kind and a number: `with_columns_1`.

        Raises:
            DeclarationError: a column has no valid name.
        """
        for column in columns:
            checked_column(column)
        return self.then(op.WithColumns(columns), "with_columns", name)

    def select(self, *columns: str, name: str | None = None) -> Stream:
        """The rows with these columns only, in this order.

        Args:
            columns: names of columns.
            name: the step's name in `explain` and in errors; by default its kind and a number: `select_1`.
        """
        return self.then(op.Select(columns), "select", name)

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """The rows of this stream and of others.

        Args:
            others: streams of the same pipeline, with the same columns.
            name: the step's name in `explain` and in errors; by default its kind and a number: `union_1`.

        Raises:
            DeclarationError: a stream is one of another pipeline.
        """
        node = self.pipeline.add(op.Union(1 + len(others)), "union", (self, *others), name)
        return Stream(self.pipeline, node, "out")

    def split(
        self, *, default: str = "rest", overlap: bool = False, name: str | None = None, **routes: str
    ) -> dict[str, Stream]:
        """Several streams, by name: one for each route, and one for the rows that meet no route.

        A row goes to the first route that it meets. Each stream must lead somewhere: to a table, or to `discard`.

        Args:
            default: the name of the stream of rows that meet no route.
            overlap: whether a row goes to every route that it meets, instead of the first.
            name: the step's name in `explain` and in errors; by default its kind and a number: `split_1`.
            routes: a Spark SQL predicate over one row for each stream.

        Raises:
            DeclarationError: there is no route, or a route has the name `default`.
        """
        if not routes or default in list(routes):
            raise DeclarationError(f"split needs routes, none of them called like the default port `{default}`")
        node = self.pipeline.add(op.Split(routes=routes, default=default, overlap=overlap), "split", (self,), name)
        return {port: Stream(self.pipeline, node, port) for port in (*routes, default)}

    def discard(self, *, name: str | None = None) -> None:
        """End the stream on purpose; its rows count as filtered.

        Args:
            name: the step's name in `explain` and in errors; by default its kind and a number: `discard_1`.
        """
        self.pipeline.add(op.Discard(), "discard", (self,), name)

    def key_by(self, *columns: str, name: str | None = None) -> win.KeyedStream:
        """The rows grouped by the values of columns; null is a value, too, but not in a primary key of a contract.

        Args:
            columns: names of columns, at least one, all different.
            name: the step's name in `explain` and in errors; by default its kind and a number: `key_by_1`.

        Raises:
            DeclarationError: there is no column, or one is named twice.
        """
        check_keys(columns)
        return win.KeyedStream(self.then(op.KeyBy(columns), "key_by", name))

    def window(  # noqa: PLR0913  most of them are rarely said
        self,
        spec: WindowSpec | TumblingBuffer | SlidingBuffer | RecordWindows,
        *,
        allowed_lateness: str | timedelta = timedelta(0),
        start: str = "window_start",
        end: str | None = "window_end",
        evictor: Evictor | None = None,
        name: str | None = None,
    ) -> win.WindowedStream:
        """The rows in windows, all under one key.

        Args:
            spec: the kind of windows: of event time, by records, or a buffer of records in their order.
            allowed_lateness: how long a window takes records after its end, and is published again; others are late.
            start: the column with the start of the window.
            end: the column with its end, which is exclusive; None leaves the column out.
            evictor: which records a firing leaves out, where `publish` has a trigger of the trigger language.
            name: the step's name in `explain` and in errors; by default its kind and a number: `window_1`.

        Raises:
            DeclarationError: something is not of its kind, or a column has no valid name.
        """
        window = window_by(spec, allowed_lateness, start, end, evictor)
        return win.WindowedStream(self.then(window, "window", name), default_of(spec))

    def aggregate(self, *, name: str | None = None, **aggregates: Aggregate) -> win.AggregatedStream:
        """One row over all records so far, with a column for each aggregate; after `key_by`, one row for each key.

        There is no window, so no record is late and no row is ever final: each batch that brings records publishes the
        new values. State has one row for each key and never forgets one.

        Args:
            name: the step's name in `explain` and in errors; by default its kind and a number: `aggregate_1`.
            aggregates: the aggregate of each column, for example `views=Count()`; at least one.

        Raises:
            DeclarationError: there is no aggregate, one is something else, or a column has no valid name.
        """
        all_times = op.WindowBy(spec=Global(), allowed_lateness=timedelta(0), start=None, end=None)
        stream = self.then(all_times, "window", None).then(aggregated_by(aggregates), "aggregate", name)
        return win.AggregatedStream(stream, Trigger.ON_UPDATE)

    def publish(
        self, table: str, *, contract: str | None = None, topic: str | None = None, name: str | None = None
    ) -> None:
        """Append the rows unchanged to a published table, each exactly once.

        Args:
            table: the table's name in the lake: lower-case letters, digits and underscores, a letter first.
            contract: the contract of the table, by the name of its file without `.odcs.yaml`; always needed.
            topic: a topic of Kafka to which each row is sent, too, as JSON.
            name: the step's name in `explain` and in errors; by default its kind and a number: `publish_1`.

        Raises:
            DeclarationError: the table has no valid name, or no contract.
        """
        publish = op.Publish(
            table=checked_name(table, "a table"), contract=checked_contract(contract, table), trigger=None, topic=topic
        )
        self.pipeline.add(publish, "publish", (self,), name)

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "a stream of rows", _OF_ROWS)

    def then(self, operator: op.Operator, kind: str, name: str | None) -> Stream:
        """The stream that leaves the one output port of an operator fed by this stream."""
        return Stream(self.pipeline, self.pipeline.add(operator, kind, (self,), name), "out")
