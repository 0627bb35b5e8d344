"""The checks of `tidemill doctor` that open tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidemill.cli.views.checked import Checked, State, check
from tidemill.core.errors import TableDamaged

if TYPE_CHECKING:
    from tidemill.core.plan.position import TableMark
    from tidemill.project.project import Project
    from tidemill.tables.interface import TableSpec


def check_tables(project: Project, name: str) -> Iterator[Checked]:
    """Open every table of a pipeline. A table with a fault has a row of its own, the others share one."""
    from tidemill.run.repairable import repairable
    from tidemill.tables.handles import newest

    found: list[str] = []

    def look(spec: TableSpec, mark: TableMark | None) -> tuple[State, str, str]:
        with repairable(name):
            handle = newest(spec, thoroughly=True)
            if handle is None and mark is not None:
                raise TableDamaged(f"table {spec.name} ({spec.uri}) is gone; a batch has written to it")
        if not spec.own:
            found.append(f"{spec.name} {'is not there yet' if handle is None else 'is its own'}")
        return State.OK, "", ""

    try:
        specs = _specs(project, name)
    # The row of the ledger says what is wrong with it.
    except Exception:
        return
    for spec, mark in specs:
        checked = check(f"table {spec.name} of {name}", lambda spec=spec, mark=mark: look(spec, mark))  # type: ignore[misc]
        if checked.state is not State.OK:
            yield checked
    if found:
        yield Checked(name=f"tables of {name}", state=State.OK, found=", ".join(found))


def check_changes(project: Project, name: str) -> Iterator[Checked]:
    """What the declaration and its contracts change in published tables, each change in a row of its own."""
    from tidemill.inspect.table_changes import table_changes

    try:
        changes = table_changes(project, project.pipeline(name), project.ledger(name).view())
    # The row of the ledger or of the tables says what is wrong with it.
    except Exception:
        return
    for change in changes:
        state = State.PROBLEM if change.is_wrong else State.NOTE
        found = f"{change}; readers: {change.readers or 'lose nothing'}"
        yield Checked(name=f"readers of {change.table}", state=state, found=found, fix=f"the next batch {change.batch}")


def check_levels(project: Project, name: str) -> Iterator[Checked]:
    """The service levels of published tables that are missed now. A missed level stops no batch."""
    from tidemill.inspect.service_levels import Kept, service_levels

    try:
        found = service_levels(project.pipeline(name), project.ledger(name).view(), datetime.now(UTC))
    # The row of the ledger says what is wrong with it.
    except Exception:
        return
    for level in found:
        if level.kept is Kept.MISSED:
            fix = f"tidemill status {name}: whether batches run, and whether the log has newer records"
            yield Checked(name=f"{level.level.name} of {level.table}", state=State.NOTE, found=str(level), fix=fix)


def _specs(project: Project, name: str) -> list[tuple[TableSpec, TableMark | None]]:
    """Every table of a pipeline, each with what the ledger knows of it."""
    from tidemill.core.bind.flow import PUBLISHED
    from tidemill.core.bind.sinks import StatefulSink
    from tidemill.engine.storage.table_layout import PANE_FIELDS

    flow, uris = project.pipeline(name), project.uris(name)
    known = project.ledger(name).view().position.tables
    stateful = [sink for sink in flow.sinks if isinstance(sink, StatefulSink)]
    return [
        *((uris.published_table(sink), known.get(PUBLISHED + sink.table)) for sink in flow.sinks),
        *((uris.state(sink, PANE_FIELDS), known.get(f"state/{sink.table}")) for sink in stateful),
        *((spec, known.get(spec.name)) for spec in (uris.quarantine(), uris.late())),
    ]
