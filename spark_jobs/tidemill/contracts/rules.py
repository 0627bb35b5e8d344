"""All rules of a contract: collected, checked against the columns, and made row rules or table rules.

The rules of an input contract check one record at a time, before anything is computed from it. The rules of an output
contract check the staged rows of a batch together. Not every condition can be used in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tidemill.contracts.conditions import Condition, Place, Predicate, Rule, are_alike
from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.options import option_rules
from tidemill.contracts.predicates import sql_of
from tidemill.contracts.quality import quality_rules
from tidemill.contracts.values import is_number_type
from tidemill.core.contract.contract import (
    Between,
    Compare,
    Expectation,
    LengthBetween,
    Matches,
    NotNull,
    RowCountBetween,
    RowRule,
    TableRule,
    Unique,
)
from tidemill.core.contract.row_checks import ITEMS, NotNullInside
from tidemill.core.contract.row_rules import MAX_ROW_RULES
from tidemill.core.contract.schema import Array, DataType, Field, Object, Scalar

_APART = (
    "compare numbers with numbers, dates with dates or timestamps, others with their own type: try_cast(... AS ...) "
    "gives a value another type"
)


def collect(
    schema: Node, fields: Mapping[str, Field], primary_key: Sequence[str], findings: Findings, *, is_input: bool
) -> tuple[Rule, ...]:
    """Return the rules of a schema object in the order of the file, with unique names. Faults are noted."""
    rules = list(_rules(schema, fields, primary_key, findings, is_input=is_input))
    first: dict[str, Rule] = {}
    for rule in rules:
        if rule.name in first:
            findings.error(
                rule.line,
                f"two rules are called `{rule.name}`, the first in line {first[rule.name].line}",
                fix="give each quality rule a name of its own",
            )
        first.setdefault(rule.name, rule)
        for reason, fix in _misfits(rule.condition, fields):
            findings.error(rule.line, f"rule `{rule.name}` cannot be run: {reason}", fix=fix)
    return tuple(first.values())


def _rules(
    schema: Node, fields: Mapping[str, Field], primary_key: Sequence[str], findings: Findings, *, is_input: bool
) -> Iterator[Rule]:
    names = tuple(name for name in (schema.text("name"), schema.text("physicalName")) if name)
    place = Place(column=None, fields=fields, is_input=is_input, findings=findings, names=names)
    for node in schema.items("properties"):
        field = fields.get(node.text("name"))
        if field is None:
            continue
        required = node.child("required") or node.child("primaryKey") or node
        if field.required and not is_input:
            yield Rule(line=required.line, name=f"{field.name}.required", condition=NotNull(column=field.name))
        unique = node.child("unique")
        if unique is not None and unique.value is True:
            yield Rule(line=unique.line, name=f"{field.name}.unique", condition=Unique(columns=(field.name,)))
        yield from () if is_input else _inner_rules(required.line, field)
        yield from option_rules(node, field, findings)
        yield from quality_rules(node, replace(place, column=field))
    if primary_key and not is_input:
        line = min(n.line for n in schema.items("properties") if n.text("name") in primary_key)
        yield Rule(line=line, name="primaryKey", condition=Unique(columns=tuple(primary_key)))
    yield from quality_rules(schema, place)


def _inner_rules(line: int, field: Field) -> Iterator[Rule]:
    """The rules of what objects of a column must have inside. The decoder checks records for it."""
    for path in required_paths(field.type):
        name = ".".join((field.name, *path, "required")).replace(f".{ITEMS}", ITEMS)
        yield Rule(line=line, name=name, condition=NotNullInside(column=field.name, path=path))


def required_paths(data_type: DataType) -> Iterator[tuple[str, ...]]:
    """The paths of all required fields inside values of a type."""
    match data_type:
        case Array(item):
            yield from ((ITEMS, *path) for path in required_paths(item))
        case Object(fields):
            for field in fields:
                if field.required:
                    yield (field.name,)
                yield from ((field.name, *path) for path in required_paths(field.type))


def row_rules(rules: Sequence[Rule], fields: Mapping[str, Field], findings: Findings) -> tuple[RowRule, ...]:
    """Return the rules of an input contract as row rules. A rule about several rows is noted."""
    types = {f.name: f.type for f in fields.values()}
    found: list[RowRule] = []
    for rule in rules:
        if isinstance(rule.condition, Unique | RowCountBetween | Expectation):
            findings.error(
                rule.line,
                f"rule `{rule.name}` cannot be run in an input contract: it is about several records, "
                "and records are checked one by one",
                fix="put it into the contract of the published table",
            )
        else:
            found.append(
                RowRule(
                    name=rule.name,
                    predicate=sql_of(rule.condition, types),
                    severity=rule.severity,
                    description=rule.description,
                    pattern=rule.condition if isinstance(rule.condition, Matches) else None,
                )
            )
    if len(found) > MAX_ROW_RULES:
        findings.error(
            rules[MAX_ROW_RULES].line,
            f"{len(found)} row rules, but a contract can have at most {MAX_ROW_RULES}",
            fix="join some of them with AND in a quality rule of type custom, engine tidemill",
        )
    return tuple(found)


def table_rules(rules: Sequence[Rule], findings: Findings) -> tuple[TableRule, ...]:
    """Return the rules of an output contract as table rules. A rule that applies only to single records is noted."""
    found: list[TableRule] = []
    for rule in rules:
        if not isinstance(rule.condition, Predicate):
            found.append(
                TableRule(
                    name=rule.name,
                    check=rule.condition,
                    severity=rule.severity,
                    description=rule.description,
                    tolerance=rule.tolerance,
                    scope=rule.scope,
                )
            )
        else:
            findings.error(
                rule.line,
                f"rule `{rule.name}` cannot be run in an output contract, whose rules are about staged rows",
                fix="remove it, or put it into the contract of the topic",
            )
    return tuple(found)


def _misfits(condition: Condition, fields: Mapping[str, Field]) -> Iterator[tuple[str, str]]:
    """Yield why a condition cannot be used on columns of these types, and what to do."""
    match condition:
        case Between(column=column) if not is_number_type(fields[column].type):
            yield f"`{column}` is no number", ""
        case Matches(column=column) | LengthBetween(column=column) if fields[column].type is not Scalar.STRING:
            yield f"`{column}` is no text", ""
        case Unique(columns=columns):
            for column in columns:
                if isinstance(fields[column].type, Array | Object):
                    yield f"`{column}` is an array or object, and these cannot be compared", ""
        case Compare(left=left, right=right):
            missing = [c for c in (left, right) if c not in fields]
            if missing:
                yield f"there is no property `{missing[0]}`", ""
            elif not are_alike(fields[left].type, fields[right].type):
                yield f"`{left}` and `{right}` have types that cannot be compared", _APART
            elif left == right:
                yield f"it compares `{left}` with itself", ""
