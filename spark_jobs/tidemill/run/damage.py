"""Checks whether ledger and tables fit each other, and finds out what an error of a batch really means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from tidemill.core.bind.flow import Flow
from tidemill.core.errors import (
    CommitUnknown,
    EngineError,
    EngineUnreachable,
    Fenced,
    LedgerDamaged,
    TableDamaged,
    TidemillError,
)
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.protocol.view import OpenBatch
from tidemill.engine.storage.expected_versions import ExpectedVersions
from tidemill.engine.storage.table_layout import Uris
from tidemill.ledger.ledger import Ledger
from tidemill.run.claiming import Claim
from tidemill.run.repairable import repairable
from tidemill.tables.files import damaged_file, is_newest
from tidemill.tables.handles import newest


def check_tables(flow: Flow, uris: Uris, plan: BatchPlan, batch: OpenBatch | None) -> None:
    """Refuse a plan whose position does not fit the tables. Runs before anything is written for the plan.

    Opens only tables that are not at the version of their last commit.

    Raises:
        ForeignTable: a table belongs to another pipeline.
        TableDamaged: a table is not as the ledger describes it.
        LedgerDamaged: a table holds something that the ledger does not know.
    """
    marks = ExpectedVersions(
        plan=plan,
        attempt=batch.attempt if batch else 0,
        published=batch is not None and batch.may_be_published,
    )
    with repairable(flow.name):
        for spec, known in marks.all(flow, uris):
            if not is_newest(spec, known.mark.version if known.mark else None):
                known.check(spec, newest(spec, thoroughly=True))


@contextmanager
def judged(flow: Flow, uris: Uris, claim: Claim, ledger: Ledger) -> Iterator[None]:
    """Translate errors raised inside: the attempt was overtaken, or something is damaged, or the error itself stands.

    Raises:
        Fenced: the ledger has a newer attempt.
        TableDamaged: a table is not as the ledger describes it, or one of its files cannot be read.
        LedgerDamaged: a table holds something that the ledger does not know.
    """
    with repairable(flow.name):
        try:
            yield
        except (Fenced, LedgerDamaged, TableDamaged) as error:
            _judge(flow.name, claim, ledger, error)
        except Exception as error:
            mine = isinstance(error, TidemillError) and not isinstance(error, (EngineError, CommitUnknown))
            if not mine and not isinstance(error, EngineUnreachable):
                _check_files(flow, uris, claim, error)
            raise


def _judge(pipeline: str, claim: Claim, ledger: Ledger, error: TidemillError) -> NoReturn:
    """A table that does not fit is damaged only if this attempt is still the newest one."""
    open_batch, batch_id = ledger.view().open_batch, claim.plan.batch_id
    overtaken = open_batch is None or (open_batch.plan.batch_id, open_batch.attempt) != (batch_id, claim.attempt)
    if isinstance(error, Fenced) == overtaken:
        raise error
    if overtaken:
        raise Fenced(
            f"{pipeline}: attempt {claim.attempt} at batch {batch_id} is fenced: the ledger has gone on, and "
            f"{error.message}",
            fix="stop this attempt; nothing of it counts",
        ) from error
    raise LedgerDamaged(
        f"{pipeline}: attempt {claim.attempt} at batch {batch_id} is the newest that the ledger knows, but "
        f"{error.message}: the ledger lost its end, or an older copy was put back"
    ) from error


def _check_files(flow: Flow, uris: Uris, claim: Claim, error: Exception) -> None:
    for spec, _ in ExpectedVersions(plan=claim.plan, attempt=claim.attempt).all(flow, uris):
        try:
            handle = newest(spec)
            found = None if handle is None else damaged_file(handle, spec, error)
        except (EngineError, OSError):
            continue
        if found:
            raise TableDamaged(f"table {spec.name} ({spec.uri}): {found}") from error
