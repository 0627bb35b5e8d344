"""What the ledgers know about contracts: the last audits, what the last commits rejected, and service levels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from tidemill.core.contract.reasons import tally_reasons
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.declare.operators import Publish, Read
from tidemill.core.errors import TidemillError
from tidemill.core.protocol.events import Audited
from tidemill.inspect.service_levels import service_levels

if TYPE_CHECKING:
    from tidemill.project.project import Project

_SHOWN = "%Y-%m-%d %H:%M:%S UTC"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What the last commit of a pipeline did with the records of its topics.

    `rejected` has the number of rejected records by reason, of all topics of the pipeline. `warned` has the number of
    accepted records that broke a rule of severity warning, by rule.
    """

    pipeline: str
    batch: int
    at: str
    rejected: tuple[tuple[str, int], ...]
    warned: tuple[tuple[str, int], ...]


def last_intakes(project: Project) -> Mapping[str, Sequence[Intake]]:
    """What the last commit of each pipeline rejected and warned about, by the contracts of its topics."""
    found: dict[str, list[Intake]] = defaultdict(list)
    for name in project.pipeline_names():
        reads = [o for o in project.spec(name).graph.operators.values() if isinstance(o, Read)]
        try:
            commit = project.ledger(name).view().last_commit
        except TidemillError:
            continue
        for operator in reads if commit is not None else ():
            assert commit is not None
            warned: Counter[str] = Counter()
            for topic, rules in (commit.warned or {}).items():
                warned.update(rules if not operator.names or topic in operator.names else {})
            found[operator.contract].append(
                Intake(
                    pipeline=name,
                    batch=commit.batch_id,
                    at=commit.at.strftime(_SHOWN),
                    rejected=tuple(sorted(tally_reasons(commit.reasons.items()).items())),
                    warned=tuple(sorted(warned.items())),
                )
            )
    return found


def levels_now(project: Project) -> Mapping[str, Sequence[str]]:
    """Whether the service levels of published tables are met at this moment, by contract."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in project.pipeline_names():
        contracts = {o.table: o.contract for o in project.spec(name).graph.operators.values() if isinstance(o, Publish)}
        try:
            levels = service_levels(project.pipeline(name), project.ledger(name).view(), datetime.now(UTC))
        except TidemillError:
            continue
        for level in levels:
            found[contracts[level.table]].append(str(level))
    return found


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
            at = event.at.strftime(_SHOWN)
            found[operator.contract].append(
                Audit(pipeline=name, table=operator.table, batch=event.batch_id, at=at, results=results)
            )
    return found


def _audits(project: Project, pipeline: str) -> Iterator[Audited]:
    for entry in islice(project.ledger(pipeline).backwards(), _LOOKED_AT):
        if isinstance(entry.event, Audited):
            yield entry.event
