"""What the ledgers know about contracts: the last audits, and what the last commits rejected or warned about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from tidemill.core.contract.verdict import CheckResult
from tidemill.core.declare.operators import Publish
from tidemill.core.errors import TidemillError
from tidemill.core.protocol.events import Audited

if TYPE_CHECKING:
    from tidemill.project.project import Project

_LOOKED_AT = 500
"""So many events of a ledger are searched for the last audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The last audit of a table: which batch, when, and what each rule found."""

    pipeline: str
    table: str
    batch: int
    at: str
    results: tuple[CheckResult, ...]

    @property
    def holds(self) -> bool:
        """Whether every rule held."""
        return all(result.passed for result in self.results)


def last_audits(project: Project) -> Mapping[str, Sequence[Audit]]:
    """The last audit of each published table, by contract. Ledgers that cannot be read are left out."""
    found: dict[str, list[Audit]] = defaultdict(list)
    for name in project.pipeline_names():
        tables = [o for o in project.spec(name).graph.operators.values() if isinstance(o, Publish)]
        try:
            event = next(_audits(project, name), None)
        except TidemillError:
            continue
        if event is None:
            continue
        for operator in tables:
            results = tuple(r for r in event.verdict.results if r.table == operator.table)
            at = event.at.strftime("%Y-%m-%d %H:%M:%S UTC")
            found[operator.contract].append(
                Audit(pipeline=name, table=operator.table, batch=event.batch_id, at=at, results=results)
            )
    return found


def _audits(project: Project, pipeline: str) -> Iterator[Audited]:
    for entry in islice(project.ledger(pipeline).backwards(), _LOOKED_AT):
        if isinstance(entry.event, Audited):
            yield entry.event
