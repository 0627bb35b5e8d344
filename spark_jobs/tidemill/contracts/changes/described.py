"""A schema object of a contract file as its changes are looked for: its contract, and what else it promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidemill.contracts.compile import compile_contract, rules_of
from tidemill.contracts.conditions import Rule
from tidemill.contracts.document import Node, read
from tidemill.contracts.files import contract_files, twice
from tidemill.contracts.findings import Finding, Findings, Level
from tidemill.contracts.level_values import PROMISES
from tidemill.contracts.service_levels import level_key
from tidemill.contracts.whole import Whole
from tidemill.core.contract.contract import Contract, NotNull, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One schema object. `rules` are by name, and without those that `required` makes."""

    contract: Contract
    root: Node
    schema: Node
    rules: Mapping[str, Rule]

    @property
    def is_input(self) -> bool:
        """Whether it is about records of a topic."""
        return self.contract.format is not None

    @property
    def file(self) -> Path:
        """The file that it stands in."""
        return Path(self.contract.source.rpartition(":")[0] or self.contract.source)

    @property
    def promises(self) -> Mapping[str, Node]:
        """The service levels of the file, by what tells them apart: property, elements and driver, where given."""
        return {" ".join(filter(None, level_key(n))): n for n in self.root.items(PROMISES)}

    def has_null_rule(self, column: str) -> bool:
        """Whether a rule, and not `required`, refuses null in a column."""
        return any(refuses_null(rule) and rule.condition == NotNull(column=column) for rule in self.rules.values())

    def property_at(self, path: tuple[str, ...]) -> Node | None:
        """The node of a property, by names from the outside to the inside; "[]" is the items of an array."""
        place: Node | None = self.schema
        for name in path:
            if place is None:
                return None
            found = (n for n in place.items("properties") if n.text("name") == name)
            place = place.child("items") if name == "[]" else next(found, None)
        return place

    def line_at(self, path: tuple[str, ...]) -> int:
        """The line of a property, or of the nearest one around it that is there."""
        for size in range(len(path), 0, -1):
            if (node := self.property_at(path[:size])) is not None:
                return node.line
        return self.schema.line


def refuses_null(rule: Rule) -> bool:
    """Whether the rule does what `required` does: not one null may be there."""
    return isinstance(rule.condition, NotNull) and rule.tolerance is None and rule.severity is Severity.ERROR


def described(place: Path) -> tuple[dict[str, Described], list[Finding]]:
    """All schema objects of a file or folder by contract name, and the errors of those that cannot be used."""
    found: dict[str, Described] = {}
    errors: list[Finding] = []
    for path in contract_files(place) if place.is_dir() else [place]:
        findings = Findings(str(path))
        of_file = dict(_of_file(path, findings))
        for name in found.keys() & of_file.keys():
            error = twice(name, [found[name].file, path])
            findings.error(1, error.message, fix=error.fix)
        wrong = [f for f in findings.sorted() if f.severity is Level.ERROR]
        found |= {} if wrong else of_file
        errors += wrong
    return found, errors


def _of_file(path: Path, findings: Findings) -> Iterator[tuple[str, Described]]:
    root = read(path, findings)
    whole = None if root is None else Whole(root)
    objects = [] if whole is None else whole.objects
    for schema in objects:
        picked = schema.text("name") if len(objects) > 1 else ""
        contract = compile_contract(path, findings, picked, whole)
        if root is not None and contract is not None:
            yield contract.name, Described(contract=contract, root=root, schema=schema, rules=rules_of(root, schema))
    if root is not None and not objects:
        compile_contract(path, findings)
