"""Ways to damage the tables of a pipeline behind its back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from support.projects import Mill

Folder = Callable[[Mill], Path]
Change = Callable[[Path], None]


def ledger(mill: Mill) -> Path:
    """The ledger's folder."""
    return Path(mill.project.table_uri(mill.name, "ledger"))


def state(mill: Mill) -> Path:
    """The folder of the state of `sums`."""
    return Path(mill.project.table_uri(mill.name, "state", "sums"))


def published(mill: Mill) -> Path:
    """The folder of the published table `sums`."""
    return Path(mill.project.published_uri("sums"))


def quarantine(mill: Mill) -> Path:
    """The folder of the quarantine."""
    return Path(mill.project.table_uri(mill.name, "quarantine"))


def lose(folder: Path) -> None:
    """It is not there any more."""
    shutil.rmtree(folder)


def lose_entries(*numbers: int) -> Change:
    """Entries of the log are removed, counted from its end: -1 is the newest."""

    def change(folder: Path) -> None:
        entries = sorted((folder / "_delta_log").glob("*.json"))
        for number in numbers:
            entries[number].unlink()

    return change


def put_back(folder: Path) -> None:
    """Without the newest two thirds of its log: an older copy, as far as Delta can tell."""
    entries = sorted((folder / "_delta_log").glob("*.json"))
    for entry in entries[max(1, len(entries) // 3) :]:
        entry.unlink()


def restore(folder: Path) -> None:
    """RESTORE to the version before its newest."""
    table = DeltaTable(str(folder))
    table.restore(table.version() - 1)


def create_again(folder: Path) -> None:
    """Dropped, and created with the same columns."""
    table = DeltaTable(str(folder))
    schema, partitions = table.schema(), table.metadata().partition_columns
    shutil.rmtree(folder)
    DeltaTable.create(str(folder), schema, partition_by=partitions)


def clone(*, app_id: str = "", version: int = 0) -> Change:
    """Replaced by another table with the same rows, and with a transaction when one is given."""

    def change(folder: Path) -> None:
        table = DeltaTable(str(folder))
        rows, partitions = pa.table(table.to_pyarrow_table()), table.metadata().partition_columns
        shutil.rmtree(folder)
        done = [Transaction(app_id, version)] if app_id else None
        for _ in range(20):
            properties = CommitProperties(app_transactions=done)
            write_deltalake(str(folder), rows, mode="overwrite", partition_by=partitions, commit_properties=properties)

    return change


def data_files(folder: Path) -> list[Path]:
    """The files of the newest version."""
    return sorted(Path(f) for f in DeltaTable(str(folder)).file_uris())


def cut_files(folder: Path) -> None:
    """Every data file lacks its end."""
    for file in data_files(folder):
        file.write_bytes(file.read_bytes()[:-40])


def lose_files(folder: Path) -> None:
    """No data file is there any more."""
    for file in data_files(folder):
        file.unlink()


def overwrite_files(folder: Path) -> None:
    """Every data file holds something else of the same length."""
    for file in data_files(folder):
        file.write_bytes(b"x" * file.stat().st_size)


def spoil_pages(folder: Path) -> None:
    """Every data file keeps its length and its end, and holds something else before."""
    for file in data_files(folder):
        data = file.read_bytes()
        end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        file.write_bytes(data[:4] + b"x" * (end - 4) + data[end:])


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its content, but for leases: an attempt lets go of its own, whatever became of it."""
    files = (f for f in sorted(folder.rglob("*")) if f.is_file() and f.parent.name != "leases")
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}
