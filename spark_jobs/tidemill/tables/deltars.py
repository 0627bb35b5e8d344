"""The writer for rows that fit into the driver: delta-rs, without a JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake import Transaction as DeltaTransaction
from deltalake.exceptions import CommitFailedError, SchemaMismatchError

from tidemill.core.errors import EngineError, Incompatible, KeysCollide
from tidemill.core.protocol.failpoints import answered
from tidemill.tables.arrow import conform, padded
from tidemill.tables.compact import TARGET_SIZE, Folded, fold_actions
from tidemill.tables.create import check_protocol
from tidemill.tables.fence import FORMAT_VERSION, Stamp, earlier_write, unknown
from tidemill.tables.handles import Opened, open_table
from tidemill.tables.interface import Between, Landed, TableSpec, Transaction, Written
from tidemill.tables.predicates import Parts
from tidemill.tables.rewrite import Action, Files, Picked, inside, removed_paths, replace_actions, upsert_actions
from tidemill.tables.scan import Scan

Commit = Callable[[], int]

ATTEMPTS = 5

# Listing the log for expired entries takes longer with every commit: only maintenance does it.
HOOKS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


class DeltaRsTable(Opened):
    """A `Table` of Arrow rows, written and read without Spark.

    Every operation opens the table again: the next commit takes 350 ms with a handle that has seen 3,000 commits, and
    50 ms with a new one. That time depends on the number of files, not of commits; `compact` keeps it small.

    An append is a plain Delta append, which tolerates any other writer. Any other write lands only on exactly the state
    that it was computed from; otherwise it is computed again.

    `opened` is a handle from a moment ago on the newest version: it saves the first operation 5 ms.
    """

    def __init__(self, spec: TableSpec, *, opened: DeltaTable | None = None) -> None:
        super().__init__(spec)
        self._opened = opened

    def append(self, rows: pa.Table, *, transaction: Transaction | None, plan_hash: str) -> Written:
        """Add the rows; no rows still record the transaction."""
        stamp = Stamp(transaction, plan_hash)
        shaped = conform(rows, self.spec)
        return self._land(stamp, lambda handle: partial(self._append, handle, shaped, stamp))

    def upsert(  # noqa: PLR0913  what is written, where, and by whom
        self,
        rows: pa.Table,
        *,
        keys: tuple[str, ...],
        within: Between,
        transaction: Transaction,
        plan_hash: str,
        gone: pa.Table | None = None,
    ) -> Written:
        """Replace rows that agree in all `keys` with a given row, and add the others; remove those of `gone`."""
        stamp = Stamp(transaction, plan_hash)
        shaped = conform(rows, self.spec)
        self._check_rows(shaped, keys, within)
        removed = None if gone is None else conform(gone, self.spec, keys)

        def prepare(handle: DeltaTable) -> Commit:
            check_protocol(handle, self.spec)
            actions = upsert_actions(self.files(handle), shaped, keys, within, removed)
            return partial(self._replace, handle, actions, properties_of(stamp, max_commit_retries=0))

        return self._land(stamp, prepare)

    def replace(
        self,
        rows: pa.Table,
        *,
        within: tuple[Between, ...],
        transaction: Transaction,
        plan_hash: str,
        only: Picked | None = None,
    ) -> Written:
        """Replace the rows inside any of `within` by the given rows, at once; with `only`, just those that it means."""
        stamp = Stamp(transaction, plan_hash)
        shaped = conform(rows, self.spec)
        bounds = [self.spec.check(b) for b in within]
        sort_by = bounds[0].column if bounds else self.spec.columns[0]

        def prepare(handle: DeltaTable) -> Commit:
            check_protocol(handle, self.spec)
            actions = replace_actions(self.files(handle), shaped, within, sort_by, only)
            return partial(self._replace, handle, actions, properties_of(stamp, max_commit_retries=0))

        return self._land(stamp, prepare)

    def overwrite(self, rows: pa.Table, *, transaction: Transaction, plan_hash: str) -> Written:
        """Make the table hold only these rows, with the columns of the spec."""
        stamp = Stamp(transaction, plan_hash)
        shaped = conform(rows, self.spec)

        def prepare(handle: DeltaTable) -> Commit:
            check_protocol(handle, self.spec)
            return partial(self._overwrite, handle, shaped, properties_of(stamp, max_commit_retries=0))

        return self._land(stamp, prepare)

    def read(
        self,
        *,
        where: tuple[Between, ...] = (),
        any_of: Parts = (),
        columns: tuple[str, ...] | None = None,
        version: int | None = None,
    ) -> pa.Table:
        """The rows that meet every condition, in any order, at `version` or the newest one.

        Raises:
            TableDamaged: a file of the table is missing or damaged.
        """
        return Scan.of(self.spec, self._at(version), where=where, any_of=any_of, columns=columns).rows()

    def batches(
        self,
        *,
        where: tuple[Between, ...] = (),
        any_of: Parts = (),
        columns: tuple[str, ...] | None = None,
        version: int | None = None,
    ) -> Iterator[pa.Table]:
        """As `read`, in parts of which one is in memory at a time."""
        return Scan.of(self.spec, self._at(version), where=where, any_of=any_of, columns=columns).batches()

    def _at(self, version: int | None) -> DeltaTable:
        return self._open() if version is None else open_table(self.spec, version)

    def compact(self, within: Between, *, target_size: int = TARGET_SIZE) -> Folded:
        """Fold small files that lie completely inside `within` into files of about `target_size` bytes.

        No row and no transaction changes, and older versions stay readable until a vacuum. Writers may continue: if one
        of them replaces a file first, nothing is folded. Choose `within` so that it leaves out rows that are still
        being replaced. Never run two compactions of one table at the same time: `optimize.compact` of delta-rs 1.6
        would double the rows of files that were folded meanwhile.
        """
        self.spec.check(within)
        handle = self._open()
        check_protocol(handle, self.spec)
        actions = fold_actions(self.files(handle), within, target_size)
        removed = removed_paths(actions)
        folded = Folded(files=len(removed), into=len(actions) - len(removed))
        metadata = json.dumps({"format": FORMAT_VERSION, "folded": folded.files, "into": folded.into})
        properties = CommitProperties(custom_metadata={"userMetadata": metadata}, max_commit_retries=0)
        for _ in range(ATTEMPTS if removed else 0):
            if not removed <= self.files(handle).overlapping(within).keys():
                break
            try:
                self._commit(partial(self._replace, handle, actions, properties))
            except CommitFailedError:
                handle = open_table(self.spec)
            else:
                return folded
        return Folded()

    def forget_expired(self) -> None:
        """Remove log entries that a checkpoint covers and that are older than `delta.logRetentionDuration`."""
        open_table(self.spec).cleanup_metadata()

    def _land(self, stamp: Stamp, prepare: Callable[[DeltaTable], Commit]) -> Written:
        attempt = 0
        while True:
            attempt += 1
            handle = self._open()
            there = earlier_write(handle, self.spec, stamp)
            if there is not None:
                return there
            commit = prepare(handle)
            try:
                return Landed(self._commit(commit))
            except SchemaMismatchError as error:
                raise Incompatible(f"table {self.spec.name} ({self.spec.uri}): {error}") from error
            except Exception as error:
                landed = self._look_again(stamp, error)
                if landed is not None:
                    return landed
                # Only a conflict certainly wrote nothing, and only a transaction makes a second try safe.
                conflict = isinstance(error, CommitFailedError) and stamp.transaction is not None
                if not conflict or attempt == ATTEMPTS:
                    raise unknown(self.spec, stamp, error) from error

    def _open(self) -> DeltaTable:
        handle, self._opened = self._opened, None
        return handle or open_table(self.spec)

    def _look_again(self, stamp: Stamp, error: Exception) -> Written | None:
        try:
            handle = open_table(self.spec)
        except EngineError:
            raise unknown(self.spec, stamp, error) from error
        there = earlier_write(handle, self.spec, stamp)
        if there is None or isinstance(error, CommitFailedError):
            return there
        return Landed(there.version)

    def _commit(self, commit: Commit) -> int:
        version = commit()
        answered()
        return version

    def _append(self, handle: DeltaTable, rows: pa.Table, stamp: Stamp) -> int:
        write_deltalake(
            handle,
            padded(rows, self.files(handle).schema()),
            mode="append",
            commit_properties=properties_of(stamp),
            post_commithook_properties=HOOKS,
        )
        return handle.version()

    def _overwrite(self, handle: DeltaTable, rows: pa.Table, properties: CommitProperties) -> int:
        landing = handle.version() + 1
        write_deltalake(
            handle,
            rows,
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=properties,
            post_commithook_properties=HOOKS,
        )
        return landing

    def _replace(self, handle: DeltaTable, actions: list[Action], properties: CommitProperties) -> int:
        # Without retries, it lands on the state of the handle or not at all.
        landing = handle.version() + 1
        handle.create_write_transaction(
            list(actions),
            "append",
            handle.schema(),
            list(self.spec.partition_by),
            commit_properties=properties,
            post_commithook_properties=HOOKS,
        )
        return landing

    def files(self, handle: DeltaTable) -> Files:
        """The files of one state of the table."""
        return Files(handle, self.spec)

    def _check_rows(self, rows: pa.Table, keys: tuple[str, ...], within: Between) -> None:
        self.spec.check(within)
        if not keys:
            raise ValueError(f"table {self.spec.name}: an upsert needs keys")
        different = rows.group_by(list(keys)).aggregate([]).num_rows
        if different != rows.num_rows:
            counts = rows.group_by(list(keys)).aggregate([([], "count_all")])
            same = counts.filter(pc.greater(counts["count_all"], 1)).select(list(keys)).slice(0, 1).to_pylist()[0]
            shown = ", ".join(f"{name}={value}" for name, value in same.items())
            raise KeysCollide(
                f"table {self.spec.name}: {rows.num_rows} rows to upsert have only {different} different keys; "
                f"several have {shown}"
            )
        outside = rows.num_rows - pc.sum(inside(rows[within.column], within), min_count=0).as_py()
        if outside:
            raise ValueError(f"table {self.spec.name}: {outside} rows to upsert lie outside {within}")


def properties_of(stamp: Stamp, max_commit_retries: int | None = None) -> CommitProperties:
    """The properties of a commit with this stamp; with 0 retries, it lands on the state it was made from or fails."""
    transaction = stamp.transaction
    return CommitProperties(
        custom_metadata={"userMetadata": stamp.text()},
        max_commit_retries=max_commit_retries,
        app_transactions=[DeltaTransaction(transaction.app_id, transaction.version)] if transaction else None,
    )
