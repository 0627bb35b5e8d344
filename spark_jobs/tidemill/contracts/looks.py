"""Which rows each rule of a table looks at, for people who ask (`contract lint --verbose`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tidemill.contracts.changes.described import described
from tidemill.contracts.files import contract_files
from tidemill.contracts.findings import Finding, Findings
from tidemill.contracts.meanings import EACH_ROW, looks_at
from tidemill.core.errors import ContractError


def scopes_of(place: Path) -> Iterator[Finding]:
    """A finding for each rule of the tables in a file or folder that does not look at each row by itself.

    Contracts with errors have none: what is wrong with them is said elsewhere.
    """
    try:
        paths = contract_files(place) if place.is_dir() else [place]
    except ContractError:
        return
    for path in paths:
        findings = Findings(str(path))
        for each in described(path)[0].values():
            for rule in () if each.is_input else each.rules.values():
                if (looked := looks_at(rule)) != EACH_ROW:
                    findings.information(rule.line, f"rule `{rule.name}` looks at {looked}")
        yield from findings.sorted()
