"""Which branches between an input and a table changed, and where the declaration has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.meaning import Meaning, branches, label, of_branch
from tidemill.core.bind.sinks import Sink
from tidemill.core.declare import operators as op
from tidemill.core.declare.graph import Step
from tidemill.core.identity.written import same


def changed_branches(flow: Flow, sink: Sink, before: Meaning) -> Iterator[tuple[str, str | None, str | None]]:
    """The branches to a table that are not as they were: a name for people, the steps before, and the steps now.

    Branches with the same steps are the same, in whatever order they are declared. New inputs are left out.
    """
    declared = {label(s, flow): branches(s, sink) for s in flow.sources if s.name in sink.paths}
    known = dict.fromkeys(source for part in before if (source := of_branch(part)) is not None)
    for source in known:
        paths = [path for _, path in declared.get(source, ())]
        there, gone = list(declared.get(source, ())), []
        for text in (text for part, text in before.items() if of_branch(part) == source):
            kept = next((each for each in there if same(each[0], text)), None)
            if kept is None:
                gone.append(text)
            else:
                there.remove(kept)
        for was, found in zip_longest(gone, there):
            if found is not None:
                yield f"{source}: {_named(flow, found[1], paths)}", was, found[0]
            else:
                what = "a branch to the table that is declared no more" if paths else "the steps to the table"
                yield f"{source}: {what}", was, None


def _named(flow: Flow, path: Sequence[Step], paths: Sequence[Sequence[Step]]) -> str:
    """A name for a path: among several, by the first step that the others lack."""
    own = [step for step in path if any(step not in other for other in paths)]
    steps = own or list(path)
    if not steps:
        return "the branch to the table without steps" if len(paths) > 1 else "the steps to the table"
    first = steps[0]
    port = f", port `{first.port}`" if isinstance(first.operator, op.Split) else ""
    at = f"{flow.spec.graph.where(first.name)}{port}"
    return f"the branch to the table through {at}" if len(paths) > 1 else f"the steps to the table from {at} on"
