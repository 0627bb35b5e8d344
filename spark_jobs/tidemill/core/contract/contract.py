"""Data contracts as values, independent of their file format and of the engine that checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidemill.core.contract.row_checks import RowCheck
from tidemill.core.contract.schema import Field
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.service_level import ServiceLevel
from tidemill.core.contract.tolerance import Tolerance


class Severity(StrEnum):
    """What a broken rule does: an ERROR blocks, a WARNING is recorded."""

    ERROR = "error"
    WARNING = "warning"


class Format(StrEnum):
    """How the value of a record encodes a row. A published table has no format."""

    JSON = "json"
    CSV = "csv"
    ACCESS_LOG = "access_log"
    TEXT = "text"
    BYTES = "bytes"


class ExtraFields(StrEnum):
    """What happens to a JSON field that the contract does not name.

    KEEP puts all of them, as one JSON object in text, into the column `_extra`; REJECT rejects the record.
    """

    KEEP = "keep"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNull:
    """No value is null."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """No two rows agree in all of `columns`; of single rows, no two of the whole table."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Values lie between the bounds, which are included unless they are exclusive; None is no bound; nulls pass."""

    column: str
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """Values are among these; nulls pass."""

    column: str
    values: tuple[str | int | float | bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The whole text of each value matches the regular expression; nulls pass."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRule:
    """A predicate that every row must meet.

    `predicate` is Spark SQL over the contract's columns. A row breaks the rule when the predicate is
    false; null is not false. A rule of severity ERROR rejects the row, a WARNING leaves it.

    Spark would match a pattern by trying, which can take for ever. So a rule with `pattern` is checked by that where
    records are decoded, in linear time; its predicate says the same, for readers and for fingerprints.
    """

    name: str
    predicate: str
    severity: Severity = Severity.ERROR
    description: str = ""
    pattern: Matches | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBetween:
    """Texts have at least `minimum` and at most `maximum` characters; None is no bound."""

    column: str
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCountBetween:
    """The number of staged rows lies between the bounds, both included; None is no bound."""

    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """`left operator right` holds in every row where neither column is null."""

    left: str
    operator: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """A predicate in Spark SQL over `columns`, which the user wrote, is not false in any row; null is not false."""

    columns: tuple[str, ...]
    predicate: str


Argument = str | int | float | bool | tuple[str | int | float | bool, ...]
"""The value of an argument of an expectation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A statistic over all staged rows, which Great Expectations computes; `kind` is its name there.

    `arguments` are names and values, sorted by name; a list of values is a tuple.
    """

    column: str
    kind: str
    arguments: tuple[tuple[str, Argument], ...]


Stated = Compare | Holds | Expectation
"""Checks that a user writes as a whole."""

Check = NotNull | Unique | Between | OneOf | Matches | LengthBetween | RowCountBetween | Stated | RowCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRule:
    """A check on all staged rows of a batch together, before anyone can see them.

    Without a `tolerance` no row may break it. With the `scope` TABLE it counts the rows that the table keeps, too.
    """

    name: str
    check: Check
    severity: Severity = Severity.ERROR
    description: str = ""
    tolerance: Tolerance | None = None
    scope: Scope = Scope.BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What one topic carries, or what one published table promises.

    `fields` are in the order of the file. `primary_key` names the columns that identify a row.
    `options` belong to the format: `delimiter` of a CSV, for instance. `fingerprint` is a SHA-256
    over the meaning of the contract: comments and layout of the file do not change it, and neither do `levels`, which
    no batch enforces.
    """

    name: str
    version: str
    fields: tuple[Field, ...]
    format: Format | None = None
    extra_fields: ExtraFields = ExtraFields.KEEP
    primary_key: tuple[str, ...] = ()
    row_rules: tuple[RowRule, ...] = ()
    table_rules: tuple[TableRule, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    source: str = ""
    fingerprint: str = ""
    levels: tuple[ServiceLevel, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(f.name for f in self.fields)
