"""The state that the events of a ledger lead to: the pipeline's position, and its open batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidemill.core.identity.semantics import is_ours
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.protocol.events import Audited, Committed, Decided, Decision, Executor, Superseded


class Fate(StrEnum):
    """What the next run does with an open batch that it may take over."""

    CONTINUED = "continued"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBatch:
    """A batch that is planned, but not committed.

    `lease` is that of the newest claim. `audited` is the verdict of the last audit, by any attempt, while it is valid;
    `decided` is what a person decided about a verdict that blocks.
    """

    plan: BatchPlan
    attempt: int
    executor: Executor
    claimed_at: datetime
    lease: str | None = None
    audited: Audited | None = None
    decided: Decided | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether the audit holds the batch back, and nobody has accepted it."""
        return self.audited is not None and self.audited.verdict.blocks and not self.is_accepted

    @property
    def is_accepted(self) -> bool:
        """Whether a person decided to publish the batch although the audit blocks it."""
        return self.decided is not None and self.decided.decision is Decision.ACCEPT

    @property
    def may_be_published(self) -> bool:
        """Whether some attempt may have begun to publish: then the plan must be completed unchanged."""
        return self.audited is not None and not self.is_blocked

    def fate(self, *hashes: str) -> Fate:
        """What happens to the batch; `hashes` are those of the present declaration with its contracts.

        A changed declaration cannot complete an old plan, and neither can code with other semantics. Such a batch is
        cancelled, or refused once some attempt may have begun to publish.
        """
        if self.plan.logical_hash not in hashes or not is_ours(self.plan.semantics):
            return Fate.REFUSED if self.may_be_published else Fate.CANCELLED
        return Fate.BLOCKED if self.is_blocked else Fate.CONTINUED


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The state of a ledger after its events; `last_batch_id` also counts batches that did not commit."""

    position: Position = field(default_factory=Position)
    last_batch_id: int = 0
    open_batch: OpenBatch | None = None
    last_commit: Committed | None = None
    superseded: Superseded | None = None
