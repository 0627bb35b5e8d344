"""Whether a declaration can go on with the state that is committed."""

from __future__ import annotations

from tidemill.core.errors import Incompatible
from tidemill.core.flow import Flow, WindowedSink
from tidemill.core.view import View


def check_shapes(flow: Flow, view: View) -> None:
    """Refuses a declaration whose windows cannot go on with the state that is committed."""
    for sink in flow.sinks:
        before = view.position.shapes.get(sink.table)
        if not isinstance(sink, WindowedSink) or before is None or before == sink.shape:
            continue
        changes = [
            f"  {name}: {before.get(name, 'not there')}, now {sink.shape.get(name, 'not there')}"
            for name in dict.fromkeys((*before, *sink.shape))
            if before.get(name) != sink.shape.get(name)
        ]
        raise Incompatible(
            f"{flow.name}: the state of {sink.table} was built by another declaration:\n" + "\n".join(changes),
            fix="put the old declaration back, or publish to a table of another name, or build a new generation from "
            f"the log: `tidemill rebuild {flow.name}`; the tables stay as they are until it switches",
        )
