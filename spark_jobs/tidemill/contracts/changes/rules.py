"""Changes of the rules of a contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from tidemill.contracts.changes.change import Change
from tidemill.contracts.changes.described import refuses_null
from tidemill.contracts.changes.fields import Comparison
from tidemill.contracts.changes.normal import always_holds, by_values, by_words
from tidemill.contracts.changes.strictness import compared
from tidemill.contracts.conditions import Condition, Predicate, Rule
from tidemill.contracts.outcomes import columns_of
from tidemill.core.bind.rule_bounds import implied
from tidemill.core.contract.contract import Between, Expectation, Holds, LengthBetween, Severity, Unique
from tidemill.core.contract.row_checks import Bounded, ItemsBetween
from tidemill.core.contract.schema import Field
from tidemill.core.errors import DeclarationError
from tidemill.core.sql import expressions
from tidemill.core.sql.dialect import tokens_of

_KEY = "primaryKey"
"""The rule that a key makes; a change of the key is told as such."""

_NAMES = ("column", "left", "right")
_Pairs = list[tuple[Rule | None, Rule | None]]


def rule_changes(both: Comparison, renamed: Mapping[str, str], removed: Sequence[str]) -> Iterator[Change]:
    """Changes of rules; a rule with another name that says the same is none.

    `renamed` are columns by their old names. A rule that goes with a column of `removed` is no change of its own.
    """
    old = [_translated(rule, renamed) for rule in both.before.rules.values() if rule.name != _KEY]
    new = [rule for rule in both.after.rules.values() if rule.name != _KEY]
    was = {renamed.get(f.name, f.name): f for f in both.before.contract.fields}
    for first, second in _pairs(old, new):
        if first is not None and second is not None:
            yield from _of_rule(both, first, second, was)
        elif first is not None and not set(_columns(first.condition)) & set(removed):
            yield from _of_gone(both, first, was)
        elif second is not None:
            yield from _of_new(both, second, was)


def _of_new(both: Comparison, rule: Rule, was: Mapping[str, Field]) -> Iterator[Change]:
    """A rule that is new. Plans see that of records, also if it refuses no row."""
    idle = _is_idle(rule, both.after.contract.fields)
    if not idle or both.after.is_input:
        yield _of_one(both, rule, "rule-reworded" if idle or _is_required(rule, was) else "rule-added")


def _of_gone(both: Comparison, rule: Rule, was: Mapping[str, Field]) -> Iterator[Change]:
    """A rule that is gone. Where `required` stands in its stead, that is told with the fields."""
    idle = _is_idle(rule, was.values())
    if idle and both.after.is_input:
        yield _of_one(both, rule, "rule-removed")
    elif idle:
        return
    elif not _is_required(rule, {field.name: field for field in both.after.contract.fields}):
        yield _of_one(both, rule, "rule-removed")
    elif _is_required(rule, was):
        # It said again what `required` says: readers lose nothing.
        yield _of_one(both, rule, "rule-removed" if both.after.is_input else "rule-reworded")


def _is_idle(rule: Rule, fields: Iterable[Field]) -> bool:
    """Whether a rule refuses no value that its column can hold, so that it says nothing."""
    return rule.tolerance is None and always_holds(rule.condition, {field.name: field.type for field in fields})


def _is_required(rule: Rule, fields: Mapping[str, Field]) -> bool:
    """Whether the rule refuses null, and the column is required in these fields."""
    return refuses_null(rule) and any(c in fields and fields[c].required for c in _columns(rule.condition))


def _pairs(old: list[Rule], new: list[Rule]) -> _Pairs:
    """Rules with the same name, then those that say the same, then the only ones about the same thing."""
    found: _Pairs = []
    for alike in (lambda rule: rule.name, _said, lambda rule: _subject(rule.condition)):
        for rule in list(new):
            key = alike(rule)
            first = [other for other in old if alike(other) == key]
            if key is not None and len(first) == 1 and sum(alike(other) == key for other in new) == 1:
                found.append((first[0], rule))
                old.remove(first[0])
                new.remove(rule)
    return [*found, *((rule, None) for rule in old), *((None, rule) for rule in new)]


def _said(rule: Rule) -> Any:
    return repr((by_words(rule.condition), rule.severity, rule.tolerance, rule.scope))


def _subject(condition: Condition) -> Any:
    """What a rule is about, whatever it allows: two rules about it are versions of one. None if nobody can tell."""
    match condition:
        case Predicate() | Holds() | Unique():
            return None
        case Expectation():
            return (condition.kind, condition.column)
        case Bounded():
            return (Bounded, condition.column, condition.operator[0])
        case Between() | LengthBetween() | ItemsBetween():
            bounds = condition.minimum is not None, condition.maximum is not None
            return (type(condition), condition.column, bounds)
        case _:
            return (type(condition), columns_of(condition))


def _translated(rule: Rule, renamed: Mapping[str, str]) -> Rule:
    """The rule with the new names of columns."""
    if not set(_columns(rule.condition)) & renamed.keys():
        return rule
    column, dot, rest = rule.name.partition(".")
    name = f"{renamed[column]}{dot}{rest}" if dot and column in renamed else rule.name
    return replace(rule, name=name, condition=_with_names(rule.condition, renamed))


def _with_names(condition: Condition, renamed: Mapping[str, str]) -> Condition:
    match condition:
        case Predicate(sql=sql):
            return replace(condition, sql=_sql(sql, renamed))
        case Holds(columns=columns, predicate=sql):
            return Holds(columns=tuple(renamed.get(c, c) for c in columns), predicate=_sql(sql, renamed))
        case Unique(columns=columns):
            return Unique(columns=tuple(renamed.get(c, c) for c in columns))
        case _:
            held = {f.name: getattr(condition, f.name) for f in fields(condition) if f.name in _NAMES}
            return replace(condition, **{name: renamed.get(c, c) for name, c in held.items()})


def _sql(sql: str, renamed: Mapping[str, str]) -> str:
    """SQL with other names of columns. A contract that can be used has no SQL that cannot be read."""
    for token in reversed(tokens_of(sql)):
        if token.token_type.name in ("VAR", "IDENTIFIER") and token.text in renamed:
            sql = f"{sql[: token.start]}`{renamed[token.text]}`{sql[token.end + 1 :]}"
    return sql


def _of_rule(both: Comparison, old: Rule, new: Rule, was: Mapping[str, Field]) -> Iterator[Change]:
    if old.severity is not new.severity:
        yield _of_one(both, new, "severity-raised" if new.severity is Severity.ERROR else "severity-lowered")
    types = {f.name: f.type for f in both.after.contract.fields if f.name in was and was[f.name].type == f.type}
    first, second = by_words(old.condition), by_words(new.condition)
    told = compared(
        replace(old, condition=by_values(first, types)),
        replace(new, condition=by_values(second, types)),
    )
    unseen = told in (None, "rule-weaker") and first != second and _is_unseen(both, old, new)
    if told is None and unseen:
        yield _of_one(both, new, "rule-reworded")
    elif told is not None:
        yield _of_one(both, new, "rule-weaker-unseen" if unseen else told)


def _is_unseen(both: Comparison, old: Rule, new: Rule) -> bool:
    """Whether plans cannot see that a rule of records allows more: they compare bounds alone."""
    first, second = (
        [r.predicate for r in one.contract.row_rules if r.name == rule.name]
        for one, rule in ((both.before, old), (both.after, new))
    )
    return not implied(first, second)


def _of_one(both: Comparison, rule: Rule, kind: str) -> Change:
    """A change of a rule, at its line; where it is gone, at its column."""
    warns = rule.severity is Severity.WARNING and not kind.startswith("severity")
    columns = _columns(rule.condition)
    path = tuple(columns) if len(columns) == 1 else ()
    line = rule.line if rule in both.after.rules.values() else None
    return both.change("warning-changed" if warns else kind, path, message=rule.name, line=line)


def _columns(condition: Condition) -> tuple[str, ...]:
    """The columns that a rule is about."""
    if not isinstance(condition, Predicate):
        return columns_of(condition)
    try:
        return tuple(sorted(expressions.columns_of(condition.sql)))
    except DeclarationError:
        return ()
