"""What Tidemill needs from a Delta table, with either writer.

    Table[Rows]
    ├── DeltaRsTable    Rows = pyarrow.Table             no JVM; a commit costs milliseconds
    └── SparkTable      Rows = pyspark.sql.DataFrame     for rows of any number

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

# Characters that Delta on Parquet refuses in a name.
_FORBIDDEN = frozenset(" ,;{}()\n\t=")


@dataclass(frozen=True, slots=True)
class Transaction:
    """Who writes, and which batch: `version` is the batch id, which only grows within one `app_id`.

    Use one constant `app_id` per pipeline and table: a table remembers every id for ever.

    For a table whose rows carry their slice (`by_slice`), `version` is the `slice_number`.
    """

    app_id: str
    version: int
    by_slice: bool = field(default=False, compare=False)

    def who(self, version: int | None = None) -> str:
        """The name of the batch or attempt that wrote `version`, for errors."""
        number = self.version if version is None else version
        return "batch {} attempt {}".format(*slice_of(number)) if self.by_slice else f"batch {number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Rows with `low <= column < high`; None is no bound.

    The column holds timestamps (bounds are datetimes with a time zone), dates or integers. Rows with null are inside
    only if there is no bound.
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
        """Whether the bounds allow exactly one integer."""
        return isinstance(self.low, int) and self.high == self.low + 1

    @property
    def coarse(self) -> Between:
        """The bounds for selecting files: Spark cuts a file's greatest time to milliseconds, so `low` is cut, too."""
        if not isinstance(self.low, datetime):
            return self
        return replace(self, low=self.low.replace(microsecond=self.low.microsecond // 1000 * 1000))


def of_batches(batches: Iterable[BatchRange]) -> tuple[Between, ...]:
    """Conditions of which each row of these batches meets one."""
    return tuple(Between(column="batch_id", low=b.from_batch, high=b.until_batch) for b in batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A table as its writers need it.

    Every column is created nullable: the contract says what must not be null, and a table could not drop that promise
    when the contract does. Columns that the table has and the spec does not name are left alone and filled with null.

    `partition_by` names columns of type date, string, int or bigint. `pruned_by` names columns (timestamps, dates or
    integers) whose least and greatest value every file records, so that a read with bounds skips files; () means the
    first 32 columns. Fewer are better: opening a table of 2,000 files takes twice as long with 8 columns as with one.

    `storage` gives the options with which delta-rs reaches the store of `uri`; they may hold secrets, and are {} for a
    folder. It is called whenever the table is opened or written, because keys may end before a batch does.

    `owner` is the pipeline that the table belongs to, by its first name; with "", any table may be opened.

    Only Tidemill reads `own` tables. Their log forgets removed files at once: 2,000 removed files would make opening a
    table half as long again.
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
        """The present options from `storage`, in the form of delta-rs."""
        return dict(self.storage()) or None

    def field(self, name: str) -> Field:
        """The field called `name`; ValueError if there is none."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise ValueError(f"table {self.name} has no column {name!r}; it has {', '.join(self.columns)}")

    def check(self, bounds: Between) -> Between:
        """Return the bounds, after a check that they fit their column; ValueError otherwise."""
        data_type = self.field(bounds.column).type
        wanted = BOUND_TYPES.get(data_type) if isinstance(data_type, Scalar) else None
        for bound in (bounds.low, bounds.high):
            if bound is not None and (wanted is None or type(bound) is not wanted):
                raise ValueError(f"table {self.name}: {bound!r} cannot bound {bounds.column!r}: {data_type}")
        return bounds


@dataclass(frozen=True, slots=True)
class Landed:
    """The rows were written, as `version` of the table."""

    version: int


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """The same transaction of the same plan was written before, as `version`; nothing was written now."""

    version: int


Written = Landed | AlreadyThere


class Table(Protocol[Rows]):
    """A Delta table that `ensure_table` has created or checked.

    Rows hold the columns of the spec in any order; a missing column is written as null. A write with a transaction
    happens once: the table compares `transaction.version` with the last version of the same app id, on the state that
    it commits on.

    Raises, from every write:
        Fenced: the table holds a later transaction, or this one with another plan. Nothing was written.
    """

    @property
    def spec(self) -> TableSpec:
        """The columns and settings that the table should have."""
        ...

    def version(self) -> int | None:
        """The newest version; None when there is no table."""
        ...

    def transaction_version(self, app_id: str) -> int | None:
        """The version of the last transaction of `app_id`; None when there is none."""
        ...

    def append(self, rows: Rows, *, transaction: Transaction | None, plan_hash: str) -> Written:
        """Add the rows. No rows are a write, too: the transaction is recorded.

        Without a transaction, the caller must be able to recognise rows that were written twice.
        """
        ...

    def upsert(  # noqa: PLR0913  what is written, where, and by whom
        self,
        rows: Rows,
        *,
        keys: tuple[str, ...],
        within: Between,
        transaction: Transaction,
        plan_hash: str,
        gone: Rows | None = None,
    ) -> Written:
        """Replace the rows that agree with a given row in all of `keys`, and add the other rows.

        Rows that agree with one of `gone`, which has the columns `keys`, are removed; no given row agrees with one.

        Null agrees with null. A replaced row is replaced completely. Upserting the same rows again changes no content.
        No rows are a write, too: the transaction is recorded.

        All given rows and all of `gone` lie inside `within`. Stored rows outside are never replaced, and files that lie
        outside are not read.

        Raises:
            ValueError: two rows agree in all keys, or a row lies outside `within`.
        """
        ...

    def replace(self, rows: Rows, *, within: tuple[Between, ...], transaction: Transaction, plan_hash: str) -> Written:
        """Replace every row that lies inside any of `within` by the given rows, in one commit.

        The given rows may lie anywhere. Files that lie outside all of `within` are not read.
        """
        ...

    def overwrite(self, rows: Rows, *, transaction: Transaction, plan_hash: str) -> Written:
        """Make the table hold only these rows, with the columns of the spec, whatever it held before.

        The table must exist, but may have other columns.
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
        """The rows that meet every condition of `where`, in any order, at `version` or the newest one.

        With `any_of`, only rows that also meet all conditions of one of these parts, each once.

        Columns come in the order of `columns`, or of the spec, with the spec's types. A column that the table did not
        have at that version is null. Files that cannot hold such rows are not read.
        """
        ...
