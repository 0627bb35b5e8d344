"""Starts Spark, or connects to it, in one of the places where a batch can run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple, assert_never
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.errors.exceptions.captured import install_exception_handler
from pyspark.sql import SparkSession

from tidemill.core.errors import EngineError, TidemillError
from tidemill.core.identity.semantics import check_pinned
from tidemill.engine.spark.connect import connect_session
from tidemill.engine.spark.forks import part_forks
from tidemill.engine.spark.settings import OF_A_STORE, is_connect, pin, server_conf, settle
from tidemill.engine.spark.shared_classes import sharing
from tidemill.engine.spark.workers import DAEMON, equip


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


class Started(NamedTuple):
    """What opens the session of a Spark that has started, and its context if that needs no session."""

    opens: Callable[[], SparkSession]
    context: SparkContext | None = None


class Spark:
    """A Spark, which starts when something needs it.

    Its session is made when something needs SQL, which takes Java a second to load.
    """

    def __init__(self, starts: Callable[[], Started]) -> None:
        self._starts = starts

    @staticmethod
    def of(given: Spark | SparkSession) -> Spark:
        """The Spark of a session."""
        return given if isinstance(given, Spark) else Spark(lambda: Started(lambda: given))

    @staticmethod
    def later(opens: Callable[[], Spark | SparkSession]) -> Spark:
        """The Spark that `opens` gives, which is called when something needs it."""
        return Spark(lambda: Spark.of(opens())._started)

    @cached_property
    def _started(self) -> Started:
        return self._starts()

    @cached_property
    def session(self) -> SparkSession:
        """The session, with the settings that decide the results of expressions.

        Raises:
            EngineError: Spark cannot make it.
        """
        session = self._started.opens()
        pin(session)
        return session

    @cached_property
    def context(self) -> SparkContext | None:
        """What runs Python in tasks without SQL; None on a Connect server, which has only SQL."""
        if self._started.context is not None:
            return self._started.context
        return None if is_connect(self.session) else self.session.sparkContext

    def stop(self) -> None:
        """End a Spark of this process, or the session on a server, if it has started."""
        if "_started" not in vars(self):
            return
        if self._started.context is not None and "session" not in vars(self):
            self._started.context.stop()
        else:
            self.session.stop()


def open_spark(place: Place, *, name: str) -> Spark:
    """The Spark of a place, new or existing, with the settings that a batch relies on.

    On other machines, it makes sure that the Python workers have the code of this process.

    Raises:
        EngineError: Spark cannot be started or reached.
        ConfigError: the workers have another version of Python or of Tidemill, or lack a package; or the settings of
            the place decide the results of expressions.
    """
    check_pinned(place.conf, "the settings of Spark:")
    with _explained(place):
        if isinstance(place, LocalSpark):
            context, conf = _start_here(place, name)
            started = Started(partial(_session_here, place, conf), context)
            return Spark(lambda: started)
        session = settle(_open(place, name), place.conf)
        equip(session, where=_label(place))
        return Spark.of(session)


def is_running() -> bool:
    """Whether this process has a Spark that others started; it may have no session yet."""
    return SparkContext._active_spark_context is not None or SparkSession.getActiveSession() is not None


def open_session(place: Place, *, name: str) -> SparkSession:
    """The session of the Spark of a place; see `open_spark`."""
    return open_spark(place, name=name).session


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    try:
        yield
    except TidemillError:
        raise
    except Exception as error:
        raise EngineError(f"no Spark session ({_label(place)}): {error}", fix="run `tidemill doctor`") from error


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


def _start_here(place: LocalSpark, name: str) -> tuple[SparkContext, Mapping[str, str]]:
    """A Spark in this process, and its settings."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers must use this Python, which has Tidemill, not the machine's Python.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    cores = place.cores or os.cpu_count() or 1
    # Java starts a Java that starts Spark: what the first of the two needs is short.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    conf = sharing({**_local_conf(place, cores), **place.conf})
    return _context(f"local[{cores}]", name, conf), conf


def _session_here(place: LocalSpark, conf: Mapping[str, str]) -> SparkSession:
    with _explained(place):
        return settle(_session(conf), place.conf)


def _open(place: ConnectSpark | ClusterSpark, name: str) -> SparkSession:
    match place:
        case ConnectSpark():
            return connect_session(place.remote, place.identity)
        case ClusterSpark():
            os.environ["PYSPARK_PYTHON"] = place.conf.get(
                "spark.pyspark.python", os.environ.get("PYSPARK_PYTHON", "python3")
            )
            if not _is_here(place.master) and os.environ.get("SPARK_LOCAL_IP", "").startswith("127."):
                # This address is for a session on this machine: executors elsewhere could not call the driver back.
                del os.environ["SPARK_LOCAL_IP"]
            conf = {**_cluster_conf(place), **place.conf}
            _context(place.master, name, conf)
            return _session(conf)
        case _:
            assert_never(place)


def _context(master: str, name: str, conf: Mapping[str, str]) -> SparkContext:
    settings = [(key, value) for key, value in conf.items() if not key.startswith(OF_A_STORE)]
    context = SparkContext.getOrCreate(SparkConf().setMaster(master).setAppName(name).setAll(settings))
    context.setLogLevel("ERROR")
    # PySpark does this only for a session; without it, an error of a worker comes without the worker's text.
    install_exception_handler()
    part_forks()
    return context


def _session(conf: Mapping[str, str]) -> SparkSession:
    """The session of the Spark in this process."""
    builder = SparkSession.builder
    for key, value in conf.items():
        if not key.startswith(OF_A_STORE):
            builder = builder.config(key, value)
    return builder.getOrCreate()


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
        **DAEMON,
    }
