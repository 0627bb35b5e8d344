"""The writer for rows that fit the driver: delta-rs, no JVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial, reduce

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake import Transaction as DeltaTransaction
from deltalake.exceptions import CommitFailedError, SchemaMismatchError

from tidemill.core.errors import EngineError, Incompatible, KeysCollide, TableDamaged
from tidemill.core.protocol.failpoints import answered
from tidemill.tables.arrow import conform, padded
from tidemill.tables.compact import TARGET_SIZE, Folded, fold_actions
from tidemill.tables.create import check_protocol
from tidemill.tables.fence import FORMAT_VERSION, Stamp, earlier_write, unknown
from tidemill.tables.files import damaged_file
from tidemill.tables.handles import Opened, open_table
from tidemill.tables.interface import Between, Landed, TableSpec, Transaction, Written
from tidemill.tables.predicates import Parts, datafusion
from tidemill.tables.rewrite import Action, Files, Picked, inside, removed_paths, replace_actions, upsert_actions

Commit = Callable[[], int]

ATTEMPTS = 5

# Listing the log for expired entries takes longer the longer the log: it belongs to maintenance.
HOOKS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


class DeltaRsTable(Opened):
    """A `Table` of Arrow rows, written and read without Spark.

    Every operation opens the table anew: a handle that lives through 3,000 commits needs 350 ms for the
    next one, a fresh one 50 ms, of which files are the cost, not commits; `compact` keeps them few.

    An append is a plain Delta append and goes well beside any other writer. An upsert or a compaction
    lands only on the very state it was computed from, else it is computed again.

    `opened` is a handle on the newest version that was just opened: it saves the first operation 5 ms.
    """

    def __init__(self, spec: TableSpec, *, opened: DeltaTable | None = None) -> None:
        super().__init__(spec)
        self._opened = opened

    def append(self, rows: pa.Table, *, transaction: Transaction | None, plan_hash: str) -> Written:
        """See `Table.append`."""
        stamp = Stamp(transaction, plan_hash)
        shaped = conform(rows, self.spec)
        return self._land(stamp, lambda handle: partial(self._append, handle, shaped, stamp))

    def upsert(
        self, rows: pa.Table, *, keys: tuple[str, ...], within: Between, transaction: Transaction, plan_hash: str
    ) -> Written:
        """See `Table.upsert`."""
        stamp = Stamp(transaction, plan_hash)
        shaped = conform(rows, self.spec)
        self._check_rows(shaped, keys, within)

        def prepare(handle: DeltaTable) -> Commit:
            check_protocol(handle, self.spec)
            actions = upsert_actions(self.files(handle), shaped, keys, within)
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
        """See `Table.replace`. Of the rows inside `within`, `only` some go, if it is given."""
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
        """See `Table.overwrite`."""
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
        """See `Table.read`."""
        within = [bounds for part in any_of for bounds in part]
        for condition in (*where, *within):
            self.spec.check(condition)
        handle = self._open() if version is None else open_table(self.spec, version)
        there = [f.name for f in handle.schema().fields]
        # At an old version a column may not be there yet: it is null, and null is not inside any bound.
        bounds = tuple(b for b in where if b.column in there)
        nowhere = datafusion(where) != datafusion(bounds)
        coarse = tuple(b.coarse for b in bounds)
        names = columns or self.spec.columns
        all_names = tuple(dict.fromkeys((*names, *(b.column for b in (*bounds, *within)))))
        wanted = [c for c in all_names if c in there] or there[:1]
        parts = tuple(tuple(b.coarse for b in part) for part in any_of)
        try:
            found = pa.table(handle.scan(columns=wanted, predicate="false" if nowhere else datafusion(coarse, parts)))
        except Exception as error:
            if (damage := _damage(handle, self.spec, error)) is None:
                raise
            raise damage from error
        rows = conform(found, self.spec, all_names)
        for exact in (b for b, c in zip(bounds, coarse, strict=True) if b != c):
            rows = rows.filter(inside(rows[exact.column], exact))
        if parts != any_of:
            rows = rows.filter(reduce(pc.or_, (_meets(rows, part) for part in any_of)))
        return rows.select(names)

    def compact(self, within: Between, *, target_size: int = TARGET_SIZE) -> Folded:
        """Folds small files that lie wholly inside `within` into files of about `target_size` bytes.

        No row and no transaction changes, and older versions stay readable until a vacuum. Writers may
        go on: when one of them takes a file first, nothing is folded. Choose `within` so that it leaves
        out what is still being replaced. Of one table, let nothing else compact at the same time:
        `optimize.compact` of delta-rs 1.6 would double the rows of files that were folded meanwhile.
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
        """Removes log entries older than the table's `delta.logRetentionDuration` that a checkpoint covers."""
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
                # Only a conflict is known to have left nothing, and only a transaction makes a second try safe.
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
        # Without retries it lands on the state of the handle, or not at all.
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


def _meets(rows: pa.Table, part: tuple[Between, ...]) -> pa.ChunkedArray:
    """Which rows meet all of these conditions."""
    return reduce(pc.and_, (inside(rows[b.column], b) for b in part))


def properties_of(stamp: Stamp, max_commit_retries: int | None = None) -> CommitProperties:
    """What a commit with this stamp carries; with 0 retries it lands on the state it was computed from, or nowhere."""
    transaction = stamp.transaction
    return CommitProperties(
        custom_metadata={"userMetadata": stamp.text()},
        max_commit_retries=max_commit_retries,
        app_transactions=[DeltaTransaction(transaction.app_id, transaction.version)] if transaction else None,
    )


def _damage(handle: DeltaTable, spec: TableSpec, error: Exception) -> TableDamaged | None:
    """What a read that failed found: a file that is damaged, or None where it is something else."""
    try:
        found = damaged_file(handle, spec, error)
    except Exception:
        return None
    return None if found is None else TableDamaged(f"table {spec.name} ({spec.uri}): {found}")
