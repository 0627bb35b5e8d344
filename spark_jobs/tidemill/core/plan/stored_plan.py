"""The stored form of a plan: flat, as ledgers have had it since format 1, with keys for each kind of batch.

Tables hold a hash of the plan's text. So the same plan always gives the same text; an older plan that is read and
written again gives its old text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from tidemill.core.errors import LedgerDamaged
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.amendments import Fold, Ranges, Redefined, Repair, Rewind, Switch
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Gone, Position
from tidemill.core.plan.work import BackfillStep, Kind, Live, Reading, TopicPlan, Work

_OF_LIVE = ("topics", "drain", "skipped", "missing", "gone", "redefined")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A plan as ledgers store it. It has only the keys of its own kind."""

    pipeline: str
    batch_id: int
    kind: Kind
    clock: datetime
    position: Position
    logical_hash: str
    topics: Mapping[str, TopicPlan] = field(default_factory=dict)
    drain: bool = False
    again: Ranges | None = None
    repair: Repair | None = None
    backfill: Backfill | None = None
    rewind: Rewind | None = None
    switch: Switch | None = None
    fold: Fold | None = None
    skipped: tuple[OffsetRange, ...] | None = None
    missing: tuple[TopicPartition, ...] | None = None
    gone: tuple[Gone, ...] | None = None
    redefined: Redefined | None = None
    semantics: int | None = None

    @property
    def work(self) -> Work:
        """The work that the plan describes.

        Raises:
            LedgerDamaged: a key is missing that its kind needs.
        """
        found = self._found()
        if found is None:
            raise LedgerDamaged(f"the plan of batch {self.batch_id} is of kind {self.kind}, and does not say what")
        return found

    def _found(self) -> Work | None:
        match self.kind:
            case Kind.LIVE:
                return Live(**{name: getattr(self, name) for name in _OF_LIVE})
            case Kind.REPAIR:
                return None if self.repair is None else replace(self.repair, again=self.again)
            case Kind.BACKFILL:
                return None if self.backfill is None else BackfillStep(job=self.backfill, reads=self.again or {})
            case Kind.REWIND:
                return self.rewind
            case Kind.SWITCH:
                return self.switch
            case Kind.FOLD:
                return self.fold
            case _:
                assert_never(self.kind)


def keys_of(work: Work) -> dict[str, Any]:
    """The keys of a stored plan that describe its work.

    Raises:
        TypeError: the work is a `Reading`, which is never stored.
    """
    match work:
        case Live():
            return {name: getattr(work, name) for name in _OF_LIVE}
        case Repair():
            return {"repair": replace(work, again=None), "again": work.again}
        case BackfillStep(job=job, reads=reads):
            return {"backfill": job, "again": reads}
        case Rewind():
            return {"rewind": work}
        case Switch():
            return {"switch": work}
        case Fold():
            return {"fold": work}
        case Reading():
            raise TypeError("a plan that only reads is never written")
        case _:
            assert_never(work)
