"""Expressions as Spark reads them, and as Tidemill does before there is a Spark."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from batch.test_batch_flows import EVENTS, WINDOW, a_mill, a_table
from support.projects import Mill, an_event
from support.short_forms import shortened
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import parsed
from tidemill.core.sql.function_groups import AGGREGATE_GROUPS, ROW_GROUPS
from tidemill.core.sql.functions import AGGREGATE_FUNCTIONS, REFUSED_FUNCTIONS, ROW_FUNCTIONS
from tidemill.core.sql.text import quoted
from tidemill.inspect.verify import Scope, verify

pytestmark = pytest.mark.spark

SYNTAX = {"timestampadd", "timestampdiff", "try_cast"}
"""What is called like a function, and is syntax to Spark."""


def names_in_spark(spark: Any, text: str) -> tuple[set[str], set[str]] | None:
    """The columns that Spark's own parser finds, and all names inside lambdas; None where it finds no expression."""
    try:
        tree = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except Exception:
        return None
    columns, inside, pending = set(), set(), [tree]
    while pending:
        node = pending.pop()
        match node.getClass().getSimpleName():
            case "UnresolvedAttribute":
                columns.add(node.nameParts().head())
            case "UnresolvedNamedLambdaVariable":
                inside.add(node.nameParts().head())
        pending += [node.children().apply(i) for i in range(node.children().size())]
    return columns, inside


def disagreement(spark: Any, text: str) -> str:
    """How both parsers disagree; what ours refuses is no disagreement."""
    try:
        ours = parsed(text, aggregates=True).columns
    except DeclarationError:
        return ""
    theirs = names_in_spark(spark, text)
    if theirs is None:
        return ""
    columns, inside = theirs
    agrees = columns <= ours <= columns | inside
    return "" if agrees else f"{text}: Spark reads {sorted(columns)}, Tidemill {sorted(ours)}"


def test_every_function_of_this_spark_is_allowed_or_refused(spark: Any) -> None:
    there = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect() if re.fullmatch(r"\w+", row[0])}
    known = ROW_FUNCTIONS | AGGREGATE_FUNCTIONS | REFUSED_FUNCTIONS.keys()
    assert there ^ known == SYNTAX


def infos_in_spark(spark: Any) -> Any:
    return spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()


def test_functions_are_in_the_groups_in_which_spark_lists_them(spark: Any) -> None:
    theirs = {info.getName(): info.getGroup() for info in infos_in_spark(spark)}
    ours = {
        name: group for groups in (ROW_GROUPS, AGGREGATE_GROUPS) for group, names in groups.items() for name in names
    }
    assert {name for name in ours if name not in theirs} == SYNTAX | {"case"}
    assert {name: group for name, group in ours.items() if theirs.get(name, group) != group} == {}


def test_spark_and_tidemill_see_the_same_columns_in_sparks_own_examples(spark: Any) -> None:
    infos = infos_in_spark(spark)
    examples = [e for i in infos for e in re.findall(r"> SELECT (.*?);\s*$", i.getExamples(), re.MULTILINE)]
    expressions = {re.sub(r"\s+FROM .*", "", example, flags=re.DOTALL) for example in examples}
    assert len(expressions) > 500
    assert [found for text in sorted(expressions) if (found := disagreement(spark, text))] == []


@pytest.mark.parametrize("share", [80, pytest.param(1, marks=pytest.mark.long)])
def test_spark_and_tidemill_see_the_same_columns_where_names_are_words_of_sql(spark: Any, share: int) -> None:
    words = sorted(row[0].lower() for row in spark.sql("SELECT keyword FROM sql_keywords()").collect())[::share]
    forms = [
        "{}",
        "sum({})",
        "{} > 1",
        "1 + {}",
        "{} + 1",
        "{} - 1",
        "case when {} then 1 end",
        "{}.x",
        "{}['x']",
        "x.{}",
        "transform({}, {} -> {})",
    ]
    texts = [form.replace("{}", word) for word in words for form in forms]
    texts += [form.replace("{}", quoted(word)) for word in words[::9] for form in forms]
    assert [found for text in texts if (found := disagreement(spark, text))] == []


NAMES = ["hour", "Year", "END", "order", "select", "from", "Größe", "a b", "a.b", "x`y", "current_date", "values"]
KEYS = ["hour", "Year", "END", "order", "Größe", "a.b", "x`y", "from", "current_date"]


