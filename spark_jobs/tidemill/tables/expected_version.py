"""Checks that a table is what the ledger says, from a handle that is open anyway.

Delta keeps transactions for ever, but knows nothing about the ledger: a RESTORE leaves the transactions of writes that
it took back, a copy has those of its original, a new table has none. So each commit stores the version, the identity
and the transaction of every table that it wrote, and every process that opens the table compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltalake import DeltaTable

from tidemill.core.errors import LedgerDamaged, TableDamaged
from tidemill.core.plan.position import TableMark
from tidemill.core.plan.slices import SliceSet, slice_of
from tidemill.tables.fence import stamp_of
from tidemill.tables.interface import TableSpec, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedVersion:
    """What the ledger knows about a table while a batch is open. `name` is the table's name in marks.

    `newest` is the transaction of an attempt; the table must hold no later one. `mark` describes the table after the
    last commit that wrote it; None when none did. `slices` is set for a table of slices: it may also hold slices
    outside this set, from attempts that never committed. If `exclusive`, the pipeline is the only writer. `removed` is
    the latest transaction with which maintenance may have recorded removed rows.
    """

    name: str
    newest: Transaction
    mark: TableMark | None
    slices: SliceSet | None = None
    exclusive: bool = False
    removed: Transaction | None = None

    def check(self, spec: TableSpec, handle: DeltaTable | None) -> None:
        """Compare the table with what the ledger knows; `handle` is None when the table does not exist.

        Raises:
            TableDamaged: it is gone, another table, older than its last commit, or was restored to an older version.
            LedgerDamaged: it holds a write that the ledger should know, but does not.
        """
        if handle is None:
            if self.mark is not None:
                raise _damaged(spec, f"it is gone; its last commit left it at version {self.mark.version}")
            return
        if self.mark is not None:
            self._check_identity(spec, handle, self.mark)
        self._check_removed(spec, handle)
        found = handle.transaction_version(self.newest.app_id)
        before = None if self.mark is None else self.mark.transaction
        if found == before:
            if found is None and self.exclusive and handle.file_uris():
                raise _damaged(spec, f"it has rows, but none of {self.newest.app_id}: it belongs to somebody else")
        elif before is not None and (found is None or found < before):
            there = "nothing" if found is None else self.newest.who(found)
            raise _damaged(spec, f"it ends with {there} of {self.newest.app_id}, expected {self.newest.who(before)}")
        elif found is not None and not self._may_hold(found):
            known = "none" if before is None else self.newest.who(before)
            left = "" if before is not None else "a rebuild left the table out, "
            raise LedgerDamaged(
                f"table {spec.name} ({spec.uri}) holds {self.newest.who(found)} of {self.newest.app_id}, and the last "
                f"that the ledger knows there is {known}: {left}the ledger lost its end, or an older copy was put back"
            )

    def _check_removed(self, spec: TableSpec, handle: DeltaTable) -> None:
        there = None if self.removed is None else handle.transaction_version(self.removed.app_id)
        if self.removed is not None and there is not None and there > self.removed.version:
            raise LedgerDamaged(
                f"maintenance has removed rows of table {spec.name} ({spec.uri}), and the ledger does not know of it: "
                "it lost its end, or an older copy was put back"
            )

    def mark_after(self, handle: DeltaTable, version: int) -> TableMark:
        """The mark of the table after `newest` was written there as `version`."""
        return TableMark(version=version, table_id=str(handle.metadata().id), transaction=self.newest.version)

    def _may_hold(self, found: int) -> bool:
        """Whether an attempt that never committed may have written transaction `found`."""
        if self.slices is None or found > self.newest.version:
            return found == self.newest.version
        return slice_of(found) not in self.slices

    def _check_identity(self, spec: TableSpec, handle: DeltaTable, mark: TableMark) -> None:
        found, version = str(handle.metadata().id), handle.version()
        if found != mark.table_id:
            raise _damaged(spec, f"it is another table: expected id {mark.table_id}, found {found}")
        if version < mark.version:
            raise _damaged(spec, f"it is older than its last commit: expected version {mark.version}, found {version}")
        if version > mark.version:
            restored = self._restored_to(handle, mark.version)
            if restored is not None:
                raise _damaged(spec, f"it was restored to {restored}; its last commit left it at {mark.version}")

    def _restored_to(self, handle: DeltaTable, committed: int) -> str | None:
        """The older version that a RESTORE since the last commit brought back, if its rows are the newest; else None.

        An attempt at a rewind that never committed may have restored the table, too: its plan wants that.
        """
        since = handle.version() - committed
        restores = {e["version"]: e for e in handle.history(since) if e.get("operation") == "RESTORE"}
        look = handle.version()
        while later := [v for v in restores if committed < v <= look]:
            newest = restores[max(later)]
            stamp = stamp_of(newest)
            if stamp is not None and stamp.transaction == self.newest:
                return None
            target = str(newest.get("operationParameters", {}).get("version"))
            if not target.isdecimal() or int(target) < committed:
                return f"version {target}" if target.isdecimal() else "an earlier moment"
            look = int(target)
        return None


def _damaged(spec: TableSpec, found: str) -> TableDamaged:
    return TableDamaged(f"table {spec.name} ({spec.uri}): {found}")
