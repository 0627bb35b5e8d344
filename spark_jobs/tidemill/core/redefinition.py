"""A change of what numbers mean is a decision: what changed, in words, and whether anybody decided."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidemill.core.amendments import Reason, Redefined
from tidemill.core.errors import BackfillOpen, Incompatible
from tidemill.core.flow import Flow
from tidemill.core.meaning import RULES, VERSION, Meaning, inputs_of, meanings, of_input
from tidemill.core.operators import Trigger
from tidemill.core.plan import BatchPlan
from tidemill.core.position import Position
from tidemill.core.rule_bounds import implied
from tidemill.core.written import described, same


@dataclass(frozen=True, slots=True)
class _Change:
    """One part of a meaning that is another one. What is committed cannot go on with some: it does not follow."""

    name: str
    before: str | None
    now: str | None
    follows: bool = True

    def lines(self) -> Iterator[str]:
        """What changed, for people."""
        before, now = (_parts(text) for text in (self.before, self.now))
        if len(before) == len(now) == 1:
            yield f"  {self.name}: {before[0]}, now {now[0]}"
            return
        yield f"  {self.name}:"
        for line in difflib.ndiff(before, now):
            if line[0] in "-+":
                yield f"    {line}"


def _parts(text: str | None) -> list[str]:
    """What was written, one text for each step, rule or column."""
    if text is None:
        return ["not there"]
    found = json.loads(text)
    parts = [described(json.dumps(part)) for part in found] if isinstance(found, list) else [described(text)]
    return parts or ["none"]


def redefined(flow: Flow, position: Position, decided: Reason | None = None) -> Redefined | None:
    """What the declaration of now changes in the meaning of published numbers, as somebody `decided` it; None: nothing.

    A ledger that keeps no meaning yet takes that of now.

    Raises:
        Incompatible: numbers would mean something else, and nobody decided; or state cannot follow.
        BackfillOpen: somebody decided while a backfill is not complete, whose batches must all mean the same.
    """
    known, now = position.meanings or {}, meanings(flow)
    if all(known.get(table, meaning) == meaning for table, meaning in now.items()):
        return None
    found = {table: list(_changes(known[table], now[table])) for table in now if table in known}
    found = {table: changes for table, changes in found.items() if changes}
    if not found:
        return None
    lines = {table: tuple(line for c in changes for line in c.lines()) for table, changes in found.items()}
    follows = all(change.follows for changes in found.values() for change in changes)
    if decided is None or not follows:
        raise _refused(flow.name, lines, follows=follows)
    if (job := position.backfill) is not None:
        raise BackfillOpen(
            f"{flow.name}: the backfill of {job.by} is not complete, and its batches must all mean the same",
            fix="complete it by the old declaration with `tidemill backfill --resume`, or give it up with --cancel",
        )
    return Redefined(tables=lines, reason=decided)


def meaning_after(flow: Flow, plan: BatchPlan, after: Position) -> Position:
    """The position `after` a batch, with what published numbers mean; only live batches say so."""
    if not plan.is_live:
        return after
    if plan.redefined is None:
        return after.meaning(meanings(flow))
    reason = plan.redefined.reason
    return after.meaning(meanings(flow), plan.redefined.tables, by=reason.by, why=reason.why)


def _refused(pipeline: str, lines: Mapping[str, tuple[str, ...]], *, follows: bool) -> Incompatible:
    said = "\n".join(f" {table}\n" + "\n".join(changes) for table, changes in lines.items())
    from_now = (
        f"; `tidemill run {pipeline} --from-now --by NAME --why TEXT` leaves the old numbers as they are, and keeps in "
        "the ledger from which batch on the new meaning holds"
        if follows
        else ""
    )
    kept = "" if follows else "; windows that are open cannot go on with it"
    return Incompatible(
        f"{pipeline}: the declaration changed what published numbers mean{kept}; nothing was moved:\n{said}",
        fix=f"`tidemill rebuild {pipeline}` computes all of them anew from the log{from_now}; or put the old text back",
    )


def _changes(before: Meaning, now: Meaning) -> Iterator[_Change]:
    known, other_code = set(inputs_of(before)), before.get(VERSION) != now.get(VERSION)
    for name in dict.fromkeys((*before, *now)):
        old, new, source = before.get(name), now.get(name), of_input(name)
        if name == VERSION or same(old, new):
            continue
        # Nothing of an input that is new was in any number.
        if source is not None and source not in known:
            continue
        # The SQL of rules is ours: another version of the code may word it differently.
        if other_code and name.endswith(f": {RULES}"):
            continue
        if name == "trigger" and new == json.dumps(Trigger.ON_CLOSE.value):
            continue
        if old is not None and new is not None and _lets_in(name, old, new):
            continue
        # A window that is open would have been published at its end, and would now wait for a record.
        yield _Change(name, old, new, follows=name != "trigger")


def _lets_in(name: str, before: str, now: str) -> bool:
    """Whether records are rejected no more, and nothing else changed: what was rejected waits to be replayed."""
    if name.endswith(f": {RULES}"):
        return implied(*([rule["sql"] for rule in json.loads(text)] for text in (before, now)))
    if name.endswith(": fields"):
        old, new = json.loads(before), json.loads(now)
        return [f[:2] for f in old] == [f[:2] for f in new] and all(
            had or not has for (*_, had), (*_, has) in zip(old, new, strict=True)
        )
    return False
