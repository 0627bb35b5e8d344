"""Whether the types that a declaration gives its columns fit the tables that are there."""

from __future__ import annotations

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import Sink, StatefulSink
from tidemill.core.contract.schema import spark_type
from tidemill.core.declare.operators import Publish
from tidemill.core.declare.type_checks import Found, shown_type
from tidemill.core.errors import Incompatible
from tidemill.engine.storage.state_table import State
from tidemill.engine.storage.table_layout import Uris
from tidemill.tables.create import type_text
from tidemill.tables.handles import newest


def where_published(flow: Flow, sink: Sink) -> str:
    """The line that publishes a table."""
    return next(
        flow.spec.graph.where(name)
        for name, operator in flow.spec.graph.operators.items()
        if isinstance(operator, Publish) and operator.table == sink.table
    )


def check_state(flow: Flow, sink: StatefulSink, uris: Uris, found: Found) -> None:
    """The state that a batch adds must have the types of the existing state.

    Raises:
        Incompatible: it has others.
    """
    there = State.of(uris, sink)
    if there is None:
        return
    new = {name.lower(): shown_type(of) for name, of in found.items() if of is not None}
    for field in there.spec.fields:
        before = spark_type(field.type)
        now = new.get(field.name.lower(), before)
        if now != before:
            raise _incompatible(flow, f"the state of {sink.table}", field.name, before, now)


def check_published(flow: Flow, sink: Sink, uris: Uris) -> None:
    """A published table must have the types of its contract.

    Raises:
        Incompatible: it has others.
    """
    handle = newest(uris.published_table(sink))
    there = {f.name.lower(): f for f in handle.schema().fields} if handle is not None else {}
    for field in sink.contract.fields:
        column = there.get(field.name.lower())
        if column is not None and type_text(column.type) != spark_type(field.type):
            raise _incompatible(flow, f"table {sink.table}", field.name, type_text(column.type), spark_type(field.type))


def _incompatible(flow: Flow, what: str, column: str, before: str, now: str) -> Incompatible:
    return Incompatible(
        f"{flow.name}: {what} has `{column}` as {before}, and it would be {now} now",
        fix=f"build a new generation from the log: `tidemill rebuild {flow.name}`; the tables stay as they are until "
        "it switches; or put the old type back",
    )
