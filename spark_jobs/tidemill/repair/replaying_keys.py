"""Repairs of pipelines with tables of firings: the keys of the records are folded again, from where these lie on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.shapes import is_of_firings
from tidemill.core.declare.operators import WithColumns
from tidemill.core.errors import AmendmentError, LogError
from tidemill.core.history.coverage import Cover, still_held
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.lineage import Superseded
from tidemill.core.plan.amendments import Ranges, Repair, SideOutput
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import SliceSet
from tidemill.core.protocol.view import View
from tidemill.log.pipeline_topics import held_of
from tidemill.log.reading import check_whole
from tidemill.repair.job import AmendmentJob
from tidemill.repair.replaying import not_readable_before, superseded_batches
from tidemill.run.histories import plan_of, standing


class CountsNow(Exception):
    """Records that are let in count in the batch that lets them in; the text says why."""


def with_replay(amendment: AmendmentJob, view: View, asked: Repair, records: Ranges) -> Repair:
    """The repair of these records, with a replay of their keys if tables of firings can be folded again."""
    try:
        return replace(asked, replay=replay_of_keys(amendment, view, asked, records))
    except CountsNow:
        return asked


def replay_of_keys(amendment: AmendmentJob, view: View, asked: Repair, records: Ranges) -> Replay | None:
    """From which batch on the keys of these records are folded again; None without a table of firings.

    Raises:
        CountsNow: they cannot be: other keys would change, or not all that is needed is there.
    """
    sinks = [s for s in amendment.flow.sinks if isinstance(s, FiringSink)]
    if not sinks or asked.source is SideOutput.LATE:
        # What was late for its batch is late in a replay, too.
        return None
    for why in _obstacles(sinks, view):
        raise CountsNow(why)
    batches, first = standing(amendment.ledger), amendment.ledger.past().first
    since = min((batch.batch_id for batch in batches if _reads(batch, records)), default=None)
    if since is None or first is None:
        raise CountsNow("no batch that counts has read these records")
    replaced = superseded_batches(amendment, amendment.ledger.past())
    since = _before_all_of(since, replaced)
    before = plan_of(amendment.ledger, since).position.slices_of_firings
    if any(s.replaces for s in sinks) or not_readable_before(amendment, view.position, before):
        since, before = first.batch_id, SliceSet()
    for sink in sinks:
        if since < (meant := view.position.first_of_meaning(sink.table)):
            raise CountsNow(f"{sink.table} means something else since batch {meant}")
    # What a replay let in counts where the log has it.
    needed = [batch for batch in batches if batch.batch_id >= since and batch.reads and batch.batch_id not in replaced]
    _check_held(amendment, view, needed)
    return Replay(since=since, before=before)


def _reads(batch: IndexedBatch, records: Ranges) -> bool:
    mine = batch.ranges
    return any(a.overlaps(b) for topic, items in records.items() for a in items for b in mine.get(topic, ()))


def _before_all_of(since: int, replaced: Superseded) -> int:
    """`since`, or an earlier batch: rows that another replay or backfill has published may be of any of its batches."""
    begins = {batch_id: min(each.from_batch for each in batches) for batch_id, batches in replaced.items()}
    while earlier := [begin for batch_id, begin in begins.items() if batch_id >= since > begin]:
        since = min(earlier)
    return since


def _check_held(amendment: AmendmentJob, view: View, batches: Sequence[IndexedBatch]) -> None:
    """Check that the log holds what these batches have read, in the same topics.

    Raises:
        CountsNow: it does not.
    """
    log, known = amendment.project.log(), view.position.topics
    covers = [Cover(batch=batch, ranges=batch.ranges, batches=batch.batches) for batch in batches]
    try:
        held = held_of(log, [source.topic for source in amendment.flow.inputs])
        _, ranges = still_held(amendment.pipeline, covers, held, accept_loss=False)
        for topic, items in ranges.items():
            check_whole(log.scan(known[topic].topic_id, items))
    except (LogError, AmendmentError) as error:
        why = error.message.removeprefix(f"{amendment.pipeline}: ").removesuffix("; nothing was moved")
        raise CountsNow(why) from error


def _obstacles(sinks: list[FiringSink], view: View) -> Iterator[str]:
    """Why keys cannot be folded again one by one."""
    declared = {sink.table for sink in sinks}
    for table, shape in sorted(view.position.shapes.items()):
        if is_of_firings(shape) and table not in declared:
            yield f"{table} has state, and the declaration lacks it"
    for sink in sinks:
        if sink.most_keys is not None:
            yield f"which keys {sink.table} forgets follows from the records of all keys"
        made = {name.lower() for step in sink.results if isinstance(step, WithColumns) for name in step.columns}
        if hidden := [key for key in sink.keys if key not in sink.contract.columns or key.lower() in made]:
            yield f"rows of {sink.table} do not have the key {', '.join(hidden)}"
