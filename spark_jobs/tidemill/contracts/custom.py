"""Quality rules of type custom: predicates for Tidemill's own engine, and expectations of Great Expectations."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.contracts.conditions import Condition, Place, Predicate
from tidemill.contracts.document import Node
from tidemill.contracts.expectations import expectation_check
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import closest, shown
from tidemill.core.contract.contract import Compare
from tidemill.core.contract.schema import Field
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import compared, parsed

ENGINES = ("tidemill", "greatExpectations")
"""The engines of a custom rule; the second is also written great-expectations."""

OPERATORS = ("<", "<=", ">", ">=", "=")
"""The operators that compare two columns."""

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
        sql = one_line(implementation.value)
        line = implementation.line
        if _is_predicate(sql, line, place.fields, findings):
            if not place.is_input:
                return _comparison(sql, line, findings)
            return Predicate(sql=sql) if _is_condition(sql, line, place.fields, findings) else None
    return None


def one_line(sql: str) -> str:
    """Join the lines of a predicate to one line."""
    return " ".join(sql.split("\n")).strip()


def _is_predicate(sql: str, line: int, fields: Mapping[str, Field], findings: Findings) -> bool:
    """Whether the text is a complete predicate that reads only columns of this contract."""
    try:
        found = parsed(sql)
    except DeclarationError as error:
        findings.error(line, error.message, fix=error.fix)
        return False
    if "::" in found.may_fail:
        findings.error(
            line,
            f"the predicate {sql!r} cannot be run: `::` is a cast that fails the whole batch",
            fix="write try_cast(... AS ...)",
        )
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


def _comparison(sql: str, line: int, findings: Findings) -> Condition | None:
    columns = compared(sql)
    if columns is None:
        findings.error(
            line,
            f"the predicate {sql!r} cannot be run on staged rows; supported there: two columns compared by one of "
            f"{', '.join(OPERATORS)}",
            fix="use logicalTypeOptions, a library metric, or add the column in the pipeline",
        )
        return None
    left, operator, right = columns
    return Compare(left=left, operator=operator, right=right)
