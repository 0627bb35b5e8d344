"""Quality rules of type sql: a query that counts the rows of the object for which a condition is true.

The condition is Spark SQL over one row, with the functions that expressions may call. So the rule needs no query: it is
a check of rows with a tolerance, and runs like any other. A query may also count the different values of a column: that
is a statistic. What else a query can compute is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidemill.contracts.conditions import Condition, Place
from tidemill.contracts.count_texts import text_between
from tidemill.contracts.custom import condition_of, one_line
from tidemill.contracts.document import Node
from tidemill.contracts.metrics import Metric, row_count, value_count
from tidemill.contracts.nodes import closest, shown
from tidemill.contracts.query_prefixes import without_prefix
from tidemill.core.contract.schema import Array, Object, Scalar
from tidemill.core.sql.dialect import OwnSpark
from tidemill.core.sql.text import quoted

OBJECTS = ("object", "table", "model", "schema")
"""The placeholders that stand for the table."""

COLUMNS = ("property", "column", "field")
"""The placeholders that stand for the column at which the rule stands."""

_PLACEHOLDER = re.compile(r"\$?\{(\w*)\}")
_TABLE = "the_object"
_SHAPE = "SELECT COUNT(*) FROM ${object} WHERE condition"
_OF_TABLE = {"this", "db", "catalog", "alias"}
_PARTS = {"kind", "expressions", "from_", "where"}


class _Unfit(Exception):
    """What in the query cannot be run."""

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class _Distinct:
    """A query that counts the different values of a column."""

    column: str


def count_conditions(node: Node, number: int, place: Place) -> Iterator[tuple[str, Condition]]:
    """Yield the condition of one rule of type sql, with words that name it. Faults are noted."""
    query = node.child("query")
    if query is None or not isinstance(query.value, str) or not query.value.strip():
        line = query.line if query else node.line
        said = f"a quality rule of type sql needs a query, found {shown(query)}"
        place.findings.error(line, said, fix=f"write {_SHAPE}")
        return
    try:
        counted = _counted(_filled(one_line(query.value).rstrip("; "), place), place)
    except _Unfit as unfit:
        place.findings.error(query.line, f"the query cannot be run: {unfit}", fix=unfit.fix or f"write {_SHAPE}")
        return
    if counted is None:
        yield from row_count(Metric(node=node, place=place))
    elif isinstance(counted, _Distinct):
        yield from value_count(Metric(node=node, place=place), counted.column)
    elif (condition := condition_of(f"NOT ({counted})", query.line, place)) is not None:
        yield f"quality{number}", condition


def condition_of_query(node: Node, place: Place) -> tuple[str, int] | None:
    """The condition on the rows that a rule of type sql counts, and its line; None without one that can be run."""
    query = node.child("query")
    if node.text("type") != "sql" or query is None or not isinstance(query.value, str):
        return None
    try:
        counted = _counted(_filled(one_line(query.value).rstrip("; "), place), place)
    except _Unfit:
        return None
    return (counted, query.line) if isinstance(counted, str) else None


def _filled(query: str, place: Place) -> str:
    def fill(found: re.Match[str]) -> str:
        name = found[1]
        if name in OBJECTS:
            return _TABLE
        if name in COLUMNS and place.column is not None:
            return quoted(place.column.name)
        if name in COLUMNS:
            raise _Unfit(f"`{found[0]}` stands for a column, but the rule stands at the schema", "name the column")
        known = (*OBJECTS, *COLUMNS)
        raise _Unfit(f"unknown placeholder `{found[0]}`; known: {', '.join(known)}", closest(name, known))

    return _PLACEHOLDER.sub(fill, query)


def _counted(query: str, place: Place) -> str | _Distinct | None:
    """The condition on the rows that a query counts, or the column whose values it counts; None for all rows."""
    select, tokens = _read(query)
    if extra := sorted({name for name, part in select.args.items() if part} - _PARTS):
        raise _Unfit(f"it has `{extra[0].strip('_').replace('_', ' ')}`, but may only have one table and a condition")
    _check_table(select, place)
    _check_stars(select)
    if any(t.comments for t in tokens):
        raise _Unfit("it has a comment", "put it into the description of the rule")
    if (plain := without_prefix(query, select, tokens, place.fields)) != query:
        select, tokens = _read(plain)
    where = next((t for t in tokens if t.token_type.name == "WHERE"), None)
    told = [plain[where.end + 1 :].strip()] if where and select.args.get("where") else []
    of_count = _condition_of_count(select.expressions, place, partial(text_between, plain, tokens))
    if isinstance(of_count, _Distinct):
        if told:
            raise _Unfit("it counts different values of some rows only", "leave out WHERE, or count rows")
        return of_count
    parts = [f"({part})" for part in (*told, *([of_count] if of_count else []))]
    return " AND ".join(parts) or None


def _read(query: str) -> tuple[Any, list[Any]]:
    """The one SELECT of a query, and its tokens."""
    # Imported late: it loads the SQL parser.
    from sqlglot import exp, parse, tokenize  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    try:
        statements = parse(query, dialect=OwnSpark)
        tokens = tokenize(query, dialect=OwnSpark)
    except (SqlglotError, RecursionError) as error:
        said = str(error).splitlines()[0]
        # The parser names its own classes.
        raise _Unfit("a function gets too few values" if "<class" in said else f"it is not SQL: {said}") from None
    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select):
        raise _Unfit("it must be one SELECT")
    return select, tokens


def _check_table(select: Any, place: Place) -> None:
    from sqlglot import exp  # noqa: PLC0415

    source = select.args.get("from_")
    table = source.this if source else None
    known = (_TABLE, *place.names)
    if any(select.find_all(exp.Subquery, exp.Union, exp.Join)) or len(list(select.find_all(exp.Select))) != 1:
        raise _Unfit("it looks at more than one table or query")
    if isinstance(table, exp.Table) and (alias := table.args.get("alias")) and alias.args.get("columns"):
        raise _Unfit("its table has other names of columns", "write FROM ${object}")
    if isinstance(table, exp.Table) and table.alias.lower() in {name.lower() for name in place.fields}:
        raise _Unfit(f"`{table.alias}` is its table and a column", "give the table another name, or none")
    if isinstance(table, exp.Table) and (more := sorted({n for n, part in table.args.items() if part} - _OF_TABLE)):
        raise _Unfit(
            f"its table has `{more[0].replace('_', ' ')}`", "write FROM ${object}, and columns without a prefix"
        )
    if not isinstance(table, exp.Table) or table.name.lower() not in [name.lower() for name in known]:
        raise _Unfit(f"it reads `{table.sql() if table else 'no table'}`, not its own object", "write FROM ${object}")


def _check_stars(select: Any) -> None:
    """Refuse `*` of a table, which Spark does not count, and `*` without some columns, which counts fewer rows."""
    from sqlglot import exp  # noqa: PLC0415

    for star in select.find_all(exp.Star):
        if any(star.args.values()):
            said = "cannot be run: Spark counts the rows in which none of the other columns is null"
            raise _Unfit(f"`{star.sql('spark')}` {said}", "write WHERE column IS NOT NULL for each of these columns")
        if isinstance(star.parent, exp.Column):
            shown = star.parent.sql("spark").replace(_TABLE, "${object}")
            said = "Spark refuses it for a table, and for an object it counts the rows in which no field is null"
            raise _Unfit(f"`{shown}` cannot be counted: {said}", "write COUNT(*) to count rows, or name a column")


def _condition_of_count(selected: list[Any], place: Place, text: Callable[..., str]) -> str | _Distinct:
    """What a count asks of a row, or the column whose values it counts; empty if it counts every row.

    `text` gives what stands between words of the query.
    """
    from sqlglot import exp  # noqa: PLC0415

    [node] = selected if len(selected) == 1 else [None]
    node = node.this if isinstance(node, exp.Alias) else node
    if isinstance(node, exp.CountIf) and not isinstance(node.this, exp.Distinct):
        if len([part for part in node.args.values() if part is not None]) > 1:
            raise _Unfit("COUNT_IF takes one condition, and gets more", "join conditions with AND or OR")
        return text("COUNT_IF", ")")
    if isinstance(node, exp.Count) and not node.expressions and node.this is not None:
        match node.this.unnest():
            case exp.Star() | exp.Literal() | exp.Boolean():
                return ""
            case exp.Column() as column:
                return f"{column.sql('spark')} IS NOT NULL"
            case exp.Distinct(expressions=[one]) if isinstance(column := one.unnest(), exp.Column):
                return _distinct(column, place)
            case exp.Case() | exp.If() as cases:
                return _condition_of_case(cases, text)
    found = node.sql("spark") if node is not None else f"{len(selected)} columns"
    raise _Unfit(
        f"it selects {found}, and only COUNT(*), COUNT(column), COUNT(DISTINCT column), COUNT(CASE ...) and "
        "COUNT_IF(condition) can be run"
    )


def _distinct(column: Any, place: Place) -> _Distinct:
    """The different values of a column. Spark and Python have other opinions about which floating numbers are one."""
    name = column.name
    if len(column.parts) > 1:
        shown = column.sql("spark")
        raise _Unfit(f"different values of `{shown}` cannot be counted: it is inside of a column", "name a column")
    known = {column.lower(): field for column, field in place.fields.items()}
    field = known.get(name.lower())
    if field is None:
        raise _Unfit(f"the contract has no property `{name}`", closest(name, place.fields))
    if field.type is Scalar.DOUBLE or isinstance(field.type, Array | Object):
        raise _Unfit(f"different values of `{field.name}` cannot be counted: it is a double, an array or an object")
    return _Distinct(field.name)


def _condition_of_case(cases: Any, text: Callable[..., str]) -> str:
    """For which rows a CASE or IF gives a value, so that COUNT counts them."""
    from sqlglot import exp  # noqa: PLC0415

    is_case = isinstance(cases, exp.Case)
    if not is_case and cases.args.get("false") is None:
        raise _Unfit("IF takes three arguments in Spark, and gets two", "write IF(condition, 1, NULL)")
    branches = cases.args.get("ifs") if is_case else [cases]
    values, other = [branch.args["true"] for branch in branches], cases.args.get("default" if is_case else "false")
    if isinstance(other, exp.Null):
        other = None
    if other is not None and all(_is_value(node) for node in (other, *values)):
        said = f"COUNT counts {other.sql('spark')}, too, because it is not null: it counts every row"
        raise _Unfit(said, "leave out ELSE, or write COUNT_IF(condition)")
    # `CASE n WHEN 1 THEN ...` has no condition of its own.
    if other is None and len(branches) == 1 and _is_value(values[0]) and not (is_case and cases.this):
        return text("WHEN", "THEN") if is_case else text("IF", ",")
    return f"{text('COUNT', ')')} IS NOT NULL"


def _is_value(node: Any) -> bool:
    """Whether it is written out, and not null."""
    from sqlglot import exp  # noqa: PLC0415

    return isinstance(node, exp.Literal | exp.Boolean)
