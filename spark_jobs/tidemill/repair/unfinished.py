"""A rebuild that has not switched yet: where it stands, and how it is dropped."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from tidemill.core.errors import AmendmentError, LedgerDamaged
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.leases import Holder
from tidemill.core.protocol.transitions import check_takeover
from tidemill.core.protocol.view import View
from tidemill.ledger.ledger import Ledger
from tidemill.ledger.process import is_gone, this_process
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob
from tidemill.repair.rebuild import built_generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A generation that is being built. `view` is None if its ledger cannot be read.

    If another declaration or contract began it, it is `outdated`: the next `tidemill rebuild` builds another one.
    """

    number: int
    view: View | None
    outdated: bool

    @property
    def is_blocked(self) -> bool:
        """Whether its open batch waits for a person after its audit."""
        return self.view is not None and self.view.open_batch is not None and self.view.open_batch.is_blocked


def unfinished(project: Project, pipeline: str) -> Unfinished | None:
    """Return the generation that is being built: that of the present declaration, or else the newest one."""
    numbers = project.generations.begun(pipeline)
    if not numbers:
        return None
    try:
        wanted = built_generation(project, pipeline)
    except LedgerDamaged:
        wanted = numbers[-1]
    number = wanted if wanted in numbers else numbers[-1]
    view = None
    with suppress(LedgerDamaged):
        view = project.of_generation(pipeline, number, built=True).ledger(pipeline).view()
    return Unfinished(number=number, view=view, outdated=number != wanted)


def blocked_ledger(amendment: AmendmentJob) -> tuple[Ledger, int | None]:
    """The ledger in which a batch waits for a decision: the published one, or that of a rebuild with its generation.

    If no batch waits anywhere, it is the published one.

    Raises:
        AmendmentError: the batch of a rebuild is blocked, but another declaration or contract began the rebuild.
    """
    project, pipeline = amendment.project, amendment.pipeline
    found, opened = unfinished(project, pipeline), amendment.ledger.view().open_batch
    if found is None or not found.is_blocked or (opened is not None and opened.is_blocked):
        return amendment.ledger, None
    if found.outdated:
        raise AmendmentError(
            f"{pipeline}: no batch waits: the audit blocked the rebuild of generation {found.number}, and the pipeline "
            "or a contract has changed since",
            fix=f"`tidemill rebuild {pipeline}` builds another generation; with --cancel it drops this one",
        )
    return project.of_generation(pipeline, found.number, built=True).ledger(pipeline), found.number


def cancel(amendment: AmendmentJob) -> list[int]:
    """Drop what a rebuild has built so far. Readers never saw it. Return the numbers of the dropped generations.

    Raises:
        AmendmentError: no rebuild has begun, or its generation is taking over already.
        Busy: a process is working on it.
    """
    project, pipeline = amendment.project, amendment.pipeline
    numbers = project.generations.begun(pipeline)
    if not numbers:
        raise AmendmentError(
            f"{pipeline}: no rebuild has begun", fix=f"`tidemill status {pipeline}` shows what is open"
        )
    with suppress(LedgerDamaged):
        if (taken := amendment.ledger.view().superseded) is not None:
            raise AmendmentError(
                f"{pipeline}: generation {taken.generation} is taking over already, and the one before has ended",
                fix=f"complete it: `tidemill rebuild {pipeline}`",
            )
    for number in numbers:
        with suppress(LedgerDamaged):
            _check_idle(amendment, number)
    reason = amendment.reason
    said = json.dumps({"by": reason.by, "why": reason.why, "at": datetime.now(UTC).isoformat()}).encode()
    for number in numbers:
        with boundary("dropped", 0):
            project.generations.drop(pipeline, number, said)
    return numbers


def _check_idle(amendment: AmendmentJob, number: int) -> None:
    """Refuse to drop a generation whose open batch somebody executes. One that its audit blocks is at rest."""
    built = amendment.project.of_generation(amendment.pipeline, number, built=True)
    opened, me = built.ledger(amendment.pipeline).view().open_batch, this_process(amendment.identity)
    if opened is None or opened.is_blocked:
        return
    after = amendment.flow.spec.takeover_after
    with built.lease(amendment.pipeline, after) as lease:
        stopped = is_gone(opened.executor) or opened.executor.identity == me.identity
        holder = Holder.STOPPED if stopped else lease.look(opened)
        check_takeover(opened, me, clock=datetime.now(UTC), takeover_after=after, holder=holder)
