"""A declared pipeline joined with its contracts (`tidemill.core.bind.binding`): what an engine executes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from tidemill.core.bind.sinks import Sink, StatefulSink
from tidemill.core.contract.contract import Contract
from tidemill.core.declare import operators as op
from tidemill.core.declare.pipeline_spec import PipelineSpec
from tidemill.core.errors import DeclarationError
from tidemill.core.identity.declarations import VERSION, digest, encoded
from tidemill.core.identity.legacy import legacy_hash
from tidemill.core.time.times import micros

PUBLISHED = "published/"
"""Prefix of a published table's name where the ledger keeps the versions of all tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A topic that is read, with the contract of its records. Topics that are read as one share one `name`.

    `watermark` is the expression by which records tell the watermark, `watermark_of` the pipeline whose watermark it
    is; both are None if it follows event time by `delay`.
    """

    name: str
    topic: str
    contract: Contract
    event_time: str | None
    delay: timedelta
    start: op.StartFrom
    watermark: str | None = None
    watermark_of: str | None = None

    @property
    def told(self) -> bool:
        """Whether the watermark is told, and does not follow event time."""
        return self.watermark is not None or self.watermark_of is not None


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
    def delays(self) -> Mapping[str, int | None]:
        """How far the watermark of each topic stays behind its newest event, in microseconds; None where it is told."""
        return {i.topic: None if i.told else micros(i.delay) for i in self.inputs}

    @property
    def lags(self) -> Mapping[str, int]:
        """How far watermarks of tables are to stay behind the pipeline's, in microseconds; only of tables that do.

        A table that is made of several reads waits for the one with the longest delay.
        """
        found = {sink.table: _lag(sink) for sink in self.sinks if isinstance(sink, StatefulSink)}
        return {table: lag for table, lag in found.items() if lag}

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


def check_waiting(spec: PipelineSpec, sinks: Iterable[Sink]) -> None:
    """Check that each read with a longer delay makes a table wait.

    Raises:
        DeclarationError: one leads only to tables of rows, which never wait, or nowhere.
    """
    ways = [path for sink in sinks if isinstance(sink, StatefulSink) for each in sink.paths.values() for path in each]
    used = {step.name for path in ways for step in path}
    for name, operator in spec.graph.operators.items():
        if isinstance(operator, op.Behind) and name not in used:
            raise DeclarationError(
                f"{spec.graph.where(name)} has a longer delay, but no table that waits for it: rows do not wait",
                fix="use the stream with the shortest delay",
            )


def _lag(sink: StatefulSink) -> int:
    steps = (step.operator for paths in sink.paths.values() for path in paths for step in path)
    return max((micros(each.by) for each in steps if isinstance(each, op.Behind)), default=0)
