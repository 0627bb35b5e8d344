"""What a ledger records: append-only events about batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidemill.core.contract.verdict import Verdict
from tidemill.core.errors import printable
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.account import Account
from tidemill.core.time.missed import Missed
from tidemill.core.time.spans import PaneSpan

FORMAT_VERSION = 1


def told(by: str, why: str) -> str:
    """Who decided something and why, for people: "root: the till was offline", or the name alone."""
    return printable(f"{by}: {why}" if why else by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """The process that executes a batch.

    `identity` is the same for all tries of one Airflow task; without a task, it names the process. The other fields let
    another process on the same host find out whether this one is still alive. `process_started` is the start in clock
    ticks since the host's boot (empty where unknown), `boot` an id that the kernel gets at each boot, `pid_namespace`
    the namespace that `pid` belongs to. The last two are None where unknown.
    """

    identity: str
    host: str
    pid: int
    process_started: str = ""
    boot: str | None = None
    pid_namespace: str | None = None

    @property
    def text(self) -> str:
        """Who and where, for people."""
        place = f"process {self.pid} on {self.host}"
        named = self.identity.startswith(f"{place} (")
        return place if named else f"{self.identity} on {self.host} (process {self.pid})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A batch is planned; the process that planned it also claims the first attempt.

    `lease` names the object by which the holder of the claim shows that it is working; None for a claim without one.
    """

    plan: BatchPlan
    executor: Executor
    at: datetime
    lease: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A new attempt at the open batch begins; older attempts are fenced from now on. `lease` is as in `Planned`."""

    batch_id: int
    attempt: int
    executor: Executor
    at: datetime
    lease: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """The staged rows were checked. `logical_hash` identifies the declaration and the contracts of the plan."""

    batch_id: int
    attempt: int
    verdict: Verdict
    logical_hash: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The commit: from now on, everything that the attempt wrote counts.

    `accounts` has the counts of each input topic. `panes` says where in event time the state lies, by published table.
    `tables` has the version of each table after the batch, `published` the number of rows for each published table.
    `missed` says, by published table, which windows missed late records that later windows took. `skipped` is how many
    offsets the log lost before they were read; `incomplete` says where the windows start that may lack them, by
    published table. `broken` are the table rules that failed, each with what was found. `warned` says how
    many accepted records broke each rule of severity warning, by input topic and rule. `plan_hash` proves which plan
    was executed; `logical_hash` identifies declaration and contracts. `steps` is how many seconds each step of the
    attempt took, up to the commit (`tidemill.run.watching`).
    """

    batch_id: int
    attempt: int
    plan_hash: str
    position: Position
    kind: Kind = Kind.LIVE
    accounts: Mapping[str, Account]
    panes: Mapping[str, PaneSpan] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)
    published: Mapping[str, int] = field(default_factory=dict)
    refused_windows: int = 0
    missed: Mapping[str, tuple[Missed, ...]] | None = None
    skipped: int = 0
    incomplete: Mapping[str, PaneSpan] | None = None
    broken: tuple[str, ...] | None = None
    warned: Mapping[str, Mapping[str, int]] | None = None
    logical_hash: str | None = None
    steps: Mapping[str, float] | None = None
    started: datetime
    at: datetime


class Decision(StrEnum):
    """What a person may decide about a batch that its audit blocks."""

    ACCEPT = "accept"
    DIVERT = "divert"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A person decided about a blocked batch: publish it anyway, send it to quarantine, or audit it again."""

    batch_id: int
    attempt: int
    decision: Decision
    by: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The open batch will never commit. It had published nothing; `reason` says why it was given up."""

    batch_id: int
    attempt: int
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """The last event of a ledger: `generation` continues in its own ledger. `batch_id` is the last batch here."""

    batch_id: int
    attempt: int = 0
    generation: int
    by: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Maintenance is about to remove the state of windows that end at `until` (event time, microseconds) or earlier.

    From now on no plan relies on that state. `batch_id` is the last batch before this event.
    """

    batch_id: int
    attempt: int = 0
    until: int
    at: datetime


Event = Planned | Claimed | Audited | Committed | Cancelled | Decided | Superseded | Forgotten
