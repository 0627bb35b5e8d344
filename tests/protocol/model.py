"""Two writers, three batches, a crash and a lost answer anywhere: the protocol as a graph of worlds.

A world is the log's end, the ledger, the tables and what each writer remembers. What may follow what in the ledger is
decided by `tidemill.core.protocol.transitions.apply` itself; the rest is the order of a batch's steps, as
`tidemill.run.batch` has it.
Every record is one offset. A batch appends its offsets to state as the slice of its attempt, and publishes all offsets
of visible slices and its own: so what is published is right exactly when each offset is there once.

`Rules` are the promises of the protocol; each can be broken alone, to see that the search would notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from support.builders import NOW, a_commit, a_plan, an_executor
from tidemill.core.contract.verdict import Verdict
from tidemill.core.errors import Fenced
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.protocol.codec import to_json
from tidemill.core.protocol.events import Audited, Claimed, Event, Planned
from tidemill.core.protocol.transitions import apply
from tidemill.core.protocol.view import OpenBatch, View

BATCHES = 3
ATTEMPTS = 3

Offsets = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the protocol promises; a rule that is False is broken."""

    newest_claim_wins: bool = True
    lost_plan_is_given_up: bool = True
    publishes_before_commit: bool = True
    publishes_once_per_batch: bool = True
    slices_name_the_attempt: bool = True
    appends_look_again: bool = True
    retries_keep_the_plan: bool = True
    unknown_appends_are_not_repeated: bool = True
    lost_answers_look_at_all_events: bool = True


class Slice(NamedTuple):
    """Rows in the state table."""

    batch: int
    attempt: int
    offsets: Offsets


class Writer(NamedTuple):
    """What one process remembers: the step it is at, the ledger as it saw it, and its claim.

    `unsure` says that the answer of its last append was lost: it looks for its event before it goes on. A broken one is
    `blind` then: the storage takes its next append, which follows what the writer knew and not what is there.
    """

    at: str = "look"
    known: int = 0
    plan: int = -1
    attempt: int = 0
    unsure: bool = False
    blind: bool = False


class World(NamedTuple):
    """Everything there is at one moment. `view` is the ledger; `published` the last batch and its offsets."""

    end: int = 1
    view: int = 0
    slices: tuple[Slice, ...] = ()
    published: tuple[int, Offsets] = (0, ())
    writers: tuple[Writer, ...] = (Writer(), Writer())
    crashes: int = 1
    losses: int = 1


class Broken(Exception):
    """A promise does not hold."""


