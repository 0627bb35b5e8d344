"""Quality rules of ODCS 3.0 in the words of today: `rule` became `metric`, and `validValues` an argument.

Later versions still have the old words.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.contracts.document import Node

RENAMED = {"duplicateCount": "duplicateValues", "validValues": "invalidValues"}
"""The metrics that were called by another name."""

_OPERATOR = "must"


def _of_today(rule: Node) -> Node:
    """The rule with `metric` instead of `rule`. A rule that has a metric, or is of another type, stays as it is."""
    keys, named = rule.value, rule.child("rule")
    if not isinstance(keys, Mapping) or named is None or "metric" in keys or rule.text("type") not in ("", "library"):
        return rule
    told = {key: child for key, child in keys.items() if key not in ("rule", "validValues")}
    name = named.value
    metric = {"metric": Node(RENAMED.get(name, name) if isinstance(name, str) else name, named.line)}
    values = keys.get("validValues")
    if values is not None:
        metric["arguments"] = Node({"validValues": values}, values.line)
    if name == "validValues" and not any(key.startswith(_OPERATOR) for key in keys):
        metric["mustBe"] = Node(0, named.line)
    return Node(told | metric, rule.line)


def object_of_today(root: Node, schema: Node) -> Node:
    """A schema object of a contract, with its quality rules and those of its columns in the words of today."""
    found, columns = _with_rules_of_today(schema), schema.child("properties")
    if not isinstance(found.value, Mapping) or columns is None or not isinstance(columns.value, tuple):
        return found
    changed = Node(tuple(map(_with_rules_of_today, columns.value)), columns.line)
    return Node({**found.value, "properties": changed}, schema.line)


def _with_rules_of_today(element: Node) -> Node:
    rules = element.child("quality")
    if not isinstance(element.value, Mapping) or rules is None or not isinstance(rules.value, tuple):
        return element
    changed = Node(tuple(map(_of_today, rules.value)), rules.line)
    return Node({**element.value, "quality": changed}, element.line)
