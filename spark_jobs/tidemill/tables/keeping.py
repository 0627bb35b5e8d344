"""Work on tables besides batches: going back to a version, and removing rows and files that nobody needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable
from deltalake import Transaction as DeltaTransaction
from deltalake.exceptions import CommitFailedError

from tidemill.core.errors import EngineError
from tidemill.core.plan.slices import BatchRange
from tidemill.tables.arrow import conform
from tidemill.tables.compact import TARGET_SIZE, foldable_files
from tidemill.tables.deltars import ATTEMPTS, HOOKS, DeltaRsTable, properties_of
from tidemill.tables.fence import Stamp, earlier_write
from tidemill.tables.handles import open_table
from tidemill.tables.interface import Between, Transaction, Written, of_batches
from tidemill.tables.rewrite import count_meeting, replace_actions, rows_inside, without


class KeptTable(DeltaRsTable):
    """A table for rewinds and maintenance."""

    def go_back(self, version: int | None, *, transaction: Transaction, plan_hash: str) -> Written:
        """Give the table the rows of an earlier version, as a new version; with None, no rows at all.

        Transactions are not taken back: an attempt that was too old stays too old.

        Raises:
            EngineError: the version, or a file of it, does not exist any more.
        """
        if version is None:
            everything = Between(column=self.spec.columns[0], low=None, high=None)
            no_rows = pa.table({c: [] for c in self.spec.columns[:1]})
            return self.replace(no_rows, within=(everything,), transaction=transaction, plan_hash=plan_hash)
        stamp = Stamp(transaction, plan_hash)
        if (there := earlier_write(self._open(), self.spec, stamp)) is not None:
            return there
        self.check_back(version)
        return self._land(stamp, lambda handle: partial(self._go_back, handle, version, stamp))

    def check_back(self, version: int) -> None:
        """Check that the storage still has all files of a version.

        Raises:
            EngineError: the version, or a file of it, does not exist any more.
        """
        then = open_table(self.spec, version)
        gone = self.files(then).gone(unquote(path) for path in _paths(then))
        if gone:
            raise EngineError(
                f"table {self.spec.name} ({self.spec.uri}): {len(gone)} files of version {version} are gone: {gone[0]}",
                fix="go back less far: a vacuum has taken what this version needs",
            )

    def _go_back(self, handle: DeltaTable, version: int, stamp: Stamp) -> int:
        landing = handle.version() + 1
        properties = properties_of(stamp, max_commit_retries=0)
        if version == handle.version():
            # delta-rs refuses to restore the newest version; an empty commit still records the transaction.
            return self._replace(handle, [], properties)
        handle.restore(version, commit_properties=properties, post_commithook_properties=HOOKS)
        return landing

    def foldable(self, within: Between, *, target_size: int = TARGET_SIZE) -> int:
        """How many files `compact` would fold."""
        return foldable_files(self.files(self._open()), within, target_size)

    def drop(self, batches: Sequence[BatchRange], *, horizon: Transaction | None = None, dry_run: bool = False) -> int:
        """Remove the rows of these batches, which nobody reads any more; return how many there were.

        The commit also records `horizon`, the transaction of the earliest batch that a rewind can still go back to.
        Writers may continue: if one of them replaces a file first, it tries again.
        """
        within = of_batches(batches)
        for _ in range(ATTEMPTS if within else 0):
            handle = self._open()
            files = self.files(handle)
            count = rows_inside(files, within)
            if not count or dry_run:
                return count
            none = conform(pa.table({c: [] for c in self.spec.columns[:1]}), self.spec)
            actions = replace_actions(files, none, within, (self.spec.pruned_by or self.spec.columns)[0])
            try:
                self._commit(partial(self._replace, handle, actions, _remembering(handle, horizon)))
            except CommitFailedError:
                continue
            return count
        return 0

    def forget(self, where: tuple[Between, ...], *, remembered: Transaction, dry_run: bool = False) -> int:
        """Remove the rows that meet every condition of `where`; return how many there were.

        The first condition selects files. The commit that removes rows also records the transaction `remembered`.
        Writers may continue, as for `drop`.
        """
        for _ in range(ATTEMPTS):
            handle = self._open()
            files = self.files(handle)
            if dry_run:
                return count_meeting(files, where)
            actions, count = without(files, where, (self.spec.pruned_by or self.spec.columns)[0])
            if not count:
                return 0
            try:
                self._commit(partial(self._replace, handle, actions, _remembering(handle, remembered)))
            except CommitFailedError:
                continue
            return count
        return 0

    def vacuum(self, older: timedelta, *, keep_versions: Sequence[int] = (), dry_run: bool = False) -> int:
        """Delete files that neither the newest version nor `keep_versions` need; return how many.

        It deletes only files that were removed from the table longer than `older` ago, so that running readers and
        writers lose nothing.
        """
        handle = self._open()
        kept = [v for v in keep_versions if self._readable(v)]
        gone = handle.vacuum(
            retention_hours=math.ceil(older / timedelta(hours=1)),
            dry_run=dry_run,
            enforce_retention_duration=False,
            full=True,
            keep_versions=kept or None,
        )
        return len(gone)

    def _readable(self, version: int) -> bool:
        try:
            open_table(self.spec, version)
        except EngineError:
            return False
        return True


def _remembering(handle: DeltaTable, transaction: Transaction | None) -> CommitProperties:
    if transaction is None:
        return CommitProperties(max_commit_retries=0)
    there = handle.transaction_version(transaction.app_id)
    version = transaction.version if there is None else max(transaction.version, there)
    return CommitProperties(max_commit_retries=0, app_transactions=[DeltaTransaction(transaction.app_id, version)])


def _paths(handle: DeltaTable) -> list[str]:
    return [str(path) for path in pa.table(handle.get_add_actions())["path"].to_pylist()]