@dataclass
class Model:
    """The steps that lead from a world to the next."""

    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        self._views = [View()]
        self._plans: list[BatchPlan] = []
        self._known = {to_json(View()): 0}
        self._applied: dict[tuple[int, str], int | Fenced] = {}

    def view(self, world: World) -> View:
        """The ledger of a world."""
        return self._views[world.view]

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        """Every next world, with what happened.

        Raises:
            Broken: a step that must not be possible is.
        """
        if world.end < BATCHES:
            yield "a record is produced", world._replace(end=world.end + 1)
        for number, writer in enumerate(world.writers):
            if writer.at != "look" and world.crashes:
                yield f"writer {number} crashes", _with(world._replace(crashes=world.crashes - 1), number, Writer())
            for what, after, then in self._step(world, writer):
                yield f"writer {number} {what}", _with(after, number, then)
                if world.losses and what in ("appends state", "publishes"):
                    lost = after._replace(losses=world.losses - 1)
                    yield f"writer {number} {what}, and the answer is lost", _with(lost, number, self._unsure(writer))
                if world.losses and what in ("plans", "claims", "audits", "commits"):
                    lost = after._replace(losses=world.losses - 1)
                    yield (
                        f"writer {number} {what}, and the answer is lost",
                        _with(lost, number, then._replace(unsure=True)),
                    )

    def _unsure(self, writer: Writer) -> Writer:
        """A writer that does not know whether its write is there."""
        return Writer() if self.rules.unknown_appends_are_not_repeated else writer

    def _step(self, world: World, writer: Writer) -> Iterator[tuple[str, World, Writer]]:
        if writer.unsure:
            # Its event is there, whatever came after it.
            whole = self.rules.lost_answers_look_at_all_events
            known = world.view if whole else writer.known
            yield "looks, and finds its event", world, writer._replace(unsure=False, blind=not whole, known=known)
            return
        match writer.at:
            case "look":
                if self._has_work(world):
                    yield "reads the ledger", world, Writer("choose", world.view)
            case "choose":
                yield from self._choose(world, writer)
            case "append state":
                there = tuple(sorted((*world.slices, self._slice(writer))))
                yield "appends state", world._replace(slices=there), writer._replace(at="audit")
            case "audit":
                then = "publish" if self.rules.publishes_before_commit else "commit"
                yield self._append(world, writer, self._audited(writer), "audits", then)
            case "publish":
                then = "commit" if self.rules.publishes_before_commit else "look"
                yield self._publish(world, writer, then)
            case "commit":
                then = "look" if self.rules.publishes_before_commit else "publish"
                commit = a_commit(self._plans[writer.plan], attempt=writer.attempt)
                yield self._append(world, writer, commit, "commits", then)

    def _has_work(self, world: World) -> bool:
        view = self.view(world)
        return view.open_batch is not None or committed(view) < world.end

    def _choose(self, world: World, writer: Writer) -> Iterator[tuple[str, World, Writer]]:
        view = self._views[writer.known]
        opened = view.open_batch
        if opened is None:
            if committed(view) >= world.end:
                yield "finds nothing to do", world, Writer()
                return
            plan = a_plan(batch_id=view.last_batch_id + 1, position=view.position, until={0: world.end})
            mine = Writer("append state", writer.known, self._plan(plan), 1)
            yield self._append(world, mine, Planned(plan=plan, executor=an_executor(), at=NOW), "plans", mine.at)
        elif opened.attempt < ATTEMPTS:
            yield self._claim(world, writer, opened)
        else:
            yield "leaves the batch to its owner", world, Writer()

    def _claim(self, world: World, writer: Writer, opened: OpenBatch) -> tuple[str, World, Writer]:
        plan, attempt = opened.plan, opened.attempt + 1
        event = Claimed(batch_id=plan.batch_id, attempt=attempt, executor=an_executor(), at=NOW)
        if not self.rules.retries_keep_the_plan:
            plan = a_plan(batch_id=plan.batch_id, position=plan.position, until={0: world.end})
        mine = Writer("append state", writer.known, self._plan(plan), attempt)
        return self._append(world, mine, event, "claims", mine.at)

    def _append(self, world: World, writer: Writer, event: Event, what: str, then: str) -> tuple[str, World, Writer]:
        """An append to the ledger; a writer that is fenced begins anew."""
        owner = self.view(world).open_batch
        if not self.rules.newest_claim_wins and owner and not isinstance(event, Planned | Claimed):
            attempt, event = event.attempt, replace(event, attempt=owner.attempt)
        else:
            attempt = writer.attempt
        landed = self._apply(world.view, event)
        if writer.blind and isinstance(landed, Fenced) and isinstance(self._apply(writer.known, event), int):
            raise Broken(f"a writer {what} beside the ledger: {landed.message}")
        if isinstance(landed, int):
            if owner and not isinstance(event, Claimed) and attempt != owner.attempt:
                raise Broken(f"attempt {attempt} {what}, though attempt {owner.attempt} owns the batch")
            return what, world._replace(view=landed), writer._replace(at=then, known=landed, blind=False)
        if not self.rules.appends_look_again and writer.known != world.view:
            raise Broken(f"the ledger contradicts itself: {landed.message}")
        if isinstance(event, Planned) and not self.rules.lost_plan_is_given_up:
            return f"{what}, is too late and does not notice", world, writer._replace(at=then, known=world.view)
        return f"{what}, and is fenced", world, Writer()

    def _apply(self, view: int, event: Event) -> int | Fenced:
        key = view, to_json(event)
        if key not in self._applied:
            try:
                after = apply(self._views[view], event)
            except Fenced as error:
                self._applied[key] = error
            else:
                self._applied[key] = self._intern(after)
        return self._applied[key]

    def _intern(self, view: View) -> int:
        text = to_json(view)
        if text not in self._known:
            self._known[text] = len(self._views)
            self._views.append(view)
        return self._known[text]

    def _plan(self, plan: BatchPlan) -> int:
        if plan not in self._plans:
            self._plans.append(plan)
        return self._plans.index(plan)

    def _slice(self, writer: Writer) -> Slice:
        plan = self._plans[writer.plan]
        return Slice(plan.batch_id, writer.attempt, offsets_of(plan))

    def _audited(self, writer: Writer) -> Audited:
        batch_id = self._plans[writer.plan].batch_id
        return Audited(batch_id=batch_id, attempt=writer.attempt, verdict=Verdict(), logical_hash="hash", at=NOW)

    def _publish(self, world: World, writer: Writer, then: str) -> tuple[str, World, Writer]:
        plan = self._plans[writer.plan]
        last, _ = world.published
        if self.rules.publishes_once_per_batch:
            if last > plan.batch_id:
                return "publishes, and is fenced", world, Writer()
            if last == plan.batch_id:
                return "finds its batch published", world, writer._replace(at=then)
        mine = (*self.visible(world, plan.position.slices), *offsets_of(plan))
        return "publishes", world._replace(published=(plan.batch_id, tuple(sorted(mine)))), writer._replace(at=then)

    def visible(self, world: World, slices: object) -> Offsets:
        """The offsets in state that count, sorted."""
        by_attempt = self.rules.slices_name_the_attempt
        committed = {batch for batch, attempt, _ in world.slices if (batch, attempt) in slices}  # type: ignore[operator]
        counts = (s for s in world.slices if ((s[:2] in slices) if by_attempt else s.batch in committed))  # type: ignore[operator]
        return tuple(sorted(o for s in counts for o in s.offsets))


def committed(view: View) -> int:
    """The offset up to which everything is committed."""
    topic = view.position.topics.get("t")
    return topic.offsets[0] if topic else 0


def offsets_of(plan: BatchPlan) -> Offsets:
    """The offsets that a batch reads."""
    return tuple(o for r in plan.topics["t"].ranges for o in range(r.from_offset, r.until_offset))


def _with(world: World, number: int, writer: Writer) -> World:
    writers = [*world.writers]
    writers[number] = writer
    return world._replace(writers=tuple(writers))
