"""The position that a commit must have, given its plan."""

from __future__ import annotations

from dataclasses import replace

from tidemill.core.errors import LedgerDamaged
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Live
from tidemill.core.protocol.events import Committed


def check_tiling(plan: BatchPlan, event: Committed) -> None:
    """Check that a commit has the position that its plan leads to: no offset is lost or read twice, no clock forgotten.

    Raises:
        LedgerDamaged: it has another position.
    """
    if plan.live is None:
        _check_amended(plan, event)
        return
    if event.position.batch_id != plan.batch_id or event.position.gone != plan.gone_after:
        raise LedgerDamaged(f"batch {plan.batch_id} would commit another position than its plan's")
    for name in {**plan.position.topics, **plan.topics}:
        _check_topic(plan, plan.live, event, name)


def _check_topic(plan: BatchPlan, live: Live, event: Committed, name: str) -> None:
    """Planned partitions must end where the plan says; the offsets and clocks of all others must not change."""
    before, after = plan.position.topics.get(name), event.position.topics.get(name)
    ranges = live.topics[name].ranges if name in live.topics else ()
    planned = {r.topic_partition.partition: r.until_offset for r in ranges}
    kept = {p: o for p, o in (before.offsets if before else {}).items() if p not in planned}
    expected, committed = {**kept, **planned}, dict(after.offsets) if after else {}
    if live.missing is None and ranges and committed == planned:
        # Older plans did not name missing partitions, and their commits forgot them.
        return
    if committed != expected:
        raise LedgerDamaged(
            f"batch {plan.batch_id} would commit offsets {committed} of {name}, its plan ends at {expected}"
        )
    if before and after and any(after.clocks[p] != before.clocks[p] for p in kept):
        raise LedgerDamaged(f"batch {plan.batch_id} would change clocks of {name} without reading its records")


def _check_amended(plan: BatchPlan, event: Committed) -> None:
    """A commit must have the position that an amendment's plan says, except that it may forget meanings of tables."""
    expected, found = plan.position_after(event.attempt, {}, {}, shapes={}, panes=event.panes), event.position
    known = [(found.meanings or {}, expected.meanings or {}), (found.matched or {}, expected.matched or {})]
    only_less = all(now.items() <= before.items() for now, before in known)
    # Records of an amendment may join sessions and buffers, which only state can tell.
    other = replace(
        found,
        tables=expected.tables,
        meanings=expected.meanings,
        matched=expected.matched,
        open_since=expected.open_since,
        due=expected.due,
        oldest_open=expected.oldest_open,
    )
    if not only_less or other != expected:
        raise LedgerDamaged(f"batch {plan.batch_id}, a {plan.kind}, would commit another position than its plan's")
