"""Expressions in which Spark would convert a text are refused before there is a Spark."""

from __future__ import annotations

import pytest

from support.builders import CONTRACTS
from support.columns import TYPES
from tidemill import Count, CountIf, Custom, Pipeline, Sum, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.implicit_casts import check_predicate, checked_type
from tidemill.core.contract.known_types import Known, Number
from tidemill.core.contract.schema import Array, Field, Scalar
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.errors import DeclarationError

OUT = {"window_start": Scalar.TIMESTAMP, "window_end": Scalar.TIMESTAMP, "user": Scalar.STRING, "x": Scalar.LONG}


def declared(*, filtered: str = "true", aggregate: Aggregate | None = None, **added: str) -> None:
    table = Contract(name="out", version="1", fields=tuple(Field(name=n, type=t) for n, t in OUT.items()))
    with Pipeline("p", every="1 minute") as pipeline:
        rows = pipeline.read("t", contract="events", event_time="ts").with_columns(**added).filter(filtered)
        windowed = rows.key_by("user").window(Tumbling("1 s"))
        windowed.aggregate(x=aggregate or Count()).publish("out", contract="out")
    bind(pipeline.spec, {**CONTRACTS, "out": table})


@pytest.mark.parametrize(
    ("expression", "fix"),
    [
        ("note > 0", "write try_cast(note AS DOUBLE) > 0, which is null"),
        ("`note` > 0", "write try_cast(`note` AS DOUBLE) > 0,"),
        ("0 < Note AND flag", "write 0 < try_cast(Note AS DOUBLE) AND flag,"),
        ("note + note", "write try_cast(note AS DOUBLE) instead of note,"),
        ("upper(note) = 1.5", "write try_cast(UPPER(note) AS DOUBLE)"),
        ("note & 1", "write try_cast(note AS BIGINT) & 1,"),
        ("note = true", "write try_cast(note AS BOOLEAN) = true,"),
        ("day > note", "write day > try_cast(note AS DATE),"),
        ("ts - note", "write ts - try_cast(note AS TIMESTAMP),"),
        ("person.name * 2", "write try_cast(person.name AS DOUBLE) * 2,"),
        ("exists(tags, tag -> tag > 0)", "instead of tag"),
        ("coalesce(note, 0)", "write coalesce(try_cast(note AS DOUBLE), 0),"),
        ("zeroifnull(note)", "write zeroifnull(try_cast(note AS DOUBLE)),"),
        ("bit_get(count, note)", "write bit_get(count, try_cast(note AS DOUBLE)),"),
        ("datediff(day, note)", "write datediff(day, try_cast(note AS TIMESTAMP)),"),
        ("timestampadd(DAY, note, ts)", "write timestampadd(DAY, try_cast(note AS DOUBLE), ts),"),
        ("timestampdiff(DAY, note, ts)", "write timestampdiff(DAY, try_cast(note AS TIMESTAMP), ts),"),
        ("months_between(ts, ts, note)", "write months_between(ts, ts, try_cast(note AS BOOLEAN)),"),
        ("overlay('a' PLACING 'b' FROM note)", "write overlay('a' PLACING 'b' FROM try_cast(note AS DOUBLE)),"),
        ("sequence(1, note)", "write sequence(1, try_cast(note AS BIGINT)),"),
        ("decode(note, 1, 'a')", "write decode(try_cast(note AS DOUBLE), 1, 'a'),"),
        ("map('a', 1, 'b', note)", "write map('a', 1, 'b', try_cast(note AS DOUBLE)),"),
        (
            "try_make_timestamp(note, 1, 1, 1, 1, 1)",
            "write try_make_timestamp(try_cast(note AS DOUBLE), 1, 1, 1, 1, 1),",
        ),
    ],
)
def test_a_text_that_spark_would_convert_is_refused_with_the_conversion_to_write(expression: str, fix: str) -> None:
    with pytest.raises(DeclarationError, match=r"is a text \(string\), but is .* Spark casts it") as refused:
        checked_type(expression, TYPES)
    assert fix in refused.value.fix.replace("upper", "UPPER")


