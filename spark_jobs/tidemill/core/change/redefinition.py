"""Changes of what published numbers mean: what changed, in words, and whether somebody decided it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.meaning import RULES, VERSION, Meaning, inputs_of, meanings, of_branch, of_input
from tidemill.core.bind.rule_bounds import as_written, implied, without_eased
from tidemill.core.bind.sinks import Sink
from tidemill.core.change.branches import changed_branches
from tidemill.core.change.joining_tables import Newcomer, Unread, matched, newcomer, unread
from tidemill.core.errors import BackfillOpen, Incompatible, printable
from tidemill.core.identity.written import described, same
from tidemill.core.plan.amendments import Reason, Redefined
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position, Since
from tidemill.core.time.trigger import Trigger


@dataclass(frozen=True, slots=True)
class _Change:
    """One part of a meaning that changed. `follows` is false when open windows cannot continue after the change."""

    name: str
    before: str | None
    now: str | None
    follows: bool = True

    def lines(self) -> Iterator[str]:
        """What changed, as text for people."""
        before, now = (_parts(text) for text in (self.before, self.now))
        if len(before) == len(now) == 1:
            yield f"  {self.name}: {before[0]}, now {now[0]}"
            return
        yield f"  {self.name}:"
        for line in difflib.ndiff(before, now):
            if line[0] in "-+":
                yield f"    {line}"


def _parts(text: str | None) -> list[str]:
    """A stored part as texts, one for each step, rule or column."""
    if text is None:
        return ["not there"]
    found = json.loads(text)
    parts = [described(json.dumps(part)) for part in found] if isinstance(found, list) else [described(text)]
    return [as_written(part) for part in parts] or ["none"]


_T = TypeVar("_T")
_Found = _Change | Newcomer | Unread


def redefined(flow: Flow, position: Position, decided: Reason | None = None) -> Redefined | None:
    """What the current declaration changes in the meaning of published numbers; None when it changes nothing.

    `decided` is the reason of the person who decided. A table that batches left out is a change, too, and so is a topic
    that is not read any more. A ledger without meanings takes the current ones.

    Raises:
        Incompatible: numbers would change their meaning, and nobody decided; or the state cannot follow the change.
        BackfillOpen: somebody decided, but a backfill is not complete: its batches must all have one meaning.
    """
    found = _of_each(flow, position)
    if not found:
        return None
    if decided is None or not all(change.follows for changes in found.values() for change in changes):
        raise _refused(flow.name, found)
    if (job := position.backfill) is not None:
        raise BackfillOpen(
            f"{flow.name}: the backfill of {printable(job.by)} is not complete, and its batches must all mean the same",
            fix="complete it by the old declaration with `tidemill backfill --resume`, or give it up with --cancel",
        )
    joined = ((table, change) for table, changes in found.items() for change in changes if isinstance(change, Newcomer))
    times = {table: change.event_time for table, change in joined if change.event_time is not None}
    return Redefined(tables=_lines(found), reason=decided, event_times=times or None)


def undecided(flow: Flow, position: Position) -> Collection[str]:
    """The tables that the current declaration changes, or that batches left out, if nobody has decided about it yet."""
    return _of_each(flow, position).keys()


def _of_each(flow: Flow, position: Position) -> Mapping[str, tuple[_Found, ...]]:
    now = meanings(flow)
    of_each = {sink.table: tuple(_found(flow, sink, position, now[sink.table])) for sink in flow.sinks}
    return {table: changes for table, changes in of_each.items() if changes}


def meaning_after(flow: Flow, plan: BatchPlan, after: Position) -> Position:
    """The position `after` a batch, with what its published numbers mean; only live batches set meanings.

    Other batches forget the meaning of tables that they leave out: when such a table comes back, it lacks records.
    """
    if plan.live is None:
        tables = [sink.table for sink in flow.sinks]
        return replace(after, meanings=_only(after.meanings, tables), matched=_only(after.matched, tables))
    change = plan.live.redefined
    since = {**(after.since or {}), **(_since(plan, change) if change is not None else {})}
    return replace(after, meanings=meanings(flow), matched=matched(flow, after), since=since or None)


def _only(of_tables: Mapping[str, _T] | None, tables: Collection[str]) -> Mapping[str, _T] | None:
    return None if of_tables is None else {table: v for table, v in of_tables.items() if table in tables}


def _since(plan: BatchPlan, change: Redefined) -> Mapping[str, Since]:
    """The first batch, and the event time, of the new meaning. A decision keeps the event time that a table has."""
    known, times, reason = plan.position.since or {}, change.event_times or {}, change.reason
    before = {table: since.event_time for table, since in known.items()}
    return {
        table: Since(
            batch_id=plan.batch_id, by=reason.by, why=reason.why, event_time=times.get(table, before.get(table))
        )
        for table in change.tables
    }


def _lines(found: Mapping[str, Sequence[_Found]]) -> Mapping[str, tuple[str, ...]]:
    return {table: tuple(line for change in changes for line in change.lines()) for table, changes in found.items()}


def _refused(pipeline: str, found: Mapping[str, Sequence[_Found]]) -> Incompatible:
    said = "\n".join(f" {table}\n" + "\n".join(lines) for table, lines in _lines(found).items())
    changes = [change for of_table in found.values() for change in of_table]
    follows, joined = all(c.follows for c in changes), any(isinstance(c, Newcomer) for c in changes)
    what = (
        "publishes what earlier batches left out"
        if all(isinstance(c, Newcomer) for c in changes)
        else "changed what published numbers mean"
    )
    windows = ", and after which event time new tables have windows" if joined else ""
    from_now = (
        f"; `tidemill run {pipeline} --from-now --why TEXT` leaves the old numbers as they are, and keeps in "
        f"the ledger from which batch on the new meaning holds{windows}"
        if follows
        else ""
    )
    kept = "" if follows else "; windows that are open cannot go on with it"
    return Incompatible(
        f"{pipeline}: the declaration {what}{kept}; nothing was moved:\n{said}",
        fix=f"`tidemill rebuild {pipeline}` computes all published numbers again from the log{from_now}; or undo the "
        "change in the pipeline file or contract",
    )


def _found(flow: Flow, sink: Sink, position: Position, now: Meaning) -> Iterator[_Found]:
    """What somebody must decide about one table."""
    before = (position.meanings or {}).get(sink.table)
    if before is not None:
        yield from _changes(before, now, _RETRACTED if isinstance(sink, FiringSink) and sink.retracts else _AWAITED)
        yield from (_Change(*changed) for changed in changed_branches(flow, sink, before))
        yield from unread(flow, sink, position)
    elif (joined := newcomer(flow, sink, position)) is not None:
        yield joined


# An open window was to be published when it ends; now it would wait for its next record.
_AWAITED = ("trigger",)
# Rows are taken back by today's declaration, which would give others than those that were published.
_RETRACTED = (*_AWAITED, "results")


def _changes(before: Meaning, now: Meaning, fixed: tuple[str, ...]) -> Iterator[_Change]:
    known, other_code = set(inputs_of(before)), before.get(VERSION) != now.get(VERSION)
    for name in dict.fromkeys((*before, *now)):
        old, new, source = before.get(name), now.get(name), of_input(name)
        if name == VERSION or of_branch(name) is not None or same(old, new):
            continue
        # No published number has records of a new input.
        if source is not None and source not in known:
            continue
        # Tidemill writes the SQL of rules: another version may word it differently.
        if other_code and name.endswith(f": {RULES}"):
            continue
        if name == "trigger" and new is not None and Trigger(json.loads(new)).fires_on_close:
            continue
        if old is not None and new is not None and _lets_in(name, old, new):
            continue
        if name.endswith(f": {RULES}") and old is not None and new is not None:
            old, new = without_eased(old, new)
        yield _Change(name, old, new, follows=name not in fixed)


def _lets_in(name: str, before: str, now: str) -> bool:
    """Whether the change only accepts more records. Those that were rejected can be replayed."""
    if name.endswith(f": {RULES}"):
        return implied(*([rule["sql"] for rule in json.loads(text)] for text in (before, now)))
    if name.endswith(": fields"):
        old, new = json.loads(before), json.loads(now)
        return [f[:2] for f in old] == [f[:2] for f in new] and all(
            had or not has for (*_, had), (*_, has) in zip(old, new, strict=True)
        )
    return False
