"""The Airflow assets that a pipeline updates.

A published table is an asset without partitions: a DAG scheduled on it runs after a change, and changes close together
cause one run. The batches of a pipeline are an asset with one partition per batch: a DAG with
`PartitionedAssetTimetable` runs exactly once for each batch. Airflow sends an event with a partition only to listeners
of partitions, and an event without one only to the others, so two assets are needed.
"""

from __future__ import annotations

from airflow.sdk import Asset

_TABLES = "tidemill://tables/"


def table_asset(table: str) -> Asset:
    """The asset of a published table; a schedule can also use `Asset.ref(name=table)`."""
    return Asset(name=table, uri=f"{_TABLES}{table}", group="tidemill")


def table_of(outlet: object) -> str | None:
    """The published table that an outlet of a task stands for; None for any other outlet."""
    return outlet.name if isinstance(outlet, Asset) and outlet.uri.startswith(_TABLES) else None


def batch_asset(pipeline: str) -> Asset:
    """The asset of a pipeline's batches, named `PIPELINE.batches`. The partition key is the batch's id."""
    return Asset(name=f"{pipeline}.batches", uri=f"tidemill://pipelines/{pipeline}/batches", group="tidemill")


def records_asset(pipeline: str) -> Asset:
    """The asset of the records that a pipeline has still to read, named `PIPELINE.records`."""
    return Asset(name=f"{pipeline}.records", uri=f"tidemill://pipelines/{pipeline}/records", group="tidemill")
