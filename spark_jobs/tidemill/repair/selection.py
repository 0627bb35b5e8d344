"""Selects the batches that a backfill reads again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import AmendmentError, NothingRead
from tidemill.core.history.coverage import Cover, plans_of, united
from tidemill.core.history.index import IndexedBatch
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.amendments import Ranges, Repair, SideOutput
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Planned
from tidemill.core.protocol.view import View
from tidemill.core.repair.selection import OfOffsets, OfTimes, OfWindows, Wanted
from tidemill.core.time.panes import Panes
from tidemill.core.time.sessions import SessionPanes
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING
from tidemill.log.pipeline_topics import held_of
from tidemill.repair.job import AmendmentJob
from tidemill.run.histories import standing


def wanted_covers(amendment: AmendmentJob, view: View, wanted: Wanted) -> tuple[Ranges, tuple[Cover, ...]]:
    """Return the wanted offsets, as far as they were read, and the batches that read them.

    The batches include those that share a slice with them.

    Raises:
        AmendmentError: there are none, the wanted offsets were not read yet, or no table has windows of event time.
    """
    past, slices = amendment.ledger.past(), view.position.slices
    if isinstance(wanted, OfWindows):
        panes, since = _panes(amendment, wanted), _first_reaching(amendment, wanted)
        if not panes and since is None:
            _check_bounded(amendment)
        covers = past.covers(slices, lambda z: since is not None or any(z.has_panes(*each) for each in panes))
        touched = (c for c in covers if any(c.lies_in(*each) for each in panes) or _holds(c, since))
        ranges = united(c.ranges for c in touched)
    else:
        ranges = _ranges(amendment, view, wanted)
    found = past.covers_of(ranges, slices)
    if not found and isinstance(wanted, OfTimes):
        raise NothingRead(
            f"{amendment.pipeline}: no committed batch has read a record that arrived in the log at these times",
            fix="--from-time and --to-time are times of arrival; for event times say --windows FROM/TO",
        )
    if not found:
        raise NothingRead(
            f"{amendment.pipeline}: no committed batch has read anything of what is wanted",
            fix=f"`tidemill status {amendment.pipeline}` shows the offsets that were read",
        )
    return ranges, found


def _panes(amendment: AmendmentJob, wanted: OfWindows) -> list[tuple[str, int, int]]:
    """Half-open ranges of pane starts for these windows, by table."""
    found = []
    for sink in amendment.flow.sinks:
        if isinstance(sink, WindowedSink) and sink.start is not None:
            panes = sink.window.panes
            low = panes.windows_of(micros(wanted.since))[0].start
            found.append((sink.table, low, panes.windows_of(micros(wanted.until) - 1)[-1].end))
    return found


def _first_reaching(amendment: AmendmentJob, wanted: OfWindows) -> int | None:
    """The first batch that may have read records of these windows of tables of firings; None if there is none.

    Commits do not say where the state of such tables lies, but how far event time had come. Records that repairs let in
    may be newer.
    """
    bounded = [s.panes for s in amendment.flow.sinks if isinstance(s, FiringSink) and s.bounded]
    low = min((_earliest_in(panes, micros(wanted.since)) for panes in bounded), default=None)
    if low is None:
        return None
    batches = standing(amendment.ledger)
    at = bisect_left(batches, low, key=lambda batch: _furthest(amendment.ledger.commit(batch.sequence).position))
    found = [*_repairs_reaching(amendment, batches[:at], low), *(batch.batch_id for batch in batches[at : at + 1])]
    return min(found, default=None)


def _earliest_in(panes: Panes, time: int) -> int:
    """The earliest event time of a record that may share a window with one at `time`, or join its session by itself."""
    return panes.first_number_of(time) if isinstance(panes, SessionPanes) else panes.windows_of(time)[0].start


def _repairs_reaching(amendment: AmendmentJob, batches: Sequence[IndexedBatch], low: int) -> Iterator[int]:
    """The repairs among these batches that may have let in records with an event time of `low` or later.

    Repairs do not move the clocks of partitions. What is too far in the future for the clock of a batch is rejected.
    """
    tolerance = amendment.flow.spec.future_tolerance
    for ids in batch_ranges(batch.batch_id for batch in batches if batch.kind is Kind.REPAIR):
        for plan in plans_of(entry.event for entry in amendment.ledger.of_batches(ids, Planned)):
            rejected = isinstance(plan.work, Repair) and plan.work.source is SideOutput.QUARANTINE
            if rejected and micros(plan.clock + tolerance) >= low:
                yield plan.batch_id


def _furthest(position: Position) -> int:
    times = (clock.max_event_time for clock in position.clocks.values())
    return max((time for time in times if time is not None), default=BEGINNING)


def _holds(cover: Cover, since: int | None) -> bool:
    """Whether a slice holds what batch `since` or a later one read."""
    read = cover.batch.folded or (BatchRange(cover.batch_id, cover.batch_id + 1),)
    return since is not None and any(since < batches.until_batch for batches in read)


def _check_bounded(amendment: AmendmentJob) -> None:
    """Refuse windows that event time does not bound: nobody can tell which batches read their records."""
    ordered = [sink for sink in amendment.flow.sinks if isinstance(sink, FiringSink)]
    if ordered and not any(sink.bounded for sink in ordered):
        raise AmendmentError(
            f"{amendment.pipeline}: what a firing of {ordered[0].table} is made of depends on all records of its key "
            f"before it ({ordered[0].declared}), so that event times do not say which batches read its records",
            fix="name offsets, with --from-offsets and --to-offsets, or times of arrival, with --from-time and "
            "--to-time",
        )


def _ranges(amendment: AmendmentJob, view: View, wanted: OfOffsets | OfTimes) -> Ranges:
    found: dict[str, tuple[OffsetRange, ...]] = {}
    committed = {TopicPartition(t, p): o for t, topic in view.position.topics.items() for p, o in topic.offsets.items()}
    if isinstance(wanted, OfOffsets):
        _check_known(amendment, wanted, committed)
        named = {*wanted.since, *wanted.until}
        committed = {tp: end for tp, end in committed.items() if tp in named or not named}
    for tp, end in committed.items():
        low, high = _bounds(amendment, wanted, tp, end)
        if low < high:
            found[tp.topic] = (*found.get(tp.topic, ()), OffsetRange(tp, low, high))
    return found


def _bounds(amendment: AmendmentJob, wanted: OfOffsets | OfTimes, tp: TopicPartition, end: int) -> tuple[int, int]:
    if isinstance(wanted, OfOffsets):
        return wanted.since.get(tp, 0), wanted.until.get(tp, end)
    log = amendment.project.log()
    if tp.partition not in held_of(log, [tp.topic])[tp.topic]:
        # The times of missing records are not known. Batches that read some of them are refused later, by name.
        return 0, 0
    low = 0 if wanted.since is None else log.offset_at(tp.topic, tp.partition, wanted.since)
    high = end if wanted.until is None else log.offset_at(tp.topic, tp.partition, wanted.until)
    return low, min(high, end)


def never_read(pipeline: str, tp: TopicPartition, read: Collection[TopicPartition]) -> AmendmentError:
    """The error for a partition of which no committed batch has read anything; `read` are the others."""
    if not read:
        return AmendmentError(
            f"{pipeline} has read nothing yet, neither of {tp} nor of another partition",
            fix=f"`tidemill run {pipeline}` reads what is there",
        )
    return AmendmentError(
        f"{pipeline} has read nothing of {tp}; it has read {', '.join(map(str, sorted(read)))}", fix="name one of them"
    )


def _check_known(amendment: AmendmentJob, wanted: OfOffsets, committed: Mapping[TopicPartition, int]) -> None:
    for tp, offset in (*wanted.since.items(), *wanted.until.items()):
        if tp not in committed:
            raise never_read(amendment.pipeline, tp, committed)
        if offset > committed[tp]:
            raise AmendmentError(
                f"{amendment.pipeline}: {tp}: offset {offset} was not read yet, committed is {committed[tp]}",
                fix=f"give {committed[tp]} or less: a live batch will read the rest",
            )
