"""Opens a Spark session in one of the places where a batch can run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never
from urllib.parse import urlsplit
from weakref import WeakSet

from pyspark.sql import SparkSession

from tidemill.core.errors import EngineError, TidemillError
from tidemill.core.identity.semantics import PINNED, check_pinned
from tidemill.engine.spark.connect import connect_session
from tidemill.engine.spark.shared_classes import sharing
from tidemill.engine.spark.workers import equip

SESSION_CONF: Mapping[str, str] = {
    **PINNED,
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    # By default, aggregates that keep objects (sketches, lists) fall back to sorting after 128 groups.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # A batch is divided into tasks even when its segment is small, so that every core decodes.
    "spark.sql.files.openCostInBytes": "131072",
    # Planning stage by stage costs more than it saves in a small batch.
    "spark.sql.adaptive.enabled": "false",
    # If a user switches it on: this rule would drop the counts of a pass that leaves no rows.
    "spark.sql.adaptive.optimizer.excludedRules": ("org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"),
    # Without this, rows from the driver would be computed while the plan is made, one by one and not compiled: 65,000
    # rows of state took 3 seconds, and as much memory as one copy of them for each step.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    # Rows do not belong into the plan: every optimizer rule would visit each of them, 60 ms for 40,000 rows.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.databricks.delta.v2.enableMode": "NONE",
    # Tidemill's tables have short logs to replay: 50 tasks, the default, take ten times as long.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Settings of a session that a batch relies on, in every place."""

_STATIC_CONF: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # The number of compiled steps that are kept. With Spark's default of 100, a batch that Spark writes compiled all
    # its steps again and ran them cold, which took half of its time.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Segments have a checksum per page: flipped bytes are noticed, not aggregated.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}

_STORE = "fs.s3a."
_pinned: WeakSet[SparkSession] = WeakSet()

_HIDDEN, _HIDDEN_TOO = "spark.sql.redaction.string.regex", "spark.redaction.string.regex"
_LOGIN = r"org\.apache\.kafka\.common\.security\.[^\n]*"
"""A pattern of texts that a Connect server hides where it shows or records requests."""

_SHUFFLES, _SPARKS, _OURS = "spark.sql.shuffle.partitions", "200", "16"
"""Only rows of state are shuffled, not records: 200 tasks, the default, make a small batch 10 times slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSpark:
    """A session inside the process that executes the batch. `cores` None means all cores of the machine."""

    jars: tuple[str, ...]
    cores: int | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectSpark:
    """A session on a Spark Connect server, whose own settings include the Delta extension and jars.

    Processes with the same `identity`, a UUID, get the same session; each interrupts what others left running in it.
    """

    remote: str
    identity: str
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpark:
    """A driver in the process that executes the batch, and executors on a cluster, which get the jars from it."""

    master: str
    jars: tuple[str, ...]
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)


Place = LocalSpark | ConnectSpark | ClusterSpark


def open_session(place: Place, *, name: str) -> SparkSession:
    """The session of a place, new or existing, with the settings that a batch relies on.

    On other machines, it makes sure that the Python workers have the code of this process.

    Raises:
        EngineError: Spark cannot be started or reached.
        ConfigError: the workers have another version of Python or of Tidemill, or lack a package.
    """
    try:
        session = settle(_open(place, name), place.conf)
        if not isinstance(place, LocalSpark):
            equip(session, where=_label(place))
    except TidemillError:
        raise
    except Exception as error:
        raise EngineError(f"no Spark session ({_label(place)}): {error}", fix="run `tidemill doctor`") from error
    return session


def settle(session: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """Return the session with the settings that a batch relies on, and `conf`, as far as they can still be changed.

    Raises:
        ConfigError: `conf` changes a setting that decides the results of expressions.
    """
    check_pinned(conf, "the settings of Spark:")
    pin(session)
    known = _known(session)
    fewer = {_SHUFFLES: _OURS} if (known.get(_SHUFFLES) or session.conf.get(_SHUFFLES)) == _SPARKS else {}
    hidden = {_HIDDEN: _redaction(session, conf)}
    for key, value in {**SESSION_CONF, **fewer, **conf, **hidden}.items():
        if key in PINNED or known.get(key) == value:
            continue
        if key.startswith(_STORE) or session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def pin(session: SparkSession) -> None:
    """Set the settings that decide the results of expressions in any session, even one that others made."""
    if session in _pinned:
        return
    known = _known(session)
    for name, value in PINNED.items():
        if known.get(name) != value:
            session.conf.set(name, value)
    _pinned.add(session)


def _known(session: SparkSession) -> Mapping[str, str]:
    """The settings of a session on a Connect server: reading all is one round trip, and each other access is one."""
    return session.conf.getAll if type(session).__module__.startswith("pyspark.sql.connect") else {}


def _redaction(session: SparkSession, conf: Mapping[str, str]) -> str:
    """A pattern of texts to hide: those that are hidden already, and Kafka's login module, which has the password."""
    theirs = conf.get(_HIDDEN) or session.conf.get(_HIDDEN, None) or session.conf.get(_HIDDEN_TOO, None) or _LOGIN
    return theirs if _LOGIN in theirs else f"(?:{theirs})|{_LOGIN}"


def server_conf(jars: Sequence[str]) -> dict[str, str]:
    """The settings for a Spark that is started elsewhere: a Connect server, or a submit to a cluster."""
    return {**_STATIC_CONF, **SESSION_CONF, "spark.jars": ",".join(jars)}


def _label(place: Place) -> str:
    match place:
        case LocalSpark():
            return "local"
        case ConnectSpark():
            return place.remote
        case ClusterSpark():
            return place.master
        case _:
            assert_never(place)


def _open(place: Place, name: str) -> SparkSession:
    match place:
        case LocalSpark():
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            # Arrow workers must use this Python, which has Tidemill, not the machine's Python.
            os.environ["PYSPARK_PYTHON"] = sys.executable
            cores = place.cores or os.cpu_count() or 1
            # Java starts a Java that starts Spark: what the first of the two needs is short.
            os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            return _in_process(f"local[{cores}]", name, sharing({**_local_conf(place, cores), **place.conf}))
        case ConnectSpark():
            return connect_session(place.remote, place.identity)
        case ClusterSpark():
            os.environ["PYSPARK_PYTHON"] = place.conf.get(
                "spark.pyspark.python", os.environ.get("PYSPARK_PYTHON", "python3")
            )
            if not _is_here(place.master) and os.environ.get("SPARK_LOCAL_IP", "").startswith("127."):
                # This address is for a session on this machine: executors elsewhere could not call the driver back.
                del os.environ["SPARK_LOCAL_IP"]
            return _in_process(place.master, name, {**_cluster_conf(place), **place.conf})
        case _:
            assert_never(place)


def _in_process(master: str, name: str, conf: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in conf.items():
        # Keys of a store belong to the session: they may change while Spark keeps running.
        if not key.startswith(_STORE):
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _is_here(master: str) -> bool:
    host = urlsplit(master).hostname or ""
    return host == "localhost" or host.startswith("127.")


_NO_UI = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nobody looks at what has ended, and Spark's default of a thousand takes 30 MB of Java's heap.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.sql.ui.retainedExecutions": "100",
}


def _cluster_conf(place: ClusterSpark) -> dict[str, str]:
    return {**server_conf(place.jars), **_NO_UI}


def _local_conf(place: LocalSpark, cores: int) -> dict[str, str]:
    return {
        **server_conf(place.jars),
        **_NO_UI,
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
