"""The Airflow assets that a pipeline updates.

A published table is an asset without partitions: a DAG scheduled on it runs after it changed, and changes that came
close together make one run. The batches of a pipeline are an asset with one partition per batch: a DAG with
`PartitionedAssetTimetable` runs exactly once for each. Airflow sends an event with a partition to listeners of
partitions only, and one without to the others only, so there have to be two.
"""

from __future__ import annotations

from airflow.sdk import Asset


def table_asset(table: str) -> Asset:
    """A published table; in a schedule, `Asset.ref(name=table)` means it too."""
    return Asset(name=table, uri=f"tidemill://tables/{table}", group="tidemill")


def batch_asset(pipeline: str) -> Asset:
    """The committed batches of a pipeline, called `PIPELINE.batches`; the key of a partition is the batch's id."""
    return Asset(name=f"{pipeline}.batches", uri=f"tidemill://pipelines/{pipeline}/batches", group="tidemill")
