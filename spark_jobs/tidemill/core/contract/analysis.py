"""The types of the parts of an SQL expression as Spark's analyzer finds them, and what it refuses. Loads sqlglot.

It is a walk from the leaves to the root by the rules of `operator_rules` and `function_rules`. A part of which nothing
is known, and a part that is refused, have no type, and what is around them is not refused for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidemill.core.contract.cast_types import type_of_cast
from tidemill.core.contract.collation_rules import collated, name_of
from tidemill.core.contract.function_rules import called
from tidemill.core.contract.lambda_rules import variable_type
from tidemill.core.contract.leaf_types import LEAVES
from tidemill.core.contract.moment_parts import part_of_moment
from tidemill.core.contract.operator_rules import (
    MismatchError,
    check_texts,
    compared,
    is_among,
    operated,
    signed,
    together,
)
from tidemill.core.contract.sql_types import BOOLEAN, STRING, VOID, SqlType, named
from tidemill.core.contract.type_paths import item_of, names_in, part_of

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.And: "AND",
    exp.Or: "AND",
}
_SIGNS: Mapping[type[exp.Expr], str] = {exp.Neg: "-", exp.BitwiseNot: "~", exp.Not: "NOT"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass(frozen=True, slots=True)
class Refused:
    """A part of an expression that Spark refuses: why, and what to do."""

    node: exp.Expr
    why: str
    fix: str


class Analysis:
    """The analysis of a tree whose columns have these types, by their names in lower case; None is not known."""

    def __init__(self, tree: exp.Expr, columns: Mapping[str, SqlType | None]) -> None:
        self.refused: list[Refused] = []
        self._columns = columns
        self._types: dict[int, SqlType | None] = {}
        self._around: dict[int, exp.Lambda | None] = {}
        # Without recursion: a chain of AND may be as long as the text.
        for node in reversed(list(self._walk(tree))):
            try:
                self._types[id(node)] = self._found(node)
            except MismatchError as mismatch:
                self._types[id(node)] = None
                self.refused.append(Refused(node, mismatch.why, mismatch.fix))

    def of(self, node: object) -> SqlType | None:
        """What is known of the type of a part of the tree."""
        return self._types.get(id(node))

    def _walk(self, tree: exp.Expr) -> Iterator[exp.Expr]:
        """All parts that have values, parents before children, and the last child first."""
        pending: list[tuple[exp.Expr, exp.Lambda | None]] = [(tree, None)]
        while pending:
            node, around = pending.pop()
            self._around[id(node)] = around
            yield node
            if isinstance(node, exp.Lambda):
                inner, around = [node.this], node
            else:
                inner = [] if isinstance(node, exp.Interval | exp.DataType) else list(node.iter_expressions())
            pending += [(each, around) for each in inner]

    def _all(self, nodes: Sequence[exp.Expr | None]) -> list[SqlType | None]:
        return [self.of(node) for node in nodes if node is not None]

    def _found(self, node: exp.Expr) -> SqlType | None:
        if type(node) in _OPERATORS:
            return operated(_OPERATORS[type(node)], self.of(node.this), self.of(node.expression))
        if type(node) in _SIGNS:
            return signed(_SIGNS[type(node)], self.of(node.this))
        if isinstance(node, _COMPARISONS):
            compared(self.of(node.this), self.of(node.expression))
            return BOOLEAN
        if isinstance(node, exp.Cast):
            return type_of_cast(self.of(node.this), node)
        return LEAVES[type(node)](node) if type(node) in LEAVES else self._other(node)

    def _other(self, node: exp.Expr) -> SqlType | None:
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Identifier():
                return self._variable(node)
            case exp.Paren() | exp.Alias() | exp.Escape() | exp.Filter() | exp.Lambda() | exp.Distinct():
                inner = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
                return self.of(inner)
            case exp.Dot(this=exp.Identifier() as variable) if self.of(variable) == VOID:
                raise MismatchError(f"`{variable.name}` is always NULL, which has no fields", "give the array items")
            case exp.Dot():
                return part_of(self.of(node.this), node.expression.name)
            case exp.Bracket():
                return item_of(self.of(node.this), node.expressions[0], self.of(node.expressions[0]))
            case exp.Tuple():
                return SqlType("struct", tuple(self._all(node.expressions)), names_in(node.expressions))
            case exp.Anonymous():
                return called(node, self._all(node.expressions))
            case _:
                return self._condition(node)

    def _condition(self, node: exp.Expr) -> SqlType | None:
        match node:
            case exp.In():
                is_among(self._all([node.this, *node.expressions]))
            case exp.Between():
                for bound in (node.args["low"], node.args["high"]):
                    compared(self.of(node.this), self.of(bound))
            case exp.Is():
                if isinstance(node.expression, exp.Boolean):
                    signed("IS TRUE", self.of(node.this))
            case exp.Like() | exp.ILike() | exp.RegexpLike():
                check_texts(self._all([node.this, node.expression]), "LIKE")
            case _:
                return self._syntax(node)
        return BOOLEAN

    def _syntax(self, node: exp.Expr) -> SqlType | None:
        """Functions with a syntax of their own, and CASE."""
        match node:
            case exp.Case():
                return self._case(node)
            case exp.DPipe():
                check_texts(self._all([node.this, node.expression]), "||", more="a")
                return called(exp.Anonymous(this="concat"), self._all([node.this, node.expression]))
            case exp.Collate():
                return collated(self.of(node.this), name_of(node.expression))
            case exp.Trim():
                check_texts(self._all([node.this, node.expression]), "trim")
                return STRING
            case exp.StrPosition():
                return named("i")
            case exp.Substring():
                return called(exp.Anonymous(this="substring"), self._all([node.this, node.args.get("start")]))
            case exp.Overlay():
                parts = [node.this, node.expression, node.args["from_"]]
                return called(exp.Anonymous(this="overlay"), self._all(parts))
            case exp.Extract():
                return part_of_moment(node.name, self.of(node.expression))
            case _:
                return None

    def _case(self, node: exp.Case) -> SqlType | None:
        branches = node.args["ifs"]
        for tested in (branch.this for branch in branches):
            found = self.of(tested)
            if node.this is not None:
                compared(self.of(node.this), found)
            elif found is not None and found.letter not in ("b", "?"):
                raise MismatchError(f"a condition is a boolean, not `{found}`", "compare it with a value")
        return together(self._all([*(branch.args["true"] for branch in branches), node.args.get("default")]))

    def _column(self, node: exp.Column) -> SqlType | None:
        first, *inner = node.parts
        found = self._columns.get(first.name.lower())
        for name in inner:
            found = part_of(found, name.name)
        return found

    def _variable(self, node: exp.Identifier) -> SqlType | None:
        """The type of a variable of a lambda function, by the arguments beside the function."""
        around = self._around.get(id(node))
        while around is not None:
            names = [variable.name.lower() for variable in around.expressions]
            if node.name.lower() in names:
                beside = around.parent.expressions if isinstance(around.parent, exp.Anonymous) else []
                return variable_type(around, names.index(node.name.lower()), self._all(beside)) if beside else None
            around = self._around.get(id(around))
        return None
