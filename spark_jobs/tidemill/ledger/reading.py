"""Reading the events of a ledger: the newest ones from their small files, old ones through the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from tidemill.core.errors import LedgerDamaged, StoreUnreachable
from tidemill.core.history.past import Past
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.events import Committed, Event
from tidemill.ledger.archive import Archive, Rows
from tidemill.ledger.rows import SCHEMA, Entry, entry_of, rows_between
from tidemill.stores.refusals import refusal
from tidemill.tables.arrow_types import schema_fields
from tidemill.tables.handles import is_broken
from tidemill.tables.interface import TableSpec

FIRST_LOOK = 8
"""How many events to read first, counted from the end of the ledger."""

PRUNED_BY = ("sequence", "batch_id")
"""The columns with bounds in every file, by which events are found."""

_FIELDS = schema_fields(SCHEMA)


class Events:
    """Reads the events in the ledger of one pipeline."""

    def __init__(self, uri: str, pipeline: str, storage: Callable[[], Mapping[str, str]]) -> None:
        self._uri, self._pipeline, self._storage = uri, pipeline, storage
        self._app = f"tidemill/ledger/{pipeline}"

    @property
    def _spec(self) -> TableSpec:
        """The table of events."""
        name = f"ledger of {self._pipeline}"
        return TableSpec(uri=self._uri, name=name, fields=_FIELDS, pruned_by=PRUNED_BY, storage=self._storage)

    @property
    def exists(self) -> bool:
        """Whether the table exists, which the first append creates."""
        return DeltaTable.is_deltatable(self._uri, self._spec.options)

    def entries(self, *, last: int | None = None) -> Sequence[Entry]:
        """Return the newest `last` events, or all, oldest first. A whole long ledger does not fit into memory."""
        # Uses a handle of its own: the handle for appends must stay at the version of the view.
        table = self._open()
        if table is None:
            return ()
        newest = table.transaction_version(self._app) or 0
        return self._read(table, after=0 if last is None else newest - last, newest=newest)

    def backwards(self) -> Iterator[Entry]:
        """Yield the events, newest first. Reads only as many as the caller takes."""
        table = self._open()
        until = 0 if table is None else table.transaction_version(self._app) or 0
        look = FIRST_LOOK
        while table is not None and until > 0:
            yield from reversed(self._read(table, after=until - look, newest=until))
            until, look = until - look, look * 4

    def every(self) -> Iterator[Sequence[Entry]]:
        """Yield all events, some thousands at a time, and compare each indexed event with its digest.

        Raises:
            LedgerDamaged: An event is missing or has changed since it was indexed.
        """
        table = self._open()
        if table is not None:
            yield from self._archive(table).every()

    def since(self, sequence: int, kind: type[Event] | None = None) -> Sequence[Entry]:
        """Return the events from `sequence` on, oldest first; only those of `kind`, if given."""
        table = self._open()
        return () if table is None else self._archive(table).entries(sequence - 1, kind)

    def commit(self, sequence: int) -> Committed:
        """Return the commit with this sequence.

        Raises:
            LedgerDamaged: There is no commit with this sequence.
        """
        table = self._open()
        rows = [] if table is None else self._checked(table, sequence - 1, sequence)
        event = entry_of(rows[0], self._uri).event if rows else None
        if not isinstance(event, Committed):
            raise self._damaged(f"event {sequence} is no commit, as its index says")
        return event

    def of_batches(self, batches: BatchRange, kind: type[Event] | None = None) -> Sequence[Entry]:
        """Return the events of these batches, oldest first; only those of `kind`, if given."""
        table = self._open()
        return () if table is None else self._archive(table).of_batches(batches, kind)

    def past(self) -> Past:
        """Summarise the batches of this ledger: old ones from the index, newer ones from their events.

        Raises:
            LedgerDamaged: The index covers more events than the ledger has, or newer events cannot be read.
        """
        table = self._open()
        return Past() if table is None else self._archive(table).past()

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._uri, storage_options=self._spec.options)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            if is_broken(error):
                raise self._damaged(f"its log is damaged: {error}") from error
            where = f"ledger of {self._pipeline} ({self._uri}) cannot be opened"
            if refused := refusal(where, error):
                raise refused from error
            if not self._spec.options:
                raise
            # Under the message, delta-rs gives the stack of its own code.
            said, fix = str(error).partition("\n")[0], "look at the store and the credentials, then try again"
            raise StoreUnreachable(f"{where}: {said}", fix=fix) from error

    def _read(self, table: DeltaTable, *, after: int, newest: int) -> list[Entry]:
        return [entry_of(row, table.table_uri) for row in self._checked(table, after, newest)]

    def _checked(self, table: DeltaTable, after: int, newest: int) -> Rows:
        """Return the rows of these events, each of which must exist exactly once."""
        rows = self._rows(table, "sequence", after, newest, None)
        expected, there = list(range(max(after, 0) + 1, newest + 1)), [row["sequence"] for row in rows]
        if there != expected:
            found = set(there)
            lost = next((f"event {e} is missing" for e in expected if e not in found), "one is there twice")
            raise self._damaged(f"expected events {max(after, 0) + 1} to {newest}, but {lost}")
        return rows

    def _archive(self, table: DeltaTable) -> Archive:
        return Archive(
            table=table,
            app=self._app,
            storage=self._spec.options,
            rows=self._rows,
            checked=self._checked,
            damaged=self._damaged,
        )

    def _rows(self, table: DeltaTable, column: str, after: int, until: int, only: type[Event] | None) -> Rows:
        try:
            return rows_between(table, column, after, until, only=only)
        except (OSError, pa.ArrowException):
            # Maintenance may have folded and deleted files that this handle still names.
            table = self._open() or table
        try:
            return rows_between(table, column, after, until, only=only)
        except (OSError, pa.ArrowException) as error:
            # Importing this loads Arrow's file systems; a reader of the ledger need not wait for that.
            from tidemill.tables.files import damaged_file  # noqa: PLC0415

            if found := damaged_file(table, self._spec):
                raise self._damaged(found) from error
            raise

    def _damaged(self, found: str) -> LedgerDamaged:
        return LedgerDamaged(
            f"ledger of {self._pipeline} ({self._uri}): {found}",
            fix=f"put the newest one back; else build all again from the log: `tidemill rebuild {self._pipeline}`",
        )
