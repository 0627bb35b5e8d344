"""What lint refuses for its types, held against Spark's analyzer: both refuse the same expressions, and no others."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from support.columns import TYPES, VALUES
from support.constants_in_calls import constants_in_calls
from support.spark_analysis import a_view, checked_in_spark
from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.implicit_casts import checked_type
from tidemill.core.contract.schema import Array, DataType, Field, Object, Scalar
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.dialect import tree_of
from tidemill.core.sql.expressions import parsed
from tidemill.core.sql.function_signatures import SIGNATURES, WORDS
from tidemill.core.sql.functions import ROW_FUNCTIONS

pytestmark = pytest.mark.spark

COLUMNS: Mapping[str, DataType] = {
    **TYPES,
    "sizes": Array(Scalar.INTEGER),
    "people": Array(Object((Field(name="name", type=Scalar.STRING), Field(name="age", type=Scalar.INTEGER)))),
    "deep": Object((Field(name="inner", type=TYPES["person"]), Field(name="tags", type=TYPES["tags"]))),
}

MORE = (
    *("'a'", "'2026-01-01'", "'1'", "1", "0", "1.5", "2e0", "true", "5L", "sizes", "people", "deep", "array(day)"),
    *("array(map('a', 1))", "map(1, note)", "struct(small, note)", "array(tags)", "people[0]", "deep.inner"),
    *("X'00'", "date'2026-01-01'", "array()", "interval 2 days", "interval '2' hour"),
)
SIGNS = [
    "+",
    "-",
    "*",
    "/",
    "div",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "=",
    "<",
    "<=>",
    "<>",
    "AND",
    "OR",
    "||",
    "LIKE",
    "RLIKE",
]
SHAPES = (
    *("{} IN ({}, NULL)", "{} IN ({})", "{} BETWEEN {} AND NULL", "CASE WHEN flag THEN {} ELSE {} END", "{}[{}]"),
    *("CASE {} WHEN {} THEN 1 END", "{} IS DISTINCT FROM {}", "position({} IN {})", "trim({} FROM {})"),
    *("substring({} FROM {})", "overlay({} PLACING {} FROM 1)", "({}, 1) IN (({}, 1))", "if(flag, {}, {})"),
)
SINGLE = (
    *("-{}", "~{}", "NOT {}", "{} IS TRUE", "{} IS NOT FALSE", "{} IS NULL", "CASE WHEN {} THEN 1 END", "if({}, 1, 2)"),
    *("{}.name", "{}.zzz", "{}['zzz']", "{}['name']", "{}[0]", "extract(YEAR FROM {})", "extract(HOUR FROM {})"),
    *("extract(QUARTER FROM {})", "extract(SECOND FROM {})", "extract(EPOCH FROM {})", "{} COLLATE UTF8_LCASE"),
    *(f"{cast}({{}} AS {name})" for cast in ("cast", "try_cast") for name in ("int", "string", "double", "date")),
    *(f"cast({{}} AS {name})" for name in ("decimal(10, 2)", "boolean", "timestamp", "timestamp_ntz", "binary")),
    *("cast({} AS array<int>)", "cast({} AS map<string, int>)", "cast({} AS struct<a: string, b: bigint>)"),
    *("cast({} AS variant)", "cast({} AS interval day)", "cast({} AS interval month)", "cast({} AS float)"),
    *(
        "transform({}, x -> x)",
        "transform({}, x -> x + 1)",
        "transform({}, (x, i) -> i)",
        "transform({}, (x, y, z) -> x)",
    ),
    *("filter({}, x -> x)", "filter({}, x -> x = 1)", "exists({}, x -> x > 'a')", "forall({}, x -> NULL)"),
    *("exists({}, (x, y) -> true)", "aggregate({}, 0, (a, x) -> a + x)", "aggregate({}, 0L, (a, x) -> a + x)"),
    *("aggregate({}, 0, (a, x) -> a, a -> 'x')", "aggregate({}, 0, a -> a)", "array_sort({}, (l, r) -> 1)"),
    *("array_sort({}, (l, r) -> l > r)", "zip_with({}, {}, (x, y) -> x)", "map_filter({}, (k, v) -> v > 1)"),
    *("map_filter({}, (k, v) -> k)", "transform_values({}, (k, v) -> k)", "transform_keys({}, (k, v) -> v)"),
    *("transform_keys({}, k -> k)", "upper({} -> 1)", "named_struct('a', {})", "named_struct('a', {}).a"),
    *("struct({}).zzz", "transform({}, x -> x.name)", "transform({}, x -> x.zzz)", "{} IN (1, 'a', true)"),
    *(
        "{} LIKE ANY ('a', 'b')",
        "filter({}, 1)",
        "map({}, 1)",
        "map(1, {}, note, 2)",
        "greatest({}, 1)",
        "least({}, note)",
    ),
)
WRONG_ON_PURPOSE = ("Spark casts it", "Spark would fail the batch")
"""What we say about texts that Spark would convert: it takes them."""


ACCEPTED = {
    r"\d\.(name|zzz)$": "the parser takes `1.name` for a field of a number, Spark for two words",
    r"\b(try_)?to_(char|varchar|number|binary)\(.*, \(*[a-z_]+\(": "a format that a call gives is not computed",
}
"""What Spark refuses and lint does not, with the reason."""


def is_accepted(expression: str) -> bool:
    return any(re.search(pattern, expression) for pattern in ACCEPTED)


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    with a_view(spark, "predicates", COLUMNS):
        yield spark


def is_said(expression: str) -> str | None:
    """Why lint says that Spark refuses an expression; empty if it does not, None if lint has another reason."""
    try:
        parsed(expression)
        checked_type(expression, COLUMNS)
    except DeclarationError as error:
        if any(said in error.message for said in WRONG_ON_PURPOSE):
            return None
        return error.message if "Spark" in error.message else None
    return ""


def differences(session: Any, expressions: Sequence[str]) -> list[str]:
    """How lint and Spark disagree about expressions."""
    asked = [(each, said) for each in dict.fromkeys(expressions) if (said := is_said(each)) is not None]
    found: list[str] = []
    for chunk in (asked[start : start + 200] for start in range(0, len(asked), 200)):
        theirs = checked_in_spark(session, "predicates", [each for each, _ in chunk])
        for (each, said), kind in zip(chunk, theirs, strict=True):
            if said and kind is not None:
                found.append(f"{each}: Spark gives {kind}, but lint says: {said}")
            elif not said and kind is None and not is_accepted(each):
                found.append(f"{each}: Spark refuses it, but lint does not")
            elif kind is not None and (wrong := wrong_type(each, kind)):
                found.append(wrong)
    return found


def wrong_type(expression: str, kind: str) -> str:
    """How both disagree about a type; its digits do not count."""
    typed = TypedTree(tree_of(expression), COLUMNS)
    ours = typed.exact(typed.nodes[0])
    if ours is None or ours.name == re.split(r"[<(]| collate ", kind)[0]:
        return ""
    return f"{expression}: lint says {ours}, Spark {kind}"


def functions(count: int = 24) -> Iterator[str]:
    """Calls of every function, with arguments that mostly fit."""
    chance = random.Random(3)
    for name in sorted(ROW_FUNCTIONS & SIGNATURES.keys()):
        signature = SIGNATURES[name]
        for size in (size for size in range(1, 5) if signature.takes(size)):
            for _ in range(count):
                yield f"{name}({', '.join(an_argument(signature.word(at), chance) for at in range(size))})"


def an_argument(word: str, chance: random.Random) -> str:
    fitting = [letter for letter in VALUES if letter in WORDS[word].letters]
    if chance.random() < 0.15:
        return chance.choice([*VALUES.values(), *MORE])
    if chance.random() < 0.3:
        return chance.choice([value for value in MORE if word not in ("number", "whole", "int")] or ["1", "0", "'1'"])
    return VALUES[chance.choice(fitting)]


def composed(count: int) -> Iterator[str]:
    """Expressions of several operators and functions, some of which fit."""
    chance = random.Random(11)
    names = sorted(ROW_FUNCTIONS & SIGNATURES.keys())
    for _ in range(count):
        parts = [*VALUES.values(), *MORE]
        for _ in range(chance.randint(2, 4)):
            parts += [a_part(chance, parts, names) for _ in range(6)]
        yield parts[-1]


def a_part(chance: random.Random, parts: Sequence[str], names: Sequence[str]) -> str:
    one, other = (f"({chance.choice(parts[-12:])})" for _ in range(2))
    match chance.randint(0, 3):
        case 0:
            return f"{one} {chance.choice(SIGNS)} {other}"
        case 1:
            return chance.choice(SHAPES).format(one, other)
        case 2:
            return chance.choice(SINGLE).replace("{}", one)
        case _:
            name = chance.choice(names)
            words = SIGNATURES[name].words
            return f"{name}({', '.join([one, other, *(an_argument(w, chance) for w in words[2:])][: len(words)])})"


def some(expressions: Iterable[str], count: int) -> list[str]:
    """As many of them, always the same ones."""
    found = list(dict.fromkeys(expressions))
    return found if len(found) <= count else random.Random(17).sample(found, count)


def of_operators() -> Iterator[str]:
    values = [*VALUES.values(), *MORE]
    yield from (f"{a} {sign} {b}" for sign in SIGNS for a in values for b in values)


def of_shapes() -> Iterator[str]:
    values = [*VALUES.values(), *MORE]
    yield from (form.format(a, b) for form in SHAPES for a in values for b in values)


def of_one_value() -> Iterator[str]:
    yield from (form.replace("{}", value) for form in SINGLE for value in [*VALUES.values(), *MORE])


@pytest.mark.parametrize("count", [150, pytest.param(1_500, marks=pytest.mark.long)])
@pytest.mark.parametrize("of", [of_operators, of_shapes, of_one_value, functions])
def test_lint_and_spark_refuse_the_same(session: Any, of: Callable[[], Iterator[str]], count: int) -> None:
    assert differences(session, some(of(), count)) == []


@pytest.mark.parametrize("count", [100, pytest.param(2_000, marks=pytest.mark.long)])
def test_lint_and_spark_read_the_same_constants(session: Any, count: int) -> None:
    assert differences(session, some(constants_in_calls(), count)) == []


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_lint_and_spark_refuse_the_same_compositions(session: Any, count: int) -> None:
    assert differences(session, list(composed(count))) == []
