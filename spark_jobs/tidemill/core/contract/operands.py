"""Which parts of an expression Spark gives one type. It casts the texts among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from tidemill.core.contract.calls import call_of
from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.schema import Scalar
from tidemill.core.sql.function_types import COMPARES, needed

AS_CONDITION = "used"
"""What parts are used for that must be true or false."""

Operands = tuple[Sequence[exp.Expr], Known, str]
"""Values, the type to which Spark casts texts among them, and what they are used for."""

_CONNECTORS = (exp.And, exp.Or, exp.Not)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_OF_BITS = (
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
    *(exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift),
)
_COMPUTATIONS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, *_OF_BITS)
_NEEDED: Mapping[str, Known] = {"number": Number.ANY, "moment": Scalar.TIMESTAMP, "boolean": Scalar.BOOLEAN}
_ENCODED = 2
"""The arguments of `decode` that reads binary; with more, it compares values."""

_CONVERTED = (Family.NUMBER, Family.BOOLEAN, Family.MOMENT)


def uses(typed: TypedTree, node: exp.Expr) -> Iterator[Operands]:
    """What a node does with its operands: each part is about values that Spark gives one type."""
    if isinstance(node, _COMPARISONS):
        yield _together(typed, list(node.iter_expressions()), "compared")
    elif isinstance(node, _COMPUTATIONS):
        yield _of_computation(typed, node)
    elif _is_about_conditions(node):
        parts = node.iter_expressions() if isinstance(node, _CONNECTORS) else [node.this]
        yield list(parts), Scalar.BOOLEAN, AS_CONDITION
    else:
        yield from _other_uses(typed, node)


def _other_uses(typed: TypedTree, node: exp.Expr) -> Iterator[Operands]:
    match node:
        case exp.Between():
            for bound in (node.args["low"], node.args["high"]):
                yield _together(typed, [node.this, bound], "compared")
        case exp.In():
            yield _together(typed, [node.this, *node.expressions], "compared")
        case exp.Case():
            yield from _of_case(typed, node)
        case exp.Substring() | exp.Overlay() | exp.StrPosition():
            name, arguments = call_of(node)
            for found, _, use in _of_arguments(name, arguments):
                yield found, Number.WHOLE, use
        case exp.Extract():
            yield [node.expression], Scalar.TIMESTAMP, "read"
        case exp.DPipe():
            yield [node.this, node.expression], None, "given to concat"
        case exp.Anonymous():
            yield from _of_function(typed, node)
        case _:
            pass


def _is_about_conditions(node: exp.Expr) -> bool:
    is_true = isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean)
    return is_true or isinstance(node, (*_CONNECTORS, exp.Where))


def _of_computation(typed: TypedTree, node: exp.Expr) -> Operands:
    operands = list(node.iter_expressions())
    if isinstance(node, exp.Add | exp.Sub) and _is_about_time(typed, operands):
        return operands, Scalar.TIMESTAMP, "computed"
    if isinstance(node, _OF_BITS):
        return operands, Scalar.LONG, "computed"
    return operands, _other(typed, operands) or Number.ANY, "computed"


def _is_about_time(typed: TypedTree, operands: Sequence[exp.Expr]) -> bool:
    return Family.MOMENT in typed.families(operands) or any(isinstance(each, exp.Interval) for each in operands)


def _of_case(typed: TypedTree, node: exp.Case) -> Iterator[Operands]:
    branches = node.args["ifs"]
    tested = [branch.this for branch in branches]
    if node.this is None:
        yield tested, Scalar.BOOLEAN, AS_CONDITION
    for value in tested if node.this is not None else []:
        yield _together(typed, [node.this, value], "compared")
    results = [branch.args["true"] for branch in branches]
    default = node.args.get("default")
    yield _together(typed, [*results, *([] if default is None else [default])], "put into one column")


def _of_function(typed: TypedTree, node: exp.Anonymous) -> Iterator[Operands]:
    name, arguments = node.name.lower(), node.expressions
    use = f"given to {name}"
    if name in COMPARES:
        yield _together(typed, arguments, use)
    if name in ("if", "nvl2"):
        yield _together(typed, arguments[1:], use)
    if name in ("if", "count_if"):
        yield arguments[:1], Scalar.BOOLEAN, use
    if name == "map":
        yield _together(typed, arguments[::2], use)
        yield _together(typed, arguments[1::2], use)
    if name == "sequence":
        wanted = _other(typed, arguments)
        yield arguments, Scalar.LONG if family(wanted) is Family.NUMBER else wanted, use
    if name == "concat":
        yield arguments, None, use
    if name == "decode" and len(arguments) > _ENCODED:
        for key in arguments[1::2] if len(arguments) % 2 else arguments[1:-1:2]:
            yield _together(typed, [arguments[0], key], use)
        yield _together(typed, [*arguments[2::2], *([] if len(arguments) % 2 else arguments[-1:])], use)
    yield from _of_arguments(name, arguments)


def _of_arguments(name: str, arguments: Sequence[exp.Expr]) -> Iterator[Operands]:
    """The arguments that a function wants as numbers, dates or times, or conditions."""
    wanted = [needed(name, place, len(arguments)) for place in range(len(arguments))]
    for kind, known in _NEEDED.items():
        found = [argument for argument, want in zip(arguments, wanted, strict=True) if want == kind]
        if found:
            yield found, known, f"given to {name}"


def _together(typed: TypedTree, operands: Sequence[exp.Expr], use: str) -> Operands:
    return operands, _other(typed, operands), use


def _other(typed: TypedTree, operands: Sequence[exp.Expr]) -> Known:
    """The type to which Spark casts the texts among values; None if it casts none, or nobody knows."""
    others = [found for each in operands if family(found := typed.of(each)) in _CONVERTED]
    # The widest of several numbers, times or booleans: what a text must look like is least strict there.
    whole = (Number.WHOLE, Scalar.INTEGER, Scalar.LONG)
    return next((found for found in others if found not in (*whole, Scalar.DATE)), others[0] if others else None)
