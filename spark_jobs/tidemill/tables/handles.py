"""Opens Delta tables without a JVM."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from tidemill.core.errors import EngineError, TableDamaged
from tidemill.stores.refusals import refusal
from tidemill.tables.interface import TableSpec
from tidemill.tables.owner import check_owner

# What delta-rs says of a log with a hole, without a beginning, or with a checkpoint that cannot be read.
_BROKEN = ("Expected contiguous commit files", "No table metadata or protocol", "Invalid Checkpoint")


def newest(spec: TableSpec, *, thoroughly: bool = False) -> DeltaTable | None:
    """A handle on the table at its newest version, or None when there is no table.

    Whose a table of before is, which names no owner, is found out `thoroughly` only: from its history.

    Raises:
        TableDamaged: there is one, but its log has a hole.
        ForeignTable: there is one, but it belongs to another pipeline.
        EngineError: there is one, but it cannot be opened.
    """
    handle = _open(spec, None)
    if handle is not None and thoroughly:
        check_owner(handle, spec, thoroughly=True)
    return handle


def open_table(spec: TableSpec, version: int | None = None) -> DeltaTable:
    """A handle on the table at its newest version, or at `version`.

    Raises:
        EngineError: there is no such table, or no such version of it.
    """
    handle = _open(spec, version)
    if handle is None and version is not None and _open(spec, None) is not None:
        raise EngineError(
            f"table {spec.name} ({spec.uri}) cannot be opened at version {version}: its log was trimmed",
            fix="read a newer version",
        )
    if handle is None:
        raise EngineError(
            f"table {spec.name} is not at {spec.uri}",
            fix="it is made when a batch first writes to it; if it was lost, build it again from the log",
        )
    return handle


def rows_of(spec: TableSpec) -> int:
    """How many rows the table has, from its log alone; 0 without a table."""
    handle = newest(spec)
    return 0 if handle is None else int(pc.sum(pa.table(handle.get_add_actions())["num_records"]).as_py() or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How large a table is, and between which values of a column of timestamps the rows of each of its files lie."""

    rows: int
    bytes: int
    spans: tuple[tuple[datetime, datetime], ...]

    @staticmethod
    def of(spec: TableSpec, column: str) -> Extent:
        """Of the newest version, from the table's log alone; without a table nothing."""
        handle = newest(spec)
        if handle is None:
            return Extent(rows=0, bytes=0, spans=())
        files = pa.table(handle.get_add_actions(flatten=True))
        rows, size = (int(pc.sum(files[name]).as_py() or 0) for name in ("num_records", "size_bytes"))
        # A table without files says nothing of its columns.
        bounds = [files[f"{side}.{column}"].to_pylist() for side in ("min", "max")] if files.num_rows else [[], []]
        spans = ((low, high) for low, high in zip(*bounds, strict=True) if low is not None and high is not None)
        return Extent(rows=rows, bytes=size, spans=tuple(spans))


def is_broken(error: Exception) -> bool:
    """Whether an error of opening a table means that its log is damaged, so that no other try will succeed."""
    return isinstance(error, DeltaError) and any(text in str(error) for text in _BROKEN)


class Opened:
    """What every writer says of its table, without writing."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec

    def version(self) -> int | None:
        """See `Table.version`."""
        handle = newest(self.spec)
        return None if handle is None else handle.version()

    def transaction_version(self, app_id: str) -> int | None:
        """See `Table.transaction_version`."""
        handle = newest(self.spec)
        return None if handle is None else handle.transaction_version(app_id)


def _open(spec: TableSpec, version: int | None) -> DeltaTable | None:
    try:
        handle = DeltaTable(spec.uri, version=version, storage_options=spec.options)
    except TableNotFoundError:
        return None
    except Exception as error:
        if is_broken(error) and version is None:
            raise TableDamaged(f"table {spec.name} ({spec.uri}): its log is damaged: {error}") from error
        wanted = "" if version is None else f" at version {version}"
        if refused := refusal(f"table {spec.name} ({spec.uri}) cannot be opened{wanted}", error):
            raise refused from error
        raise EngineError(f"table {spec.name} ({spec.uri}) cannot be opened{wanted}: {error}") from error
    # An earlier version may have been another pipeline's.
    if version is None:
        check_owner(handle, spec)
    return handle
