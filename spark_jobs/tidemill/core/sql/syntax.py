"""Which nodes the tree of an expression may have, and which columns and functions it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from tidemill.core.errors import DeclarationError
from tidemill.core.sql.clock_words import clock_in, is_moment
from tidemill.core.sql.functions import (
    COLLECTORS,
    COLUMN_HINT,
    FAILING_FUNCTIONS,
    TIME_FUNCTIONS,
    WITHOUT_BRACKETS,
    refusal,
)
from tidemill.core.sql.syntax_parts import fails_by_an_argument, has_unit, is_order_lost, is_unit, is_written

_ROW = (
    *(exp.Column, exp.Identifier, exp.Dot, exp.Bracket, exp.Literal, exp.Boolean, exp.Null, exp.HexString),
    *(exp.RawString, exp.Paren, exp.Tuple, exp.Interval, exp.IntervalSpan, exp.Var, exp.Concat, exp.Anonymous),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Any, exp.All),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe, exp.Case, exp.If, exp.Cast),
    *(exp.TryCast, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift),
    *(exp.BitwiseRightShift, exp.Extract, exp.Trim, exp.Substring, exp.StrPosition, exp.Overlay, exp.Collate),
    *(exp.Kwarg, exp.Lambda),
)
_GROUP = (exp.Distinct, exp.Filter, exp.Where, exp.WithinGroup, exp.Order, exp.Ordered)
_BEYOND = {
    exp.Query: "a subquery looks beyond the row",
    exp.SubqueryPredicate: "a subquery looks beyond the row",
    exp.Window: "a window function looks beyond the row",
    exp.Star: "`*` stands for all columns: name them",
    exp.Alias: "an expression has no name of its own: leave out AS",
    exp.Placeholder: "a parameter has no value",
    exp.Parameter: "a parameter has no value",
}
_MAY_FAIL = {exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.Cast: "cast", exp.TryCast: "cast"}
_WITH_UNITS = ("timestampadd", "dateadd", "date_add", "timestampdiff", "datediff", "date_diff")
_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Add, exp.Sub)
_MOMENTS = ("DATE", "TIME")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an expression reads and calls.

    `columns` are spelled as written; Spark ignores their case. `user.name` counts as `user`. `may_fail` names operators
    and functions that raise an error for some values, which fails the whole batch.
    """

    columns: frozenset[str]
    functions: frozenset[str]
    may_fail: tuple[str, ...]


