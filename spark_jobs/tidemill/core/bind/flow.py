"""A declared pipeline joined with its contracts (`tidemill.core.bind.binding`): what an engine executes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Field
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.columns import WINDOW_COLUMNS
from tidemill.core.declare.graph import Step
from tidemill.core.declare.pipeline import PipelineSpec
from tidemill.core.errors import DeclarationError
from tidemill.core.identity.declarations import VERSION, digest, encoded, written
from tidemill.core.identity.legacy import legacy_hash, legacy_shape
from tidemill.core.time.pane_tree import levels_of
from tidemill.core.time.times import micros
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import WindowSpec

PUBLISHED = "published/"
"""Prefix of a published table's name where the ledger keeps the versions of all tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A topic that is read, with the contract of its records. Topics that are read as one share one `name`."""

    name: str
    topic: str
    contract: Contract
    event_time: str | None
    delay: timedelta
    start: op.StartFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedSink:
    """A published table of one row per window and key. `paths` leads from each input to the windows.

    If `topic` is set, its rows are also sent there. `start` and `end` name the columns of a window's bounds, `timing`
    the column that says why a row was published; a column that is None is not published.
    """

    table: str
    contract: Contract
    keys: tuple[str, ...]
    window: WindowSpec
    allowed_lateness: timedelta
    aggregates: Mapping[str, Aggregate]
    trigger: Trigger
    paths: Mapping[str, tuple[tuple[Step, ...], ...]]
    topic: str | None = None
    start: str = WINDOW_COLUMNS[0]
    end: str | None = WINDOW_COLUMNS[1]
    timing: str | None = None

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify a row of the table."""
        return (self.start, *self.keys)

    @property
    def computed(self) -> tuple[Field, ...]:
        """The fields of its contract whose values come from records: all but `timing`."""
        return tuple(f for f in self.contract.fields if f.name != self.timing)

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns of a window's bounds, in order."""
        return (self.start,) if self.end is None else (self.start, self.end)

    @property
    def merges_ahead(self) -> bool:
        """Whether its panes are merged ahead (`tidemill.core.time.pane_tree`)."""
        return levels_of(self.window.panes) > 0

    @property
    def shape(self) -> Mapping[str, str]:
        """What decides how rows of state merge, one text for each part; state of another shape cannot be merged."""
        aggregates = {f"aggregate {name}": encoded(aggregate) for name, aggregate in self.aggregates.items()}
        named = {} if self.bounds == WINDOW_COLUMNS else {"columns of the window": list(self.bounds)}
        parts = {"keys": list(self.keys), "window": encoded(self.window), **named, **aggregates}
        return {name: written(part) for name, part in parts.items()}

    @property
    def legacy_shape(self) -> Mapping[str, str]:
        """The shape as older ledgers have it; parts that did not exist then are left out."""
        return legacy_shape(self.keys, self.window, self.aggregates)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSink:
    """A published table of rows as they are. `paths` leads from each input to the table.

    If `topic` is set, its rows are also sent there.
    """

    table: str
    contract: Contract
    columns: tuple[str, ...]
    paths: Mapping[str, tuple[tuple[Step, ...], ...]]
    topic: str | None = None

    @property
    def row_key(self) -> tuple[str, ...]:
        """Always empty: rows are only appended, never updated."""
        return ()


Sink = WindowedSink | RowSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A pipeline that is ready to run: inputs and sinks in the order of their declaration.

    `patterns` are inputs whose `topic` is a pattern; `inputs` has their topics only after `reading` was told which
    topics exist. `key` is the first name that the pipeline had: ledger, transactions and owned tables keep it when the
    pipeline is renamed.
    """

    spec: PipelineSpec
    inputs: tuple[Input, ...]
    sinks: tuple[Sink, ...]
    patterns: tuple[Input, ...] = ()
    key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or self.name)

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self.spec.name

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """The contracts of the inputs, each once, then those of the sinks."""
        read = {i.name: i.contract for i in (*self.inputs, *self.patterns)}
        return (*(read[n] for n in self.spec.graph.operators if n in read), *(s.contract for s in self.sinks))

    @property
    def sources(self) -> tuple[Input, ...]:
        """The inputs as they were declared: topics by name, and patterns, which are not resolved to topics."""
        by_pattern = {p.name for p in self.patterns}
        return (*(i for i in self.inputs if i.name not in by_pattern), *self.patterns)

    def reading(self, topics: Collection[str], *, known: Collection[str] = ()) -> Flow:
        """The flow whose inputs include each of these topics that a pattern matches.

        `known` are topics that were read before. If a pattern matches one of them, all its topics start at EARLIEST: a
        topic that appears later must not lose its first records.

        Raises:
            DeclarationError: a topic would be read twice.
        """
        patterns = {p.name for p in self.patterns}
        inputs = [i for i in self.inputs if i.name not in patterns]
        for source in self.patterns:
            begun = any(re.fullmatch(source.topic, topic) for topic in known)
            start = op.StartFrom.EARLIEST if begun else source.start
            matching = sorted({t for t in topics if re.fullmatch(source.topic, t)})
            inputs += [replace(source, topic=topic, start=start) for topic in matching]
        read = Counter(i.topic for i in inputs)
        if twice := [topic for topic, times in read.items() if times > 1]:
            raise DeclarationError(
                f"{self.spec.graph.where(self.patterns[0].name)}: topic `{twice[0]}` would be read twice, by its name "
                "or by another pattern, too",
                fix="change the pattern: `(?!name$)` in front excludes a name",
            )
        return replace(self, inputs=tuple(inputs))

    @property
    def logical_hash(self) -> str:
        """A SHA-256 of what the pipeline computes; it does not depend on how or where the pipeline runs."""
        graph = self.spec.graph
        edges = [[e.source, e.source_port, e.target, e.target_port] for e in graph.edges]
        return digest(
            {
                "encoding": VERSION,
                "pipeline": self.key,
                "operators": {name: encoded(operator) for name, operator in graph.operators.items()},
                "edges": sorted(edges),
                "contracts": [c.fingerprint for c in self.contracts],
                "future_tolerance_us": micros(self.spec.future_tolerance),
            }
        )

    @property
    def hashes(self) -> tuple[str, ...]:
        """The logical hash, and the hash that older versions gave the same declaration, if they could."""
        contracts = [c.fingerprint for c in self.contracts]
        before = legacy_hash(self.key, self.spec.graph, contracts, self.spec.future_tolerance)
        return (self.logical_hash,) if before is None else (self.logical_hash, before)
