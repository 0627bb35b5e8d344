"""Rebuilds state and tables from the log: a new generation beside the published one, then one batch that switches.

  1. build     the new generation reads the log from its start, batch by batch, and publishes to hidden tables
  2. end       the old generation's ledger is closed, so that its runs stop; its open batch is completed, or left open
               if that is impossible
  3. catch up  the new generation reads what the old one has read meanwhile
  4. switch    each published table is replaced by the rebuilt one, in a commit later than any of the old generation;
               windows that are sent to topics are sent, all of them
  5. publish   from now on runs use the new generation

If a rebuild is killed, the same command continues it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tidemill.core.bind.sinks import updates_rows
from tidemill.core.errors import (
    AmendmentError,
    AuditBlocked,
    Incompatible,
    LedgerDamaged,
    OffsetsLost,
    SegmentDamaged,
    TableDamaged,
    TopicRecreated,
    UnknownTopic,
)
from tidemill.core.history.coverage import idle_in
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Switch
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import TopicPosition
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed, Event, Planned, Superseded
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_switch
from tidemill.core.time.watermarks import END
from tidemill.log.pipeline_topics import held_of
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob
from tidemill.tables.handles import newest

_logger = logging.getLogger(__name__)

_LOST = (OffsetsLost, TopicRecreated, UnknownTopic, SegmentDamaged)


def rebuild(amendment: AmendmentJob, *, accept_loss: bool = False) -> Iterator[Committed]:
    """Execute the batches of the new generation and yield each commit, up to the one that switches.

    It begins where the old generation began, or at the log's start if no ledger tells where. Lateness is decided again:
    larger batches make fewer records late. Records that the log lost are missing in the new tables; this needs
    `accept_loss`.

    Raises:
        AmendmentError: rows without windows are sent to a topic, and `accept_loss` is False: the topic would lack the
            rows that the new generation reads before it takes over.
        OffsetsLost: the log no longer holds the first offsets of the old generation, and `accept_loss` is False.
        Busy: a batch of the old generation is open, and its holder is alive.
        TidemillError: a batch did not commit; the same command continues.
    """
    building = _Building.of(amendment)
    if not building.is_switching:
        if not accept_loss:
            building.check_log()
            building.check_sent()
        yield from building.build()
        if not accept_loss:
            building.check_complete()
        building.check_kept()
        building.end_old(accept_loss=accept_loss)
        yield from building.build()
        if not accept_loss:
            building.check_complete()
    yield from building.switch()
    building.publish()


def built_generation(project: Project, pipeline: str) -> int:
    """Return the number of the generation that is being built, or of the next one to build.

    A generation that another declaration began to build is left alone: its state and rows have another meaning.
    """
    number, wanted = project.generations.current(pipeline) + 1, project.pipeline(pipeline).hashes
    while True:
        if project.generations.is_dropped(pipeline, number):
            number += 1
            continue
        ledger = project.of_generation(pipeline, number, built=True).ledger(pipeline)
        if not ledger.exists or _is_switching(ledger.view()):
            return number
        last = next((e.event.plan for e in ledger.backwards() if isinstance(e.event, Planned)), None)
        if last is None or last.logical_hash in wanted:
            return number
        number += 1


def _is_switching(view: View) -> bool:
    planned = view.open_batch is not None and view.open_batch.plan.kind is Kind.SWITCH
    return planned or (view.last_commit is not None and view.last_commit.kind is Kind.SWITCH)


@dataclass(frozen=True)
class _Building:
    """A generation that is not published yet."""

    old: AmendmentJob
    new: AmendmentJob
    number: int

    @staticmethod
    def of(amendment: AmendmentJob) -> _Building:
        number = built_generation(amendment.project, amendment.pipeline)
        built = amendment.project.of_generation(amendment.pipeline, number, built=True)
        begin: Mapping[TopicPartition, int] = {}
        silent: tuple[TopicPartition, ...] = ()
        with suppress(LedgerDamaged):
            ledger = amendment.ledger
            plans = (e.event.plan for e in ledger.backwards() if isinstance(e.event, Planned))
            live = next((plan for plan in plans if plan.live), None)
            # A partition that has been silent for long must not hold back windows that are published.
            begin, silent = ledger.past().begin, idle_in(live)
        return _Building(amendment, replace(amendment.within(built), begin=begin, silent=silent), number)

    @property
    def is_switching(self) -> bool:
        """Whether the batch that switches is planned already. Then the building has ended."""
        return _is_switching(self.new.ledger.view())

    def check_log(self) -> None:
        """Refuse to build if the log no longer holds the first offsets of the old generation."""
        begin = self.new.begin or {}
        held = held_of(self.old.project.log(), [source.topic for source in self.old.flow.inputs])
        gone = [
            f"{place}: offsets {begin.get(place, 0)} to {there.from_offset - 1}"
            for partitions in held.values()
            for there in partitions.values()
            if begin.get(place := there.topic_partition, 0) < there.from_offset
        ]
        missing = sorted(tp for tp in begin if tp.topic in held and tp.partition not in held[tp.topic])
        gone += [f"{topic}: it was created again, and has other records" for topic in self._created_again()]
        gone += [f"{place}: all offsets from {begin[place]} on" for place in missing]
        if gone and not self.new.ledger.view().position.topics:
            raise OffsetsLost(
                f"{self.old.pipeline}: the log no longer holds what the tables would be built from: {'; '.join(gone)}; "
                "nothing was moved",
                fix="bring the log back, or say --accept-loss: what is gone will not be in the new tables",
            )

    def _created_again(self) -> list[str]:
        """The topics that are not those which the old generation has read."""
        read: Mapping[str, TopicPosition] = {}
        with suppress(LedgerDamaged):
            read = self.old.ledger.view().position.topics
        found = []
        for name in sorted(read.keys() & {source.topic for source in self.old.flow.inputs}):
            # A topic that is not there is told as the partitions that it lacks.
            with suppress(UnknownTopic):
                found += [name] if self.old.project.log().topic(name).topic_id != read[name].topic_id else []
        return found

    def check_complete(self) -> None:
        """Refuse to switch if the new generation has read less of the log than the old one.

        A partition whose files are missing, or that a topic does not show, looks like one that never had more records.
        """
        then, now = self._positions()
        short = [
            f"{TopicPartition(topic, p)}: read to {reached}, before to {end}"
            for topic in sorted(then.keys() & {source.topic for source in self.old.flow.inputs})
            for p, end in sorted(then[topic].offsets.items())
            if (reached := now[topic].offsets.get(p, 0) if topic in now else 0) < end
        ]
        if short:
            raise OffsetsLost(
                f"{self.old.pipeline}: the log no longer has all records of the published tables: "
                f"{'; '.join(short)}; the tables were not changed",
                fix="bring the log back, then the same command goes on; or say --accept-loss: what is gone will not be "
                "in the new tables",
            )

    def _positions(self) -> tuple[Mapping[str, TopicPosition], Mapping[str, TopicPosition]]:
        """The positions of the old generation, as far as its ledger can be read, and of the new one."""
        now = self.new.ledger.view().position.topics
        with suppress(LedgerDamaged):
            return self.old.ledger.view().position.topics, now
        return {}, now

    def check_sent(self) -> None:
        """Refuse to rebuild if a topic would lack rows that cannot be sent later."""
        topics = [sink.topic for sink in self.new.flow.sinks if not updates_rows(sink) and sink.topic]
        if topics:
            raise AmendmentError(
                f"{self.old.pipeline}: rows without windows are sent to {', '.join(topics)}; rows that the new "
                "generation reads before it takes over would never be sent; nothing was moved",
                fix="send them to a topic of the new version's own, or say --accept-loss: the topic will lack them",
            )

    def build(self) -> Iterator[Committed]:
        """Read everything that the log holds now."""
        try:
            while (commit := self.new.execute(drain=self._is_drained)) is not None:
                yield commit
        except AuditBlocked as error:
            name = self.old.pipeline
            error.fix = (
                f"look at it: `tidemill audit show {name}`; decide: `tidemill audit accept {name} --why ...`, "
                f"or divert; or correct the pipeline or the contract. Then `tidemill rebuild {name}` goes on. "
                f"`tidemill rebuild {name} --cancel` drops it: the published tables stay as they are"
            )
            raise

    @property
    def _is_drained(self) -> bool:
        try:
            return self.old.ledger.view().position.watermark == END
        except LedgerDamaged:
            return False

    def check_kept(self) -> None:
        """Refuse to take over if somebody dropped this generation meanwhile."""
        if self.old.project.generations.is_dropped(self.old.pipeline, self.number):
            raise AmendmentError(
                f"{self.old.pipeline}: somebody dropped this rebuild, generation {self.number}, while it ran",
                fix=f"begin another one: `tidemill rebuild {self.old.pipeline}`",
            )

    def end_old(self, *, accept_loss: bool) -> None:
        """Close the old generation's ledger, so that none of its batches commits any more. Skip an unreadable one.

        With `accept_loss`, its open batch need not be completed: the log may lack what it reads.
        """
        old, lost = self.old.ledger, _LOST if accept_loss else ()
        try:
            view = old.view()
        except LedgerDamaged:
            return
        if not old.exists or view.superseded is not None:
            return
        try:
            if view.open_batch is not None:
                self.old.execute(lambda _: None)
        except (LedgerDamaged, TableDamaged, Incompatible, AuditBlocked, *lost) as error:
            # The new generation reads its offsets too, and the switch replaces and fences whatever it has published.
            _logger.warning("%s: its open batch is left as it is: %s", self.old.pipeline, error.message)
        reason = self.old.reason

        def event(now: View) -> Event:
            return Superseded(
                batch_id=now.last_batch_id,
                generation=self.number,
                by=reason.by,
                why=reason.why,
                at=datetime.now(UTC),
            )

        try:
            with boundary("superseded", view.last_batch_id):
                old.append(event)
        except LedgerDamaged:
            return

    def switch(self) -> Iterator[Committed]:
        """Execute the batch that replaces the published tables by those of the new generation."""
        project = self.old.project.of_generation(self.old.pipeline, self.number)
        amendment = self.new.within(project)
        switch = Switch(generation=self.number, reason=self.old.reason)
        after = self._last_batch(project)

        def plan(view: View) -> BatchPlan | None:
            if view.last_commit is not None and view.last_commit.kind is Kind.SWITCH:
                return None
            return plan_switch(amendment.flow, view, switch, after=after, clock=datetime.now(UTC))

        yield from amendment.until_done(plan)

    def _last_batch(self, project: Project) -> int:
        """The latest batch that any generation has published. A later number fences all of them."""
        uris = project.uris(self.old.pipeline)
        specs = [uris.published_table(sink) for sink in self.new.flow.sinks]
        handles = [(spec, handle) for spec in specs if (handle := newest(spec)) is not None]
        last = [handle.transaction_version(f"{self.new.flow.key}/{spec.name}") or 0 for spec, handle in handles]
        with suppress(LedgerDamaged):
            # An old attempt at the last open batch must be fenced, however late it returns.
            last.append(self.old.ledger.view().last_batch_id)
        return max(last, default=0)

    def publish(self) -> None:
        """Publish this generation: runs use it from now on."""
        with boundary("generation", self.new.ledger.view().last_batch_id):
            self.old.project.generations.publish(self.old.pipeline, self.number)