def of_names(folder: Path, spark: Any, names: list[str], key: str) -> Mill:
    """Sums of columns with these names by one of them."""
    sums = ", ".join(f"s{i}=Sum({quoted(n)!r})" for i, n in enumerate(names))
    pipeline = f"""
with Pipeline("p", every="1 minute") as pipeline:
    rows = pipeline.read("events", contract="events", event_time="ts").filter({f"{quoted(key)} >= 0"!r})
    rows = rows.with_columns(copied={quoted(names[0])!r})
    (
        rows.key_by({key!r}).window(Tumbling("10 s"))
        .aggregate(copied=Max("COPIED"), {sums}).publish("t", contract="t")
    )
"""
    properties = "".join(f"      - {{name: {yaml(n)}, logicalType: integer}}\n" for n in names)
    rule = "      - {{type: custom, name: r{}, engine: tidemill, implementation: {}}}\n"
    rules = "".join(rule.format(i, yaml(f"{quoted(n)} < 99")) for i, n in enumerate(names))
    events = EVENTS.rstrip() + "\n" + properties + "    quality:\n" + rules
    columns = [yaml(key), "copied", *(f"s{i}" for i, _ in enumerate(names))]
    table = a_table("t", {**WINDOW, **dict.fromkeys(columns, "integer")})
    return a_mill(folder, spark, pipeline, {"events": events, "t": table}, ("events",))


def yaml(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_a_batch_and_verify_agree_whatever_columns_are_called(tmp_path: Path, spark: Any, seed: int) -> None:
    chance = random.Random(seed)
    key = chance.choice(KEYS)
    names = list(dict.fromkeys([*chance.sample(NAMES, 9), key]))
    mill = of_names(tmp_path, spark, names, key)
    mill.feed(an_event(i, **{n: i + 10 * j for j, n in enumerate(names)}) for i in range(3))
    mill.feed(
        [
            an_event(4, **dict.fromkeys(names, 99)),
            an_event(5, **dict.fromkeys(names, -1)),
            an_event(30, **dict.fromkeys(names, 0)),
        ]
    )
    commits = mill.catch_up()
    assert str(commits[0].accounts["events"]) == "read=6 aggregated=4 filtered=1 rejected=1 late=0 shed=0"
    last = [{key: 0, "copied": 0, **{f"s{j}": 0 for j, _ in enumerate(names)}}]
    sums = [{f"s{j}": i + 10 * j for j, _ in enumerate(names)} for i in range(3)]
    expected = [{key: i + 10 * names.index(key), "copied": i, **sums[i]} for i in range(3)] + last
    found = [{k: v for k, v in row.items() if k not in WINDOW} for row in mill.published("t")]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert [v.agrees for v in verify(an_amendment(mill), Scope())] == [True]


DISCARDING = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    events.window(Tumbling("10 s")).aggregate(n=Count()).publish("t", contract="t")
    pipeline.read("noise", contract="events", event_time="ts").filter("amount > 5").discard()
"""


def test_an_input_that_is_only_discarded_is_read_and_filtered(tmp_path: Path, spark: Any) -> None:
    contracts = {"events": EVENTS, "t": a_table("t", {**WINDOW, "n": "integer"})}
    mill = a_mill(tmp_path, spark, DISCARDING, contracts, ("events", "noise"))
    mill.feed([an_event(1), an_event(2)])
    mill.feed([an_event(3, amount=9), b"broken", an_event(4)], topic="noise")
    accounts = mill.run(drain=True).accounts
    assert str(accounts["events"]) == "read=2 aggregated=2 filtered=0 rejected=0 late=0 shed=0"
    assert str(accounts["noise"]) == "read=3 aggregated=0 filtered=2 rejected=1 late=0 shed=0"
    assert [row["n"] for row in mill.published("t")] == [2]
    assert [(row["topic"], row["offset"]) for row in mill.own("quarantine")] == [("noise", 1)]


CAPITALS = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    named = events.with_columns(UserId="upper(user)", Größe="amount * 2", AMOUNT="amount + 1")
    counted = named.key_by("UserId").window(WINDOWS)
    counted.aggregate(N=Count(), Total=Sum("`größe` + amount"), Id=Max("amount")).publish("t", contract="t")
"""


SHAPES = ['Tumbling("10 s", offset="-3 s")', 'Sliding("1 min", "7 s")']


@pytest.mark.parametrize(("window", "driver_rows"), shortened(product(SHAPES, (500_000, 1)), [(SHAPES[1], 500_000)]))
def test_columns_with_capitals_and_umlauts_are_computed_published_and_verified(
    tmp_path: Path, spark: Any, window: str, driver_rows: int
) -> None:
    columns = {**WINDOW, "UserId": "string", "N": "integer", "Total": "integer", "Id": "integer"}
    contracts = {"events": EVENTS, "t": a_table("t", columns)}
    text = CAPITALS.replace("WINDOWS", window)
    mill = a_mill(tmp_path, spark, text, contracts, ("events",), driver_rows=driver_rows)
    for second in (1, 2, 30):
        mill.feed([an_event(second, "a", 5), an_event(second + 1, "b", 7)])
        mill.run()
    mill.run(drain=True)
    rows = [r for r in mill.published("t") if r["UserId"] == "A" and r["window_end"] > r["window_start"]]
    assert {(r["N"], r["Total"], r["Id"]) for r in rows} >= {(1, 16, 6)}
    [found] = verify(an_amendment(mill), Scope())
    assert found.agrees
    assert found.differences.compared == len(mill.published("t"))
