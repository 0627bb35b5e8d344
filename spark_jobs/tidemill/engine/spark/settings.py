"""The settings that a batch relies on, in every place where Spark runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakSet

from pyspark.sql import SparkSession

from tidemill.core.identity.semantics import PINNED, check_pinned

SESSION_CONF: Mapping[str, str] = {
    **PINNED,
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    # By default, aggregates that keep objects (sketches, lists) fall back to sorting after 128 groups.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # Statistics of cached rows know no NaN: a filter that NaN meets would leave them out.
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    # Spark needs a round for each step of a statement, which has those of eight tables: the default of 100 may not do.
    "spark.sql.analyzer.maxIterations": "10000",
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

OF_A_STORE = "fs.s3a."
"""Settings of a store belong to a session: they may change while Spark keeps running."""

_pinned: WeakSet[SparkSession] = WeakSet()

_HIDDEN, _HIDDEN_TOO = "spark.sql.redaction.string.regex", "spark.redaction.string.regex"
_LOGIN = r"org\.apache\.kafka\.common\.security\.[^\n]*"
"""A pattern of texts that a Connect server hides where it shows or records requests."""

_SHUFFLES, _SPARKS, _OURS = "spark.sql.shuffle.partitions", "200", "16"
"""Only rows of state are shuffled, not records: 200 tasks, the default, make a small batch 10 times slower."""


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
        if key.startswith(OF_A_STORE) or session.conf.isModifiable(key):
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
    return session.conf.getAll if is_connect(session) else {}


def is_connect(session: SparkSession) -> bool:
    """Whether a session is one on a Connect server."""
    return any(base.__module__.startswith("pyspark.sql.connect") for base in type(session).__mro__)


def _redaction(session: SparkSession, conf: Mapping[str, str]) -> str:
    """A pattern of texts to hide: those that are hidden already, and Kafka's login module, which has the password."""
    theirs = conf.get(_HIDDEN) or session.conf.get(_HIDDEN, None) or session.conf.get(_HIDDEN_TOO, None) or _LOGIN
    return theirs if _LOGIN in theirs else f"(?:{theirs})|{_LOGIN}"


def server_conf(jars: Sequence[str]) -> dict[str, str]:
    """The settings for a Spark that is started elsewhere: a Connect server, or a submit to a cluster."""
    return {**_STATIC_CONF, **SESSION_CONF, "spark.jars": ",".join(jars)}
