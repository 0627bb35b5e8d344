"""The streams of a declaration, and the steps that can be applied to them, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, Protocol

from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.names import checked_column, checked_contract, checked_name, no_step
from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import duration
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import WindowSpec

_OF_ROWS = ("filter", "with_columns", "select", "union", "split", "key_by", "window", "publish", "discard")


class Builder(Protocol):
    """What a stream needs from the pipeline that is being declared."""

    name: str

    def add(self, operator: op.Operator, kind: str, feeds: tuple[Stream, ...], name: str | None = None) -> str:
        """Add an operator fed by streams, in the order of its ports, and return its name."""
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows that leave one port of an operator."""

    pipeline: Builder
    node: str
    port: str

    def filter(self, predicate: str, *, name: str | None = None) -> Stream:
        """The rows for which a Spark SQL predicate is true; the others count as filtered."""
        return self.then(op.Filter(predicate), "filter", name)

    def with_columns(self, *, name: str | None = None, **columns: str) -> Stream:
        """The rows with columns added or replaced; expressions see the columns as they were before."""
        for column in columns:
            checked_column(column)
        return self.then(op.WithColumns(columns), "with_columns", name)

    def select(self, *columns: str, name: str | None = None) -> Stream:
        """The rows with these columns only."""
        return self.then(op.Select(columns), "select", name)

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """The rows of this stream and of others with the same columns."""
        node = self.pipeline.add(op.Union(1 + len(others)), "union", (self, *others), name)
        return Stream(self.pipeline, node, "out")

    def split(
        self, *, default: str = "rest", overlap: bool = False, name: str | None = None, **routes: str
    ) -> dict[str, Stream]:
        """Streams by port name: one for each route (a Spark SQL predicate), and `default` for rows that meet none.

        A row goes to the first route that it meets; with `overlap`, to every route that it meets.
        """
        if default in routes or not routes:
            raise DeclarationError(f"split needs routes, none of them called like the default port `{default}`")
        node = self.pipeline.add(op.Split(routes=routes, default=default, overlap=overlap), "split", (self,), name)
        return {port: Stream(self.pipeline, node, port) for port in (*routes, default)}

    def discard(self, *, name: str | None = None) -> None:
        """End the stream on purpose; its rows count as filtered."""
        self.pipeline.add(op.Discard(), "discard", (self,), name)

    def key_by(self, *columns: str, name: str | None = None) -> KeyedStream:
        """The rows grouped by the values of columns."""
        if not columns or len(set(columns)) < len(columns):
            raise DeclarationError(f"key_by takes different columns, at least one, found {columns}")
        return KeyedStream(self.then(op.KeyBy(columns), "key_by", name))

    def window(
        self,
        spec: WindowSpec,
        *,
        allowed_lateness: str | timedelta = timedelta(0),
        start: str = "window_start",
        end: str | None = "window_end",
        name: str | None = None,
    ) -> WindowedStream:
        """Put all rows into windows of event time, without a key.

        `start` and `end` name the columns of a window's bounds; with `end=None`, the end is not published.
        """
        lateness = duration(allowed_lateness, "allowed_lateness")
        window = op.WindowBy(spec=spec, allowed_lateness=lateness, start=start, end=end)
        for column in window.columns:
            checked_column(column)
        return WindowedStream(self.then(window, "window", name))

    def publish(
        self, table: str, *, contract: str | None = None, topic: str | None = None, name: str | None = None
    ) -> None:
        """Append the rows unchanged to a published table, each exactly once; with `topic`, also send them to Kafka."""
        publish = op.Publish(
            table=checked_name(table, "a table"), contract=checked_contract(contract, table), trigger=None, topic=topic
        )
        self.pipeline.add(publish, "publish", (self,), name)

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "a stream of rows", _OF_ROWS)

    def then(self, operator: op.Operator, kind: str, name: str | None) -> Stream:
        """The stream that leaves the one output port of an operator fed by this stream."""
        return Stream(self.pipeline, self.pipeline.add(operator, kind, (self,), name), "out")


@dataclass(frozen=True, slots=True)
class KeyedStream:
    """Rows grouped by key."""

    stream: Stream

    def window(
        self,
        spec: WindowSpec,
        *,
        allowed_lateness: str | timedelta = timedelta(0),
        start: str = "window_start",
        end: str | None = "window_end",
        name: str | None = None,
    ) -> WindowedStream:
        """Put the rows of each key into windows of event time; `start` and `end` as for `Stream.window`."""
        return self.stream.window(spec, allowed_lateness=allowed_lateness, start=start, end=end, name=name)

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "what .key_by(...) gives", ("window",))


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """Rows in windows."""

    stream: Stream

    def aggregate(self, *, name: str | None = None, **aggregates: Aggregate) -> AggregatedStream:
        """One row per window and key, with a column per aggregate."""
        if not aggregates:
            raise DeclarationError("aggregate needs at least one aggregate", fix="for example views=Count()")
        for column, aggregate in aggregates.items():
            checked_column(column)
            if not isinstance(aggregate, Aggregate):
                raise DeclarationError(
                    f"`{column}` is not an aggregate: {aggregate!r}", fix='write Sum("x"), Count(), ...'
                )
        return AggregatedStream(self.stream.then(op.AggregateBy(aggregates), "aggregate", name))

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "what .window(...) gives", ("aggregate",))


@dataclass(frozen=True, slots=True)
class AggregatedStream:
    """One row per window and key."""

    stream: Stream

    def publish(  # noqa: PLR0913  each of them is rarely said
        self,
        table: str,
        *,
        contract: str | None = None,
        trigger: str = Trigger.ON_CLOSE,
        topic: str | None = None,
        timing: str | None = None,
        name: str | None = None,
    ) -> None:
        """Upsert the rows into a published table by window and key, at the times that `trigger` says.

        With a `topic`, each row is also sent there, with its window and key as the message's key. `timing` names a text
        column of the table that says why the row was last published: EARLY, ON_TIME, LATE, REPAIR or BACKFILL.
        """
        if timing is not None:
            checked_column(timing)
        try:
            when = Trigger(trigger)
        except ValueError:
            known = " or ".join(f'"{each.value}"' for each in Trigger)
            raise DeclarationError(f"trigger is {known}, found {trigger!r}") from None
        publish = op.Publish(
            table=checked_name(table, "a table"),
            contract=checked_contract(contract, table),
            trigger=when,
            topic=topic,
            timing=timing,
        )
        self.stream.pipeline.add(publish, "publish", (self.stream,), name)

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "what .aggregate(...) gives", ("publish",))
