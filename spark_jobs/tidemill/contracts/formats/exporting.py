"""What every export does: it takes the rules that its format can express, and names the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidemill.contracts.changes.described import Described
from tidemill.contracts.conditions import Condition, Rule
from tidemill.core.contract.contract import Compare, NotNull, Severity, Unique
from tidemill.core.contract.schema import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The text of a contract in another format, and what that text does not say."""

    text: str
    losses: tuple[str, ...]


@dataclass(slots=True)
class Rules:
    """The rules of a contract. Each is taken at most once; those that nobody took are lost."""

    source: Described
    format: str
    lost: list[str] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def of_column(self, column: str, takes: Callable[[Condition], bool]) -> list[Condition]:
        """Take the rules of a column that `takes` accepts. Those that only warn or tolerate rows are left."""
        found = [rule for rule in self._strict() if getattr(rule.condition, "column", None) == column]
        taken = [rule for rule in found if takes(rule.condition)]
        self._taken |= {rule.name for rule in taken}
        return [rule.condition for rule in taken]

    def compared(self) -> list[Compare]:
        """Take the rules that compare two columns, other than doubles: NaN breaks each of these, but in no SQL."""
        types = {field.name: field.type for field in self.source.contract.fields}
        found = [
            (rule.name, rule.condition)
            for rule in self._strict()
            if isinstance(rule.condition, Compare) and types.get(rule.condition.left) is not Scalar.DOUBLE
        ]
        self._taken |= {name for name, _ in found}
        return [condition for _, condition in found]

    def is_unique(self, column: str) -> bool:
        """Take the rule that a column has no value twice, if there is one."""
        found = [rule for rule in self._strict() if rule.condition == Unique(columns=(column,))]
        found = [rule for rule in found if rule.name != "primaryKey"]
        self._taken |= {rule.name for rule in found}
        return bool(found)

    def required(self, column: str) -> bool:
        """Whether a column is required; takes rules that say the same."""
        same = self.of_column(column, lambda condition: isinstance(condition, NotNull))
        return bool(same) or any(f.name == column and f.required for f in self.source.contract.fields)

    def takes_key(self) -> tuple[str, ...]:
        """Take the primary key."""
        self._taken.add("primaryKey")
        return self.source.contract.primary_key

    def lose(self, text: str) -> None:
        """Note something that the format cannot express."""
        self.lost.append(text)

    def losses(self) -> tuple[str, ...]:
        """Everything that the format does not say."""
        levels = (
            f"{self.source.file}:{node.line}: the service level `{name}` is left out: {self.format} cannot say it"
            for name, node in self.source.promises.items()
        )
        return (*self.lost, *(self._why(r) for n, r in self.source.rules.items() if n not in self._taken), *levels)

    def _strict(self) -> list[Rule]:
        rules = self.source.rules.values()
        return [r for r in rules if r.severity is Severity.ERROR and r.tolerance is None]

    def _why(self, rule: Rule) -> str:
        why = f"{self.format} cannot say it"
        if rule.severity is not Severity.ERROR:
            why = "it only warns"
        elif rule.tolerance is not None:
            why = "it tolerates some rows"
        return f"{self.source.contract.source}:{rule.line}: rule `{rule.name}` is left out: {why}"