class Walk:
    """A walk through a tree, without recursion: which columns and functions it uses, and whether that is allowed."""

    def __init__(self, text: str, *, aggregates: bool, casts: bool) -> None:
        self._text, self._aggregates = text, aggregates
        self._allowed = (*_ROW, *_GROUP) if aggregates else _ROW
        self._columns: set[str] = set()
        self._functions: set[str] = set()
        self._may_fail: dict[str, None] = {"::": None} if casts else {}

    def of(self, tree: exp.Expr) -> Parsed:
        """What the tree reads and calls.

        Raises:
            DeclarationError: something in it is not allowed.
        """
        pending: list[tuple[exp.Expr, frozenset[str]]] = [(tree, frozenset())]
        while pending:
            node, variables = pending.pop()
            self._check(node)
            if isinstance(node, exp.Lambda):
                variables |= {variable.name.lower() for variable in node.expressions}
            pending += [(child, variables) for child in self._children(node, variables)]
        return Parsed(frozenset(self._columns), frozenset(self._functions), tuple(self._may_fail))

    def _children(self, node: exp.Expr, variables: frozenset[str]) -> Iterator[exp.Expr]:
        """The children of a node that are still to be checked."""
        match node:
            case exp.Column():
                self._column(node, variables)
            case exp.Lambda():
                yield node.this
            case exp.Cast():
                # The type of a cast has no columns.
                yield node.this
            case exp.Anonymous():
                yield from self._arguments(node)
            case exp.Dot():
                if not isinstance(node.expression, exp.Identifier):
                    self._refuse("a function is called by its name alone", node)
                yield node.this
            case _:
                yield from node.iter_expressions()

    def _check(self, node: exp.Expr) -> None:
        if not isinstance(node, self._allowed):
            reasons = (reason for kind, reason in _BEYOND.items() if isinstance(node, kind))
            self._refuse(next(reasons, f"`{node.sql(dialect='spark')}` cannot be part of an expression"), node)
        if isinstance(node, exp.Interval) and not has_unit(node):
            raise DeclarationError(
                f"an interval without a unit, found in {self._text!r}",
                fix="put it in backticks if `interval` is a column, or write a unit: interval '1' day",
            )
        if isinstance(node, exp.Between) and node.args.get("symmetric"):
            self._refuse("Spark has no BETWEEN SYMMETRIC", node)
        self._note_what_fails(node)
        if isinstance(node, exp.Cast) and node.to.sql(dialect="spark").startswith(_MOMENTS):
            self._refuse_clock([node.this], computed=True)
        elif isinstance(node, _ORDERED):
            self._refuse_clock(node.iter_expressions())

    def _note_what_fails(self, node: exp.Expr) -> None:
        sign = next((sign for kind, sign in _MAY_FAIL.items() if type(node) is kind), None)
        if isinstance(node, exp.Bracket) and not all(_is_text(each) for each in node.expressions):
            self._may_fail["[]"] = None
        if sign is not None and not (isinstance(node, exp.Cast) and is_safe(node)):
            self._may_fail[sign] = None

    def _column(self, node: exp.Column, variables: frozenset[str]) -> None:
        first = node.parts[0]
        if isinstance(first, exp.Star) or isinstance(node.this, exp.Star):
            self._refuse(_BEYOND[exp.Star], node)
        name = first.name
        if name.lower() in WITHOUT_BRACKETS and not first.args.get("quoted"):
            self._refuse_function(name, more=f"or put it in backticks if `{name}` is a column")
        if name.lower() not in variables:
            self._columns.add(name)

    def _arguments(self, node: exp.Anonymous) -> Iterator[exp.Expr]:
        name = node.name.lower()
        arguments = list(node.expressions)
        why = refusal(name, aggregates=self._aggregates)
        if why is not None or (name == "unix_timestamp" and not arguments):
            self._refuse_function(name)
        if name in COLLECTORS and not is_order_lost(node):
            raise DeclarationError(
                f"`{name}` gives values in the order in which rows are added, found in {self._text!r}",
                fix=f"use the aggregate Collect, or put array_sort(...) around it: array_sort({name}(...))",
            )
        self._functions.add(name)
        if name in FAILING_FUNCTIONS or fails_by_an_argument(name, arguments):
            self._may_fail[name] = None
        if name in TIME_FUNCTIONS:
            self._refuse_clock(arguments)
        if name in _WITH_UNITS and len(arguments) == 3 and is_unit(arguments[0]):
            arguments.pop(0)
        for argument in arguments:
            if isinstance(argument, exp.Star) and name == "count" and len(arguments) == 1:
                continue
            yield argument.this if isinstance(argument, exp.Alias) and name == "struct" else argument

    def _refuse_clock(self, operands: Iterable[exp.Expr], *, computed: bool = False) -> None:
        shown = clock_in(operands, computed=computed)
        if shown is not None:
            raise DeclarationError(
                f"{shown} gives another answer each time where it becomes a date or a time, found in {self._text!r}",
                fix="write the date or the time itself",
            )

    def _refuse_function(self, name: str, *, more: str = "") -> None:
        reason, hint = refusal(name, aggregates=self._aggregates) or (
            f"`{name}` gives another answer each time without arguments",
            COLUMN_HINT,
        )
        fix = ", ".join(part for part in (hint, more) if part)
        raise DeclarationError(f"{reason}, found in {self._text!r}", fix=fix)

    def _refuse(self, reason: str, node: exp.Expr) -> None:
        raise DeclarationError(f"{reason}, found `{node.sql(dialect='spark')}` in {self._text!r}")


def is_safe(node: exp.Cast) -> bool:
    """Whether a cast is null instead of an error, or casts what is written beside it."""
    return bool(node.args.get("safe")) or is_moment(node) or is_written(node.this)


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)
