"""What OpenLineage is told about committed batches, as plain values; `openlineage` makes its facets of them.

This module imports neither Airflow nor OpenLineage, and does no I/O: Airflow asks for lineage in a forked process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import unquote, urlsplit

from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import Sink
from tidemill.core.contract.contract import Contract
from tidemill.core.errors import TidemillError
from tidemill.core.protocol.events import Committed
from tidemill.inspect.column_lineage import Origins, input_of, origins
from tidemill.project.project import Project
from tidemill.project.settings import Settings
from tidemill_airflow.tasks.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What OpenLineage calls a dataset: never with a user or a password."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic that a batch read; `records` is how many of its records, None if the commit does not say."""

    place: Place
    contract: Contract | None
    records: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A published table that a batch wrote, or the topic that its rows were sent to: that has no version.

    `came_from` says for each topic where the columns come from.
    """

    place: Place
    contract: Contract
    rows: int
    version: int | None
    came_from: Sequence[tuple[Place, Origins]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLineage:
    """A committed batch: what it read, what it wrote, and the facts that tasks return."""

    pipeline: str
    at: datetime
    facts: Facts
    topics: tuple[Topic, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a task has committed; `batches` are the facts of those commits that it has announced."""

    project: Project
    pipeline: str
    commits: tuple[Committed, ...]
    batches: tuple[Facts, ...]


def lineage(told: Told) -> tuple[BatchLineage, ...]:
    """The lineage of the batches that a task has announced. Empty if the declaration is wrong by now."""
    try:
        flow = told.project.declared(told.pipeline)
    except TidemillError:
        return ()
    known = {commit.batch_id: commit for commit in told.commits}
    return tuple(_of(told.project, flow, known[batch["batch_id"]], batch) for batch in told.batches)


def _of(project: Project, flow: Flow, commit: Committed, batch: Facts) -> BatchLineage:
    sources = {topic: input_of(flow, topic) for topic in _read(commit, batch)}
    topics = tuple(
        Topic(
            place=place_of_topic(project.settings, topic),
            contract=None if source is None else source.contract,
            records=account.read if (account := commit.accounts.get(topic)) is not None else None,
        )
        for topic, source in sources.items()
    )
    written = [sink for sink in flow.sinks if sink.table in commit.tables]
    tables = tuple(table for sink in written for table in _tables(project, sink, commit, sources))
    return BatchLineage(pipeline=flow.name, at=commit.at, facts=batch, topics=topics, tables=tables)


def _tables(project: Project, sink: Sink, commit: Committed, sources: Mapping[str, Input | None]) -> Iterator[Table]:
    """A published table, and the topic that its rows were sent to."""
    known = {topic: source for topic, source in sources.items() if source and source.name in sink.paths}
    table = Table(
        place=place_of(project.published_uri(sink.table)),
        contract=sink.contract,
        rows=commit.published.get(sink.table, 0),
        version=commit.tables[sink.table],
        came_from=tuple((place_of_topic(project.settings, t), origins(sink, s)) for t, s in known.items()),
    )
    yield table
    if sink.topic is not None:
        yield replace(table, place=place_of_topic(project.settings, sink.topic), version=None)


def _read(commit: Committed, batch: Facts) -> tuple[str, ...]:
    """The topics of which the batch read something."""
    ranges = {topic: parts.values() for topic, parts in (batch["offsets"] or {}).items()}
    planned = [topic for topic, parts in ranges.items() if any(end > start for part in parts for start, end in part)]
    counted = [topic for topic, account in commit.accounts.items() if account.read]
    return tuple(dict.fromkeys((*planned, *counted)))


def place_of_topic(settings: Settings, topic: str) -> Place:
    """A topic in Kafka, under the first broker of the cluster; or in a file log, by its folder."""
    if settings.kafka is None:
        return place_of(f"{settings.log.rstrip('/')}/{topic}")
    broker = settings.kafka["kafka"].split(",")[0].strip().rpartition("://")[2].rpartition("@")[2]
    return Place(namespace=f"kafka://{broker if ':' in broker else f'{broker}:9092'}", name=topic)


def place_of(uri: str) -> Place:
    """A folder of this machine, or a place in an object store: its bucket, and the rest of its address."""
    scheme, separator, _ = uri.partition("://")
    if not separator or scheme == "file":
        return Place(namespace="file", name=unquote(urlsplit(uri).path) if separator else uri)
    found = urlsplit(uri)
    kind = "s3" if scheme in ("s3a", "s3n") else scheme
    return Place(namespace=f"{kind}://{found.netloc.rpartition('@')[2]}", name=found.path.strip("/") or "/")
