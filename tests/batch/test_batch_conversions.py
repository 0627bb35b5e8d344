"""What is said of types without Spark, held against Spark itself."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable
from typing import Any

import pytest

from support.columns import TYPES
from tidemill.core.contract.implicit_casts import checked_type
from tidemill.core.contract.schema import DataType, ddl
from tidemill.core.contract.schema import Field as Column
from tidemill.core.errors import DeclarationError
from tidemill.core.sql import function_types as of
from tidemill.engine.aggregate.types import data_type

pytestmark = pytest.mark.spark

CONVERTED = re.compile(r"cast\((?:note|person)\S* as (?:bigint|int|double|decimal\S*|boolean|timestamp|date)\)")
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


CONVERTING = (
    *(
        f"{name}(note, 1)"
        for name in ["atan2", "hypot", "mod", "pmod", "pow", "power", "log", "corr", "covar_pop", "covar_samp"]
    ),
    *(f"try_{name}(note, 1)" for name in ["add", "subtract", "multiply", "divide", "mod"]),
    *(f"{name}('a', note)" for name in ["left", "right", "repeat", "sha2"]),
    *(f"{name}('a', 'b', note)" for name in ["substring_index", "split_part", "locate"]),
    *(f"{name}('a', {at})" for name in ("substr", "substring") for at in ("note, 1", "1, note")),
    *(f"{name}('a', note, 'b')" for name in ("lpad", "rpad")),
    *("make_date(note, 1, 1)", "make_date(1, note, 1)", "percentile(note, 0.5)", "elt(note, 'a', 'b')"),
    *("next_day(note, 'MO')", "add_months(note, 1)", "date_sub(note, 1)"),
    *("trunc(note, 'MM')", "date_format(note, 'y')", "from_utc_timestamp(note, 'UTC')"),
    *("to_utc_timestamp(note, 'UTC')", "months_between(note, ts)", "months_between(ts, note)"),
    *("date_trunc('day', note)", "date_part('year', note)", "datepart('year', note)"),
)
"""Calls that convert a text. The other functions of the lists are called with the text alone."""


def names_of(calls: Iterable[str]) -> set[str]:
    return {call.partition("(")[0] for call in calls}


def test_functions_convert_the_arguments_that_are_refused(session: Any) -> None:
    alone = {*of.NEEDS_NUMBER, *of.NEEDS_MOMENT} - names_of(CONVERTING)
    calls = [*CONVERTING, *(f"{name}(note)" for name in alone)]
    assert [call for call in calls if analyzed(session, call) is None] == []
    assert [text for call in calls if (text := disagreement(session, call, aggregates=True))] == []
