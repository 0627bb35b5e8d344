"""Checks that a log has no hole, before something is planned that reads it again."""

from __future__ import annotations

from tidemill.core.errors import OffsetsLost, SegmentDamaged, TopicRecreated
from tidemill.core.plan.amendments import Ranges
from tidemill.core.protocol.view import View
from tidemill.log.interface import Log, asked_once
from tidemill.log.reading import check_whole


def check_log(pipeline: str, log: Log, view: View, ranges: Ranges, *, fix: str) -> None:
    """Refuse if the log lacks some of these offsets, by topic. Opens all files with them; `fix` is added to the error.

    Raises:
        OffsetsLost: some are missing.
        SegmentDamaged: a file that should hold some of them is damaged.
        TopicRecreated: a topic was created anew since they were read.
    """
    log = asked_once(log)
    for topic, wanted in ranges.items():
        try:
            check_whole(log.scan(view.position.topics[topic].topic_id, wanted))
        except (OffsetsLost, SegmentDamaged, TopicRecreated) as error:
            raise type(error)(
                f"{pipeline}: {error.message}; it would have to be read again, and nothing was moved",
                fix=f"bring back what is missing, or {fix}",
            ) from None
