"""What Tidemill asks of a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol, TypeVar

from tidemill.core.schema import Field

Rows = TypeVar("Rows")


@dataclass(frozen=True, slots=True)
class Transaction:
    app_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    column: str
    low: int | datetime | date | None
    high: int | datetime | date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    uri: str
    fields: tuple[Field, ...]
    partition_by: tuple[str, ...] = ()
    description: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Landed:
    version: int


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    version: int


Written = Landed | AlreadyThere


class Table(Protocol[Rows]):
    spec: TableSpec

    def version(self) -> int | None: ...
    def transaction_version(self, app_id: str) -> int | None: ...
    def append(self, rows: Rows, *, transaction: Transaction | None, plan_hash: str) -> Written: ...
    def upsert(
        self, rows: Rows, *, keys: tuple[str, ...], within: Between, transaction: Transaction, plan_hash: str
    ) -> Written: ...
    def read(
        self, *, where: tuple[Between, ...] = (), columns: tuple[str, ...] | None = None, version: int | None = None
    ) -> Rows: ...
