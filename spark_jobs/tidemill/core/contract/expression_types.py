"""The types of the parts of an SQL expression, as far as they are certain without Spark. Loads sqlglot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from tidemill.core.contract.analysis import Analysis
from tidemill.core.contract.known_types import Family, Known, Number, family, roughly
from tidemill.core.contract.schema import Array, Object, Scalar
from tidemill.core.contract.sql_types import SqlType, sql_type
from tidemill.core.sql import function_types as of
from tidemill.core.sql.function_signatures import SIGNATURES

_CASTS: Mapping[exp.DType, Known] = {
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR), Scalar.STRING),
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT), Number.WHOLE),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL), Number.ANY),
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), Scalar.TIMESTAMP),
    exp.DType.TIMESTAMPNTZ: Scalar.TIMESTAMP,
    exp.DType.DATE: Scalar.DATE,
    exp.DType.BOOLEAN: Scalar.BOOLEAN,
    exp.DType.BINARY: Scalar.BINARY,
}
_CONDITIONS = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Boolean),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg)
_GIVES: Mapping[str, Known] = {
    **{each.value: each for each in Scalar},
    "texts": Array(Scalar.STRING),
    "count": Number.WHOLE,
    "number": Number.ANY,
}
"""What functions give, by the words of their signatures. A count is an integer that no record makes large."""


class TypedTree:
    """A tree whose columns have these types, by their names in lower case. `nodes` has parents before children."""

    def __init__(self, tree: exp.Expr, types: Mapping[str, Known]) -> None:
        self.nodes: list[exp.Expr] = []
        self._types: dict[int, Known] = {}
        self._columns = types
        exact = {name.lower(): sql_type(t) for name, t in types.items() if t is not None and not isinstance(t, Number)}
        self.analysis = Analysis(tree, exact)
        self._around: dict[int, tuple[exp.Lambda, ...]] = {}
        pending: list[tuple[exp.Expr, tuple[exp.Lambda, ...]]] = [(tree, ())]
        while pending:
            node, around = pending.pop()
            self.nodes.append(node)
            if isinstance(node, exp.Identifier) and around:
                self._around[id(node)] = around
            around = (node, *around) if isinstance(node, exp.Lambda) else around
            # Neither an interval nor a type has parts with values.
            inner = () if isinstance(node, exp.Interval | exp.DataType) else node.iter_expressions()
            pending += [(each, around) for each in inner]
        lambdas = (node for node in self.nodes if isinstance(node, exp.Lambda))
        self._variables = {variable.name.lower() for node in lambdas for variable in node.expressions}
        # Without recursion: a chain of AND may be as long as the text.
        for node in reversed(self.nodes):
            known = self._found(node)
            self._types[id(node)] = known if known is not None else roughly(self.analysis.of(node))

    def exact(self, node: object) -> SqlType | None:
        """The type that Spark's analyzer gives a part of the tree; None if it is not certain."""
        return self.analysis.of(node)

    def of(self, node: object) -> Known:
        """What is known of a part of the tree."""
        return self._types.get(id(node))

    def families(self, nodes: Iterable[object]) -> set[Family | None]:
        """The families of some parts of the tree."""
        return {family(self.of(node)) for node in nodes}

    def _found(self, node: exp.Expr) -> Known:
        match node:
            case exp.Literal():
                return Scalar.STRING if node.is_string else Number.WHOLE if node.name.isdigit() else Number.ANY
            case exp.RawString() | exp.Concat() | exp.Trim():
                return Scalar.STRING
            case exp.Column():
                return self._column(node)
            case exp.Identifier():
                return self._variable(node)
            case exp.Paren():
                return self.of(node.this)
            case exp.Cast():
                return _CASTS.get(node.to.this) if isinstance(node.to, exp.DataType) else None
            case exp.Case():
                default = node.args.get("default")
                results = [branch.args.get("true") for branch in node.args["ifs"]]
                return self._common([*results, *([] if default is None else [default])])
            case exp.DPipe() | exp.Substring():
                return self._joined([node.this, node.expression] if isinstance(node, exp.DPipe) else [node.this])
            case exp.Anonymous():
                return self._called(node)
            case _:
                return self._computed(node)

    def _computed(self, node: exp.Expr) -> Known:
        if isinstance(node, _CONDITIONS):
            return Scalar.BOOLEAN
        if isinstance(node, _ARITHMETIC):
            sides = self.families(node.iter_expressions())
            return Number.ANY if sides == {Family.NUMBER} else None
        if isinstance(node, exp.Filter):
            return self.of(node.this)
        if isinstance(node, exp.Extract | exp.StrPosition):
            return Number.ANY
        return None

    def column(self, name: str) -> Known:
        """What is known of a column; None for a variable of a lambda function."""
        return None if name.lower() in self._variables else self._columns.get(name.lower())

    def _column(self, node: exp.Column) -> Known:
        first, *inner = (part.name.lower() for part in node.parts)
        found = self.column(first)
        for name in inner:
            fields = found.fields if isinstance(found, Object) else ()
            found = next((field.type for field in fields if field.name.lower() == name), None)
        return found

    def _variable(self, node: exp.Identifier) -> Known:
        """What is known of a variable of a lambda function: the items of an array, as far as they have one type."""
        name = node.name.lower()
        for each in self._around.get(id(node), ()):
            names = [variable.name.lower() for variable in each.expressions]
            if name in names and isinstance(each.parent, exp.Anonymous):
                array = self.of(each.parent.expressions[0])
                places = of.ITEMS_AT.get(each.parent.name.lower(), ())
                return array.item if isinstance(array, Array) and names.index(name) in places else None
        return None

    def _called(self, node: exp.Anonymous) -> Known:
        name, arguments = node.name.lower(), node.expressions
        if name in SIGNATURES and (given := _GIVES.get(SIGNATURES[name].gives)) is not None:
            return given
        match name:
            case "if" | "nvl2":
                return self._common(arguments[1:])
            case "nullif":
                return self._common(arguments[:1])
            case "abs" | "round" | "bround" | "ceil" | "ceiling" | "floor" | "mod" | "pmod" | "sum" | "avg" | "mean":
                return Number.ANY if self.families(arguments[:1]) == {Family.NUMBER} else None
            case _ if name in of.GIVES_ITS_ARGUMENTS:
                return self._common(arguments)
            case _ if name in of.GIVES_TEXT_OF_TEXT:
                return self._joined(arguments[:1] if name != "concat" else arguments)
            case _:
                return None

    def _common(self, nodes: Iterable[exp.Expr | None]) -> Known:
        """The type that several values have together; a null has any type."""
        found = [self.of(node) for node in nodes if not isinstance(node, exp.Null)]
        if not found or any(each is None for each in found):
            return None
        if all(each == found[0] for each in found):
            return found[0]
        return Number.ANY if {family(each) for each in found} == {Family.NUMBER} else None

    def _joined(self, nodes: Iterable[exp.Expr]) -> Known:
        """A text, if all values are texts or become texts."""
        plain = {Family.TEXT, Family.NUMBER, Family.BOOLEAN, Family.MOMENT}
        return Scalar.STRING if self.families(nodes) <= plain else None
