"""Translates the expectations in a contract (of Great Expectations) to checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemill.contracts.conditions import Place, comparison_of
from tidemill.contracts.document import Node, parse
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import closest, is_flag, shown, without_quotes
from tidemill.contracts.patterns import complaint
from tidemill.contracts.values import FEWER, bound, fits, held, is_computed_exactly, is_number_type, rounded
from tidemill.core.contract.contract import (
    Argument,
    Between,
    Check,
    Expectation,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    Unique,
)
from tidemill.core.contract.schema import DataType, Field, Scalar

_CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")


class _Unfit(Exception):
    """An argument that no check can express; `node` is its place."""

    def __init__(self, node: Node, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.node = node
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """The arguments of one expectation, named in snake case. It stands at `column`, or (None) at the whole schema."""

    node: Node
    arguments: Mapping[str, Node]
    column: Field | None
    fields: Mapping[str, Field]
    findings: Findings

    def field(self, key: str = "column") -> Field:
        child = self.arguments.get(key)
        if child is None and self.column is not None and key == "column":
            return self.column
        name = child.value if child else None
        if not isinstance(name, str) or name not in self.fields:
            found, fix = shown(child), closest(str(name), self.fields)
            raise _Unfit(child or self.node, f"`{key}` must be the name of a property, found {found}", fix)
        return self.fields[name]

    def columns(self) -> tuple[str, ...]:
        child = self.arguments.get("column_list", Node((), self.node.line))
        items = child.value if isinstance(child.value, tuple) else ()
        known = tuple(i.value for i in items if isinstance(i.value, str) and i.value in self.fields)
        if not items or len(known) != len(items):
            raise _Unfit(child, "`column_list` must be a list of names of properties")
        return known

    def number(self, key: str) -> int | float | None:
        child = self.arguments.get(key)
        if child is None or child.value is None:
            return None
        return self._bound(key, child, self.field().type)

    def limit(self, key: str, of: DataType = Scalar.DOUBLE) -> int | float | None:
        """A bound of a statistic, which is computed in doubles, or exactly as values of the type."""
        child = self.arguments.get(key)
        if child is None or child.value is None:
            return None
        exact = of if bound(child, of) is not None else Scalar.DOUBLE
        return self._bound(key, child, exact)

    def _bound(self, key: str, child: Node, of: DataType) -> int | float:
        number = bound(child, of)
        if number is None:
            raise _Unfit(child, f"`{key}` must be a number, found {shown(child)}", without_quotes(child))
        self.tell_rounded(key, child, of)
        return number

    def tell_rounded(self, key: str, node: Node, of: DataType) -> None:
        if said := rounded(node, of):
            self.findings.warning(node.line, f"`{key}`: {said}", fix=FEWER)

    def count(self, key: str) -> int | None:
        child = self.arguments.get(key)
        if child is None or child.value is None:
            return None
        if not isinstance(child.value, int) or isinstance(child.value, bool) or child.value < 0:
            raise _Unfit(
                child, f"`{key}` must be a whole number from 0 on, found {shown(child)}", without_quotes(child)
            )
        return child.value

    def flag(self, key: str) -> bool:
        child = self.arguments.get(key)
        if child is not None and not is_flag(child):
            raise _Unfit(child, f"`{key}` must be true or false, found {shown(child)}")
        return child is not None and child.value is True

    def comparison(self, operator: str) -> Check:
        return comparison_of(self.field("column_a").name, operator, self.field("column_b").name, self.fields)


_Reader = Callable[[_Call], Check]


def expectation_check(implementation: Node, place: Place) -> Check | None:
    """Return the check for an expectation, which is given as a block of YAML text or as a mapping.

    It has `type` and `kwargs`, whose names may be in camel case. Null means absent.
    """
    findings = place.findings
    block = _block(implementation, findings)
    if block is None:
        return None
    kind, kwargs = block.child("type"), block.child("kwargs")
    name = block.text("type")
    if name not in EXPECTATIONS:
        findings.error(
            kind.line if kind else block.line,
            f"expectation {shown(kind)} cannot be run; supported: {', '.join(EXPECTATIONS)}",
            fix=closest(name, EXPECTATIONS),
        )
        return None
    given = kwargs.value if kwargs and isinstance(kwargs.value, Mapping) else {}
    arguments = {_CAMEL.sub("_", key).lower(): node for key, node in given.items()}
    reader, known = EXPECTATIONS[name]
    try:
        _check_arguments(arguments, (*known, "mostly"))
        call = _Call(node=block, arguments=arguments, column=place.column, fields=place.fields, findings=place.findings)
        return reader(call)
    except _Unfit as unfit:
        findings.error(unfit.node.line, f"{name}: {unfit}", fix=unfit.fix)
        return None


def _block(implementation: Node, findings: Findings) -> Node | None:
    if not isinstance(implementation.value, str):
        return implementation
    text = implementation.value
    block = parse(text, findings, first_line=implementation.line + ("\n" in text))
    if block is not None and not isinstance(block.value, Mapping):
        findings.error(implementation.line, f"expected type and kwargs of an expectation, found {shown(block)}")
        return None
    return block


def _check_arguments(arguments: Mapping[str, Node], known: tuple[str, ...]) -> None:
    for key, node in arguments.items():
        if key not in known:
            raise _Unfit(node, f"argument `{key}` cannot be run; supported: {', '.join(known)}", closest(key, known))
    mostly = arguments.get("mostly")
    if mostly is not None and mostly.value not in (1, 1.0):
        raise _Unfit(mostly, "a share of bad rows cannot be allowed", "remove mostly")


def _between(call: _Call) -> Check:
    low, high = call.number("min_value"), call.number("max_value")
    _some(call, low, high)
    return Between(
        column=call.field().name,
        minimum=low,
        maximum=high,
        exclusive_minimum=call.flag("strict_min"),
        exclusive_maximum=call.flag("strict_max"),
    )


def _some(call: _Call, low: float | None, high: float | None) -> None:
    if low is None and high is None:
        raise _Unfit(call.node, "needs min_value or max_value")
    if low is not None and high is not None and low > high:
        raise _Unfit(call.node, f"min_value {low} is above max_value {high}; nothing can pass")


def _one_of(call: _Call) -> Check:
    return OneOf(column=call.field().name, values=_values(call))


def _values(call: _Call) -> tuple[str | int | float | bool, ...]:
    field = call.field()
    listed = call.arguments.get("value_set", call.node)
    items = listed.value if isinstance(listed.value, tuple) else ()
    fitting = [held(i, field.type).value for i in items if fits(i, field.type)]
    values = tuple(value for value in fitting if isinstance(value, str | int | float | bool))
    if not items or len(values) != len(items):
        raise _Unfit(listed, f"`value_set` must be a list of values of the type of `{field.name}`")
    return values


def _matches(call: _Call) -> Check:
    node = call.arguments.get("regex", call.node)
    reason = complaint(node.value) if isinstance(node.value, str) else f"found {shown(node)}"
    if reason:
        raise _Unfit(node, f"`regex` cannot be used: {reason}")
    return Matches(column=call.field().name, pattern=f"(?s:.*)(?:{node.value})(?s:.*)")


def _lengths(call: _Call) -> Check:
    low, high = call.count("min_value"), call.count("max_value")
    _some(call, low, high)
    return LengthBetween(column=call.field().name, minimum=low, maximum=high)


def _length(call: _Call) -> Check:
    size = call.count("value")
    _some(call, size, size)
    return LengthBetween(column=call.field().name, minimum=size, maximum=size)


def _rows(call: _Call) -> Check:
    low, high = call.count("min_value"), call.count("max_value")
    _some(call, low, high)
    return RowCountBetween(minimum=low, maximum=high)


def _exact_rows(call: _Call) -> Check:
    size = call.count("value")
    _some(call, size, size)
    return RowCountBetween(minimum=size, maximum=size)


def _greater(call: _Call) -> Check:
    operator = ">=" if call.flag("or_equal") else ">"
    return call.comparison(operator)


def _equal(call: _Call) -> Check:
    return call.comparison("=")


def _statistic(kind: str) -> _Reader:
    """A reader of a number over all rows, which Great Expectations computes and compares with bounds."""

    def read(call: _Call) -> Check:
        if _is_of_numbers(kind) and not is_number_type(call.field().type):
            raise _Unfit(call.node, f"`{call.field().name}` is no number")
        of = call.field().type if is_computed_exactly(kind, call.field().type) else Scalar.DOUBLE
        low, high = call.limit("min_value", of), call.limit("max_value", of)
        _some(call, low, high)
        given: dict[str, Argument | None] = {"min_value": low, "max_value": high}
        given |= {key: True for key in _STRICT if call.flag(key)}
        return _computed(call, kind, {key: value for key, value in given.items() if value is not None})

    return read


def _is_of_numbers(kind: str) -> bool:
    return "unique" not in kind


def _set_of_values(kind: str) -> _Reader:
    """A reader of an expectation about the different values of a column."""
    return lambda call: _computed(call, kind, {"value_set": _values(call)})


def _computed(call: _Call, kind: str, arguments: Mapping[str, Argument]) -> Check:
    column = call.field().name
    return Expectation(column=column, kind=kind, arguments=tuple(sorted({"column": column, **arguments}.items())))


_BOUNDS = ("min_value", "max_value")
_STRICT = ("strict_min", "strict_max")
_STATISTICS = ("max", "mean", "median", "min", "proportion_of_unique_values", "stdev", "sum", "unique_value_count")
_SETS = ("distinct_values_to_be_in_set", "distinct_values_to_contain_set", "distinct_values_to_equal_set")

EXPECTATIONS: Mapping[str, tuple[_Reader, tuple[str, ...]]] = {
    "expect_column_values_to_not_be_null": (lambda c: NotNull(column=c.field().name), ("column",)),
    "expect_column_values_to_be_unique": (lambda c: Unique(columns=(c.field().name,)), ("column",)),
    "expect_compound_columns_to_be_unique": (lambda c: Unique(columns=c.columns()), ("column_list",)),
    "expect_column_values_to_be_between": (_between, ("column", *_BOUNDS, "strict_min", "strict_max")),
    "expect_column_values_to_be_in_set": (_one_of, ("column", "value_set")),
    "expect_column_values_to_match_regex": (_matches, ("column", "regex")),
    "expect_column_value_lengths_to_be_between": (_lengths, ("column", *_BOUNDS)),
    "expect_column_value_lengths_to_equal": (_length, ("column", "value")),
    "expect_column_pair_values_a_to_be_greater_than_b": (_greater, ("column_a", "column_b", "or_equal")),
    "expect_column_pair_values_to_be_equal": (_equal, ("column_a", "column_b")),
    "expect_table_row_count_to_be_between": (_rows, _BOUNDS),
    "expect_table_row_count_to_equal": (_exact_rows, ("value",)),
    **{
        kind: (_statistic(kind), ("column", *_BOUNDS, *_STRICT))
        for kind in (f"expect_column_{name}_to_be_between" for name in _STATISTICS)
    },
    **{kind: (_set_of_values(kind), ("column", "value_set")) for kind in (f"expect_column_{name}" for name in _SETS)},
}
"""The expectations that can be checked, and their arguments. Great Expectations itself computes those at the end."""
