"""Runs statements on rows that are in this process: the driver, without a Spark job, or a Python worker of Spark.

DuckDB uses one thread, so that the same rows give the same result in the same order, and a bounded memory. Importing
it starts threads, which a process that is forked afterwards lacks and waits for when it ends. So only a process that
computes imports it: Airflow's scheduler and others fork a process that has imported this module.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.engine.native.sketches import teach
from tidemill.engine.native.translation import TABLE, Translation, translated
from tidemill.tables.arrow_types import arrow_schema, schema_fields

if TYPE_CHECKING:
    import duckdb

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "2GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
_SHUT = (
    "temp_directory = ''",
    "GLOBAL TimeZone = 'UTC'",
    # The one moves casts that may give null to the other side of a comparison, where they give none. The other lets
    # Arrow filter rows, for which NaN is less than nothing, and -0.0 no zero.
    "disabled_optimizers = 'expression_rewriter,filter_pushdown'",
    "enable_external_access = false",
    "lock_configuration = true",
)
_EXPECTED = ("Out of Range Error", "Conversion Error", "Out of Memory Error")
"""How texts of errors begin that may happen: a number overflows, or memory does not suffice."""

_LOCK = Lock()
_ROWS, _MOST_BYTES = 100_000, 2**29
_log = logging.getLogger("tidemill.engine")


def run(statement: str, rows: pa.Table) -> pa.Table | None:
    """The result of a statement of Spark SQL over `ROWS`; None when Spark has to compute it.

    That is so when the statement uses what may differ in DuckDB, and when DuckDB fails, for example because a number
    overflows or memory does not suffice.
    """
    found = translated(statement, schema_fields(rows.schema))
    if isinstance(found, str):
        return None
    try:
        return computed(found, rows)
    except NotComputed as error:
        if not error.expected:
            _log.warning("Spark merges rows that DuckDB should have merged: %s", error)
        return None


class NotComputed(Exception):
    """DuckDB does not compute a statement over these rows.

    `expected` says that this happens: a number overflows, or memory does not suffice. Spark decides what becomes of it.
    """

    def __init__(self, text: str, *, expected: bool) -> None:
        super().__init__(text)
        self.expected = expected


def computed(translation: Translation, rows: pa.Table) -> pa.Table:
    """The result of a translated statement over these rows, in the order in which DuckDB gives it.

    Raises:
        NotComputed: DuckDB fails, or the result is larger than 512 MB.
    """
    import duckdb

    try:
        found = _result(translation, rows)
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.OutOfMemoryException) as error:
        raise NotComputed(str(error), expected=True) from error
    except (duckdb.Error, pa.ArrowException) as error:
        raise NotComputed(str(error), expected=False) from error
    except OSError as error:
        # What DuckDB says after it has given the first rows comes from the reader.
        raise NotComputed(str(error), expected=str(error).startswith(_EXPECTED)) from error
    if found is None:
        raise NotComputed(f"a result of more than {_MOST_BYTES:,} bytes", expected=True)
    return found


def _result(translation: Translation, rows: pa.Table) -> pa.Table | None:
    with _database(os.getpid()).cursor() as connection:
        inputs = rows.select(list(translation.inputs.values())).rename_columns(list(translation.inputs))
        connection.register(TABLE, inputs)
        try:
            found = _bounded(connection.execute(translation.text).to_arrow_reader(_ROWS))
        finally:
            connection.unregister(TABLE)
    if found is None:
        return None
    schema = arrow_schema(translation.output)
    return found.rename_columns(schema.names).cast(schema)


def _bounded(reader: pa.RecordBatchReader) -> pa.Table | None:
    """All rows; None if they are more than `_MOST_BYTES`, which DuckDB's own bound does not count."""
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > _MOST_BYTES:
            return None
    return pa.Table.from_batches(batches, reader.schema)


def _database(process: int) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, for each process its own, which threads share."""
    with _LOCK:
        return _opened(process)


@lru_cache(maxsize=1)
def _opened(_: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(config=_SETTINGS)
    for setting in _SHUT:
        connection.execute(f"SET {setting}")
    teach(connection)
    return connection
