"""The ledger of a pipeline: one small Delta table of events, written and read without Spark.

Every append carries the transaction `(tidemill/ledger/PIPELINE, sequence)`. Two appends made from the same version of
the table conflict: delta-rs refuses a commit if another one with the same application id landed since the table was
read. So an append succeeds only if nothing else was appended, and all writers agree on one order of events. On object
stores the conditional put of the storage ensures this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from tidemill.core.errors import CommitUnknown
from tidemill.core.protocol.events import Committed, Event
from tidemill.core.protocol.failpoints import answered
from tidemill.core.protocol.transitions import apply, fold
from tidemill.core.protocol.view import View
from tidemill.ledger.reading import FIRST_LOOK, PRUNED_BY, Events
from tidemill.ledger.rows import NAMES, SCHEMA, row_of
from tidemill.stores.refusals import refusal
from tidemill.tables.interface import Between

_CONFIGURATION = {
    # Statistics only for the columns that reads prune by; nobody searches a body.
    "delta.dataSkippingStatsColumns": ",".join(PRUNED_BY),
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}
_TRIES = 20
_OVERTAKEN = "Concurrent transaction"
"""What delta-rs says when another event took the place. The event exists, but an immediate read may not see it yet."""

_LOOKS, _A_MOMENT = 20, 0.1
_AT_ONCE = 20_000
"""The most events indexed after a batch: a few seconds of work."""

_FRESH = 60.0
"""Appends open the table again if their handle is older than this many seconds."""


class Ledger(Events):
    """The events of one pipeline, and the view that follows from them.

    Keep an instance for many batches: it reads only what others have appended since.
    """

    def __init__(
        self,
        uri: str,
        pipeline: str,
        storage: Callable[[], Mapping[str, str]] = dict,
        *,
        before_writing: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(uri, pipeline, storage)
        self._before_writing = before_writing
        self._table: DeltaTable | None = None
        self._opened_at = 0.0
        self._sequence = 0
        self._view = View()

    def view(self) -> View:
        """Read new events and return the present view.

        Raises:
            LedgerDamaged: The events contradict each other or cannot be read.
        """
        # A handle kept for hundreds of commits becomes slow; opening one takes milliseconds.
        self._table = None
        table = self._opened()
        if table is not None:
            self._catch_up(table)
        return self._view

    def append(self, make: Callable[[View], Event]) -> View:
        """Append the event that `make` returns for the present view, and return the view after it.

        If someone else appended meanwhile, `make` is called again with the new view; it can raise to give up. An event
        that the protocol forbids is never written.

        Raises:
            Fenced: The protocol does not allow the event now.
            CommitUnknown: The storage failed, so the event may or may not have been written.
        """
        self._before_writing()
        # A handle keeps the credentials it was opened with, and they may have expired.
        if self._table is None or time.monotonic() - self._opened_at > _FRESH:
            self.view()
        for _ in range(_TRIES):
            event = make(self._view)
            after = apply(self._view, event)
            if self._write(event):
                self._sequence += 1
                self._view = after
                return after
            self.view()
        raise CommitUnknown(
            f"{self._pipeline}: {_TRIES} attempts to append to the ledger collided with other writers", fix="try again"
        )

    def index_old(self, *, most: int | None = None) -> int:
        """Index old events, at most `most` of them, and return the sequence of the last indexed event.

        The newest events stay unindexed. A million events that were never indexed take minutes.
        """
        self.view()
        table = self._open()
        return 0 if table is None else self._archive(table).index(self._edge, most)

    @property
    def _edge(self) -> int:
        """The sequence of the last event that counts as old."""
        return self._sequence - FIRST_LOOK * 4

    def keep_short(self, *, keep: int) -> None:
        """Index old events, fold their files into larger ones, and drop all but the `keep` newest table versions.

        No event is lost. The newest events stay in small files, which the next batch reads quickly.
        """
        # Importing these loads Arrow's data sets; a reader of the ledger need not wait for that.
        from tidemill.tables.deltars import DeltaRsTable  # noqa: PLC0415
        from tidemill.tables.trim import trim_log  # noqa: PLC0415

        if not self.exists:
            return
        through = self.index_old(most=_AT_ONCE)
        # Events that are not indexed yet are read more often, so they must not share a large file with indexed ones.
        high = through + 1 if through > self._edge - FIRST_LOOK * 4 else self._edge
        DeltaRsTable(self._spec).compact(Between(column="sequence", low=None, high=high))
        trim_log(self._spec, keep=keep)

    def sweep(self, older: timedelta, *, dry_run: bool = False) -> int:
        """Delete files that were folded into others and are older than `older`. Return how many."""
        from tidemill.tables.keeping import KeptTable  # noqa: PLC0415  as above

        return KeptTable(self._spec).vacuum(older, dry_run=dry_run)

    def _opened(self) -> DeltaTable | None:
        if self._table is None:
            self._table = self._open()
            self._opened_at = time.monotonic()
        return self._table

    def _catch_up(self, table: DeltaTable) -> None:
        newest = table.transaction_version(self._app) or 0
        if newest < self._sequence:
            raise self._damaged(
                f"it ends at event {newest}, but event {self._sequence} was read before: an older copy was put back"
            )
        if newest == self._sequence:
            if not newest and table.version():
                raise self._damaged("it has rows, but no event of this pipeline: it belongs to somebody else")
            return
        if self._sequence:
            new = self._read(table, after=self._sequence, newest=newest)
            self._view = fold((e.event for e in new), self._view)
        else:
            self._view = self._rebuild(table, newest)
        self._sequence = newest

    def _rebuild(self, table: DeltaTable, newest: int) -> View:
        """Build the view from the newest commit on: only the end of the ledger is read."""
        look = FIRST_LOOK
        while True:
            entries = self._read(table, after=newest - look, newest=newest)
            commits = [i for i, e in enumerate(entries) if isinstance(e.event, Committed)]
            if commits or look >= newest:
                break
            look *= 4
        if not commits:
            return fold(e.event for e in entries)
        commit = entries[commits[-1]].event
        assert isinstance(commit, Committed)
        start = View(position=commit.position, last_batch_id=commit.batch_id, last_commit=commit)
        return fold((e.event for e in entries[commits[-1] + 1 :]), start)

    def _write(self, event: Event) -> bool:
        """Write the event as the next one. False if another event took its place."""
        sequence = self._sequence + 1
        rows = row_of(sequence, self._pipeline, event)
        properties = CommitProperties(
            app_transactions=[Transaction(self._app, sequence)], custom_metadata={"tidemill.event": NAMES[type(event)]}
        )
        try:
            table = self._opened() or self._created()
            # delta-rs detects only commits made after the handle was opened, so the handle must be as new as the view.
            if (table.transaction_version(self._app) or 0) != self._sequence:
                return False
            self._commit(table, rows, properties)
        except (DeltaError, OSError) as error:
            return self._landed(event, sequence, error)
        return True

    @staticmethod
    def _commit(table: DeltaTable, rows: pa.Table, properties: CommitProperties) -> None:
        hooks = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
        write_deltalake(table, rows, mode="append", commit_properties=properties, post_commithook_properties=hooks)
        answered()

    def _created(self) -> DeltaTable:
        """Create the table, or open it if another process created it first; then it may already hold events."""
        try:
            # With retries, the loser of a race would put its CREATE on top of the winner's table.
            once = CommitProperties(max_commit_retries=0)
            DeltaTable.create(
                self._uri,
                SCHEMA,
                mode="error",
                configuration=_CONFIGURATION,
                storage_options=self._spec.options,
                commit_properties=once,
            )
        except (DeltaError, OSError):
            if not self.exists:
                raise
        self._table = DeltaTable(self._uri, storage_options=self._spec.options)
        self._opened_at = time.monotonic()
        return self._table

    def _landed(self, event: Event, sequence: int, cause: Exception) -> bool:
        """After an error, find out whether our event landed, another one did, or none."""
        overtaken = _OVERTAKEN in str(cause)
        for _ in range(_LOOKS if overtaken else 1):
            self._table = None
            table = self._opened()
            newest = (table.transaction_version(self._app) or 0) if table is not None else 0
            if table is not None and newest >= sequence:
                break
            time.sleep(_A_MOMENT if overtaken else 0)
        else:
            if "already exists" in str(cause):
                return False
            if refused := refusal(f"{self._pipeline}: the ledger was not written", cause):
                raise refused from cause
            raise CommitUnknown(f"{self._pipeline}: the ledger was not written: {cause}", fix="try again") from cause
        entries = self._read(table, after=sequence - 1, newest=newest)
        # Others may have appended meanwhile: the next append reads everything again.
        self._table = None
        return any(e.sequence == sequence and e.event == event for e in entries)
