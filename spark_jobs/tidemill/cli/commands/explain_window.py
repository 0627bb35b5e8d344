"""`tidemill explain --window`: show where a published number comes from."""

# Parameters are options of the command, so there may be many.
# ruff: noqa: PLR0913

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from tidemill.cli.output import console, grid, whole
from tidemill.cli.views.log import print_json
from tidemill.core.errors import ConfigError, cut, printable, shown
from tidemill.core.json_text import json_text
from tidemill.core.plan.slices import batch_ranges, show_batches
from tidemill.core.protocol.codec import encode
from tidemill.core.protocol.events import told
from tidemill.core.repair.selection import time_of
from tidemill.core.time.times import moment, show_clock, show_moment
from tidemill.inspect.lines import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from tidemill.inspect.contributions import Contribution, Lineage
    from tidemill.inspect.firings import Publication
    from tidemill.project.project import Project


_REMOVED = (
    "maintenance has removed the state of this window: which batches brought its records, and whether it fired again "
    "for late ones, is not known any more"
)


def show_lineage(
    project: Project, pipeline: str, *, window: str | None, key: str | None, table: str | None, as_json: bool
) -> None:
    """Print the batches, offsets, firings, audits and table versions behind one number."""
    from tidemill.inspect.lineage import lineage

    start = None if window is None else time_of("--window", window)
    found = lineage(project, pipeline, table, start, _key(project, pipeline, table, key))
    if as_json:
        print_json(lineage_json(found))
    else:
        _show(pipeline, found)


def _key(project: Project, pipeline: str, table: str | None, text: str | None) -> dict[str, str]:
    """Parse `a=1,b=2`, or the value alone if the key has one column."""
    if text is None:
        return {}
    from tidemill.core.bind.sinks import StatefulSink

    sinks = [s for s in project.pipeline(pipeline).sinks if isinstance(s, StatefulSink) and table in (None, s.table)]
    if not sinks:
        # The table is misspelt, and is refused by its name.
        return {}
    if len(sinks[0].keys) == 1:
        name = sinks[0].keys[0]
        return {name: text.removeprefix(f"{name}=")}
    parts = [part.partition("=") for part in text.split(",")]
    if any(not separator for _, separator, _ in parts):
        raise ConfigError(f"--key: expected COLUMN=VALUE,..., found {shown(text)}", fix="name every column of the key")
    return {name.strip(): value for name, _, value in parts}


def lineage_json(found: Lineage) -> dict[str, object]:
    """The lineage as JSON values."""
    return {
        "table": found.table,
        "window_start": None if found.all_times else moment(found.window.start).isoformat(),
        "window_end": None if found.all_times else moment(found.window.end).isoformat(),
        "key": dict(found.key),
        "row": _texts(found.row),
        "slices": [_contribution_json(each) for each in found.contributions],
        "publications": [_publication_json(each) for each in found.publications],
        "corrections": [_texts(c) for c in found.corrections],
        "lacking": [str(r) for r in found.lacking],
        "since": None if found.since is None else encode(found.since),
        "state_removed": found.forgotten,
    }


def _contribution_json(found: Contribution) -> dict[str, object]:
    return {
        "batch_id": found.batch_id,
        "attempt": found.attempt,
        "kind": found.kind.value,
        "rows": found.rows,
        "counts": found.counts,
        "ranges": [str(r) for items in found.ranges.values() for r in items],
        "folded": [b for r in found.folded for b in r.batches],
    }


def _publication_json(found: Publication) -> dict[str, object]:
    return {
        "batch_id": found.batch_id,
        "attempt": found.attempt,
        "semantics": found.semantics,
        "timing": found.timing,
        "at": found.at.isoformat(),
        "version": found.version,
        "rules_held": found.rules_held,
        "rules_broken": found.rules_broken,
    }


def _texts(row: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if row is None else {n: v if isinstance(v, int | None) else json_text(v) for n, v in row.items()}


def _show(pipeline: str, found: Lineage) -> None:
    out = console()
    key = ", ".join(f"{name}={value}" for name, value in found.key.items()) or "no key"
    bounds = f"{show_moment(found.window.start)} to {show_moment(found.window.end)}" if not found.all_times else ""
    out.print("  ".join(filter(None, (found.table, bounds, printable(key)))), soft_wrap=True)
    values = {n: show_moment(v) if isinstance(v, datetime) else value_text(v) for n, v in (found.row or {}).items()}
    row = ", ".join(f"{name}={value}" for name, value in values.items())
    out.print(f"published now: {printable(row) or 'no row of this window and key'}", soft_wrap=True)
    slices = grid("batch", "attempt", "kind", "rows of state", "counts", "read", numbers=("batch", "attempt"))
    for c in found.contributions:
        ranges = [str(r) for items in c.ranges.values() for r in items]
        shown = ", ".join(ranges[:3]) + (f" and {len(ranges) - 3} more" if len(ranges) > 3 else "")
        kind = f"{c.kind.value} of {show_batches(c.folded)}" if c.folded else c.kind.value
        slices.add_row(str(c.batch_id), str(c.attempt), kind, str(c.rows), "yes" if c.counts else "no", shown)
    out.print(_REMOVED if found.forgotten else slices, soft_wrap=True)
    _show_meaning(out, found)
    _show_firings(out, found)
    for p in found.publications:
        if p.rules_broken:
            out.print(f"rules that did not hold: `tidemill audit show {pipeline} --batch {p.batch_id}`")
    if found.lacking:
        lost = ", ".join(map(str, found.lacking))
        out.print(f"may lack records that the log lost before they were read: {lost}", soft_wrap=True)
    for each in found.corrections:
        changed = _changed(each["before"], each["after"])
        out.print(f"batch {each['batch_id']} changed {printable(changed)}", soft_wrap=True)


def _changed(before: object, after: object) -> str:
    """The columns of a row that a batch changed, from two JSON texts: "cents 550 to 551"."""
    old, new = ((json.loads(str(text)) if text else None) or {} for text in (before, after))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    was, now = ({name: cut(str(row.get(name, "nothing"))) for name in names} for row in (old, new))
    return ", ".join(f"{name} {was[name]} to {now[name]}" for name in names)


def _show_firings(out: Console, found: Lineage) -> None:
    numbers = ("batch", "attempt", "table version", "semantics")
    firings = grid("batch", "attempt", "firing", "at", "table version", "semantics", "rules held", numbers=numbers)
    for p in found.publications:
        version = "-" if p.version is None else str(p.version)
        rules = _rules(p.rules_held, p.rules_broken)
        firings.add_row(str(p.batch_id), str(p.attempt), p.timing, show_clock(p.at), version, str(p.semantics), rules)
    out.print(firings)


def _show_meaning(out: Console, found: Lineage) -> None:
    """Print whether batches under an earlier declaration contributed to the number."""
    if found.since is not None:
        since, old = found.since, [c.batch_id for c in found.contributions if c.batch_id < found.since.batch_id]
        mixed = f"; {show_batches(batch_ranges(old))} counted by the one before" if old else ""
        said = f"by the declaration of batch {since.batch_id}, of {told(since.by, since.why)}{mixed}"
        out.print(said, soft_wrap=True)
        if since.event_time is not None and found.window.start <= since.event_time:
            lacks = f"earlier batches left the table out: live batches publish windows that start after {whole(since)}"
            out.print(f"{lacks}; this one may lack records", soft_wrap=True)


def _rules(held: int, broken: int) -> str:
    return f"{held} of {held + broken}" if held + broken else "no rules"
