"""Translates a `quality` list, of a column or of the whole schema, to rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.contracts.conditions import Condition, Place, Rule
from tidemill.contracts.counts import count_conditions
from tidemill.contracts.custom import custom_condition
from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.metrics import METRICS, SPLIT, metric_conditions, tolerance_of
from tidemill.contracts.nodes import closest, shown
from tidemill.contracts.scopes import scope_node, scope_of
from tidemill.contracts.standard import OPERATORS
from tidemill.core.contract.contract import Expectation, RowCountBetween, Severity

_LIKE_IT: Mapping[Severity, tuple[str, ...]] = {
    Severity.ERROR: ("critical", "fatal", "blocker", "high", "major", "severe", "fail"),
    Severity.WARNING: ("warn", "medium", "low", "minor", "trivial", "notice", "information"),
}
"""What other tools call severities."""

_TYPES = ("library", "sql", "custom", "text")
_DIMENSIONS = ("accuracy", "completeness", "conformity", "consistency", "coverage", "timeliness", "uniqueness")
_OF_TYPE = {
    "library": ("metric", "arguments", "unit", *OPERATORS),
    "custom": ("engine", "implementation"),
    "text": (),
    "sql": ("query", "unit", *OPERATORS),
}
_UNUSED = {
    "schedule": "rules run with every batch",
    "scheduler": "rules run with every batch",
    "method": "it says how others compute the rule",
    "rule": "ODCS replaced it by metric",
}
"""Keys that say when and how other tools run a rule. They promise nothing about values."""


def quality_rules(element: Node, place: Place) -> Iterator[Rule]:
    """Yield the rules in the `quality` of a property or schema object. Faults are noted."""
    named: set[str] = set()
    for number, node in enumerate(element.items("quality"), start=1):
        if not isinstance(node.value, Mapping):
            continue
        _check_keys(node, place)
        _check_name(node, place.findings)
        severity = _severity(node, place.findings)
        tolerance = tolerance_of(node, place) if _type(node) in ("library", "sql") else None
        asked = scope_node(node, place.findings)
        for what, condition in _conditions(node, number, place):
            name = _name(what, node.text("name"), place)
            if name in named and not node.text("name"):
                # The first of several rules that nobody named keeps the name, under which its verdicts are known.
                name = f"{name}{number}"
            named.add(name)
            yield Rule(
                line=node.line,
                name=name,
                condition=condition,
                severity=severity,
                description=" ".join(node.text("description").split()),
                tolerance=None if _is_bounded(condition) else tolerance,
                scope=scope_of(asked, condition, tolerance, place),
            )


def _check_name(node: Node, findings: Findings) -> None:
    child = node.child("name")
    if child is not None and not node.text("name").isprintable():
        findings.error(child.line, f"the name of a rule is {shown(child)}; control characters are no part of names")


def _is_bounded(condition: Condition) -> bool:
    """Whether a number of rows is compared by the condition itself, and not by a tolerance."""
    if isinstance(condition, RowCountBetween):
        return (condition.minimum, condition.maximum) != (None, None)
    return isinstance(condition, Expectation)


def _name(what: str, own: str, place: Place) -> str:
    """The name of a rule: its own name if it has one, otherwise the column and the check."""
    if own:
        return f"{own}.{what.removeprefix(SPLIT)}" if what.startswith(SPLIT) else own
    return f"{place.column.name}.{what}" if place.column else what


def _conditions(node: Node, number: int, place: Place) -> Iterator[tuple[str, Condition]]:
    kind = _type(node)
    if kind == "library":
        yield from metric_conditions(node, place)
    elif kind == "sql":
        yield from count_conditions(node, number, place)
    elif kind == "custom":
        condition = custom_condition(node, place)
        if condition is not None:
            yield f"quality{number}", condition
    elif kind == "text":
        place.findings.information(node.line, "a quality rule of type text is for people, and not checked")
    else:
        _refuse_type(node, kind, place.findings)


def _refuse_type(node: Node, kind: str, findings: Findings) -> None:
    child = node.child("type")
    if not kind:
        findings.error(node.line, "a quality rule needs a type or a metric", fix=f"metrics: {', '.join(METRICS)}")
        return
    findings.error(
        child.line if child else node.line,
        f"quality of type `{kind}` cannot be run; supported: {', '.join(_TYPES)}",
        fix=closest(kind, _TYPES),
    )


def _type(node: Node) -> str:
    return node.text("type") or ("library" if node.child("metric") else "")


def _severity(node: Node, findings: Findings) -> Severity:
    child = node.child("severity")
    if child is None or child.value in list(Severity):
        return Severity(str(child.value)) if child else Severity.ERROR
    if child.value == "info":
        findings.information(child.line, "severity `info` is read as warning: a broken rule is recorded")
        return Severity.WARNING
    said = f"severity is {shown(child)}; supported: error (blocks), warning (is recorded)"
    word = str(child.value).lower()
    meant = next((f"did you mean `{level}`?" for level, words in _LIKE_IT.items() if word in words), "")
    findings.error(child.line, said, fix=meant or closest(word, Severity) or f"write {' or '.join(Severity)}")
    return Severity.ERROR


def _check_keys(node: Node, place: Place) -> None:
    """Note keys that this type of rule does not use, and keys that ask for something Tidemill cannot do."""
    kind = _type(node)
    foreign = {key for keys in _OF_TYPE.values() for key in keys} - set(_OF_TYPE.get(kind, ()))
    for key, child in node.value.items() if isinstance(node.value, Mapping) else ():
        if key in _UNUSED:
            place.findings.information(child.line, f"`{key}` of a quality rule is not used: {_UNUSED[key]}")
            continue
        if key in foreign and kind in _OF_TYPE:
            message = f"`{key}` does not belong to a quality rule of type {kind}"
        else:
            continue
        place.findings.error(child.line, message, fix="remove it")
    dimension = node.child("dimension")
    if dimension is not None and dimension.value not in _DIMENSIONS:
        place.findings.error(dimension.line, f"dimension is {shown(dimension)}; ODCS knows {', '.join(_DIMENSIONS)}")
