"""What follows `key_by` and `window` in a declaration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.firing import Firing
from tidemill.core.declare.names import checked_column, checked_contract, checked_name, no_step
from tidemill.core.declare.windowing import aggregated_by, firing_of, trigger_of
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.evictors import Evictor
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.triggers import Trigger as FiringTrigger
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import WindowSpec

if TYPE_CHECKING:
    from tidemill.core.declare.builder import Stream


@dataclass(frozen=True, slots=True)
class KeyedStream:
    """Rows grouped by key: what `key_by` gives."""

    stream: Stream

    def window(  # noqa: PLR0913  most of them are rarely said
        self,
        spec: WindowSpec | TumblingBuffer | SlidingBuffer | RecordWindows,
        *,
        allowed_lateness: str | timedelta = timedelta(0),
        start: str = "window_start",
        end: str | None = "window_end",
        evictor: Evictor | None = None,
        name: str | None = None,
    ) -> WindowedStream:
        """The rows of each key in windows.

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
        return self.stream.window(
            spec, allowed_lateness=allowed_lateness, start=start, end=end, evictor=evictor, name=name
        )

    def aggregate(self, *, name: str | None = None, **aggregates: Aggregate) -> AggregatedStream:
        """One row for each key, over all records so far; see `Stream.aggregate`.

        Args:
            name: the step's name in `explain` and in errors; by default its kind and a number: `aggregate_1`.
            aggregates: the aggregate of each column, for example `views=Count()`; at least one.

        Raises:
            DeclarationError: there is no aggregate, one is something else, or a column has no valid name.
        """
        return self.stream.aggregate(name=name, **aggregates)

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "what .key_by(...) gives", ("window", "aggregate"))


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """Rows in windows: what `window` gives. `default` says when windows are published (`AggregatedStream`)."""

    stream: Stream
    default: Trigger | None = Trigger.ON_CLOSE

    def aggregate(self, *, name: str | None = None, **aggregates: Aggregate) -> AggregatedStream:
        """One row for each window and key that has records, with a column for each aggregate.

        Args:
            name: the step's name in `explain` and in errors; by default its kind and a number: `aggregate_1`.
            aggregates: the aggregate of each column, for example `views=Count()`; at least one.

        Raises:
            DeclarationError: there is no aggregate, one is something else, or a column has no valid name.
        """
        return AggregatedStream(self.stream.then(aggregated_by(aggregates), "aggregate", name), self.default)

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "what .window(...) gives", ("aggregate",))


@dataclass(frozen=True, slots=True)
class AggregatedStream:
    """One row for each window and key, or for each key: what `aggregate` gives.

    `default` says when rows are published; None if the windows say it themselves.
    """

    stream: Stream
    default: Trigger | None

    def filter(self, predicate: str, *, name: str | None = None) -> AggregatedStream:
        """The results for which a predicate is true (SQL's HAVING). A published row that no longer meets it is removed.

        Args:
            predicate: Spark SQL over the columns of a result: windows, keys and aggregates; null is not true.
            name: the step's name in `explain` and in errors; by default its kind and a number: `filter_1`.
        """
        return replace(self, stream=self.stream.filter(predicate, name=name))

    def with_columns(self, *, name: str | None = None, **columns: str) -> AggregatedStream:
        """The results with columns added or replaced.

        Args:
            columns: a Spark SQL expression over the columns of a result for each column; it sees them as they were.
            name: the step's name in `explain` and in errors; by default its kind and a number: `with_columns_1`.

        Raises:
            DeclarationError: a column has no valid name.
        """
        return replace(self, stream=self.stream.with_columns(name=name, **columns))

    def select(self, *columns: str, name: str | None = None) -> AggregatedStream:
        """The results with these columns only; those that tell rows apart, the window's start and the keys, must stay.

        Args:
            columns: names of columns.
            name: the step's name in `explain` and in errors; by default its kind and a number: `select_1`.
        """
        return replace(self, stream=self.stream.select(*columns, name=name))

    def publish(  # noqa: PLR0913  each of them is rarely said
        self,
        table: str,
        *,
        contract: str | None = None,
        trigger: str | FiringTrigger | None = None,
        accumulation: str | None = None,
        topic: str | None = None,
        timing: str | None = None,
        index: str | None = None,
        last: str | None = None,
        operation: str | None = None,
        empty_on_time: bool = True,
        accept_loss: bool = False,
        name: str | None = None,
    ) -> None:
        """Insert or update the rows in a published table, by window and key, or by key alone without windows.

        Rows of buffers, and of windows with a trigger such as `Repeatedly(AfterCount(100))`, are appended: each firing
        is a row, unless its `accumulation` replaces the one before.

        Args:
            table: the table's name in the lake: lower-case letters, digits and underscores, a letter first.
            contract: the contract of the table, by the name of its file without `.odcs.yaml`; always needed.
            trigger: "on_close" publishes a window when the watermark passes its end, and again after late records that
                it still takes; "on_update" publishes it in every batch that brings it records. By default on close, or
                on update without windows, which never close. Buffers say themselves when they fire.
            accumulation: how the firings of a window relate, if it may fire more than once: "discarding" publishes what
                came since the last firing, "accumulating" all so far, "accumulating_and_retracting" also takes the last
                firing back, as rows whose `operation` is "delete", "accumulating_and_replacing" updates its row.
            topic: a topic of Kafka to which each row is sent, too, as JSON; by window and key, appended firings by key.
            timing: a text column that says why the row was last published: EARLY, ON_TIME, LATE, REPAIR or BACKFILL.
            index: a number that counts the firings of a window from 0; it and the following need such a trigger.
            last: a boolean column: whether no other firing of the window follows.
            operation: a text column: "insert", or "delete" for a row that takes an earlier one back.
            empty_on_time: whether a trigger with the watermark fires on time even without a record since it last fired.
            accept_loss: allow a trigger that may finish while its window still takes records, which are then dropped.
            name: the step's name in `explain` and in errors; by default its kind and a number: `publish_1`.

        Raises:
            DeclarationError: a name, a trigger or a mode is not valid, or there is no contract.
        """
        told = {"index": index, "last": last, "operation": operation}
        firing = Firing(accumulation=accumulation, accept_loss=accept_loss, empty_on_time=empty_on_time, **told)
        for column in (timing, index, last, operation):
            if column is not None:
                checked_column(column)
        publish = op.Publish(
            table=checked_name(table, "a table"),
            contract=checked_contract(contract, table),
            trigger=trigger_of(trigger, self.default),
            topic=topic,
            timing=timing,
            firing=firing_of(trigger, firing, windowed=self.default is not None),
        )
        self.stream.pipeline.add(publish, "publish", (self.stream,), name)

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "what .aggregate(...) gives", ("filter", "with_columns", "select", "publish"))
