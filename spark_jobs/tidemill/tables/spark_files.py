"""Reads rows of a Delta table from its files with Spark, without the table's log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from tidemill.core.contract.schema import Field, ddl, spark_type
from tidemill.tables.skipping import Files, Partition


def rows_of_files(session: SparkSession, place: str, fields: Sequence[Field], files: Files) -> DataFrame:
    """All rows of these files, with these columns. `place` is the table's location, as Spark names it.

    Partition values come from the log. Spark takes them from the names of folders, which is fast for many partitions.
    But a file may lie in any folder; files that `DeltaRsTable.compact` writes lie in none. Such files are read
    partition by partition.
    """
    named, elsewhere = _apart(files.by_partition())
    found = [_read(session.read.option("basePath", place), place, fields, named)] if named else []
    for partition, paths in elsewhere.items():
        values = dict(partition)
        rows = _read(session.read, place, [f for f in fields if f.name not in values], paths)
        partitions = [f for f in fields if f.name in values]
        found.append(rows.withColumns({f.name: F.lit(values[f.name]).cast(spark_type(f.type)) for f in partitions}))
    return reduce(DataFrame.unionByName, found) if found else session.createDataFrame([], ddl(fields))


def _apart(paths: dict[Partition, list[str]]) -> tuple[list[str], dict[Partition, list[str]]]:
    """The files whose folders name their partition as the log does, and the other files by their partition."""
    named, elsewhere = [], {}
    for partition, mine in paths.items():
        folder = "".join(f"{column}={value}/" for column, value in partition)
        named += [path for path in mine if path.startswith(folder)]
        if others := [path for path in mine if not path.startswith(folder)]:
            elsewhere[partition] = others
    return named, elsewhere


def _read(reader: DataFrameReader, place: str, fields: Sequence[Field], paths: Sequence[str]) -> DataFrame:
    # Do not treat the names of files as patterns.
    files = [f"{place}/{path}" for path in paths]
    return reader.schema(ddl(fields)).option("__globPaths__", "false").parquet(*files)
