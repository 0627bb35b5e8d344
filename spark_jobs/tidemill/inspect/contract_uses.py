"""Which pipelines use a contract, and what they have committed by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidemill.core.declare.operators import Publish, Read
from tidemill.core.errors import TidemillError

if TYPE_CHECKING:
    from tidemill.project.project import Project


def uses_by_contract(project: Project) -> Mapping[str, Sequence[str]]:
    """Say of each contract which pipelines use it, how, and how many batches they have committed.

    Pipelines need not fit their contracts; those whose files cannot be loaded are left out.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for name in project.pipeline_names():
        for operator in project.spec(name).graph.operators.values():
            match operator:
                case Read():
                    topics = ", ".join(operator.names) or f"topics like {operator.pattern}"
                    found[operator.contract].append(f"pipeline {name} reads {topics}: {_committed(project, name)}")
                case Publish():
                    text = f"pipeline {name} publishes table {operator.table}: {_committed(project, name)}"
                    found[operator.contract].append(text)
                case _:
                    pass
    return found


def _committed(project: Project, name: str) -> str:
    try:
        count = project.ledger(name).view().position.batch_id
    except TidemillError as error:
        return f"its ledger cannot be read: {error.message.splitlines()[0]}"
    if not count:
        return "nothing committed yet"
    return f"its state and tables are those of {count:,} committed batch{'' if count == 1 else 'es'}"
