"""Statements of Spark SQL over rows as statements for DuckDB.

Only what gives the same rows in both is translated; the rest is refused by name. Columns get names of their own,
because DuckDB does not tell capital letters from small ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
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

_NAME = re.compile(r"\b[cs]\d+(?:_\d+)?\b")
"""The name of a column here; a literal that looks like one only keeps a column that is not needed."""

_AGGREGATES = {"try_sum", "hll_sketch_agg", "hll_union_agg"}
"""Those that the parser does not know as aggregates."""

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
        written, found = _select(sqlglot.parse_one(statement, dialect=OwnSpark), source)
        output = tuple(Field(name=name, type=_of(name, value)) for name, value in found.items())
    except Untranslatable as found_out:
        return str(found_out)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError):
        return "a statement that the driver's parser does not read"
    return Translation(written.text(), inputs, output)


def _is_known(of: DataType) -> bool:
    try:
        return bool(duckdb_type(of))
    except Untranslatable:
        return False


def _of(name: str, value: Value) -> DataType:
    if value.type is None or not value.text:
        raise Untranslatable(f"{name}, which is {'always null' if value.type is None else spark_type(value.type)}")
    return value.type


def _select(node: exp.Expr, rows: Columns, depth: int = 0) -> tuple[_Statement, Columns]:
    """A select, and its columns; `rows` are the columns of `ROWS`."""
    if not isinstance(node, exp.Select) or {name for name, part in node.args.items() if part} - _PARTS:
        refuse(node)
    source, columns = _from(node.args["from_"].this, rows, depth + 1)
    of = Expressions(columns).of
    made, texts, fixed = dict[str, Value](), dict[str, str](), set[str]()
    for column in node.expressions:
        starred = isinstance(column, exp.Star)
        found = _starred(column, columns) if starred else {column.alias_or_name: _column(of, column)}
        if found.keys() & made.keys():
            refuse(column)
        for spark_name, value in found.items():
            # Names of each depth are different: DuckDB lets a clause also use the names that its own select gives.
            name = value.text if depth and _NAME.fullmatch(value.text) else value.text and f"s{depth}_{len(made)}"
            made[spark_name] = replace(value, text=name)
            if name:
                texts[name] = value.text
            if not depth or any(map(_is_of_many_rows, column.find_all(exp.AggFunc, exp.Anonymous, exp.Explode))):
                fixed.add(name)
    tail = f"{_where(of, node)}{_group_by(of, node)}"
    return _Statement(columns=texts, fixed=frozenset(fixed), source=source, tail=tail), made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """A select for DuckDB: what its columns are, by their names; those that are `fixed` are always there.

    A column that a source has and that is passed on keeps its name. `source` None means `TABLE`.
    """

    columns: Mapping[str, str]
    fixed: frozenset[str]
    source: _Statement | None
    tail: str

    def text(self, wanted: Collection[str] = ()) -> str:
        """The statement, with the columns that are wanted of it."""
        left = {name: text for name, text in self.columns.items() if name in wanted or name in self.fixed}
        listed = ", ".join(text if text == name else f"{text} AS {name}" for name, text in left.items())
        return f"SELECT {listed or '1 AS one'} FROM {self._from(' '.join([*left.values(), self.tail]))}{self.tail}"

    def _from(self, used: str) -> str:
        """What the statement reads, if it uses the names in a text."""
        source, wanted = self.source, {*_NAME.findall(used)}
        while source is not None and source._passes(wanted):
            source = source.source
        return TABLE if source is None else f"({source.text(wanted)})"

    def _passes(self, wanted: Collection[str]) -> bool:
        """Whether all that is wanted comes from the source as it is."""
        return not (self.tail or self.fixed) and all(self.columns.get(name, name) == name for name in wanted)


def _is_of_many_rows(node: exp.Expr) -> bool:
    """Whether it may decide how many rows a select gives, even if nobody reads it."""
    return not isinstance(node, exp.Anonymous) or node.name.lower() in _AGGREGATES


def _starred(star: exp.Star, columns: Columns) -> Columns:
    """All columns, but those after EXCEPT."""
    if any(part for name, part in star.args.items() if name != "except_"):
        refuse(star)
    left = {column.name for column in star.args.get("except_") or ()}
    if not left <= columns.keys():
        refuse(star)
    return {name: value for name, value in columns.items() if name not in left}


def _from(node: exp.Expr, rows: Columns, depth: int) -> tuple[_Statement | None, Columns]:
    if isinstance(node, exp.Table) and node.sql("spark") == ROWS:
        return None, rows
    if not isinstance(node, exp.Subquery):
        refuse(node)
    return _select(node.this, rows, depth)


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
