"""What every aggregate is: three texts of Spark SQL (`tidemill.core.declare.aggregates`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tidemill.core.contract.schema import DataType
from tidemill.core.errors import DeclarationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """The three expressions of an aggregate; `partial` and `merge` have the same state columns."""

    partial: Mapping[str, str]
    merge: Mapping[str, str]
    finish: str

    def __post_init__(self) -> None:
        if not self.partial or self.partial.keys() != self.merge.keys():
            raise DeclarationError(
                f"an aggregate has state columns {sorted(self.partial)} in partial but {sorted(self.merge)} in merge",
                fix="give both the same names, at least one",
            )


class Aggregate(ABC):
    """One value per window and key.

    One that is `approximate_each_time` may give another value, within its error, when it is computed again.
    """

    approximate_each_time: ClassVar[bool] = False

    @property
    @abstractmethod
    def triple(self) -> Triple:
        """The expressions that compute it."""

    @property
    def over(self) -> tuple[str, ...]:
        """The expressions over one row whose values it aggregates; none where its partials are the user's own."""
        return tuple(getattr(self, name) for name in ("expression", "predicate") if hasattr(self, name))

    def finish_as(self, wanted: DataType) -> str:
        """The text of `finish` for a column of this type; the value may be of another one still."""
        del wanted
        return self.triple.finish

    def overflowed(self, wanted: DataType) -> str | None:
        """Over merged state, whether the value is beyond what a column of this type can hold; None: it never is."""
        del wanted
        return None


def single(partial: str, merge: str, finish: str = "{value}") -> Triple:
    """A triple with one state column, `value`."""
    return Triple(partial={"value": partial}, merge={"value": merge}, finish=finish)
