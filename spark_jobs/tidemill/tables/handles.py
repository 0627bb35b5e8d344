"""Opens Delta tables without a JVM."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from tidemill.core.errors import EngineError, TableDamaged
from tidemill.tables.protocol import TableSpec

# What delta-rs says of a log with a hole, without a beginning, or with a checkpoint that cannot be read.
_BROKEN = ("Expected contiguous commit files", "No table metadata or protocol", "Invalid Checkpoint")


def newest(spec: TableSpec) -> DeltaTable | None:
    """A handle on the table at its newest version, or None when there is no table.

    Raises:
        TableDamaged: there is one, but its log has a hole.
        EngineError: there is one, but it cannot be opened.
    """
    return _open(spec, None)


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
        return DeltaTable(spec.uri, version=version, storage_options=spec.options)
    except TableNotFoundError:
        return None
    except Exception as error:
        if is_broken(error) and version is None:
            raise TableDamaged(f"table {spec.name} ({spec.uri}): its log is damaged: {error}") from error
        wanted = "" if version is None else f" at version {version}"
        raise EngineError(f"table {spec.name} ({spec.uri}) cannot be opened{wanted}: {error}") from error
