"""State and tables, made again from the log: a new generation beside the published one, then one batch that switches.

    1. build     the new generation reads the log from its start, batch by batch, and publishes where nobody looks
    2. end       the ledger of the old one says that nothing follows, so that its runs stop; what was open is completed
    3. catch up  the new one reads what the old one had read since
    4. switch    each published table becomes what was built, in a commit that is later than any of the old generation
    5. publish   from now on runs find the new generation

Whoever is killed on the way goes on with the same command.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tidemill.amend.errand import Errand
from tidemill.core.amending import plan_switch
from tidemill.core.amendments import Switch
from tidemill.core.errors import LedgerDamaged
from tidemill.core.events import Committed, Event, Superseded
from tidemill.core.failpoints import boundary
from tidemill.core.plan import BatchPlan, Kind
from tidemill.core.view import View
from tidemill.core.watermarks import END
from tidemill.engine.places import Uris
from tidemill.project import Project
from tidemill.tables.handles import newest


def rebuild(errand: Errand) -> Iterator[Committed]:
    """Batches of the new generation as they commit, to the one that switches.

    Late records are found anew, with larger batches fewer of them. The log must hold what is wanted: what it lost is
    not in the new tables.

    Raises:
        Busy: a batch of the old generation is open, and its holder is alive.
        TidemillError: a batch did not commit; the same command goes on.
    """
    building = _Building.of(errand)
    if not building.is_switching:
        yield from building.build()
        building.end_old()
        yield from building.build()
    yield from building.switch()
    building.publish()


@dataclass(frozen=True)
class _Building:
    """A generation that is not published yet."""

    old: Errand
    new: Errand
    number: int

    @staticmethod
    def of(errand: Errand) -> _Building:
        number = errand.project.generations.current(errand.pipeline) + 1
        built = errand.project.of_generation(errand.pipeline, number, built=True)
        return _Building(errand, errand.within(built), number)

    @property
    def is_switching(self) -> bool:
        """Whether the batch that switches is planned already: it is no batch of the building any more."""
        view = self.new.ledger.view()
        planned = view.open_batch is not None and view.open_batch.plan.switch is not None
        return planned or (view.last_commit is not None and view.last_commit.kind is Kind.SWITCH)

    def build(self) -> Iterator[Committed]:
        """Everything that the log holds now."""
        while (commit := self.new.execute(drain=self._is_drained)) is not None:
            yield commit

    @property
    def _is_drained(self) -> bool:
        try:
            return self.old.ledger.view().position.watermark == END
        except LedgerDamaged:
            return False

    def end_old(self) -> None:
        """After this no batch of the old generation commits; a ledger that cannot be read is left as it is."""
        old = self.old.ledger
        try:
            view = old.view()
        except LedgerDamaged:
            return
        if not old.exists or view.superseded is not None:
            return
        if view.open_batch is not None:
            self.old.execute(lambda _: None)
        reason = self.old.reason

        def event(now: View) -> Event:
            return Superseded(
                batch_id=now.last_batch_id,
                generation=self.number,
                by=reason.by,
                why=reason.why,
                at=datetime.now(UTC),
            )

        with boundary("superseded", view.last_batch_id):
            old.append(event)

    def switch(self) -> Iterator[Committed]:
        """The batch that makes published tables those of the new generation."""
        project = self.old.project.of_generation(self.old.pipeline, self.number)
        errand = self.new.within(project)
        switch = Switch(generation=self.number, reason=self.old.reason)
        after = self._last_batch(project)

        def plan(view: View) -> BatchPlan | None:
            if view.last_commit is not None and view.last_commit.kind is Kind.SWITCH:
                return None
            return plan_switch(errand.flow, view, switch, after=after, clock=datetime.now(UTC))

        yield from errand.until_done(plan)

    def _last_batch(self, project: Project) -> int:
        """The latest batch that any generation has published: a later one fences all of them."""
        uris = Uris(pipeline=self.old.pipeline, table=project.table_uri, published=project.published_uri)
        specs = [uris.published_table(sink) for sink in self.new.flow.sinks]
        handles = [(spec, handle) for spec in specs if (handle := newest(spec, None)) is not None]
        last = [handle.transaction_version(f"{self.old.pipeline}/{spec.name}") or 0 for spec, handle in handles]
        return max(last, default=0)

    def publish(self) -> None:
        """From now on runs find this generation."""
        with boundary("generation", self.new.ledger.view().last_batch_id):
            self.old.project.generations.publish(self.old.pipeline, self.number)
