"""All changes between two versions of contracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.contracts.changes.change import Bump, Change
from tidemill.contracts.changes.described import Described
from tidemill.contracts.changes.fields import Comparison, field_changes
from tidemill.contracts.changes.information import of_contract, of_object
from tidemill.contracts.changes.promises import promise_changes
from tidemill.contracts.changes.rules import rule_changes
from tidemill.core.contract.contract import ExtraFields

_ENDING = ("deprecated", "retired")

Pair = tuple[Described | None, Described | None]


def changes_of(before: Mapping[str, Described], after: Mapping[str, Described]) -> list[Change]:
    """Every change between two sets of contracts, by contract and line."""
    found: list[Change] = []
    for old, new in pairs(before, after):
        if old is not None and new is not None:
            both, name = Comparison(old, new), new.contract.name
            if before.get(name) is not old:
                found.append(both.change("contract-renamed", message=f"{old.contract.name}, now {name}"))
            found += _of_contract(both)
        elif new is not None:
            found.append(Comparison(new, new).change("contract-added"))
        elif old is not None:
            found.append(Comparison(old, old).change("contract-removed"))
    return sorted(found, key=lambda c: (c.contract, c.line, c.kind, c.where))


def pairs(before: Mapping[str, Described], after: Mapping[str, Described]) -> list[Pair]:
    """The two versions of each contract: by name, or else by the id of the file, with or without the object's name.

    None stands for a version that is not there. So a file or its only object can be renamed, and another can join it.
    """
    found: list[Pair] = [(before[name], after[name]) for name in sorted(before.keys() & after.keys())]
    gone = {name: old for name, old in before.items() if name not in after}
    come = {name: new for name, new in sorted(after.items()) if name not in before}
    for identity in (_id_and_object, _id):
        for name, new in list(come.items()):
            known = [other for other, old in gone.items() if identity(old) == identity(new)]
            alone = sum(identity(other) == identity(new) for other in come.values()) == 1
            if identity(new) and len(known) == 1 and alone:
                found.append((gone.pop(known[0]), come.pop(name)))
    return [*found, *((None, new) for new in come.values()), *((old, None) for old in gone.values())]


def _id_and_object(one: Described) -> tuple[str, str]:
    return one.root.text("id"), one.schema.text("name")


def _id(one: Described) -> str:
    """The id of a file with one object; another object of the same file is another contract."""
    return one.root.text("id") if len(one.root.items("schema")) == 1 else ""


def bump_needed(changes: list[Change]) -> Bump:
    """The part of the version that these changes of one contract must raise."""
    return max((change.bump for change in changes), default=Bump.NONE)


def is_raised(before: str, after: str, needed: Bump) -> bool:
    """Whether a version rose as much as is needed. Versions that are no three numbers only have to differ."""
    old, new = (_numbers(text) for text in (before, after))
    if old is None or new is None:
        return needed is Bump.NONE or before != after
    major, minor, patch = old
    least = {
        Bump.NONE: old,
        Bump.PATCH: (major, minor, patch + 1),
        # Before 1.0.0 everything may change with the second number, as semantic versions have it.
        Bump.MINOR: (major, minor + 1, 0) if major else (major, minor, patch + 1),
        Bump.MAJOR: (major + 1, 0, 0) if major else (major, minor + 1, 0),
    }[needed]
    return new >= least


def _numbers(text: str) -> tuple[int, int, int] | None:
    parts = text.removeprefix("v").split(".")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() for p in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


def _of_contract(both: Comparison) -> Iterator[Change]:
    old, new = both.before.contract, both.after.contract
    if both.before.is_input is not both.after.is_input:
        yield both.change("direction-changed")
        return
    if (old.format, dict(old.options)) != (new.format, dict(new.options)):
        yield both.change("format-changed", message=f"{_format(both.before)}, now {_format(both.after)}")
    if old.extra_fields is not new.extra_fields:
        kept = new.extra_fields is ExtraFields.KEEP
        yield both.change("extra-fields-kept" if kept else "extra-fields-refused")
    of_fields = list(field_changes(both))
    yield from of_fields
    renamed = {
        old: new for old, _, new in (c.message.partition(", now ") for c in of_fields if _is_of(c, "field-renamed"))
    }
    removed = [change.where for change in of_fields if _is_of(change, "field-removed", "field-removed-refused")]
    key = tuple(renamed.get(name, name) for name in old.primary_key)
    if key != new.primary_key:
        same, kind = sorted(key) == sorted(new.primary_key), "key-changed" if key else "key-added"
        told = (", ".join(key) or "none" for key in (old.primary_key, new.primary_key))
        yield both.change("key-moved" if same else kind, message=", now ".join(told))
    yield from rule_changes(both, renamed, removed)
    yield from promise_changes(both)
    yield from _of_status(both)
    first, second = both.before, both.after
    for kind, message, line in (*of_contract(first.root, second.root), *of_object(first.schema, second.schema)):
        yield both.change(kind, message=message, line=line)


def _is_of(change: Change, *kinds: str) -> bool:
    """Whether it is a change of these kinds, about a whole column."""
    return change.kind in kinds and change.at_column


def _format(one: Described) -> str:
    options = "".join(f" {name}={value}" for name, value in sorted(one.contract.options.items()))
    return f"{one.contract.format}{options}"


def _of_status(both: Comparison) -> Iterator[Change]:
    """Whether the contract, or its object, is marked as deprecated; any other status is a word about it."""
    old, new = (one.root.text("status").lower() for one in (both.before, both.after))
    if old != new:
        node, message = both.after.root.child("status"), f"status {old or 'none'}, now {new or 'none'}"
        kind = "deprecated" if new in _ENDING and old not in _ENDING else "status-changed"
        yield both.change(kind, message=message, line=None if node is None else node.line)
    if both.before.schema.is_true("deprecated") is not both.after.schema.is_true("deprecated"):
        gone = both.before.schema.is_true("deprecated")
        yield both.change("deprecated-no-more" if gone else "deprecated")
