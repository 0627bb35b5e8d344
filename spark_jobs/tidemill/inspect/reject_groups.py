"""How many records were rejected for which reason, in which batches, with samples of the details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.reasons import detail_of, sort_of

_SAMPLES = 3

Key = tuple[str, str, int]
"""Topic, sort of reason, and the batch if batches are counted separately, otherwise 0."""


@dataclass
class Group:
    """Rejected records with the same sort of reason, from batch `first` to `last`, with samples of the details."""

    first: int
    last: int
    records: int = 0
    samples: list[str] = field(default_factory=list)


def reject_groups(rows: pa.Table, *, by_batch: bool) -> dict[Key, Group]:
    """Group rows of the quarantine, which need only batch, topic and reasons.

    A record with several reasons counts for each of them.
    """
    found: dict[Key, Group] = {}
    for row in _texts(rows):
        key = row["topic"], sort_of(row["reason"]), row["batch_id"] if by_batch else 0
        group = found.setdefault(key, Group(first=row["batch_id"], last=row["batch_id"]))
        group.first, group.last = min(group.first, row["batch_id"]), max(group.last, row["batch_id"])
        group.records += row["records"]
        if len(group.samples) < _SAMPLES and (detail := detail_of(row["reason"])) and detail not in group.samples:
            group.samples.append(detail)
    return dict(sorted(found.items()))


def _texts(rows: pa.Table) -> Iterator[Mapping[str, Any]]:
    """Yield how often each text appears in a topic in each batch, in the order of the rows."""
    column = rows["reasons"].combine_chunks()
    of = pc.list_parent_indices(column)
    told = pa.table(
        {
            "batch_id": rows["batch_id"].take(of),
            "topic": rows["topic"].take(of),
            "reason": pc.list_flatten(column),
        }
    )
    names = ["batch_id", "topic", "reason"]
    counted = told.group_by(names, use_threads=False).aggregate([([], "count_all")])
    for batch in counted.rename_columns({"count_all": "records"}).to_batches():
        yield from batch.to_pylist()
