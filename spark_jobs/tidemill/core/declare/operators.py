"""The operators of a pipeline: frozen values without effects.

An operator takes rows at its input ports and gives rows at its output ports (`tidemill.core.declare.ports`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.firing import Firing
from tidemill.core.ordered import triggers as ordered
from tidemill.core.ordered.evictors import Evictor
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.time.times import show_duration
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import WindowSpec


class StartFrom(StrEnum):
    """Where a pipeline begins in a topic-partition that it has never read."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Several topics that are read as one: those in `names`, or those whose whole name matches `pattern`.

    `pattern` is a regular expression; each plan looks anew which topics match. Topics that Kafka uses itself, whose
    names begin with two underscores, never match.
    """

    names: tuple[str, ...] = ()
    pattern: str | None = None

    def __str__(self) -> str:
        return ", ".join(self.names) if self.pattern is None else f"topics like {self.pattern}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Reads one topic or several, decoded as their contract says: one row for each record that is not rejected.

    `event_time` names a timestamp column of the contract; None is the record's own timestamp. `delay` bounds how much
    later than another record of its partition an earlier event may arrive. `watermark` is an expression instead of a
    delay: the watermark that a record itself tells; null in records that tell none. `watermark_of` is the pipeline that
    sends the records, whose watermark counts instead.
    """

    topic: str | Topics
    contract: str
    event_time: str | None
    delay: timedelta
    start: StartFrom
    watermark: str | None = None
    watermark_of: str | None = None

    @property
    def behind(self) -> str:
        """What the watermark follows, as a text."""
        if self.watermark_of is not None:
            return f"watermark of pipeline {self.watermark_of}"
        return f"delay {show_duration(self.delay)}" if self.watermark is None else f"watermark {self.watermark}"

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that it names; empty where it has a pattern."""
        return self.topic.names if isinstance(self.topic, Topics) else (self.topic,)

    @property
    def pattern(self) -> str | None:
        """The pattern of the topics that it reads; None where it names them."""
        return self.topic.pattern if isinstance(self.topic, Topics) else None

    def takes(self, topic: str) -> bool:
        """Whether it reads a topic of this name, should there be one."""
        return topic in self.names if self.pattern is None else re.fullmatch(self.pattern, topic) is not None


@dataclass(frozen=True, slots=True)
class Behind:
    """The rows of a read as if its delay were longer by `by`: windows of theirs close that much later."""

    by: timedelta


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which the predicate is true; null is not true."""

    predicate: str


@dataclass(frozen=True, slots=True)
class WithColumns:
    """Adds columns, or replaces them. Expressions see the columns as they were before."""

    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Select:
    """Keeps only these columns, in this order."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of all its inputs, which have the same columns. Its watermark is the least of theirs."""

    inputs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Routes rows to ports by predicates.

    A row goes to the first port whose predicate is true or, with `overlap`, to every such port. A row for which no
    predicate is true goes to `default`, so that no row is lost.
    """

    routes: Mapping[str, str]
    default: str
    overlap: bool = False


@dataclass(frozen=True, slots=True)
class Discard:
    """Ends a stream on purpose: its rows count as filtered."""


@dataclass(frozen=True, slots=True)
class KeyBy:
    """Groups rows by the values of columns; null is a value."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBy:
    """Puts rows into windows. A window of event time refuses rows once `end + allowed_lateness <= watermark`.

    `start` and `end` name the columns of a window's bounds; a column that is None is not published. Rows that are
    aggregated without a window have none. `evictor` says which records a firing leaves out.
    """

    spec: WindowSpec | SelfFiring
    allowed_lateness: timedelta
    start: str | None = "window_start"
    end: str | None = "window_end"
    evictor: Evictor | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a window's bounds, in order."""
        return tuple(column for column in (self.start, self.end) if column is not None)


@dataclass(frozen=True, slots=True)
class AggregateBy:
    """One row per window and key, with a column per aggregate."""

    aggregates: Mapping[str, Aggregate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Writes rows that meet the contract to a published table, and sends them to `topic` if there is one.

    The topic does not change what is computed, so a declaration with another topic is still the same pipeline. `timing`
    names a column that says why a window's row was published (`tidemill.core.time.timing`). `firing` says more where
    the trigger is one of the trigger language.
    """

    table: str
    contract: str
    trigger: Trigger | ordered.Trigger | None
    topic: str | None = field(default=None, repr=False)
    timing: str | None = None
    firing: Firing | None = None


Operator = (
    Read | Behind | Filter | WithColumns | Select | Union | Split | Discard | KeyBy | WindowBy | AggregateBy | Publish
)
