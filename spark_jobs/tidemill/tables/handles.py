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

_FIX = "look at the files in its folder _delta_log, and at the right to read them"
# Errors of delta-rs for a log with a gap, without a beginning, or with a checkpoint that cannot be read.
_BROKEN = ("Expected contiguous commit files", "No table metadata or protocol", "Invalid Checkpoint")


def newest(spec: TableSpec, *, thoroughly: bool = False) -> DeltaTable | None:
    """A handle on the table at its newest version; None when there is no table.

    An older table names no owner: only with `thoroughly` is its owner found out, from its history.

    Raises:
        TableDamaged: the table's log is damaged.
        ForeignTable: the table belongs to another pipeline.
        EngineError: the table exists, but cannot be opened.
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
    """The number of rows of the table, from its log alone; 0 without a table."""
    handle = newest(spec)
    return 0 if handle is None else int(pc.sum(pa.table(handle.get_add_actions())["num_records"]).as_py() or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The size of a table, and for each file the least and the greatest value of a column of timestamps."""

    rows: int
    bytes: int
    spans: tuple[tuple[datetime, datetime], ...]

    @staticmethod
    def of(spec: TableSpec, column: str) -> Extent:
        """The extent of the newest version, from the table's log alone; empty without a table."""
        handle = newest(spec)
        if handle is None:
            return Extent(rows=0, bytes=0, spans=())
        files = pa.table(handle.get_add_actions(flatten=True))
        rows, size = (int(pc.sum(files[name]).as_py() or 0) for name in ("num_records", "size_bytes"))
        # The listing of a table without files has no columns for bounds.
        bounds = [files[f"{side}.{column}"].to_pylist() for side in ("min", "max")] if files.num_rows else [[], []]
        spans = ((low, high) for low, high in zip(*bounds, strict=True) if low is not None and high is not None)
        return Extent(rows=rows, bytes=size, spans=tuple(spans))


def is_broken(error: Exception) -> bool:
    """Whether an error from opening a table means that its log is damaged, so that trying again is useless."""
    return isinstance(error, DeltaError) and any(text in str(error) for text in _BROKEN)


class Opened:
    """What every writer can tell about its table without writing."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec

    def version(self) -> int | None:
        """The newest version; None when there is no table."""
        handle = newest(self.spec)
        return None if handle is None else handle.version()

    def transaction_version(self, app_id: str) -> int | None:
        """The version of the last transaction of `app_id`; None when there is none."""
        handle = newest(self.spec)
        return None if handle is None else handle.transaction_version(app_id)


def _open(spec: TableSpec, version: int | None) -> DeltaTable | None:
    try:
        handle = DeltaTable(spec.uri, version=version, storage_options=spec.options)
    except TableNotFoundError:
        return None
    except Exception as error:
        # Under the message, delta-rs gives the stack of its own code.
        said = str(error).partition("\n")[0]
        if is_broken(error) and version is None:
            raise TableDamaged(f"table {spec.name} ({spec.uri}): its log is damaged: {said}") from error
        wanted = "" if version is None else f" at version {version}"
        if refused := refusal(f"table {spec.name} ({spec.uri}) cannot be opened{wanted}", error):
            raise refused from error
        raise EngineError(f"table {spec.name} ({spec.uri}) cannot be opened{wanted}: {said}", fix=_FIX) from error
    # An earlier version may have had another owner.
    if version is None:
        check_owner(handle, spec)
    return handle
