"""Tells a selection of nothing from a selection by a name that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.known_names import KnownNames, check_names
from tidemill.core.repair.side_outputs import Selection

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemill.repair.job import AmendmentJob


def check_something(amendment: AmendmentJob, output: SideOutput, selection: Selection) -> None:
    """Refuse a selection that finds nothing because of a name that does not exist. One that finds something may pass.

    Raises:
        AmendmentError: a batch, topic, partition, table or reason of the selection does not exist.
    """
    found = amendment.side_tables.oldest(output, selection, 1)
    if found is None or not found.rows.num_rows:
        check_selected(amendment, output, selection)


def check_selected(amendment: AmendmentJob, output: SideOutput, selection: Selection) -> None:
    """The same for a selection that is known to find nothing. The whole side output is read, without its values.

    Raises:
        AmendmentError: a batch, topic, partition, table or reason of the selection does not exist.
    """
    view, flow = amendment.ledger.view(), amendment.project.pipeline(amendment.pipeline)
    read = {TopicPartition(t, p) for t, topic in view.position.topics.items() for p in topic.offsets}
    late = output is SideOutput.LATE
    chosen = amendment.side_tables.choose(output, Selection(), columns=("table_name" if late else "reasons",))
    rows = None if chosen is None else chosen.rows
    known = KnownNames(
        last_batch=view.last_batch_id,
        topics={source.topic for source in flow.inputs},
        partitions=read | _places(rows),
        tables={sink.table for sink in flow.sinks} | (_values(rows, "table_name") if late else set()),
        reasons=set() if late else _reasons(rows),
        rules={rule.name for source in (*flow.patterns, *flow.inputs) for rule in source.contract.row_rules},
    )
    check_names(amendment.pipeline, output, selection, known)


def _places(rows: pa.Table | None) -> set[TopicPartition]:
    if rows is None:
        return set()
    there = rows.group_by(["topic", "partition"]).aggregate([])
    return {TopicPartition(row["topic"], row["partition"]) for row in there.to_pylist()}


def _values(rows: pa.Table | None, column: str) -> set[str]:
    return set() if rows is None else set(rows[column].unique().to_pylist())


def _reasons(rows: pa.Table | None) -> set[str]:
    return set() if rows is None else set(pc.list_flatten(rows["reasons"]).unique().to_pylist())
