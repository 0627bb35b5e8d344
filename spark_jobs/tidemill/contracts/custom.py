"""Quality rules of type custom: predicates for Tidemill's own engine, and expectations of Great Expectations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemill.contracts.backtracking import backtracking
from tidemill.contracts.conditions import Condition, Place, Predicate, comparison_of
from tidemill.contracts.document import Node
from tidemill.contracts.expectations import expectation_check
from tidemill.contracts.findings import Findings
from tidemill.contracts.likes import stray_sign
from tidemill.contracts.nodes import closest, shown
from tidemill.contracts.sizes import too_large
from tidemill.core.contract.contract import Compare, Holds
from tidemill.core.contract.schema import Field
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import compared, parsed
from tidemill.core.sql.functions import COLUMN_HINT

if TYPE_CHECKING:
    from tidemill.core.sql.syntax import Parsed
from tidemill.core.sql.syntax import Parsed

ENGINES = ("tidemill", "greatExpectations")
"""The engines of a custom rule; the second is also written great-expectations."""

OPERATORS = ("<", "<=", ">", ">=", "=")
"""The operators that compare two columns."""

_OF_STREAMS = ("use .", "use the aggregate", "write a rule", COLUMN_HINT)
_ONE_RECORD = "a rule compares columns of one row with each other, or with values that stand in the contract"
_GREAT_EXPECTATIONS = ("greatExpectations", "great-expectations")


def custom_condition(node: Node, place: Place) -> Condition | None:
    """Read the condition of one custom rule. Faults are noted."""
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
        return condition_of(one_line(implementation.value), implementation.line, place)
    return None


def condition_of(sql: str, line: int, place: Place) -> Condition | None:
    """The condition of a predicate over one row. Faults are noted."""
    findings, fields = place.findings, place.fields
    if not _is_predicate(sql, line, fields, findings) or not _is_condition(sql, line, fields, findings):
        return None
    if place.is_input:
        return Predicate(sql=sql)
    columns = compared(sql)
    if columns is not None and columns[1] in OPERATORS:
        check = comparison_of(*columns, fields)
        if isinstance(check, Compare):
            return check
    used = {name.lower() for name in parsed(sql).columns}
    return Holds(columns=tuple(name for name in fields if name.lower() in used), predicate=sql)


def one_line(sql: str) -> str:
    """Join the lines of a predicate to one line."""
    return " ".join(sql.split("\n")).strip()


def _is_predicate(sql: str, line: int, fields: Mapping[str, Field], findings: Findings) -> bool:
    """Whether the text is a complete predicate that reads only columns of this contract."""
    try:
        found = parsed(sql)
    except DeclarationError as error:
        findings.error(line, error.message, fix=_ONE_RECORD if error.fix.startswith(_OF_STREAMS) else error.fix)
        return False
    if (danger := _danger(sql, found)) is not None:
        why, fix = danger
        findings.error(line, f"the predicate {sql!r} cannot be run: {why}", fix=fix)
        return False
    used, known = found.columns, {name.lower() for name in fields}
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


def _danger(sql: str, found: Parsed) -> tuple[str, str] | None:
    """Why a predicate could fail or hold up a whole batch, and what to write instead; None if it cannot."""
    if "::" in found.may_fail:
        return "`::` is a cast that fails the whole batch", "write try_cast(... AS ...)"
    # Imported late: it loads the SQL parser.
    from tidemill.core.sql.dialect import tree_of

    tree = tree_of(sql)
    if (tried := backtracking(sql, tree)) is not None:
        name, fix = tried
        return f"`{name}` matches by trying, and one value could hold up a batch", fix
    if (stray := stray_sign(tree)) is not None:
        pattern, reason = stray
        fix = "write the sign twice, or name another one: LIKE '...' ESCAPE '!'"
        return f"Spark refuses the pattern {pattern!r} of its LIKE: {reason}", fix
    if name := too_large(tree):
        fix = (
            "give it sizes that are written as numbers, up to 100,000 (10,000,000 all together), and texts of the rule"
        )
        return f"`{name}` could make a value that no machine can hold", fix
    return None


def _is_condition(sql: str, line: int, fields: Mapping[str, Field], findings: Findings) -> bool:
    """Whether the text may be true or false, without that Spark converts a text."""
    # Imported late: it loads the SQL parser.
    from tidemill.core.contract.implicit_casts import check_predicate

    try:
        check_predicate(sql, {field.name.lower(): field.type for field in fields.values()})
    except DeclarationError as error:
        findings.error(line, f"the predicate cannot be run: {error.message}", fix=error.fix)
        return False
    return True
