"""Kinds of changes of contracts: what each breaks. This table is the only place that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Breaks(StrEnum):
    """Who or what a change breaks.

    READERS of a published table; WRITERS of records to a topic; BACKFILLS, which read old records by the new contract;
    STATE of pipelines, which was computed by the old one: a plan is refused until somebody decides, or rebuilds.
    """

    READERS = "readers"
    WRITERS = "writers"
    BACKFILLS = "backfills"
    STATE = "state"


class Bump(IntEnum):
    """The part of a version that a change must raise."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of change breaks: in a contract of records, and in a contract of a table."""

    told: str
    records: frozenset[Breaks] = frozenset()
    table: frozenset[Breaks] = frozenset()
    least: Bump = Bump.MINOR


_R, _W, _B, _S = Breaks.READERS, Breaks.WRITERS, Breaks.BACKFILLS, Breaks.STATE


def _kind(
    told: str, records: tuple[Breaks, ...] = (), table: tuple[Breaks, ...] = (), least: Bump = Bump.MINOR
) -> Kind:
    return Kind(told, frozenset(records), frozenset(table), least)


KINDS: Mapping[str, Kind] = {
    "contract-added": _kind("the contract is new"),
    "contract-removed": _kind("the contract is gone", (_W, _S), (_R,)),
    "contract-renamed": _kind("pipelines know the contract by another name now", (), (), Bump.PATCH),
    "direction-changed": _kind("it is about records now, or about a table now", (_W, _B, _S), (_R, _S)),
    "format-changed": _kind("records are written in another way", (_W, _B, _S)),
    "extra-fields-refused": _kind("fields that the contract does not name are refused now", (_W, _B, _S)),
    "extra-fields-kept": _kind("fields that the contract does not name are kept now", (_S,)),
    "field-added": _kind("a field that may be null is new", (_S,), (_S,)),
    "field-added-required": _kind("a required field is new", (_W, _B, _S), (_S,)),
    "field-removed": _kind("a field is gone", (_S,), (_R, _S)),
    "field-removed-refused": _kind("a field is gone, and records that still have it are refused", (_W, _B, _S)),
    "field-renamed": _kind("a field has another name", (_W, _B, _S), (_R, _S)),
    "field-moved": _kind("fields have another order", (_S,), (), Bump.PATCH),
    "field-moved-inside": _kind("fields inside an object have another order", (_S,), (_S,), Bump.PATCH),
    "column-count": _kind("lines of CSV have more or fewer columns", (_W, _B, _S)),
    "column-moved": _kind("fields of CSV have another order", (_W, _B, _S)),
    "type-widened": _kind("a type holds more values", (_S,), (_R, _S)),
    "type-narrowed": _kind("a type holds fewer values", (_W, _B, _S), (_R, _S)),
    "type-changed": _kind("a type is another one", (_W, _B, _S), (_R, _S)),
    "required-added": _kind("null is refused now", (_W, _B, _S)),
    "required-removed": _kind("null is allowed now", (), (_R,)),
    "required-added-inside": _kind("null is refused now inside an object or array", (_W, _B, _S), (_S,)),
    "required-removed-inside": _kind("null is allowed now inside an object or array", (_S,), (_R, _S)),
    "key-added": _kind("columns identify a row now"),
    "key-moved": _kind("the columns that identify a row have another order", (), (), Bump.PATCH),
    "key-changed": _kind("other columns identify a row", (), (_R,)),
    "rule-added": _kind("a rule is new", (_W, _B, _S), ()),
    "rule-stricter": _kind("a rule allows less", (_W, _B, _S), ()),
    "rule-weaker": _kind("a rule allows more", (), (_R,)),
    "rule-weaker-unseen": _kind("a rule allows more, which plans cannot tell", (_S,), (_R,)),
    "rule-reworded": _kind("a rule allows the same in words that plans cannot compare", (_S,), (), Bump.PATCH),
    "rule-changed": _kind("a rule allows something else", (_W, _B, _S), (_R,)),
    "rule-removed": _kind("a rule is gone", (), (_R,)),
    "severity-raised": _kind("a rule blocks that only warned", (_W, _B, _S), ()),
    "severity-lowered": _kind("a rule only warns that blocked", (), (_R,)),
    "promise-added": _kind("freshness, latency or another service level is promised"),
    "promise-changed": _kind("another service level is promised", (_W,), (_R,)),
    "promise-stricter": _kind("a service level promises more", (_W,)),
    "promise-weaker": _kind("a service level promises less", (), (_R,)),
    "promise-removed": _kind("a service level is promised no more", (), (_R,)),
    "unit-changed": _kind("values are in another unit", (_W, _B, _S), (_R,)),
    "unit-added": _kind("the unit of its values is said now, which was not said before"),
    "deprecated": _kind("it is marked as deprecated"),
    "deprecated-no-more": _kind("it is not marked as deprecated any more", (), (), Bump.PATCH),
    "status-changed": _kind("it has another status", (), (), Bump.PATCH),
    "description-changed": _kind("it is described in other words", (), (), Bump.PATCH),
    "information-changed": _kind("something is said in another way to people and other tools", (), (), Bump.PATCH),
    "warning-changed": _kind("a rule that only warns is new, gone or another one", (), (), Bump.PATCH),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: its kind (a key of `KINDS`), the contract and the line of the new file, and what it says there."""

    kind: str
    contract: str
    file: str
    line: int
    where: str
    message: str
    is_input: bool

    @property
    def at_column(self) -> bool:
        """Whether it is about a whole column, and not about a part of its values."""
        return "." not in self.where and "[" not in self.where

    @property
    def breaks(self) -> frozenset[Breaks]:
        """Who or what it breaks; empty for a compatible change."""
        kind = KINDS[self.kind]
        return kind.records if self.is_input else kind.table

    @property
    def bump(self) -> Bump:
        """The part of the contract's version that has to rise. Versions are for others: our own state raises none."""
        return Bump.MAJOR if self.breaks - {Breaks.STATE} else KINDS[self.kind].least

    def __str__(self) -> str:
        """For example "orders: `cents`: a type holds fewer values: bigint, now int"."""
        where = f"`{self.where}`: " if self.where else ""
        said = f": {self.message}" if self.message else ""
        return f"{self.contract}: {where}{KINDS[self.kind].told}{said}"
