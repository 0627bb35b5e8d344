"""Finds the rules that an error of Spark may be about: predicates of users, which can fail for some values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tidemill.contracts.compile import objects_of, rules_of
from tidemill.contracts.document import read
from tidemill.contracts.files import OBJECT
from tidemill.contracts.findings import Findings
from tidemill.core.contract.contract import Contract, Holds
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import parsed

_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(?P<text>[^\n]+)\n(?P<before> *)(?P<marked>\^+)")


def suspects(contracts: Iterable[Contract], error: str) -> tuple[str, ...]:
    """The rules that may have failed, each with file and line.

    Spark quotes the statement and marks the part that failed. Without a mark, these are all rules that can fail.
    """
    quoted = [m["text"][len(m["before"]) :][: len(m["marked"])] for m in _FRAGMENT.finditer(error)]
    return tuple(
        f"{_place(contract, rule)}: rule `{rule}`: {predicate}"
        for contract in {contract.name: contract for contract in contracts}.values()
        for rule, predicate in _failing(contract)
        if not quoted or any(part in predicate for part in quoted)
    )


def _failing(contract: Contract) -> Iterator[tuple[str, str]]:
    """The predicates of a contract that raise an error for some values, by the names of their rules."""
    # Imported late: it loads the SQL parser.
    from tidemill.core.contract.exact_sums import exact  # noqa: PLC0415
    from tidemill.core.contract.run_time_faults import possible_faults  # noqa: PLC0415

    types = {field.name: field.type for field in contract.fields}
    rows = [(rule.name, rule.predicate) for rule in contract.row_rules if rule.pattern is None]
    tables = [(rule.name, rule.check.predicate) for rule in contract.table_rules if isinstance(rule.check, Holds)]
    for name, predicate in (*rows, *tables):
        try:
            may_fail = parsed(predicate).may_fail or exact(predicate, types).may_fail
            if may_fail or possible_faults(predicate, types):
                yield name, predicate
        except DeclarationError:
            continue


def _place(contract: Contract, rule: str) -> str:
    """File and line of a rule; only the file, if it is not there any more."""
    root = read(Path(contract.source), Findings(contract.source))
    picked = contract.name.partition(OBJECT)[2]
    for schema in objects_of(root) if root is not None else ():
        if not picked or schema.text("name") == picked:
            found = rules_of(root, schema).get(rule) if root is not None else None
            if found is not None:
                return f"{contract.source}:{found.line}"
    return contract.source
