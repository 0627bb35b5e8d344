"""What a ledger records: append-only events about batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidemill.core.contract.verdict import Verdict
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.account import Account
from tidemill.core.time.spans import PaneSpan

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Who executes a batch.

    `identity` is the same for all tries of one Airflow task, or names a process where there is no task. `host`, `pid`
    and `process_started` (seconds since the host's boot, in clock ticks; empty where unknown) identify the process, so
    that another one on the same host can tell whether it is still alive: `boot` is what its kernel is called until it
    is started anew, `pid_namespace` where its process number counts. Both are None where unknown.
    """

    identity: str
    host: str
    pid: int
    process_started: str = ""
    boot: str | None = None
    pid_namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A batch is planned, and claimed as its first attempt by the one who planned it.

    `lease` names the object by which the holder of the claim shows that it works; None where there is none.
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
    """The commit: from now on all that the attempt wrote counts.

    `accounts` are per input topic. `panes` says where in event time its state lies, by published table. `tables` gives
    the version of each table after the batch, `published` how many rows went to each published table, `skipped`
    how many offsets the log had lost before they were read, `incomplete` where the windows start that may lack them,
    by published table. `broken` are the rules of tables that did not hold, each with what was found. `plan_hash` proves
    which plan it was, `logical_hash` identifies declaration and contracts.
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
    skipped: int = 0
    incomplete: Mapping[str, PaneSpan] | None = None
    broken: tuple[str, ...] | None = None
    logical_hash: str | None = None
    started: datetime
    at: datetime


class Decision(StrEnum):
    """What a person may decide about a batch that its audit blocks."""

    ACCEPT = "accept"
    DIVERT = "divert"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A person decided about a blocked batch: publish it all the same, send it to quarantine, or audit it again."""

    batch_id: int
    attempt: int
    decision: Decision
    by: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The open batch will never commit: its plan no longer fits the declaration, and it had published nothing."""

    batch_id: int
    attempt: int
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """Nothing follows in this ledger: `generation` has one of its own. `batch_id` is the last one here."""

    batch_id: int
    attempt: int = 0
    generation: int
    by: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Maintenance is about to remove the state of windows that end at `until` or earlier, in event time.

    From now on no plan counts on it. `batch_id` is the last one before.
    """

    batch_id: int
    attempt: int = 0
    until: int
    at: datetime


Event = Planned | Claimed | Audited | Committed | Cancelled | Decided | Superseded | Forgotten
