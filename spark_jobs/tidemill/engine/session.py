"""A Spark session in one of the places where a batch can run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from pyspark.sql import SparkSession

from tidemill.core.errors import EngineError

SESSION_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    # Aggregates that keep objects (sketches, lists) would fall back to sorting after 128 groups.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # A batch is cut into pieces even when its segment is small, so that every core decodes.
    "spark.sql.files.openCostInBytes": "131072",
    # Planning stage by stage costs more than a small batch can win by it.
    "spark.sql.adaptive.enabled": "false",
    # Where it is switched on: this rule would drop the counting of a pass that leaves no rows.
    "spark.sql.adaptive.optimizer.excludedRules": ("org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"),
    "spark.databricks.delta.v2.enableMode": "NONE",
    # Replaying the log of a table of ours is little work: in 50 tasks, as by default, it takes ten times as long.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Settings that a batch relies on, in every place."""

_DELTA_CONF: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSpark:
    """A session inside the process that executes the batch. `cores` None means all of the machine."""

    jars: tuple[str, ...]
    cores: int | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectSpark:
    """A session on a Spark Connect server, whose own settings include the Delta extension and jars."""

    remote: str
    conf: Mapping[str, str] = field(default_factory=dict)


Place = LocalSpark | ConnectSpark


def open_session(place: Place, *, name: str) -> SparkSession:
    """The session of a place, made or found; its settings are those that a batch relies on.

    Raises:
        EngineError: Spark cannot be started or reached.
    """
    try:
        session = _open(place, name)
    except Exception as error:
        raise EngineError(f"no Spark session ({_label(place)}): {error}", fix="run `tidemill doctor`") from error
    return settle(session, place.conf)


def settle(session: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """The same session with the settings that a batch relies on and `conf`, as far as they can still be changed."""
    for key, value in {**SESSION_CONF, **conf}.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _label(place: Place) -> str:
    return "local" if isinstance(place, LocalSpark) else place.remote


def _open(place: Place, name: str) -> SparkSession:
    match place:
        case LocalSpark():
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            # Arrow workers must be this Python, with Tidemill in it, not the machine's.
            os.environ["PYSPARK_PYTHON"] = sys.executable
            cores = place.cores or os.cpu_count() or 1
            builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
            for key, value in {**_local_conf(place, cores), **place.conf}.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("ERROR")
            return session
        case ConnectSpark():
            return SparkSession.builder.remote(place.remote).getOrCreate()
        case _:
            assert_never(place)


def _local_conf(place: LocalSpark, cores: int) -> dict[str, str]:
    return {
        **_DELTA_CONF,
        **SESSION_CONF,
        "spark.jars": ",".join(place.jars),
        # Segments carry a checksum per page: flipped bytes are noticed, not aggregated.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
