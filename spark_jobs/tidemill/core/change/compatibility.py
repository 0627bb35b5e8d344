"""Whether a declaration can continue with the committed state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.errors import Incompatible
from tidemill.core.identity.written import described, same
from tidemill.core.protocol.view import View


def check_compatibility(flow: Flow, view: View) -> None:
    """Refuse a declaration whose windows cannot continue with the committed state.

    Raises:
        Incompatible: a table has other keys, windows or aggregates; the text names them.
    """
    for table, changes in incompatible(flow, view).items():
        raise Incompatible(
            f"{flow.name}: the state of {table} was built by another declaration:\n" + "\n".join(changes),
            fix="put the old declaration back; or build a new generation from the log, "
            f"`tidemill rebuild {flow.name}`: the tables stay as they are until it switches; or give the "
            "table another name in the declaration: the new one gets windows from now on, with "
            f"`tidemill run {flow.name} --from-now --why TEXT`",
        )


def incompatible(flow: Flow, view: View) -> Mapping[str, Sequence[str]]:
    """What has changed of each table whose windows cannot continue, as lines."""
    found = {}
    for sink in flow.sinks:
        before = view.position.shapes.get(sink.table)
        if not isinstance(sink, StatefulSink) or before is None or before == sink.shape:
            continue
        if changes := _changes(before, sink):
            found[sink.table] = changes
    return found


def _changes(before: Mapping[str, str], sink: StatefulSink) -> list[str]:
    now, legacy = sink.shape, sink.legacy_shape
    return [
        f"  {name}: {_shown(before.get(name))}, now {_shown(now.get(name))}"
        for name in dict.fromkeys((*before, *now))
        if not same(before.get(name), now.get(name))
        and (name not in before or name not in now or before[name] != legacy.get(name))
    ]


def _shown(text: str | None) -> str:
    return "not there" if text is None else described(text)
