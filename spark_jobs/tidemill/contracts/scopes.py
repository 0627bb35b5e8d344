"""Which rows a rule of a contract asks to look at: the custom property `scope` of a quality rule."""

from __future__ import annotations

from tidemill.contracts.conditions import Condition, Place
from tidemill.contracts.document import Node
from tidemill.contracts.extensions import SCOPE, VENDOR
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import closest, shown
from tidemill.core.contract.contract import Expectation, RowCountBetween, Unique
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.tolerance import Tolerance


def scope_node(node: Node, findings: Findings) -> Node | None:
    """The custom property `scope` of a quality rule, if it has one; other properties are noted."""
    found: Node | None = None
    for each in node.items("customProperties"):
        name, vendor = each.text("property"), each.text("vendor")
        if vendor not in ("", VENDOR):
            continue
        if name != SCOPE:
            _note_foreign(each, name, vendor, findings)
        elif found is not None:
            findings.error(each.line, f"custom property `{SCOPE}` stands twice, first in line {found.line}")
        else:
            found = each
    return found


def _note_foreign(node: Node, name: str, vendor: str, findings: Findings) -> None:
    near = closest(name, (SCOPE,))
    if near or vendor == VENDOR:
        said = f"unknown custom property `{name}` of a quality rule; known: {SCOPE}"
        findings.error(node.line, said, fix=near or "remove it, or give it the vendor that it is for")
    elif name:
        findings.information(node.line, f"custom property `{name}` is not Tidemill's")


def scope_of(property_: Node | None, condition: Condition, tolerance: Tolerance | None, place: Place) -> Scope:
    """The scope that a rule asks for. Faults, and scopes that make no difference, are noted."""
    if property_ is None:
        return Scope.BATCH
    findings, child = place.findings, property_.child("value")
    line = child.line if child else property_.line
    if child is None or child.value not in list(Scope):
        near = closest(str(child.value) if child else "", list(Scope))
        findings.error(line, f"custom property `scope` is {shown(child)}; supported: batch, table", fix=near)
        return Scope.BATCH
    scope = Scope(str(child.value))
    if place.is_input:
        findings.error(
            line,
            "scope belongs to rules of published tables: records are checked one by one",
            fix="remove it, or put the rule into the contract of the table",
        )
    elif scope is Scope.TABLE and not _counts(condition, tolerance):
        findings.error(
            line,
            "scope: table makes no difference here: no row may break this rule, and each row is checked by the batch "
            "that publishes it",
            fix="remove it; it is for numbers of rows, keys, statistics, and rules that some rows may break",
        )
    return scope


def _counts(condition: Condition, tolerance: Tolerance | None) -> bool:
    """Whether more rows can change what a rule finds of the others."""
    return tolerance is not None or isinstance(condition, RowCountBetween | Expectation | Unique)
