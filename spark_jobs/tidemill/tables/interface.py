"""What Tidemill asks of a Delta table, whoever writes it.

    Table[Rows]
    ├── DeltaRsTable    Rows = pyarrow.Table             no JVM; a commit costs milliseconds
    └── SparkTable      Rows = pyspark.sql.DataFrame     as large as the log

Both write the same tables, read each other's transactions, and keep protocol (1, 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Protocol, TypeVar

from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.plan.slices import BatchRange, slice_of

Rows = TypeVar("Rows")
Bound = int | datetime | date

_PARTITION_TYPES = (Scalar.DATE, Scalar.STRING, Scalar.INTEGER, Scalar.LONG)
BOUND_TYPES = {Scalar.TIMESTAMP: datetime, Scalar.DATE: date, Scalar.INTEGER: int, Scalar.LONG: int}

# What Delta on Parquet refuses in a name.
_FORBIDDEN = frozenset(" ,;{}()\n\t=")


@dataclass(frozen=True, slots=True)
class Transaction:
    """Who writes, and how far they are: `version` is the batch id, which only grows within `app_id`.

    One constant `app_id` per pipeline and table: a table remembers every id for ever.

    Of a table whose rows carry their slice (`by_slice`), `version` is the `slice_number`.
    """

    app_id: str
    version: int
    by_slice: bool = field(default=False, compare=False)

    def who(self, version: int | None = None) -> str:
        """The one that wrote `version`, for an error's text."""
        number = self.version if version is None else version
        return "batch {} attempt {}".format(*slice_of(number)) if self.by_slice else f"batch {number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Rows with `low <= column < high`; a bound that is None does not bound.

    The column holds timestamps (bounds are aware datetimes), dates or whole numbers. Rows where it is
    null are inside only when nothing bounds.
    """

    column: str
    low: Bound | None
    high: Bound | None

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if isinstance(bound, datetime) and bound.utcoffset() is None:
                raise ValueError(f"bound of {self.column!r} has no time zone: {bound}")

    @property
    def is_one(self) -> bool:
        """Whether it is a single whole number that they have."""
        return isinstance(self.low, int) and self.high == self.low + 1

    @property
    def coarse(self) -> Between:
        """The same for choosing files: Spark cuts their greatest moment to milliseconds, so `low` is cut too."""
        if not isinstance(self.low, datetime):
            return self
        return replace(self, low=self.low.replace(microsecond=self.low.microsecond // 1000 * 1000))


def of_batches(batches: Iterable[BatchRange]) -> tuple[Between, ...]:
    """The rows of these batches, as conditions of which one holds."""
    return tuple(Between(column="batch_id", low=b.from_batch, high=b.until_batch) for b in batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A table as its writers want it.

    Every column is created nullable: what must not be null is the contract's business, and a promise
    that a table cannot drop would outlive the contract. Columns that the table has and the spec does
    not name are left alone and filled with null.

    `partition_by` names columns of type date, string, int or bigint. `pruned_by` names columns (of
    timestamps, dates or whole numbers) whose least and greatest value every file records, so that a read
    which bounds them skips files; () records them for the first 32 columns. Few are better: with 8 columns
    instead of one, opening a table of 2,000 files takes twice as long.

    `storage` says how delta-rs reaches the store of `uri`: its options, which may hold secrets, {} for a folder. It is
    asked whenever the table is opened or written, because keys may last for less than a batch.

    `owner` is the pipeline that the table belongs to, by its first name; "" opens the table of anybody.

    `own` tables are read by Tidemill alone. Their log forgets files with their removal: 2,000 removed files
    would add half to the time that it takes to open a table.
    """

    uri: str
    fields: tuple[Field, ...]
    name: str
    partition_by: tuple[str, ...] = ()
    pruned_by: tuple[str, ...] = ()
    description: str = ""
    own: bool = False
    owner: str = ""
    storage: Callable[[], Mapping[str, str]] = field(default=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        lowered = [f.name.lower() for f in self.fields]
        if len(set(lowered)) != len(lowered):
            raise ValueError(f"table {self.name}: two columns differ in case only: {', '.join(self.columns)}")
        for column in self.columns:
            if set(column) & _FORBIDDEN:
                raise ValueError(f"table {self.name}: a column cannot be named {column!r}")
        for column in self.partition_by:
            if self.field(column).type not in _PARTITION_TYPES:
                raise ValueError(f"table {self.name}: cannot partition by {column!r}: {self.field(column).type}")
        for column in self.pruned_by:
            if self.field(column).type not in BOUND_TYPES:
                raise ValueError(f"table {self.name}: cannot prune by {column!r}: {self.field(column).type}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(f.name for f in self.fields)

    @property
    def options(self) -> dict[str, str] | None:
        """What `storage` says now, as delta-rs takes it."""
        return dict(self.storage()) or None

    def field(self, name: str) -> Field:
        """The field called `name`; ValueError when there is none."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise ValueError(f"table {self.name} has no column {name!r}; it has {', '.join(self.columns)}")

    def check(self, bounds: Between) -> Between:
        """The same bounds, after making sure that they fit their column; ValueError otherwise."""
        data_type = self.field(bounds.column).type
        wanted = BOUND_TYPES.get(data_type) if isinstance(data_type, Scalar) else None
        for bound in (bounds.low, bounds.high):
            if bound is not None and (wanted is None or type(bound) is not wanted):
                raise ValueError(f"table {self.name}: {bound!r} cannot bound {bounds.column!r}: {data_type}")
        return bounds


@dataclass(frozen=True, slots=True)
class Landed:
    """The rows were written; `version` of the table holds them."""

    version: int


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """The same transaction of the same plan was written before, at `version`; nothing was written now."""

    version: int


Written = Landed | AlreadyThere


class Table(Protocol[Rows]):
    """A Delta table that `ensure_table` has made.

    Rows hold the columns of the spec in any order; a missing column is written as null. Writes with a
    transaction happen once: the table compares `transaction.version` with the last one of the same app
    id, on the state that it commits on.

    Raises, from every write:
        Fenced: the table is past this transaction, or at it with another plan. Nothing was written.
        CommitUnknown: the write failed and is not there. It may be tried again with the same
            transaction; without a transaction only under another name (a new slice).
        Incompatible: the rows or the table do not have the types of the spec.
    """

    @property
    def spec(self) -> TableSpec:
        """What the table should look like."""
        ...

    def version(self) -> int | None:
        """The newest version, or None when there is no table."""
        ...

    def transaction_version(self, app_id: str) -> int | None:
        """The last version that `app_id` has written, or None."""
        ...

    def append(self, rows: Rows, *, transaction: Transaction | None, plan_hash: str) -> Written:
        """Adds the rows. No rows are a write too: the transaction is recorded.

        Without a transaction the caller must be able to tell doubled rows apart.
        """
        ...

    def upsert(
        self, rows: Rows, *, keys: tuple[str, ...], within: Between, transaction: Transaction, plan_hash: str
    ) -> Written:
        """Replaces the rows that agree with a given row in all of `keys`, and adds the other rows.

        Null agrees with null. A replaced row is replaced whole. Upserting the same rows again changes
        nothing that can be seen. No rows are a write too: the transaction is recorded.

        `within` holds for all given rows and says which stored rows can agree with them: files that
        lie outside are not read, and stored rows outside are not replaced.

        Raises:
            ValueError: two rows agree in all keys, or a row lies outside `within`.
        """
        ...

    def replace(self, rows: Rows, *, within: tuple[Between, ...], transaction: Transaction, plan_hash: str) -> Written:
        """Takes out every row that lies inside any of `within`, and adds the given rows, at once.

        The given rows may lie anywhere. Files that lie outside all of `within` are not read.
        """
        ...

    def overwrite(self, rows: Rows, *, transaction: Transaction, plan_hash: str) -> Written:
        """Makes the table hold these rows alone, with the columns of the spec, whatever it held before.

        The table need not have the columns of the spec, but it must be there.
        """
        ...

    def read(
        self,
        *,
        where: tuple[Between, ...] = (),
        any_of: tuple[tuple[Between, ...], ...] = (),
        columns: tuple[str, ...] | None = None,
        version: int | None = None,
    ) -> Rows:
        """The rows that meet every condition, in no order, at `version` or the newest.

        With `any_of`, only those that also meet all conditions of one of these parts, each once.

        Columns come in the order asked for, or in the spec's, with the spec's types. A column that the
        table did not have at that version is null. Files that cannot hold such rows are not read.
        """
        ...
