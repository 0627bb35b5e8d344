"""A user's project: a folder with `tidemill.toml`, pipelines and contracts. Reading it needs no Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.contracts.load import Contracts
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.contract.contract import Contract
from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.repair.state_retention import check_age
from tidemill.project.declarations import Declarations, read_declarations
from tidemill.project.generations import Generations, to_do
from tidemill.project.pipeline_files import load_files
from tidemill.project.settings import FILE, LANDING, Settings, is_remote, read_settings

if TYPE_CHECKING:
    from tidemill.core.declare.pipeline_spec import PipelineSpec
    from tidemill.engine.storage.table_layout import Uris
    from tidemill.ledger.lease import Lease
    from tidemill.ledger.ledger import Ledger
    from tidemill.log.interface import Log
    from tidemill.log.kinesis import KinesisBridge
    from tidemill.log.side_tables import SideTables
    from tidemill.stores.access import S3Access
    from tidemill.stores.interface import Store

VARIABLE = "TIDEMILL_PROJECT"

_SHARED = ("_files", "_cluster", "access", "contracts", "_read")
"""Attributes that do not depend on the generation and are costly to create."""


class Project:
    """The settings, contracts and pipelines of one folder."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self._read: dict[str | None, Declarations] = {}

    @staticmethod
    def load(folder: str | Path | None = None) -> Project:
        """Load the project in `folder`, or named by TIDEMILL_PROJECT, or around the working directory.

        Raises:
            ConfigError: there is no `tidemill.toml`, or something in it is wrong.
        """
        root = _find(folder)
        return Project(root, read_settings(root))

    @cached_property
    def contracts(self) -> Mapping[str, Contract]:
        """The contracts by name, each loaded on first use."""
        return Contracts(Path(self.settings.contracts))

    def pipeline_names(self) -> tuple[str, ...]:
        """The names of all pipelines without faults, sorted."""
        return tuple(sorted(self._declared().pipelines))

    @property
    def faults(self) -> tuple[DeclarationError, ...]:
        """Faults of pipeline files, and of pipelines that exclude each other. All other pipelines can run."""
        return self._declared().faults

    @property
    def stopped(self) -> Mapping[str, DeclarationError]:
        """What stops each pipeline that cannot be bound, by its name; one without a name is called as its file."""
        return self._declared().stopped

    def declares(self, name: str) -> bool:
        """Whether a file declares this pipeline, or may declare it but cannot be loaded."""
        return self._declared().knows(name)

    def check_declared(self, name: str) -> None:
        """Raise what `pipeline` would raise for the declaration alone, without contracts."""
        self.spec(name)

    def spec(self, name: str) -> PipelineSpec:
        """Return what a file declares of a pipeline; it is not bound to contracts.

        Raises:
            DeclarationError: the pipeline does not exist, or its file cannot be loaded.
        """
        return self._declared(name).pipeline(name).spec

    def pipeline(self, name: str) -> Flow:
        """Return a pipeline bound to its contracts, after checking that it was not renamed.

        Raises:
            DeclarationError: the pipeline does not exist, or does not fit its contracts.
            ConfigError: the pipeline was renamed.
        """
        names = self.generations.known_names()
        try:
            flow = self.declared(name)
        except DeclarationError as error:
            # That it was renamed is more helpful than that it is not declared.
            names.check(name)
            if not self.declares(name) and name in self.generations.pipelines():
                error.fix = f"its ledger is in the lake: {to_do(name)}"
            raise
        names.check(name)
        return replace(flow, key=names.key(name))

    def declared(self, name: str) -> Flow:
        """Return a pipeline bound to its contracts, without reading the lake.

        Raises:
            DeclarationError: the pipeline does not exist, its file cannot be loaded, it does not fit its contracts, or
                its windows accept records for longer than state is kept.
            ContractError: one of its contracts cannot be used. Contracts of other pipelines do not matter.
        """
        flow = bind(self.spec(name), self.contracts)
        check_age(flow, self.settings.state)
        return flow

    def limit(self, records: int | None = None) -> ReadLimit:
        """The most that one batch reads: `records`, or what the settings say."""
        return ReadLimit(records or self.settings.batch_records, self.settings.partition_records)

    # The methods below load Arrow and delta-rs; Airflow parses a DAG without them.

    def log(self) -> Log:
        """The log that the pipelines read.

        Raises:
            ConfigError: credentials are missing where the settings name them, or Kafka's client is not installed.
        """
        return self._cluster if self.settings.kafka is not None else self._files

    @cached_property
    def _files(self) -> Log:
        from tidemill.log.file import FileLog
        from tidemill.log.landing import LandingLog

        place = self.settings.log
        storage = self.access.delta if is_remote(place) else dict
        if self.settings.layout == LANDING:
            return LandingLog(place, self._readable(place), storage=storage, gaps=self.settings.gaps)
        return FileLog(place, store=self._readable(place), storage=storage) if is_remote(place) else FileLog(place)

    @cached_property
    def _cluster(self) -> Log:
        """The Kafka cluster. Its client keeps its connections for all batches of a process."""
        from tidemill.log.kafka_access import access_of

        access = access_of(self.settings.kafka or {}, os.environ)
        try:
            from tidemill.log.kafka_topics import KafkaTopics
        except ImportError:
            raise ConfigError(
                "[log] kafka needs the package confluent-kafka", fix='pip install "tidemill[kafka]"'
            ) from None
        return KafkaTopics(access)

    @cached_property
    def access(self) -> S3Access:
        """How to reach a lake or log in S3."""
        from tidemill.stores.access import S3Access

        return S3Access(self.settings.s3)

    @cached_property
    def generations(self) -> Generations:
        """The locations of the lake's generations."""
        return Generations(lake=self.settings.lake, store=self._readable(self.settings.lake))

    def storage(self) -> Mapping[str, str]:
        """Options with which delta-rs reaches the lake now; {} for a folder. They hold keys, which may expire soon."""
        return self.access.delta() if is_remote(self.settings.lake) else {}

    def _readable(self, uri: str) -> Store:
        from tidemill.stores.opened import store_at

        return store_at(uri, self.access if is_remote(uri) else None)

    def bridge(self, stream: str, topic: str) -> KinesisBridge:
        """Return the bridge from a Kinesis stream to a topic of the project's file log.

        Raises:
            ConfigError: the log is not a file log, or there are no credentials for the stream.
            UnknownTopic: the topic does not exist.
        """
        from tidemill.log.file import FileLog
        from tidemill.log.kinesis import KinesisBridge
        from tidemill.stores.access import S3Access

        log = self.log()
        if not isinstance(log, FileLog):
            raise ConfigError("a stream is brought into a file log, and the project's log is none")
        return KinesisBridge(S3Access(self.settings.kinesis, section="kinesis").client("kinesis"), stream, log, topic)

    def ledger(self, name: str) -> Ledger:
        """The ledger of a pipeline."""
        from tidemill.ledger.ledger import Ledger

        key, store = self.generations.known_names().key(name), self.generations.store
        return Ledger(self.table_uri(name, "ledger"), key, self.storage, before_writing=store.check_writer)

    def lease(self, pipeline: str, takeover_after: timedelta) -> Lease:
        """The lease of a pipeline's runs: a run holds it while it works, and other runs check it."""
        from tidemill.ledger.lease import Lease

        folder = f"{self.generations.inside(pipeline)}/leases"
        return Lease(self.generations.store, folder, takeover_after=takeover_after)

    def uris(self, pipeline: str) -> Uris:
        """The locations of a pipeline's tables: its own and those it publishes."""
        from tidemill.engine.storage.table_layout import Uris

        owner = self.generations.known_names().key(pipeline)
        return Uris(
            pipeline=pipeline,
            owner=owner,
            table=self.table_uri,
            published=self.published_uri,
            storage=self.storage,
        )

    def side_tables(self, pipeline: str) -> SideTables:
        """The quarantine and the late table of a pipeline."""
        from tidemill.log.side_tables import SideTables

        return SideTables(partial(self.table_uri, pipeline), self.storage)

    def table_uri(self, pipeline: str, *parts: str) -> str:
        """The location of a table that belongs to one pipeline alone."""
        return "/".join((self.generations.folder(pipeline), *parts))

    def published_uri(self, table: str) -> str:
        """The location of a published table."""
        return self.generations.published(table)

    def of_generation(self, pipeline: str, number: int, *, built: bool = False) -> Project:
        """The same project with this generation of a pipeline. If `built`, it publishes to hidden tables."""
        other = Project(self.folder, self.settings)
        other.__dict__ |= {name: value for name, value in self.__dict__.items() if name in _SHARED}
        other.generations = self.generations.only(pipeline, number, built=built)
        return other

    def _declared(self, wanted: str | None = None) -> Declarations:
        """What the files declare. If one pipeline is wanted, the wait for other files is shorter."""
        known = next((self._read[name] for name in (None, wanted) if name in self._read), None)
        if known is not None:
            return known
        load = partial(load_files, patience=self.settings.load_timeout)
        found = read_declarations(Path(self.settings.pipelines), load, wanted)
        in_haste = found.unloaded and (wanted in found.pipelines or wanted in found.refused)
        self._read[wanted if in_haste else None] = found
        return found


def _find(folder: str | Path | None) -> Path:
    named = folder or os.environ.get(VARIABLE)
    if named:
        root = Path(named).resolve()
        if (root / FILE).is_file():
            return root
        raise ConfigError(f"{root}: there is no {FILE}", fix="name the folder of a project")
    here = Path.cwd()
    for root in (here, *here.parents):
        if (root / FILE).is_file():
            return root
    raise ConfigError(f"no {FILE} in {here} or above it", fix=f"go to a project, or set {VARIABLE} or --project")
