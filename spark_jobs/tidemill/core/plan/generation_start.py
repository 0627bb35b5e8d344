"""Where a pipeline begins that reads again what another one has read: a generation that is being built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemill.core.bind.flow import Flow
from tidemill.core.declare.operators import StartFrom
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.planning import TopicBounds


def begun_at(
    flow: Flow, bounds: Mapping[str, TopicBounds], begin: Mapping[TopicPartition, int]
) -> tuple[Flow, dict[str, TopicBounds]]:
    """For a first plan that begins at these offsets, or at the log's start where there is none; never at its end."""
    inputs = tuple(replace(source, start=StartFrom.EARLIEST) for source in flow.inputs)
    clipped = {}
    for topic, found in bounds.items():
        held = found.partitions.items()
        partitions = {number: _from(item, begin.get(item.topic_partition, 0)) for number, item in held}
        clipped[topic] = replace(found, partitions=partitions)
    return replace(flow, inputs=inputs), clipped


def _from(held: OffsetRange, offset: int) -> OffsetRange:
    low = min(max(held.from_offset, offset), held.until_offset)
    return OffsetRange(held.topic_partition, low, held.until_offset)
