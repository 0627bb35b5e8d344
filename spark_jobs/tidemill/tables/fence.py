"""Which transactions a table holds, and which plan each belongs to.

The table's state has the version of a transaction. The text of the commit (`userMetadata`) has the hash of the plan;
both writers keep that text, and neither interprets it. So "the table holds batch 7" and "the table holds batch 7 of
*this* plan" are different.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from tidemill.core.errors import CommitUnknown, Fenced
from tidemill.tables.interface import AlreadyThere, TableSpec, Transaction

FORMAT_VERSION = 1

# The log is read backwards; a repeated transaction is almost always among the newest commits.
_PAGES: tuple[int | None, ...] = (16, 256, None)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a commit says about itself: its transaction, and the hash of its plan."""

    transaction: Transaction | None
    plan_hash: str

    def text(self) -> str:
        """The stamp as text, which is stored with the commit."""
        content: dict[str, str | int] = {"format": FORMAT_VERSION, "plan": self.plan_hash}
        if self.transaction:
            content |= {"app": self.transaction.app_id, "version": self.transaction.version}
        return json.dumps(content)

    @property
    def who(self) -> str:
        """The name of the write in errors."""
        if self.transaction is None:
            return "an append without a transaction"
        return f"{self.transaction.who()} of {self.transaction.app_id}"


def earlier_write(handle: DeltaTable, spec: TableSpec, stamp: Stamp) -> AlreadyThere | None:
    """The version that already holds exactly this transaction; None when the table does not have it yet.

    Raises:
        Fenced: the table holds a later transaction, or this one with another plan.
    """
    transaction = stamp.transaction
    if transaction is None:
        return None
    last = handle.transaction_version(transaction.app_id)
    if last is None or last < transaction.version:
        return None
    if last > transaction.version:
        raise _fenced(spec, stamp, f"the table already holds {transaction.who(last)}")
    found = find_commit(handle, transaction)
    if found is None:
        raise _fenced(spec, stamp, "the table holds this batch, but its log no longer says of which plan")
    version, plan_hash = found
    if plan_hash != stamp.plan_hash:
        raise _fenced(spec, stamp, f"the table holds this batch with another plan: {plan_hash}")
    return AlreadyThere(version)


def find_commit(
    handle: DeltaTable, transaction: Transaction | None, *, plan_hash: str | None = None, since: int = -1
) -> tuple[int, str] | None:
    """Version and plan hash of the newest commit after version `since` with this transaction (and plan)."""
    for version, stamp in _stamps(handle, since):
        if stamp.transaction == transaction and plan_hash in (None, stamp.plan_hash):
            return version, stamp.plan_hash
    return None


def transactions_of(handle: DeltaTable) -> Iterator[Transaction]:
    """The transactions that the table's log still shows, newest first."""
    return (stamp.transaction for _, stamp in _stamps(handle, -1) if stamp.transaction is not None)


def unknown(spec: TableSpec, stamp: Stamp, cause: object) -> CommitUnknown:
    """The error for a write that failed and that the table does not show."""
    return CommitUnknown(
        f"table {spec.name} ({spec.uri}): the write of {stamp.who} failed and the table does not hold it: {cause}",
        fix="run the batch again; it reads the table before it writes",
    )


def _fenced(spec: TableSpec, stamp: Stamp, found: str) -> Fenced:
    return Fenced(
        f"table {spec.name} ({spec.uri}): {stamp.who} (plan {stamp.plan_hash}) must not be written: {found}",
        fix="stop this attempt; a newer one owns the table, and nothing of this one was written",
    )


def _stamps(handle: DeltaTable, since: int) -> Iterator[tuple[int, Stamp]]:
    seen = 0
    for page in _PAGES:
        entries = handle.history(page)
        for entry in entries[seen:]:
            if entry["version"] <= since:
                return
            stamp = stamp_of(entry)
            if stamp:
                yield entry["version"], stamp
        if page is None or len(entries) < page:
            return
        seen = len(entries)


def stamp_of(entry: dict[str, Any]) -> Stamp | None:
    """The stamp of an entry of a table's history; None when another program wrote it."""
    try:
        content = json.loads(entry.get("userMetadata") or "null")
    except ValueError:
        return None
    if not isinstance(content, dict) or "plan" not in content:
        return None
    transaction = Transaction(content["app"], content["version"]) if "app" in content else None
    return Stamp(transaction, content["plan"])
