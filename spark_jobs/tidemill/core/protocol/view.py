"""What the events of a ledger amount to: where a pipeline stands, and its open batch."""

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
    """A batch that is planned and not committed.

    `lease` is that of the newest claim, `audited` the verdict of any attempt, once there is one; `decided` what a
    person decided about one that blocks.
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
        """Whether the audit holds it back, and nobody has decided."""
        return self.audited is not None and self.audited.verdict.blocks and not self.is_accepted

    @property
    def is_accepted(self) -> bool:
        """Whether a person lets it publish what the audit would hold back."""
        return self.decided is not None and self.decided.decision is Decision.ACCEPT

    @property
    def may_be_published(self) -> bool:
        """Whether some attempt was free to publish: then the plan must be completed as it is."""
        return self.audited is not None and not self.is_blocked

    def fate(self, *hashes: str) -> Fate:
        """What becomes of it now that the declaration and its contracts have one of these hashes.

        A changed one cannot complete an old plan: that is given up while nobody was free to publish, and refused after.
        Neither can code that would compute something else of the same declaration.
        """
        if self.plan.logical_hash not in hashes or not is_ours(self.plan.semantics):
            return Fate.REFUSED if self.may_be_published else Fate.CANCELLED
        return Fate.BLOCKED if self.is_blocked else Fate.CONTINUED


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the events of a ledger amount to."""

    position: Position = field(default_factory=Position)
    last_batch_id: int = 0
    open_batch: OpenBatch | None = None
    last_commit: Committed | None = None
    superseded: Superseded | None = None
