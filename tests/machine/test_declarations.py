"""A declaration that changes while everything else happens: what nobody decided is refused, all else is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from machine.declaring import declare
from machine.failing import FAILURES, failing
from machine.machine import WHO, Machine
from machine.model import LATENESS
from machine.model_of_tables import NAMES, Declared, Tables
from machine.test_machine import PHASES
from support.projects import NOW, Mill, an_event, rows_of
from tidemill.core.errors import AmendmentError, Incompatible, TidemillError
from tidemill.core.plan.amendments import Reason, Rewind
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed, Planned
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.repair.rebuild import rebuild

Rows = dict[tuple[float, str], tuple[int, int]]
"""Count and sum, by start of the window and user."""

DECLARATIONS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["nobody", "a"]), min_size=1)
AHEAD = st.integers(-15, 25)
"""Seconds from the newest event to the next."""

FAILS = st.sampled_from([None, None, *FAILURES])


class Redeclared(Machine):
    """The same pipeline, of which people change filters and tables, take that back, decide, or build all anew.

    `behind` are tables that the last rebuild left out, because they were not declared then: nobody declares them again,
    because their rows are those of a generation that is gone, and a batch refuses them as damaged.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model, self.past = Tables(), {0: Tables()}
        self.seen: dict[str, Rows] = {}
        self.behind: set[str] = set()
        self.by_hash: dict[str, Declared] = {}
        self.went_back = False
        self.generation = 1

    @initialize()
    def begin(self) -> None:
        """An empty topic, and one table."""
        super().begin()
        self._declare({"sums": "nobody"})

    # Places where the log loses and shows partitions, and names, have the other machine.
    add_a_partition = show_fewer_partitions = show_all_partitions = take_the_topic_away = None  # type: ignore[assignment]
    declare_gone = forget = rename = let_another_project_publish_the_table = overlap = None  # type: ignore[assignment]

    # What people do.

    @rule(ahead=AHEAD, users=st.lists(st.sampled_from(["nobody", "a", "b"]), min_size=1, max_size=6))
    def live(self, ahead: int, users: list[str]) -> None:
        """Some time goes on in all partitions, user after user, and a batch takes it, as it was declared last."""
        self.take_back()
        self._live(ahead, users)

    @rule(tables=DECLARATIONS, ahead=AHEAD)
    def change_and_decide(self, tables: dict[str, str], ahead: int) -> None:
        """What is changed holds from the next batch on, and the one after it goes on with it."""
        self._declare(tables)
        self.decide(None)
        self.readers_see_what_one_computation_gives()
        self._live(ahead, ["a", "b", "nobody", "a", "b"])

    @rule(left=st.sampled_from(NAMES), batches=st.integers(0, 2), ahead=AHEAD)
    def come_and_go(self, left: str, batches: int, ahead: int) -> None:
        """A table is left out by some batches, and comes back."""
        self.change_and_decide(dict.fromkeys(NAMES, "nobody"), ahead)
        self._declare({name: "nobody" for name in NAMES if name != left})
        for _ in range(batches):
            self._live(ahead, ["a", "b"])
        self.change_and_decide(dict.fromkeys(NAMES, "nobody"), ahead)
        self._live(25, ["a", "b"])

    @rule(tables=DECLARATIONS)
    def change(self, tables: dict[str, str]) -> None:
        """A filter is another one, a table comes or goes; then a batch is tried."""
        self._declare(tables)
        self.run(None)

    @rule()
    def take_back(self) -> None:
        """The declaration of the last batch is put back."""
        self._follow()
        if self.model.declared:
            self._declare(self.model.declared)

    @rule(failure=FAILS)
    def decide(self, failure: str | None) -> None:
        """What changed holds from now on."""
        with failing(failure), self._unless_missing():
            self.mill.run(executor=this_process(WHO), from_now=Reason(by=WHO, why="so be it"))

    @rule(failure=FAILS)
    @precondition(lambda self: len(self.past) > 5)
    def build_anew(self, failure: str | None) -> None:
        """All tables are built from the log, whoever dies on the way."""
        with failing(failure):
            list(rebuild(self._errand()))
        self._reload()
        if self.mill.project.ledger(self.mill.name).view().superseded is not None:
            list(rebuild(self._errand()))
            self._reload()

    @invariant()
    def readers_see_what_one_computation_gives(self) -> None:
        """All windows that lack nothing are right, all others as they were, unless what was read was read again."""
        if not hasattr(self, "mill"):
            return
        self._follow()
        half_way = self.mill.project.ledger(self.mill.name).view().open_batch
        if half_way is not None and half_way.may_be_published:
            return
        for name in NAMES:
            found = self._rows(name)
            if name not in self.behind:
                self._check(name, found)
            self.seen[name] = found
        self.went_back = False
        self._check_aside()
        self._check_coverage()

    def _check(self, name: str, found: Rows) -> None:
        table, before = self.model.of[name], self.seen.get(name, {})
        if name not in (self.model.declared or {}):
            assert self.went_back or found == before, f"nobody publishes {name}"
            return
        begins = NOW.timestamp() + table.begins
        assert {key: row for key, row in found.items() if key[0] > begins} == table.whole(self.records), name
        lacking = [{key: row for key, row in rows.items() if key[0] <= begins} for rows in (found, before)]
        assert self.went_back or lacking[0] == lacking[1], f"windows of {name} that lack something stay as they were"

    def _check_aside(self) -> None:
        late = rows_of(self.mill.project.table_uri(self.mill.name, "late"))
        for name, table in self.model.of.items():
            places = Counter((r["partition"], r["offset"]) for r in late if r["table_name"] == name)
            assert places == Counter(table.places("late")), name
        rejected = rows_of(self.mill.project.table_uri(self.mill.name, "quarantine"))
        places = Counter((r["partition"], r["offset"]) for r in rejected)
        assert places == Counter(self.model.of["sums"].places("rejected"))

    # How the model follows.

    def _rows(self, name: str) -> Rows:
        rows = self.mill.published(name)
        return {(r["window_start"].timestamp(), r["user"]): (r["n"], r["amount"]) for r in rows}

    def _live(self, ahead: int, users: list[str]) -> None:
        self._follow()
        start = max(self.model.newest + ahead, 0)
        for partition in self.start:
            facts = [(start + 4 * number, user, 1) for number, user in enumerate(users)]
            self._append(partition, [an_event(second, user) for second, user, _ in facts], list(facts))
        self.run(None)
        self.readers_see_what_one_computation_gives()

    def _declare(self, tables: Declared) -> None:
        known = {name: tables[name] for name in NAMES if name in tables and name not in self.behind}
        if not known:
            return
        self.mill = declare(self.mill, known, lateness=f"{LATENESS} s")
        self.by_hash[self._hash] = known

    @property
    def _hash(self) -> str:
        return self.mill.project.pipeline(self.mill.name).logical_hash

    def _reload(self) -> None:
        self.mill = Mill(Project.load(self.mill.project.folder), self.mill.session, self.mill.name)

    def _follow(self) -> None:
        number = self.mill.project.generations.current(self.mill.name)
        if number != self.generation:
            self.generation, self.model, self.past, self.went_back = number, Tables(), {0: Tables()}, True
        events = [e.event for e in self.mill.project.ledger(self.mill.name).entries()]
        plans = {e.plan.batch_id: e.plan for e in events if isinstance(e, Planned)}
        for commit in (e for e in events if isinstance(e, Committed) and e.batch_id not in self.past):
            self._do(plans[commit.batch_id], commit)
            self.past[commit.batch_id] = deepcopy(self.model)

    def _do(self, plan: BatchPlan, commit: Committed) -> None:
        declared = self.by_hash[plan.logical_hash]
        self.went_back |= plan.kind in {Kind.REWIND, Kind.BACKFILL, Kind.SWITCH}
        if plan.kind is Kind.SWITCH:
            self.behind = set(NAMES) - declared.keys()
        if isinstance(plan.work, Rewind):
            self.model = deepcopy(self.past[plan.work.position.batch_id])
            self.model.leave(declared)
        else:
            self.model.follow(plan, commit, self.records, declared)

    @property
    def _may_be_refused(self) -> bool:
        """Whether somebody must decide, or an open batch of another declaration may be published in part."""
        self._follow()
        opened = self.mill.project.ledger(self.mill.name).view().open_batch
        return self.model.asks(self.by_hash[self._hash]) or (
            opened is not None and opened.plan.logical_hash != self._hash
        )

    @contextmanager
    def _refusing(self, *kinds: type[TidemillError]) -> Iterator[None]:
        with super()._refusing(*kinds):
            try:
                yield
            except Incompatible:
                if not self._may_be_refused:
                    raise

    @contextmanager
    def _unless_missing(self) -> Iterator[None]:
        # What goes back is refused while a backfill is open, and where it would mix what was put aside.
        with suppress(AmendmentError), super()._unless_missing(), self._refusing():
            yield


def test_whatever_is_declared_readers_see_what_was_decided() -> None:
    few = settings(max_examples=3, stateful_step_count=12, phases=PHASES)
    run_state_machine_as_test(Redeclared, settings=few)


@pytest.mark.long
def test_whatever_is_declared_for_long_readers_see_what_was_decided() -> None:
    many = settings(max_examples=12, stateful_step_count=30, phases=PHASES)
    run_state_machine_as_test(Redeclared, settings=many)
