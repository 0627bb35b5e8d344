"""All changes between two versions of contracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.contracts.changes.change import Bump, Change
from tidemill.contracts.changes.described import Described
from tidemill.contracts.changes.fields import Comparison, field_changes
from tidemill.contracts.changes.strictness import compared
from tidemill.contracts.conditions import Rule
from tidemill.contracts.nodes import plain
from tidemill.core.bind.rule_bounds import implied
from tidemill.core.contract.contract import ExtraFields, Severity

_KEY = "primaryKey"
"""The rule that a key makes; a change of the key is told as such."""


def changes_of(before: Mapping[str, Described], after: Mapping[str, Described]) -> list[Change]:
    """Every change between two sets of contracts, by contract and line."""
    found: list[Change] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None:
            found += _of_contract(Comparison(old, new))
        elif new is not None:
            found.append(Comparison(new, new).change("contract-added"))
        elif old is not None:
            found.append(Comparison(old, old).change("contract-removed"))
    return sorted(found, key=lambda c: (c.contract, c.line, c.kind, c.where))


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
    yield from field_changes(both)
    if old.primary_key != new.primary_key:
        told = (", ".join(key) or "none" for key in (old.primary_key, new.primary_key))
        yield both.change("key-changed", message=", now ".join(told))
    yield from _of_rules(both)
    yield from _of_promises(both)
    if old.description != new.description:
        yield both.change("description-changed")


def _format(one: Described) -> str:
    options = "".join(f" {name}={value}" for name, value in sorted(one.contract.options.items()))
    return f"{one.contract.format}{options}"


def _of_rules(both: Comparison) -> Iterator[Change]:
    """Changes of rules; a rule with another name that says the same is none."""
    old, new = (dict(one.rules) for one in (both.before, both.after))
    for name, rule in list(new.items()):
        twin = next((n for n, other in old.items() if n not in new and _says_the_same(other, rule)), None)
        if name not in old and twin is not None:
            del new[name], old[twin]
    for name in dict.fromkeys((*old, *new)):
        first, second = old.get(name), new.get(name)
        if name == _KEY:
            continue
        if first is not None and second is not None:
            yield from _of_rule(both, first, second)
        elif first is not None:
            yield _of_one(both, first, "rule-removed")
        elif second is not None:
            yield _of_one(both, second, "rule-added")


def _says_the_same(one: Rule, other: Rule) -> bool:
    return (one.condition, one.severity, one.tolerance) == (other.condition, other.severity, other.tolerance)


def _of_rule(both: Comparison, old: Rule, new: Rule) -> Iterator[Change]:
    if old.severity is not new.severity:
        kind = "severity-raised" if new.severity is Severity.ERROR else "severity-lowered"
        yield both.change(kind, message=new.name, line=new.line)
    told = compared(old, new)
    if told is not None:
        yield _of_one(both, new, "rule-weaker-unseen" if told == "rule-weaker" and _is_unseen(both, old, new) else told)


def _is_unseen(both: Comparison, old: Rule, new: Rule) -> bool:
    """Whether plans cannot see that a rule of records allows more: they compare bounds alone."""
    first, second = (
        [r.predicate for r in one.contract.row_rules if r.name == rule.name]
        for one, rule in ((both.before, old), (both.after, new))
    )
    return not implied(first, second)


def _of_one(both: Comparison, rule: Rule, kind: str) -> Change:
    warns = rule.severity is Severity.WARNING
    line = rule.line if rule.name in both.after.rules else both.after.schema.line
    return both.change("warning-changed" if warns else kind, message=rule.name, line=line)


def _of_promises(both: Comparison) -> Iterator[Change]:
    old, new = both.before.promises, both.after.promises
    for name in sorted({*old, *new}):
        first, second = old.get(name), new.get(name)
        if second is None:
            yield both.change("promise-removed", message=name)
        elif first is None:
            yield both.change("promise-added", message=name, line=second.line)
        elif plain(first) != plain(second):
            yield both.change("promise-changed", message=name, line=second.line)
