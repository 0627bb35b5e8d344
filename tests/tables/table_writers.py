"""Both writers as the tests use them: rows are dicts, and a test can step in before and after a commit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tidemill.core.contract.schema import Decimal, Field, Scalar
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.create import ensure_table
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.interface import Between, TableSpec, Transaction

Row = dict[str, Any]

MIDNIGHT = datetime(2024, 3, 1, tzinfo=UTC)
PLAN = "plan-a"

FIELDS = (
    Field(name="window_start", type=Scalar.TIMESTAMP, description="first moment of the window"),
    Field(name="page", type=Scalar.STRING),
    Field(name="views", type=Scalar.LONG, description="how often it was seen"),
    Field(name="cost", type=Decimal(20, 4)),
)


class Interrupted(Exception):
    """The answer of a write that did land got lost."""


class _SteppedIn:
    """Calls `before` and `after` around the commit of the writer it is mixed into."""

    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None

    def _commit(self, commit: Callable[[], Any]) -> Any:
        # Whatever steps in may itself write: it must not step in again.
        before, self.before = self.before, None
        after, self.after = self.after, None
        if before:
            before()
        landed = super()._commit(commit)
        if after:
            after()
        return landed


class HookedDeltaRs(_SteppedIn, DeltaRsTable):
    """delta-rs, with steps."""


class DeltaRsWriter:
    """Rows are Arrow tables."""

    name = "delta-rs"

    def table(self, spec: TableSpec) -> HookedDeltaRs:
        return HookedDeltaRs(spec)

    def rows(self, rows: list[Row], fields: tuple[Field, ...] = FIELDS) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=arrow_schema(fields))

    def dicts(self, rows: pa.Table) -> list[Row]:
        return rows.to_pylist()


class SparkWriter:
    """Rows are DataFrames."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        # Importing PySpark takes seconds, which a racing process would spend for nothing.
        from tidemill.tables.spark import SparkTable

        self.session = session
        self._table = type("HookedSpark", (_SteppedIn, SparkTable), {})

    def table(self, spec: TableSpec) -> Any:
        return self._table(spec, self.session)

    def rows(self, rows: list[Row], fields: tuple[Field, ...] = FIELDS) -> Any:
        return self.session.createDataFrame(DeltaRsWriter().rows(rows, fields))

    def dicts(self, rows: Any) -> list[Row]:
        table = rows.toArrow()
        utc = [f.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
        return table.cast(pa.schema(utc)).to_pylist()


Writer = DeltaRsWriter | SparkWriter


def a_spec(folder: Any, **changes: Any) -> TableSpec:
    """A table of windows, made."""
    values = {"uri": str(folder / "views"), "name": "views", "fields": FIELDS, "pruned_by": ("window_start",)}
    spec = TableSpec(**{**values, **changes})
    ensure_table(spec)
    return spec


def a_row(minute: float, page: str | None = "/", views: int | None = 1, **more: Any) -> Row:
    return {"window_start": at(minute), "page": page, "views": views, **more}


def at(minute: float) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)


def minutes(low: float | None, high: float | None) -> Between:
    ends = [None if m is None else at(m) for m in (low, high)]
    return Between(column="window_start", low=ends[0], high=ends[1])


def batch(number: int, app_id: str = "pipeline/views") -> Transaction:
    return Transaction(app_id, number)


def upsert(table: Any, writer: Writer, rows: list[Row], number: int, **changes: Any) -> Any:
    """Upserts rows by window and page, within all of time unless told otherwise."""
    values = {"keys": ("window_start", "page"), "within": minutes(0, 10_000), "plan_hash": PLAN}
    shaped = writer.rows(rows, table.spec.fields)
    return table.upsert(shaped, transaction=batch(number), **{**values, **changes})


def append(table: Any, writer: Writer, rows: list[Row], number: int | None, plan_hash: str = PLAN) -> Any:
    transaction = None if number is None else batch(number)
    return table.append(writer.rows(rows, table.spec.fields), transaction=transaction, plan_hash=plan_hash)


def load(spec: TableSpec, rows: list[Row], number: int | None = None) -> None:
    """Appends rows the quick way, for a test that is about something else."""
    append(DeltaRsTable(spec), DeltaRsWriter(), rows, number)


def seen(table: Any, writer: Writer, **where: Any) -> list[tuple[Any, ...]]:
    """What a reader finds: minutes since midnight, page, views; in this order, null after everything."""
    rows = writer.dicts(table.read(**where))
    brief = [((r["window_start"] - MIDNIGHT) / timedelta(minutes=1), r["page"], r["views"]) for r in rows]
    return sorted(brief, key=lambda row: [(value is None, value) for value in row])


def state_of(spec: TableSpec) -> tuple[int, int | None, tuple[int, int], frozenset[str]]:
    """Version, last batch, protocol and files: equal before and after means that nothing was written."""
    handle = DeltaTable(spec.uri)
    last = handle.transaction_version("pipeline/views")
    return handle.version(), last, tuple(handle.protocol()[:2]), frozenset(handle.file_uris())


def spoil_all_but(uri: str, newest: int) -> frozenset[str]:
    """Makes files unreadable, all but those of the newest commits; what they hold is never asked for."""
    kept = frozenset(DeltaTable(uri).file_uris()) - frozenset(
        DeltaTable(uri, version=DeltaTable(uri).version() - newest).file_uris()
    )
    spoiled = frozenset(DeltaTable(uri).file_uris()) - kept
    assert spoiled
    for file in spoiled:
        path = Path(file.removeprefix("file://"))
        path.write_bytes(b"x" * path.stat().st_size)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return spoiled
