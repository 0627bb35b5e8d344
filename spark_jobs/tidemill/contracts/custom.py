"""Quality rules of type custom: predicates of our own engine, and expectations of Great Expectations."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemill.contracts.conditions import Condition, Place, Predicate
from tidemill.contracts.document import Node
from tidemill.contracts.expectations import expectation_check
from tidemill.contracts.findings import Findings
from tidemill.contracts.shapes import closest, shown
from tidemill.core.contract import Compare
from tidemill.core.errors import DeclarationError
from tidemill.core.expressions import columns_of
from tidemill.core.schema import Field

ENGINES = ("tidemill", "greatExpectations")
"""The engines of a custom rule; the second is also written great-expectations."""

OPERATORS = ("<", "<=", ">", ">=", "=")
"""How two columns can be compared."""

_GREAT_EXPECTATIONS = ("greatExpectations", "great-expectations")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)+`""", re.DOTALL)
_COLUMN = r"(\w+|`(?:[^`]|``)+`)"
_COMPARISON = re.compile(rf"\s*{_COLUMN}\s*(<=|>=|==|<|>|=)\s*{_COLUMN}\s*")
_REFUSED = {
    r";": "`;` ends a statement, but a predicate is only a part of one",
    r"--|/\*": "a comment would hide what follows it",
    r"::": "`::` is a cast that fails the whole batch: write try_cast(... AS ...)",
    r"\bselect\b": "a subquery looks beyond the row",
    r"\bover\s*\(": "a window function looks beyond the row",
}


def without_texts(sql: str) -> str:
    """The SQL with an empty text in the place of every quoted text and name."""
    return _QUOTED.sub("''", sql)


def custom_condition(node: Node, place: Place) -> Condition | None:
    """The condition of one custom rule; what cannot be run is noted."""
    findings = place.findings
    engine = node.child("engine")
    implementation = node.child("implementation")
    name = node.text("engine")
    if engine is None or implementation is None:
        findings.error(node.line, "a quality rule of type custom needs engine and implementation")
    elif name in _GREAT_EXPECTATIONS and place.is_input:
        findings.error(
            engine.line,
            "Great Expectations checks staged rows; the records of an input contract are checked one by one",
            fix="write engine: tidemill and an SQL predicate",
        )
    elif name in _GREAT_EXPECTATIONS:
        return expectation_check(implementation, place)
    elif name != "tidemill":
        findings.error(
            engine.line, f"engine `{name}` cannot be run; supported: {', '.join(ENGINES)}", fix=closest(name, ENGINES)
        )
    elif not isinstance(implementation.value, str) or not implementation.value.strip():
        findings.error(implementation.line, f"expected an SQL predicate, found {shown(implementation)}")
    else:
        sql = " ".join(implementation.value.split("\n")).strip()
        if _is_predicate(sql, implementation.line, place.fields, findings):
            return Predicate(sql=sql) if place.is_input else _comparison(sql, implementation.line, findings)
    return None


def _is_predicate(sql: str, line: int, fields: Mapping[str, Field], findings: Findings) -> bool:
    """Whether the text can stand alone in brackets and reads only this contract's columns."""
    bare = without_texts(sql)
    for pattern, reason in _REFUSED.items():
        if re.search(pattern, bare, re.IGNORECASE):
            findings.error(line, f"the predicate {sql!r} cannot be run: {reason}")
            return False
    if not _is_balanced(bare):
        findings.error(line, f"the predicate {sql!r} has a bracket or quote without its partner")
        return False
    try:
        used = columns_of(sql)
    except DeclarationError as error:
        findings.error(line, error.message, fix=error.fix)
        return False
    known = {name.lower() for name in fields}
    unknown = sorted(name for name in used if name.lower() not in known)
    if unknown:
        findings.error(
            line,
            f"the predicate reads `{unknown[0]}`, but the contract has no such property; it has {', '.join(fields)}",
            fix=closest(unknown[0], fields),
        )
    elif not used:
        findings.error(line, f"the predicate {sql!r} reads no property of the contract")
    return bool(used) and not unknown


def _is_balanced(bare: str) -> bool:
    depth = 0
    for character in bare.replace("''", ""):
        if character in "'\"`":
            return False
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def _comparison(sql: str, line: int, findings: Findings) -> Condition | None:
    match = _COMPARISON.fullmatch(sql)
    if match is None or match[1].isdigit() or match[3].isdigit():
        findings.error(
            line,
            f"the predicate {sql!r} cannot be run on staged rows; supported there: two columns compared by one of "
            f"{', '.join(OPERATORS)}",
            fix="use logicalTypeOptions, a library metric, or add the column in the pipeline",
        )
        return None
    return Compare(left=_name(match[1]), operator="=" if match[2] == "==" else match[2], right=_name(match[3]))


def _name(column: str) -> str:
    return column[1:-1].replace("``", "`") if column.startswith("`") else column
