"""Statements of Spark SQL over rows as statements for DuckDB.

Only what gives the same rows in both is translated; the rest is refused by name. Columns get names of their own,
because DuckDB does not tell capital letters from small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidemill.core.contract.schema import DataType, Field, Scalar, spark_type
from tidemill.core.sql.dialect import OwnSpark
from tidemill.engine.native.expressions import Expressions, condition
from tidemill.engine.native.values import Of, Untranslatable, Value, duckdb_type, refuse
from tidemill.engine.spark.query import ROWS

TABLE = "the_rows"
"""The name of the rows in a translated statement."""


Columns = Mapping[str, Value]
"""Columns of rows, under their names in Spark."""

_MOST_COLUMNS = 500
"""DuckDB takes seconds to plan a statement over more columns."""

_PARTS = {"kind", "expressions", "from_", "where", "group"}
"""The parts of a select that are translated."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A statement over `TABLE`, whose columns are `inputs` by the names that the statement knows them by.

    `output` has the columns of the result, in order.
    """

    text: str
    inputs: Mapping[str, str]
    output: tuple[Field, ...]


@lru_cache(maxsize=256)
def translated(statement: str, columns: tuple[Field, ...]) -> Translation | str:
    """A statement over `ROWS` with these columns, for DuckDB; or what in it has to be left to Spark, as text."""
    names = {c.name: f"c{number}" if _is_known(c.type) else "" for number, c in enumerate(columns)}
    inputs = {name: column for column, name in names.items() if name}
    try:
        if len(names) > _MOST_COLUMNS or len(names) < len(columns):
            raise Untranslatable(f"{len(columns)} columns, of {len(names)} names")
        source = {c.name: Value(names[c.name], c.type) for c in columns}
        text, found = _select(sqlglot.parse_one(statement, dialect=OwnSpark), source)
        output = tuple(Field(name=name, type=_of(name, value)) for name, value in found.items())
    except Untranslatable as found_out:
        return str(found_out)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError):
        return "a statement that the driver's parser does not read"
    return Translation(text, inputs, output)


def _is_known(of: DataType) -> bool:
    try:
        return bool(duckdb_type(of))
    except Untranslatable:
        return False


def _of(name: str, value: Value) -> DataType:
    if value.type is None or not value.text:
        raise Untranslatable(f"{name}, which is {'always null' if value.type is None else spark_type(value.type)}")
    return value.type


def _select(node: exp.Expr, rows: Columns, depth: int = 0) -> tuple[str, Columns]:
    """A select, and its columns; `rows` are the columns of `ROWS`."""
    if not isinstance(node, exp.Select) or {name for name, part in node.args.items() if part} - _PARTS:
        refuse(node)
    source, columns = _from(node.args["from_"].this, rows, depth + 1)
    of = Expressions(columns).of
    selected: dict[str, Value] = {}
    for column in node.expressions:
        if isinstance(column, exp.Star):
            found = _starred(column, columns)
        else:
            found = {column.alias_or_name: _column(of, column)}
        if found.keys() & selected.keys():
            refuse(column)
        selected |= found
    # Names of each depth are different: DuckDB lets a clause also use the names that its own select gives.
    made = {c: replace(v, text=v.text and f"s{depth}_{n}") for n, (c, v) in enumerate(selected.items())}
    listed = ", ".join(f"{value.text} AS {made[name].text}" for name, value in selected.items() if value.text)
    return f"SELECT {listed} FROM {source}{_where(of, node)}{_group_by(of, node)}", made


def _starred(star: exp.Star, columns: Columns) -> Columns:
    """All columns, but those after EXCEPT."""
    if any(part for name, part in star.args.items() if name != "except_"):
        refuse(star)
    left = {column.name for column in star.args.get("except_") or ()}
    if not left <= columns.keys():
        refuse(star)
    return {name: value for name, value in columns.items() if name not in left}


def _from(node: exp.Expr, rows: Columns, depth: int) -> tuple[str, Columns]:
    if isinstance(node, exp.Table) and node.sql("spark") == ROWS:
        return TABLE, rows
    if not isinstance(node, exp.Subquery):
        refuse(node)
    text, columns = _select(node.this, rows, depth)
    return f"({text})", columns


def _column(of: Of, column: exp.Expr) -> Value:
    node = column.this if isinstance(column, exp.Alias) else column
    return _exploded(of, node) if type(node) is exp.Explode else of(node)


def _exploded(of: Of, node: exp.Explode) -> Value:
    """A row for each number of a sequence."""
    series = node.this
    if not isinstance(series, exp.GenerateSeries):
        refuse(node)
    values = [of(series.args[part]) for part in ("start", "end", "step")]
    if any(value.type is not Scalar.LONG for value in values):
        refuse(node)
    return Value(f"unnest(generate_series({', '.join(v.text for v in values)}))", Scalar.LONG)


def _where(of: Of, node: exp.Select) -> str:
    where = node.args.get("where")
    return f" WHERE {condition(of, where.this).text}" if where else ""


def _group_by(of: Of, node: exp.Select) -> str:
    group = node.args.get("group")
    if not group:
        return ""
    if any(part for name, part in group.args.items() if name != "expressions"):
        refuse(group)
    keys = [of(key) if isinstance(key, exp.Column) else refuse(key) for key in group.expressions]
    if any(key.type is Scalar.DOUBLE for key in keys):
        raise Untranslatable("groups of doubles")
    return f" GROUP BY {', '.join(key.text for key in keys)}"
