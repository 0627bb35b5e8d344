"""Translates the library metrics of the standard to conditions, and their bounds to tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tidemill.contracts.conditions import Condition, Place
from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import closest, is_number, shown, without_quotes
from tidemill.contracts.patterns import complaint
from tidemill.contracts.standard import OPERATORS
from tidemill.contracts.values import FEWER, advice, fits, held, rounded
from tidemill.core.contract.contract import Argument, Expectation, Matches, NotNull, OneOf, RowCountBetween, Unique
from tidemill.core.contract.long_number import fraction_of
from tidemill.core.contract.row_checks import NoneOf, Plain
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.contract.tolerance import MOST_ROWS, Tolerance

Named = tuple[str, Condition]

UNITS = ("rows", "percent")
"""The units in which bad rows are counted."""

UNIQUE_VALUES = "expect_column_unique_value_count_to_be_between"
"""The statistic that counts the different values of a column."""

SPLIT = "invalidValues."
"""Prefix of the names of the two rules that come from one metric with two arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One library rule and its place."""

    node: Node
    place: Place

    @property
    def column(self) -> Field | None:
        """The column of the rule; None for a rule about the whole schema."""
        return self.place.column

    @property
    def fields(self) -> Mapping[str, Field]:
        """All columns by name."""
        return self.place.fields

    @property
    def findings(self) -> Findings:
        """Where faults are noted."""
        return self.place.findings

    @property
    def called(self) -> str:
        """What errors call the rule."""
        return f"metric {self.node.text('metric')}" if self.node.child("metric") else "rule of type sql"

    def refuse(self, message: str, *, key: str = "", fix: str = "") -> None:
        """Note that the rule cannot be run, because of one of its keys."""
        child = self.node.child(key) or self.node
        self.findings.error(child.line, f"{self.called}: {message}", fix=fix)

    def warn(self, message: str, *, key: str) -> None:
        """Note that the rule does not do what its writer may think, because of one of its keys."""
        child = self.node.child(key) or self.node
        self.findings.warning(child.line, f"{self.called}: {message}", fix="correct the number")

    def argument(self, key: str) -> Node | None:
        """Return an argument of the rule, or None."""
        arguments = self.node.child("arguments")
        return arguments.child(key) if arguments else None


def metric_conditions(node: Node, place: Place) -> Iterator[Named]:
    """Yield the conditions of one library rule, each with words that describe it. Faults are noted."""
    metric = Metric(node=node, place=place)
    name = node.text("metric")
    if name not in METRICS:
        metric.refuse(f"unknown; supported: {', '.join(METRICS)}", key="metric", fix=closest(name, METRICS))
        return
    reader, known, level = METRICS[name]
    arguments = node.child("arguments")
    for key, child in arguments.value.items() if arguments and isinstance(arguments.value, Mapping) else ():
        if key not in known:
            place.findings.error(
                child.line,
                f"metric {name}: unknown argument `{key}`; supported: {', '.join(known) or 'none'}",
                fix=closest(key, known),
            )
    here = "property" if place.column else "schema"
    if level not in (here, "both"):
        metric.refuse(f"belongs at the {level}, found at the {here}")
    elif _operator(metric) is not None:
        yield from reader(metric)


def tolerance_of(node: Node, place: Place) -> Tolerance | None:
    """How many rows may break the conditions of a library rule; None if no row may. Faults are noted."""
    metric = Metric(node=node, place=place)
    operator = _operator(metric)
    if operator is None or (node.text("metric") == "rowCount" and not operator[0].startswith("mustNot")):
        return None
    key, value = operator
    percent = node.text("unit") == "percent"
    none = (key in ("mustBe", "mustBeLessOrEqualTo") and value == (0,)) or (
        key == "mustBeLessThan" and value == (1,) and not percent
    )
    if none:
        return None
    tolerance = Tolerance(comparison=key, numbers=value, percent=percent)
    if place.is_input:
        metric.refuse(f"{tolerance} cannot be run: records are checked one by one", key=key, fix="write mustBe: 0")
    elif metric.argument("validValues") and metric.argument("pattern"):
        metric.refuse("a tolerance needs one of validValues and pattern", key=key, fix="write two rules")
    elif not tolerance.is_possible():
        fix = "exchange them" if key == "mustBeBetween" and value[0] > value[-1] else ""
        metric.refuse(f"no number of rows is {tolerance}", key=key, fix=fix)
    elif tolerance.is_certain():
        metric.warn(f"every number of rows is {tolerance}, so the rule checks nothing", key=key)
    return tolerance


def _operator(metric: Metric) -> tuple[str, tuple[int | float, ...]] | None:
    """Return the comparison of the rule and its one or two numbers. The rule must have exactly one."""
    present = [key for key in OPERATORS if metric.node.child(key)]
    if len(present) != 1:
        found = " and ".join(present) or "none"
        metric.refuse(f"needs one of {', '.join(OPERATORS)}, found {found}")
        return None
    child = metric.node.child(present[0])
    items = child.value if child and isinstance(child.value, tuple) else (child,)
    numbers = [i.value for i in items if i and is_number(i) and isinstance(i.value, int | float)]
    if len(numbers) != len(items) or len(numbers) != (2 if present[0].endswith("Between") else 1):
        fix = without_quotes(child) if child else ""
        metric.refuse(f"{present[0]} needs numbers, found {shown(child)}", key=present[0], fix=fix)
        return None
    unit = metric.node.text("unit")
    if unit not in ("", *UNITS):
        metric.refuse(f"unit `{unit}` cannot be run; supported: rows, percent", key="unit", fix=closest(unit, UNITS))
        return None
    return present[0], tuple(numbers)


def _null_values(metric: Metric) -> Iterator[Named]:
    if metric.column:
        yield "nullValues", NotNull(column=metric.column.name)


def _missing_values(metric: Metric) -> Iterator[Named]:
    listed = metric.argument("missingValues")
    if metric.column is None or listed is None or not isinstance(listed.value, tuple):
        metric.refuse("needs the argument missingValues, a list", key="arguments")
        return
    null_too = any(n.value is None for n in listed.value)
    named = [n for n in listed.value if n.value is not None]
    values = _values(named, metric, "missingValues") if named or not null_too else ()
    if null_too and not named:
        yield "missingValues", NotNull(column=metric.column.name)
    elif values:
        yield "missingValues", NoneOf(column=metric.column.name, values=values, null_too=null_too)


def _invalid_values(metric: Metric) -> Iterator[Named]:
    valid, pattern = metric.argument("validValues"), metric.argument("pattern")
    if metric.column is None or (valid is None and pattern is None):
        metric.refuse("needs the argument validValues or pattern", key="arguments")
        return
    both = valid is not None and pattern is not None
    if valid is not None:
        values = _values(list(valid.value) if isinstance(valid.value, tuple) else [], metric, "validValues")
        if values:
            yield f"{SPLIT}validValues" if both else "invalidValues", OneOf(column=metric.column.name, values=values)
    if pattern is not None:
        text = pattern.value
        reason = complaint(text) if isinstance(text, str) else f"found {shown(pattern)}"
        if not reason and metric.column.type is not Scalar.STRING:
            reason = f"`{metric.column.name}` is no text"
        if reason:
            metric.findings.error(pattern.line, f"metric invalidValues: the pattern cannot be used: {reason}")
        else:
            check = Matches(column=metric.column.name, pattern=str(text))
            yield f"{SPLIT}pattern" if both else "invalidValues", check


def _values(nodes: list[Node], metric: Metric, argument: str) -> tuple[Plain, ...]:
    if metric.column is None:
        return ()
    wrong = [n for n in nodes if not fits(n, metric.column.type)]
    for node in nodes:
        if said := rounded(node, metric.column.type):
            metric.findings.warning(node.line, f"{argument}: {said}", fix=FEWER)
    nodes = [held(n, metric.column.type) for n in nodes]
    for node in wrong:
        metric.findings.error(
            node.line,
            f"{argument}: {shown(node)} is no value of `{metric.column.name}`",
            fix=advice(metric.column.type),
        )
    if not nodes:
        metric.refuse(f"{argument} is empty", key="arguments")
    return () if wrong else tuple(n.value for n in nodes if isinstance(n.value, str | int | float | bool))


def _duplicate_values(metric: Metric) -> Iterator[Named]:
    listed = metric.argument("properties")
    if metric.column is not None:
        if listed is not None:
            metric.refuse("the argument properties belongs at the schema", key="arguments")
        yield "duplicateValues", Unique(columns=(metric.column.name,))
        return
    names = [n.value for n in listed.value] if listed and isinstance(listed.value, tuple) else []
    unknown = [n for n in names if n not in list(metric.fields)]
    if not names:
        metric.refuse("needs the argument properties, a list of columns", key="arguments")
    elif unknown:
        metric.refuse(
            f"there is no property `{unknown[0]}`; there are {', '.join(metric.fields)}",
            key="arguments",
            fix=closest(str(unknown[0]), metric.fields),
        )
    elif len(set(names)) < len(names):
        metric.refuse("the argument properties names a column twice", key="arguments", fix="remove one of them")
    else:
        columns = tuple(str(n) for n in names)
        yield f"duplicateValues({','.join(columns)})", Unique(columns=columns)


def row_count(metric: Metric) -> Iterator[Named]:
    """Yield the condition on the number of rows. Faults are noted."""
    operator = _operator(metric)
    if operator is None:
        return
    key, numbers = operator
    if metric.node.text("unit") == "percent":
        metric.refuse("unit percent cannot be run; give bounds in rows", key=key)
        return
    if key.startswith("mustNot"):
        yield "rowCount", RowCountBetween()
        return
    low, high = _row_bounds(key, numbers)
    if (low or 0) >= MOST_ROWS or (high is not None and max(low or 0, 0) > high):
        fix = "exchange them" if key == "mustBeBetween" and numbers[0] > numbers[-1] else ""
        metric.refuse(f"no number of rows is {key} {', '.join(map(str, numbers))}", key=key, fix=fix)
    else:
        if (high is None or high >= MOST_ROWS) and (low or 0) <= 0:
            metric.warn("every number of rows is allowed, so the rule checks nothing", key=key)
        yield "rowCount", RowCountBetween(minimum=low, maximum=high)


def value_count(metric: Metric, column: str) -> Iterator[Named]:
    """Yield the condition on the number of different values of a column, without null. Faults are noted."""
    operator = _operator(metric)
    if operator is None:
        return
    key, numbers = operator
    if metric.node.text("unit") == "percent" or key.startswith("mustNot"):
        said = "unit percent" if metric.node.text("unit") == "percent" else key
        metric.refuse(f"{said} cannot be run for a number of different values", key=key, fix="give bounds of it")
        return
    low, high = _row_bounds(key, numbers)
    bounds = [(side, bound) for side, bound in (("max_value", high), ("min_value", low)) if bound is not None]
    told: tuple[tuple[str, Argument], ...] = (("column", column), *bounds)
    yield "distinctValues", Expectation(column=column, kind=UNIQUE_VALUES, arguments=told)


def _row_bounds(key: str, numbers: tuple[int | float, ...]) -> tuple[int | None, int | None]:
    first, last = (fraction_of(number) for number in (numbers[0], numbers[-1]))
    match key:
        case "mustBeGreaterThan":
            return math.floor(first) + 1, None
        case "mustBeGreaterOrEqualTo":
            return math.ceil(first), None
        case "mustBeLessThan":
            return None, math.ceil(first) - 1
        case "mustBeLessOrEqualTo":
            return None, math.floor(first)
        case _:
            return math.ceil(first), math.floor(last)


METRICS: Mapping[str, tuple[Callable[[Metric], Iterator[Named]], tuple[str, ...], str]] = {
    "nullValues": (_null_values, (), "property"),
    "missingValues": (_missing_values, ("missingValues",), "property"),
    "invalidValues": (_invalid_values, ("validValues", "pattern"), "property"),
    "duplicateValues": (_duplicate_values, ("properties",), "both"),
    "rowCount": (row_count, (), "schema"),
}
"""For each metric: the function that reads it, its arguments, and where it may stand."""
