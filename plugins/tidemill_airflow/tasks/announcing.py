"""Announces commits to other DAGs: one event for each published table, and one for the batches of a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from airflow.sdk import Asset

from tidemill.core.protocol.events import Committed
from tidemill_airflow.assets import batch_asset
from tidemill_airflow.tasks.execution import facts


def announce(pipeline: str, commits: Sequence[Committed], outlets: Iterable[Any], events: Any) -> None:
    """Add the commits to the events of a task's outlets."""
    batches = [facts(commit) for commit in commits]
    for outlet in outlets:
        if not isinstance(outlet, Asset):
            continue
        if outlet == batch_asset(pipeline):
            # All partitions of one event share its extra, so a consumer looks its batch up by the partition's key.
            events[outlet].add_partitions([str(batch["batch_id"]) for batch in batches])
            by_key: dict[str, Any] = {str(batch["batch_id"]): batch for batch in batches}
            events[outlet].extra = {"pipeline": pipeline, "batches": by_key}
        else:
            events[outlet].extra = {"pipeline": pipeline, **batches[-1]}
