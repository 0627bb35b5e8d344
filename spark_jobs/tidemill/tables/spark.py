"""The writer for rows that do not fit into the driver: Spark, in any place where it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import reduce
from hashlib import sha256

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tidemill.core.contract.schema import Field, Scalar, spark_type
from tidemill.core.errors import EngineError, Incompatible, KeysCollide
from tidemill.core.protocol.failpoints import answered
from tidemill.core.sql.text import quoted
from tidemill.stores.opened import for_spark
from tidemill.tables.fence import Stamp, earlier_write, find_commit, unknown
from tidemill.tables.handles import Opened, open_table
from tidemill.tables.interface import Between, Landed, TableSpec, Transaction, Written
from tidemill.tables.merge_sql import GONE, merge_statement
from tidemill.tables.predicates import Parts, spark_sql
from tidemill.tables.skipping import Files, is_plain
from tidemill.tables.spark_files import rows_of_files

Commit = Callable[[], None]

_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TIMESTAMP_TYPE = "spark.sql.parquet.outputTimestampType"

_REPLACED_ONLY = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"

_BROKEN_PROMISE = "two rows to upsert agree in all keys, or a row lies outside the range"
_COPIES = "__copies"
# The common prefix of Delta's errors for a conflict with another commit.
_CONFLICT = "DELTA_CONCURRENT_"
_TRIES = 3


class SparkTable(Opened):
    """A `Table` of Spark rows. It uses nothing that Spark Connect lacks.

    Spark skips a transaction that is not newer than the last one without saying so. So the table is read before and
    after each write, with delta-rs: a write counts when the log holds it with this plan.

    A gap remains: on a plain folder and on S3, two Spark *drivers* that commit the same version at the same moment can
    both believe that they succeeded, because Spark's log stores lock there inside one JVM only. The log holds the later
    commit. The read after the write notices the loss if it happened before that read, not if it happens later. The
    claim in the ledger makes sure that there is one driver; delta-rs and HDFS do not have this gap.

    Only one write may run at a time in a session: a MERGE has its transaction in the session's settings.
    """

    def __init__(self, spec: TableSpec, session: SparkSession, opened: DeltaTable | None = None) -> None:
        super().__init__(spec)
        self._session, self._opened = session, opened

    def append(self, rows: DataFrame, *, transaction: Transaction | None, plan_hash: str) -> Written:
        """Add the rows; no rows still record the transaction."""
        stamp = Stamp(transaction, plan_hash)
        writer = self._shaped(rows).write.format("delta").mode("append").option("userMetadata", stamp.text())
        if transaction:
            writer = writer.option("txnAppId", transaction.app_id).option("txnVersion", transaction.version)

        def commit() -> None:
            with commit_settings(self._session, None):
                writer.save(self._location())

        return self._land(stamp, commit)

    def upsert(  # noqa: PLR0913  what is written, where, and by whom
        self,
        rows: DataFrame,
        *,
        keys: tuple[str, ...],
        within: Between,
        transaction: Transaction,
        plan_hash: str,
        gone: DataFrame | None = None,
    ) -> Written:
        """Replace rows that agree in all `keys` with a given row, and add the others; remove those of `gone`.

        Raises:
            KeysCollide: two rows agree in all keys, or a row lies outside `within`.
        """
        self.spec.check(within)
        if not keys:
            raise ValueError(f"table {self.spec.name}: an upsert needs keys")
        stamp = Stamp(transaction, plan_hash)
        shaped = self._shaped(rows)
        if gone is not None:
            removed = gone.select(*map(quoted, keys)).withColumn(GONE, F.lit(True))
            shaped = shaped.withColumn(GONE, F.lit(False)).unionByName(removed, allowMissingColumns=True)
        view = f"upsert_{sha256(f'{self.spec.uri} {stamp.text()}'.encode()).hexdigest()[:16]}"

        def commit() -> None:
            self._checked(shaped, keys, within).createOrReplaceTempView(view)
            try:
                with commit_settings(self._session, stamp):
                    self._session.sql(self._merge(view, keys, within, removes=gone is not None)).collect()
            finally:
                self._session.catalog.dropTempView(view)

        return self._land(stamp, commit)

    def replace(
        self, rows: DataFrame, *, within: tuple[Between, ...], transaction: Transaction, plan_hash: str
    ) -> Written:
        """Replace the rows inside any of `within` by the given rows, in one commit."""
        bounds = [spark_sql((self.spec.check(b),)) for b in within]
        if not bounds:
            return self.append(rows, transaction=transaction, plan_hash=plan_hash)
        stamp = Stamp(transaction, plan_hash)
        gone = " OR ".join(f"({text})" if text else "true" for text in bounds)
        writer = self._shaped(rows).write.format("delta").mode("overwrite").option("userMetadata", stamp.text())
        writer = writer.option("txnAppId", transaction.app_id).option("txnVersion", transaction.version)

        def commit() -> None:
            with commit_settings(self._session, None), rows_outside(self._session):
                writer.option("replaceWhere", gone).save(self._location())

        return self._land(stamp, commit)

    def overwrite(self, rows: DataFrame, *, transaction: Transaction, plan_hash: str) -> Written:
        """Make the table hold only these rows, with the columns of the spec."""
        stamp = Stamp(transaction, plan_hash)
        writer = self._shaped(rows).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer = writer.option("userMetadata", stamp.text())
        writer = writer.option("txnAppId", transaction.app_id).option("txnVersion", transaction.version)

        def commit() -> None:
            with commit_settings(self._session, None):
                writer.save(self._location())

        return self._land(stamp, commit)

    def read(
        self,
        *,
        where: tuple[Between, ...] = (),
        any_of: Parts = (),
        columns: tuple[str, ...] | None = None,
        version: int | None = None,
    ) -> DataFrame:
        """The rows that meet every condition. The version is fixed now, though the first action reads the rows.

        A table that was given as `opened` is read directly from its files, if their rows are all that matters: Delta
        would read the log again, and compile a search in the statistics of files.

        For another `own` table, the newest version is the one that the action finds: Delta cannot read any older
        version of a table that forgets removed files at once. Its rows name their slice, so new rows do no harm.
        """
        for bounds in (*where, *(b for part in any_of for b in part)):
            self.spec.check(bounds)
        if self._opened is not None and version is None and is_plain(self._opened):
            whole = self._of_files(Files.of(self._opened).of_parts(any_of or ((),)).of_parts((where,)), where, any_of)
        else:
            whole = self._of_delta(where, any_of, version)
        return whole.select(*[quoted(c) for c in columns or self.spec.columns])

    def _of_delta(self, where: tuple[Between, ...], any_of: Parts, version: int | None) -> DataFrame:
        handle = open_table(self.spec, version)
        reader = self._session.read.format("delta")
        if version is not None or not self.spec.own:
            reader = reader.option("versionAsOf", handle.version())
        frame = self._shaped(reader.load(self._location()))
        predicates = [spark_sql(where, any_of=parts) for parts in _apart(any_of, self.spec.partition_by)]
        found = [frame if predicate is None else frame.where(predicate) for predicate in predicates]
        return reduce(DataFrame.unionAll, found)

    def _of_files(self, files: Files, where: tuple[Between, ...], any_of: Parts) -> DataFrame:
        """The rows in these files that meet the conditions."""
        frame = self._shaped(rows_of_files(self._session, self._location(), self.spec.fields, files))
        predicate = spark_sql(where, any_of=any_of)
        return frame if predicate is None else frame.where(predicate)

    def _land(self, stamp: Stamp, commit: Commit, *, tries: int = _TRIES) -> Written:
        before = open_table(self.spec)
        there = earlier_write(before, self.spec, stamp)
        if there is not None:
            return there
        try:
            self._commit(commit)
        except Exception as error:
            landed = self._look_again(stamp, before.version(), error) if stamp.transaction else None
            if landed is not None:
                return landed
            if f"[USER_RAISED_EXCEPTION] {_BROKEN_PROMISE}" in str(error):
                raise KeysCollide(f"table {self.spec.name}: {_BROKEN_PROMISE}") from error
            # A conflict certainly wrote nothing, and a transaction makes a second try safe.
            if stamp.transaction and _CONFLICT in str(error) and tries > 1:
                return self._land(stamp, commit, tries=tries - 1)
            raise unknown(self.spec, stamp, error) from error
        landed = self._look_again(stamp, before.version(), "Spark reported success, but the log has no such commit")
        if landed is None:
            raise unknown(self.spec, stamp, "Spark reported success, but the log has no such commit")
        return landed

    def _look_again(self, stamp: Stamp, since: int, cause: object) -> Landed | None:
        try:
            handle = open_table(self.spec)
        except EngineError as error:
            raise unknown(self.spec, stamp, cause) from error
        if stamp.transaction:
            there = earlier_write(handle, self.spec, stamp)
            return None if there is None else Landed(there.version)
        found = find_commit(handle, None, plan_hash=stamp.plan_hash, since=since)
        return None if found is None else Landed(found[0])

    def _commit(self, commit: Commit) -> None:
        commit()
        answered()

    def _shaped(self, frame: DataFrame) -> DataFrame:
        found = {f.name: f.dataType for f in frame.schema.fields}
        for field in self.spec.fields:
            if field.name in found and isinstance(found[field.name], StringType) != (field.type is Scalar.STRING):
                raise Incompatible(
                    f"table {self.spec.name} ({self.spec.uri}): column {field.name!r} must be "
                    f"{spark_type(field.type)}, the rows have {found[field.name].simpleString()}",
                    fix="give rows of the declared type, or declare the type that the rows have",
                )
        return frame.selectExpr(*[_cast(f, f.name in found) for f in self.spec.fields])

    def _checked(self, rows: DataFrame, keys: tuple[str, ...], within: Between) -> DataFrame:
        by = ", ".join(quoted(k) for k in keys)
        promise = f"{_COPIES} = 1 AND coalesce({spark_sql((within,)) or 'true'}, false)"
        counted = rows.selectExpr("*", f"count(1) OVER (PARTITION BY {by}) AS {_COPIES}")
        return counted.where(f"assert_true({promise}, '{_BROKEN_PROMISE}') IS NULL").drop(_COPIES)

    def _merge(self, view: str, keys: tuple[str, ...], within: Between, *, removes: bool) -> str:
        target, there = f"delta.{quoted(self._location())}", [f.name for f in open_table(self.spec).schema().fields]
        return merge_statement(target, view, keys, spark_sql((within,), "t"), self.spec.columns, there, removes=removes)

    def _location(self) -> str:
        return for_spark(self.spec.uri)


@contextmanager
def commit_settings(session: SparkSession, stamp: Stamp | None) -> Iterator[None]:
    """Give the session's commits this stamp inside the block; with None, they have no stamp.

    A transaction left behind in the session would make Spark skip writes that have nothing to do with it. So the
    settings are removed before the block, and after it, whatever happens inside.
    """
    settings: dict[str, str] = {}
    if stamp is not None:
        settings[_USER_METADATA] = stamp.text()
        if stamp.transaction:
            settings |= {_TXN_APP: stamp.transaction.app_id, _TXN_VERSION: str(stamp.transaction.version)}
    timestamps = session.conf.get(_TIMESTAMP_TYPE)
    try:
        _unset(session)
        # INT96, the default, has no statistics inside a file.
        session.conf.set(_TIMESTAMP_TYPE, "TIMESTAMP_MICROS")
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        _unset(session)
        session.conf.set(_TIMESTAMP_TYPE, str(timestamps))


def _unset(session: SparkSession) -> None:
    for name in (_TXN_APP, _TXN_VERSION, _USER_METADATA):
        session.conf.unset(name)


def _cast(field: Field, there: bool) -> str:
    value = quoted(field.name) if there else "NULL"
    return f"CAST({value} AS {spark_type(field.type)}) AS {quoted(field.name)}"


@contextmanager
def rows_outside(session: SparkSession) -> Iterator[None]:
    """Inside the block, new rows may lie outside the range whose rows they replace."""
    before = session.conf.get(_REPLACED_ONLY)
    session.conf.set(_REPLACED_ONLY, "false")
    try:
        yield
    finally:
        session.conf.set(_REPLACED_ONLY, str(before))


def _apart(parts: Parts, partitions: Collection[str]) -> list[Parts]:
    """The parts grouped by partition, if each names one partition by the same columns; otherwise one group of all.

    Spark skips files by partition or by statistics. If it must choose between parts that name both, it skips next to
    none.
    """
    found: dict[tuple[Between, ...], list[tuple[Between, ...]]] = {}
    for part in parts:
        chosen = tuple(b for b in part if b.column in partitions and b.is_one)
        found.setdefault(chosen, []).append(part)
    columns = {tuple(b.column for b in chosen) for chosen in found}
    return [tuple(group) for group in found.values()] if len(columns) == 1 and () not in columns else [parts]
