"""The base of all aggregates: three expressions of Spark SQL (`tidemill.core.declare.aggregates`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tidemill.core.contract.schema import DataType
from tidemill.core.errors import DeclarationError, shown
from tidemill.core.given import check_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """The three expressions of an aggregate; `partial` and `merge` have the same state columns."""

    partial: Mapping[str, str]
    merge: Mapping[str, str]
    finish: str

    def __post_init__(self) -> None:
        for name, steps in (("partial", self.partial), ("merge", self.merge)):
            _check_steps(steps, name)
        check_text(self.finish, "finish of an aggregate", 'finish="{total}"')
        if not self.partial or self.partial.keys() != self.merge.keys():
            raise DeclarationError(
                f"an aggregate has state columns {sorted(self.partial)} in partial but {sorted(self.merge)} in merge",
                fix="give both the same names, at least one",
            )


def _check_steps(steps: object, name: str) -> None:
    example = f'{name}={{"total": "sum({"price" if name == "partial" else "{total}"})"}}'
    if not isinstance(steps, Mapping):
        raise DeclarationError(
            f"{name} of an aggregate has an expression for each state column, found {shown(steps)}",
            fix=f"write for example {example}",
        )
    for column, text in steps.items():
        check_text(column, f"a state column in {name} of an aggregate", example)
        check_text(text, f"the expression for `{column}` in {name} of an aggregate", example)


class Aggregate(ABC):
    """One value per window and key.

    If `approximate_each_time`, computing it again may give another value, within its error.
    """

    approximate_each_time: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse an expression that is no text."""
        kind = type(self).__name__
        for text in self.over:
            check_text(text, f"the expression of {kind}", f'{kind}("price")')

    @property
    @abstractmethod
    def triple(self) -> Triple:
        """The expressions that compute it."""

    @property
    def over(self) -> tuple[str, ...]:
        """The expressions over one row whose values it aggregates; empty for a triple that the user wrote."""
        return tuple(getattr(self, name) for name in ("expression", "predicate") if hasattr(self, name))

    def finish_as(self, wanted: DataType) -> str:
        """The expression `finish` for a column of this type; its value may still have another type."""
        del wanted
        return self.triple.finish

    def overflowed(self, wanted: DataType) -> str | None:
        """An expression over merged state: whether a column of this type cannot hold the value. None: it always can."""
        del wanted
        return None


def single(partial: str, merge: str, finish: str = "{value}") -> Triple:
    """A triple with one state column, `value`."""
    return Triple(partial={"value": partial}, merge={"value": merge}, finish=finish)
