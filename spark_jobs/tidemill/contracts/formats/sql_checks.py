"""CHECK constraints about one column: bounds and lists of values, from SQL and to SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from tidemill.contracts.conditions import Condition
from tidemill.contracts.formats.exporting import Rules
from tidemill.contracts.predicates import sql_of
from tidemill.contracts.values import is_number_type
from tidemill.core.contract.contract import Between, OneOf
from tidemill.core.contract.long_number import LongNumber, number_of
from tidemill.core.contract.row_checks import Plain
from tidemill.core.contract.schema import DataType, Field, Scalar
from tidemill.core.sql.text import quoted

if TYPE_CHECKING:
    from sqlglot import exp

_FLIPPED = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
_OPTIONS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}


@dataclass(slots=True)
class Checks:
    """What the CHECK constraints of one column say."""

    options: dict[str, Any] = field(default_factory=dict)
    allowed: tuple[Plain, ...] = ()

    def fits(self, data_type: DataType) -> bool:
        """Whether a column of this type can have these bounds and values."""
        values = self.allowed
        texts = data_type is Scalar.STRING and all(isinstance(v, str) for v in values)
        numbers = is_number_type(data_type) and not any(isinstance(v, str) for v in values)
        days = data_type is Scalar.DATE and all(_is_day(v) for v in self.options.values())
        bounds = is_number_type(data_type) and not any(isinstance(v, str) for v in self.options.values())
        return (not self.options or days or bounds) and (not values or texts or numbers)

    def beside(self, options: Mapping[str, Plain]) -> dict[str, Plain]:
        """These options of a type, with those of the checks: the narrower bound of each side."""
        found = {**options, **self.options}
        for key, narrower in (("minimum", max), ("maximum", min)):
            exclusive = f"exclusive{key.capitalize()}"
            if key in options and key in self.options:
                found[key] = narrower(options[key], self.options[key], key=float)
            if key in options and exclusive in self.options and key not in self.options:
                stays = narrower(options[key], self.options[exclusive], key=float) != self.options[exclusive]
                del found[exclusive if stays else key]
        return found


def _is_day(value: Plain) -> bool:
    try:
        return isinstance(value, str) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def column_of(check: exp.Expr) -> str:
    """The column that a constraint is about, in lower case; empty if there is none, or more than one."""
    from sqlglot import exp  # noqa: PLC0415

    names = {column.name.lower() for column in check.find_all(exp.Column)}
    return names.pop() if len(names) == 1 else ""


def pairs_of(check: exp.Expr, names: Mapping[str, str]) -> list[str]:
    """The comparisons of two columns that a constraint consists of, as predicates; empty if it is anything else.

    `names` are those of the columns, by what they are in lower case.
    """
    from sqlglot import exp  # noqa: PLC0415

    signs: dict[type[exp.Expr], str] = {
        exp.GTE: ">=",
        exp.GT: ">",
        exp.LTE: "<=",
        exp.LT: "<",
        exp.EQ: "=",
        exp.NEQ: "<>",
    }
    found = []
    for part in _parts(check.this):
        columns = [part.args.get(key) for key in ("this", "expression")]
        if type(part) not in signs or not all(isinstance(column, exp.Column) for column in columns):
            return []
        found.append(f" {signs[type(part)]} ".join(quoted(names.get(c.name.lower(), c.name)) for c in columns if c))
    return found


def add_check(found: Checks, check: exp.Expr) -> bool:
    """Add what a constraint says; False if a contract cannot say it, or says it already."""
    new = Checks()
    if not all(_add(new, part) for part in _parts(check.this)) or new.options.keys() & found.options.keys():
        return False
    if new.allowed and found.allowed:
        return False
    found.options |= new.options
    found.allowed = new.allowed or found.allowed
    return True


def parts_of(check: exp.Expr) -> list[exp.CheckColumnConstraint]:
    """The constraints that AND joins to this one."""
    from sqlglot import exp  # noqa: PLC0415

    return [exp.CheckColumnConstraint(this=part.copy()) for part in _parts(check.this)]


def _parts(condition: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415

    condition = condition.unnest()
    return [part.unnest() for part in condition.flatten()] if isinstance(condition, exp.And) else [condition]


def _add(found: Checks, part: exp.Expr) -> bool:
    from sqlglot import exp  # noqa: PLC0415

    signs: dict[type[exp.Expr], str] = {exp.GTE: ">=", exp.GT: ">", exp.LTE: "<=", exp.LT: "<"}
    match part:
        case exp.Between() if isinstance(part.this, exp.Column):
            return all(_bound(found, sign, part.args[key]) for sign, key in ((">=", "low"), ("<=", "high")))
        case exp.In() if isinstance(part.this, exp.Column) and part.expressions and not found.allowed:
            values = tuple(_value(each) for each in part.expressions)
            found.allowed = tuple(v for v in values if v is not None)
            return len(found.allowed) == len(values)
        case exp.Not(this=exp.IsNan()):
            # Every bound of a contract refuses NaN.
            return True
        case _ if type(part) in signs:
            sign = signs[type(part)]
            if isinstance(part.this, exp.Column):
                return _bound(found, sign, part.expression)
            return isinstance(part.expression, exp.Column) and _bound(found, _FLIPPED[sign], part.this)
        case _:
            return False


def _bound(found: Checks, sign: str, node: exp.Expr) -> bool:
    value, key = _value(node), _OPTIONS[sign]
    if value is None or key in found.options:
        return False
    found.options[key] = value
    return True


def _value(node: exp.Expr) -> Plain | None:
    """A value that is written as a number or a text; None for everything else."""
    from sqlglot import exp  # noqa: PLC0415

    node = node.unnest()
    if isinstance(node, exp.Cast) and node.is_type("double", "date"):
        node = node.this.unnest()
    if isinstance(node, exp.Neg) and not isinstance(value := _value(node.this), str | None):
        return LongNumber(f"-{value}") if isinstance(value, LongNumber) else -value
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.name
    if node.is_int:
        return int(node.name)
    return number_of(node.name)


def checks_of(field_: Field, rules: Rules, types: Mapping[str, DataType]) -> list[str]:
    """The CHECK constraints that say the bounds and the list of values of a column."""

    def is_check(condition: Condition) -> bool:
        return isinstance(condition, Between | OneOf)

    return [f"CHECK ({sql_of(condition, types)})" for condition in rules.of_column(field_.name, is_check)]
