"""What is said of types without Spark, held against Spark itself."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.columns import TYPES
from tidemill.core.contract.implicit_casts import checked_type
from tidemill.core.contract.schema import DataType, ddl
from tidemill.core.contract.schema import Field as Column
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.function_signatures import SIGNATURES, WORDS
from tidemill.core.sql.function_types import needed
from tidemill.core.sql.functions import AGGREGATE_FUNCTIONS, ROW_FUNCTIONS
from tidemill.engine.aggregate.types import data_type

pytestmark = pytest.mark.spark

CONVERTED = re.compile(
    r"cast\((?:note|person)\S* as (?:bigint|int|double|decimal\S*|boolean|timestamp|timestamp_ntz|date)\)"
)
SIGNS = ("=", "<", "+", "-", "DIV", "&", "AND", "||")
VALUES = ("note", "count", "price", "flag", "ts", "day", "1.5", "'1'", "NULL")
SHAPES = (
    "coalesce({}, {})",
    "nullif({}, {})",
    "{} IN ({}, NULL)",
    "{} BETWEEN {} AND NULL",
    "CASE WHEN flag THEN {} ELSE {} END",
    "CASE {} WHEN {} THEN 1 END",
    "if(flag, {}, {})",
    "concat({}, {})",
    "array({}, {})",
)


def analyzed(session: Any, expression: str) -> tuple[DataType | None, bool] | None:
    """The type that Spark gives an expression, and whether it converts a text; None where Spark refuses it."""
    try:
        frame = session.sql(f"SELECT {expression} AS x FROM conversions")
        plan = frame._jdf.queryExecution().withCachedData().toString()
        optimized = frame._jdf.queryExecution().optimizedPlan().toString()
    except Exception:
        return None
    found = data_type(frame.schema[0].dataType)
    return found if isinstance(found, DataType) else None, bool(
        CONVERTED.search(re.sub(r"#\d+L?", "", plan + optimized))
    )


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    columns = ddl(Column(name=n, type=t) for n, t in TYPES.items())
    spark.sql("DROP VIEW IF EXISTS conversions")
    spark.createDataFrame([], columns).createTempView("conversions")
    # Spark's client logs every expression that Spark refuses.
    logging.disable(logging.ERROR)
    yield spark
    logging.disable(logging.NOTSET)
    spark.sql("DROP VIEW conversions")


def disagreement(session: Any, expression: str, *, aggregates: bool = False) -> str:
    """How Spark and Tidemill disagree about an expression; empty if Spark refuses it anyway."""
    there = analyzed(session, expression)
    if there is None:
        return ""
    found, converts = there
    try:
        ours = checked_type(expression, TYPES, aggregates=aggregates)
    except DeclarationError:
        return "" if converts else f"{expression}: refused, but Spark converts nothing"
    if converts:
        return f"{expression}: not refused, but Spark converts a text"
    wrong = isinstance(ours, DataType) and found is not None and ours != found
    return f"{expression}: {ours}, but Spark says {found}" if wrong else ""


def test_operators_convert_what_is_refused_and_nothing_else(session: Any) -> None:
    pairs = [(a, b) for a, b in itertools.product(VALUES, VALUES) if "note" in (a, b)]
    signs = [f"{a} {sign} {b}" for sign in SIGNS for a, b in pairs]
    shapes = [shape.format(a, b) for shape in SHAPES for a, b in pairs]
    others = ["NOT note", "note IS TRUE", "-note", "extract(YEAR FROM note)", "person.name + 1", "note LIKE count"]
    found = [text for each in (*signs, *shapes, *others) if (text := disagreement(session, each))]
    assert found == []


UNITS = (
    *("dateadd(DAY, note, ts)", "date_add(DAY, 1, note)", "timestampadd(DAY, note, ts)", "timestampadd(DAY, 1, note)"),
    *("datediff(DAY, note, ts)", "date_diff(DAY, ts, note)", "timestampdiff(DAY, note, ts)"),
)
MORE = (
    *("percentile(note, 0.5)", "date_part('year', note)", "datepart('year', note)", "convert_timezone('UTC', note)"),
    *("sequence(1, note)", "sequence(1, 5, note)", "decode(note, 1, 'a')", "decode(count, 2, 1, note)"),
    *("map('a', 1, 'b', note)", "map(1, 1, note, 1)", "try_make_timestamp_ntz(1, 1, 1, 1, note, 1)"),
    *("overlay('a' PLACING 'b' FROM note)", "position('a', 'b', note)", "substring('a' FROM 1 FOR note)"),
)


def calls() -> Iterator[str]:
    """Every function with a text in each place where lint says that Spark converts it, and further calls."""
    yield from (*UNITS, *MORE)
    for name in sorted((ROW_FUNCTIONS | AGGREGATE_FUNCTIONS) & SIGNATURES.keys()):
        signature = SIGNATURES[name]
        for count in (count for count in range(1, 8) if signature.takes(count)):
            words = [signature.word(place) for place in range(count)]
            if "hours" in words or "times" in words or name == "make_time" or name.startswith("time_"):
                continue
            for place in (place for place in range(count) if needed(name, place, count)):
                given = [other(name, at, word) for at, word in enumerate(words)]
                yield f"{name}({', '.join([*given[:place], 'note', *given[place + 1 :]])})"


def other(name: str, place: int, word: str) -> str:
    """A value that a function takes at a place, and that is no text of records."""
    if (name, place) in GIVEN:
        return GIVEN[name, place]
    letters = sorted(WORDS[word].letters, key="ixdDTbasm".find)
    fitting = [letter for letter in letters if letter in "ixdDTbasm"]
    return "'1'" if fitting == ["s"] else EXAMPLES[fitting[0]]


EXAMPLES = {"i": "1", "x": "2e0", "d": "1.5", "D": "day", "T": "ts", "b": "true", "a": "tags", "s": "'1'", "m": "map()"}
GIVEN = {("next_day", 1): "'MO'", ("trunc", 1): "'MM'", ("date_trunc", 0): "'DAY'", ("date_format", 1): "'y'"} | {
    **dict.fromkeys((("from_utc_timestamp", 1), ("to_utc_timestamp", 1)), "'UTC'"),
    **dict.fromkeys((("sha2", 0), ("regexp_replace", 0)), "'a'"),
}


def test_functions_convert_the_arguments_that_are_refused(session: Any) -> None:
    found = list(dict.fromkeys(calls()))
    taken = [call for call in found if analyzed(session, call) is not None]
    assert len(found) - len(taken) < len(found) / 10
    assert [text for call in taken if (text := disagreement(session, call, aggregates=True))] == []