@pytest.mark.parametrize(
    "expression",
    [
        "coalesce(tags, array(count))",
        "concat(array(1), tags)",
        "tags || array(1)",
        "tags IN (array(1))",
        "CASE WHEN flag THEN array(day) ELSE tags END",
        "map('a', tags, 'b', array(true))",
        "coalesce(person, struct(1 AS name, 2 AS age))",
    ],
)
def test_texts_inside_of_a_value_that_spark_would_convert_are_refused(expression: str) -> None:
    with pytest.raises(DeclarationError, match="Spark casts its texts, and the whole batch fails") as refused:
        checked_type(expression, TYPES)
    assert "try_cast(item AS ...)" in refused.value.fix


@pytest.mark.parametrize(
    "expression",
    [
        "count > 'many'",
        "count = '1.5'",
        "ts > 'soon'",
        "ts > '2024-13-01'",
        "flag = 'maybe'",
        "coalesce(price, 'none')",
    ],
)
def test_a_literal_that_cannot_be_converted_is_refused(expression: str) -> None:
    with pytest.raises(DeclarationError, match="and cannot be: Spark would fail the batch"):
        checked_type(expression, TYPES)


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        ("ts > '2024-01-01'", Scalar.BOOLEAN),
        ("ts > '2024-01-01T10:00:00Z' AND day <= '2024-12-31'", Scalar.BOOLEAN),
        ("count > '5' OR price = ' 1.5 '", Scalar.BOOLEAN),
        ("ts > 'epoch' OR coalesce(ts, ' now') > ts", Scalar.BOOLEAN),
        ("try_cast(note AS DOUBLE) > 0", Scalar.BOOLEAN),
        ("length(note) + count", Number.ANY),
        ("note || count", Scalar.STRING),
        ("CASE WHEN flag THEN note ELSE 'none' END", Scalar.STRING),
        ("filter(tags, tag -> tag > 'a')", Array(Scalar.STRING)),
        ("map_filter(unknown, (note, tag) -> note > 0)", None),
        ("unknown > 0 AND note = unknown", Scalar.BOOLEAN),
        ("coalesce(array(count), array('1')) IS NULL", Scalar.BOOLEAN),
        ("coalesce(tags, array('1'), unknown) IS NULL", Scalar.BOOLEAN),
        ("concat(note, count)", Scalar.STRING),
        ("unix_timestamp(note) > 1", Scalar.BOOLEAN),
        ("sequence(day, ts, interval '1' day) IS NULL", Scalar.BOOLEAN),
        ("note = NULL", Scalar.BOOLEAN),
        (" AND ".join(["note <> 'a'"] * 1100), Scalar.BOOLEAN),
    ],
)
def test_what_needs_no_conversion_or_is_not_certain_is_fine(expression: str, known: Known) -> None:
    assert checked_type(expression, TYPES) == known


@pytest.mark.parametrize("predicate", ["count + 1", "note", "ts", "count", "upper(note)", "flag AND count"])
def test_a_condition_that_is_neither_true_nor_false_is_refused(predicate: str) -> None:
    with pytest.raises(DeclarationError, match="condition"):
        check_predicate(predicate, TYPES)


def test_the_line_the_column_and_the_aggregate_are_named() -> None:
    with pytest.raises(
        DeclarationError, match=r"`with_columns_1` \(.*test_implicit_casts.py:\d+\): `y`: user is a text"
    ):
        declared(y="user + 1")
    with pytest.raises(DeclarationError, match=r"`filter_1` \(.*test_implicit_casts.py:\d+\): user is a text"):
        declared(filtered="user > 0")
    with pytest.raises(DeclarationError, match=r"`filter_1` .*: y is a text"):
        declared(y="lower(user)", filtered="y > 0")


@pytest.mark.parametrize(
    "aggregate",
    [
        CountIf("user > 0"),
        CountIf("amount + 1"),
        Count("user + 1"),
        Sum("trim(user)"),
        Custom(partial={"s": "sum(user)"}, merge={"s": "sum({s})"}, finish="{s}"),
    ],
)
def test_an_aggregate_over_a_converted_text_is_refused(aggregate: Aggregate) -> None:
    with pytest.raises(DeclarationError, match=r"`aggregate_1` \(.*test_implicit_casts.py:\d+\): `x`"):
        declared(aggregate=aggregate)


def test_a_route_is_named() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        ports = pipeline.read("t", contract="events").split(big="user > 9")
        for stream in ports.values():
            stream.discard()
        pipeline.read("u", contract="events").select("user").publish("out", contract="out")
    with pytest.raises(DeclarationError, match=r"`split_1` .*: `big`: user is a text"):
        bind(pipeline.spec, {**CONTRACTS, "out": Contract(name="out", version="1", fields=())})
