"""Repairs of pipelines with tables of firings: the keys of the records are folded again, from where these lie on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.shapes import is_of_firings
from tidemill.core.declare.operators import WithColumns
from tidemill.core.errors import AmendmentError, LogError
from tidemill.core.history.coverage import still_held
from tidemill.core.history.lineage import origins_of
from tidemill.core.plan.amendments import Ranges, Repair
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import SliceSet
from tidemill.core.protocol.view import View
from tidemill.core.repair.replaying import replayed
from tidemill.log.pipeline_topics import held_of
from tidemill.repair.job import AmendmentJob
from tidemill.repair.replaying import not_readable_before, superseded_by_backfills
from tidemill.run.histories import plan_of


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
    if not sinks or (asked.only is not None and asked.only not in {s.table for s in sinks}):
        return None
    for why in _obstacles(sinks, view):
        raise CountsNow(why)
    past, superseded = amendment.ledger.past(), superseded_by_backfills(amendment, amendment.ledger.past())
    covers = past.covers(view.position.slices)
    touched = [cover for cover in covers if cover.touches(records)]
    if not touched or past.first is None:
        raise CountsNow("no batch that counts has read these records")
    found, first = replayed(touched, covers, lambda cover: origins_of(cover.batch, superseded)), past.first.batch_id
    since, before = found.since, plan_of(amendment.ledger, found.since).position.slices_of_firings
    if any(s.replaces for s in sinks) or not_readable_before(amendment, view.position, before):
        since, before = first, SliceSet()
    for sink in sinks:
        if since < (meant := view.position.first_of_meaning(sink.table)):
            raise CountsNow(f"{sink.table} means something else since batch {meant}")
    needed = [cover for cover in covers if origins_of(cover.batch, superseded)[1] >= since]
    try:
        held = held_of(amendment.project.log(), [source.topic for source in amendment.flow.inputs])
        still_held(amendment.pipeline, needed, held, accept_loss=False)
    except (LogError, AmendmentError) as error:
        raise CountsNow(error.message) from error
    return Replay(since=since, before=before)


def _obstacles(sinks: list[FiringSink], view: View) -> Iterator[str]:
    """Why keys cannot be folded again one by one."""
    declared = {sink.table for sink in sinks}
    for table, shape in sorted(view.position.shapes.items()):
        if is_of_firings(shape) and table not in declared:
            yield f"{table} has state, and the declaration lacks it"
    for sink in sinks:
        if sink.most_keys is not None:
            yield f"which keys {sink.table} forgets follows from the records of all keys"
        made = {name for step in sink.results if isinstance(step, WithColumns) for name in step.columns}
        if hidden := [key for key in sink.keys if key not in sink.contract.columns or key in made]:
            yield f"rows of {sink.table} do not have the key {', '.join(hidden)}"
