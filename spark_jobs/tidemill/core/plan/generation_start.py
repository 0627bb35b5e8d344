"""Where a new generation begins to read: it reads again what an earlier generation has read."""

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
    """Flow and bounds for a first plan that begins at the offsets `begin`.

    Other partitions begin at the start of the log, whatever the declaration says.
    """
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
