"""Runs statements on rows that are in the driver already, without a Spark job.

DuckDB uses one thread, so that the same rows give the same result in the same order, and a bounded memory. Importing
it starts threads, which a process that is forked afterwards lacks and waits for when it ends. So only a process that
merges imports it: Airflow's scheduler and others fork a process that has imported this module.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.engine.driver.sketches import teach
from tidemill.engine.driver.translation import TABLE, Translation, translated
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
    # It moves casts that may give null to the other side of a comparison, where they give none.
    "disabled_optimizers = 'expression_rewriter'",
    "enable_external_access = false",
    "lock_configuration = true",
)
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
    import duckdb

    try:
        return _result(found, rows)
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.OutOfMemoryException):
        return None
    except (duckdb.Error, pa.ArrowException) as error:
        _log.warning("Spark merges rows that DuckDB should have merged: %s", error)
        return None


def _result(translation: Translation, rows: pa.Table) -> pa.Table | None:
    with _database(os.getpid()).cursor() as connection:
        inputs = rows.select(list(translation.inputs.values())).rename_columns(list(translation.inputs))
        connection.register(TABLE, inputs)
        try:
            found = _bounded(connection.sql(translation.text).to_arrow_reader(_ROWS))
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


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, for each process its own."""
    import duckdb

    connection = duckdb.connect(config=_SETTINGS)
    for setting in _SHUT:
        connection.execute(f"SET {setting}")
    teach(connection)
    return connection
