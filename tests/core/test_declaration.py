"""A wrong declaration fails when it is made, names the fault, and needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from support.builders import CONTRACTS, EVENTS, a_flow, a_table
from tidemill import Average, Count, CountIf, Custom, First, Pipeline, Quantiles, Sliding, Sum, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.bind.sinks import RowSink, WindowedSink
from tidemill.core.contract.contract import Format
from tidemill.core.declare.graph import Edge, Graph
from tidemill.core.declare.operators import Discard, Filter, Publish, Read, StartFrom
from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import duration


def declared(build: Callable[[Any], None], **contracts: Any) -> Any:
    """The flow of a pipeline whose one stream `build` completes."""
    with Pipeline("p", every="1 minute") as pipeline:
        build(pipeline.read("t", contract="events", event_time="ts"))
    return bind(pipeline.spec, {**CONTRACTS, **contracts})


def counted(stream: Any, **knobs: Any) -> None:
    stream.window(Tumbling("1 minute"), **knobs).aggregate(n=Count()).publish("counts", contract="counts")


WRONG: dict[str, tuple[Callable[[Any], None], str]] = {
    "unknown column in a filter": (lambda s: counted(s.filter("usr = 'a'")), "no column `usr`.*did you mean `user`"),
    "unknown column in an expression": (lambda s: counted(s.with_columns(x="nope + 1")), "no column `nope`"),
    "unknown key": (
        lambda s: s.key_by("nope").window(Tumbling("1 s")).aggregate(n=Count()).publish("c", contract="counts"),
        "no column `nope`",
    ),
    "unknown column in an aggregate": (
        lambda s: s.window(Tumbling("1 s")).aggregate(n=Sum("amout")).publish("c", contract="counts"),
        "no column `amout`.*did you mean `amount`",
    ),
    "a column of Tidemill's own in an aggregate": (
        lambda s: s.window(Tumbling("1 s")).aggregate(n=Sum("_time")).publish("c", contract="counts"),
        "no column `_time`; there are: _extra, amount, ts, user",
    ),
    "a column that select has dropped": (
        lambda s: counted(s.select("user").filter("amount > 1")),
        "no column `amount`",
    ),
    "a publish without a contract": (
        lambda s: s.window(Tumbling("1 s")).aggregate(n=Count()).publish("c"),
        "`c` has no contract",
    ),
    "a contract that is not there": (
        lambda s: s.window(Tumbling("1 s")).aggregate(n=Count()).publish("c", contract="count"),
        "no contract `count`.*did you mean `counts`",
    ),
    "columns that the contract lacks": (
        lambda s: s.window(Tumbling("1 s")).aggregate(n=Count(), m=Count()).publish("c", contract="counts"),
        "the contract lacks m",
    ),
    "columns that the contract has too many": (
        lambda s: s.window(Tumbling("1 s")).aggregate(m=Count()).publish("c", contract="counts"),
        "the contract has n",
    ),
    "a contract of records for a table": (
        lambda s: s.window(Tumbling("1 s")).aggregate(n=Count()).publish("c", contract="events"),
        "a contract of records",
    ),
    "a stream that leads nowhere": (lambda s: (counted(s), s.filter("amount > 1")), "`filter_1`.*leads nowhere"),
    "a port that leads nowhere": (
        lambda s: counted(s.split(big="amount > 5")["big"]),
        "output port `rest` of `split_1`.*leads nowhere",
    ),
    "a table published twice": (lambda s: (counted(s), counted(s)), "table `counts` is published twice"),
    "union of other columns": (lambda s: counted(s.union(s.with_columns(x="1"))), "merges streams with other columns"),
    "slide longer than size": (lambda s: counted(s.window(Sliding("1 s", "2 s"))), "slide 2 seconds is longer"),
    "negative lateness": (
        lambda s: s.window(Tumbling("1 s"), allowed_lateness=-duration("1 s")),
        "allowed_lateness must not be negative",
    ),
    "negative lateness as text": (
        lambda s: s.window(Tumbling("1 s"), allowed_lateness="-1 s"),
        "allowed_lateness must not be negative, found '-1 s'",
    ),
    "a negative delay": (
        lambda s: s.pipeline.read("u", contract="events", delay="-5 s"),
        "delay must not be negative, found '-5 s'",
    ),
    "a window of a negative size": (
        lambda s: s.window(Tumbling("-1 minute")),
        "the size of a window must be longer than nothing, found '-1 minute'",
    ),
    "a negative slide": (
        lambda s: s.window(Sliding("1 hour", timedelta(-1))),
        "the slide of a window must be longer than nothing, found -1 day",
    ),
    "no aggregate": (lambda s: s.window(Tumbling("1 s")).aggregate(), "at least one aggregate"),
    "not an aggregate": (lambda s: s.window(Tumbling("1 s")).aggregate(n="count(*)"), "`n` is not an aggregate"),
    "the clock in an expression": (lambda s: counted(s.with_columns(x="now()")), "gives another answer each time"),
    "chance in a filter": (lambda s: counted(s.filter("rand() < 0.1")), "`rand` gives another answer"),
    "a key that is a column of state": (
        lambda s: counted(s.with_columns(attempt="1").key_by("attempt")),
        "state has a column `attempt` of its own",
    ),
    "keys that differ in case only": (lambda s: counted(s.key_by("user", "USER")), "names `user` twice"),
    "a column that is selected twice": (lambda s: counted(s.select("user", "User")), "names `user` twice"),
    "an aggregate named like its key": (
        lambda s: s.key_by("user").window(Tumbling("1 s")).aggregate(user=Count()).publish("c", contract="counts"),
        "publishes `user` twice",
    ),
    "a reserved column": (
        lambda s: s.window(Tumbling("1 s")).aggregate(batch_id=Count()).publish("c", contract="counts"),
        "`batch_id` is a column of Tidemill's own",
    ),
    "a topic read twice": (lambda s: s.pipeline.read("t", contract="events"), "topic `t` is read twice"),
    "a split without routes": (lambda s: s.split(), "split needs routes"),
    "an unknown trigger": (
        lambda s: s.window(Tumbling("1 s")).aggregate(n=Count()).publish("c", contract="counts", trigger="hourly"),
        "trigger is",
    ),
    "a bad table name": (lambda s: s.publish("My Table", contract="counts"), "not a name for a table"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_names_its_fault(case: str) -> None:
    build, says = WRONG[case]
    with pytest.raises(DeclarationError, match=f"(?s){says}"):
        declared(build)


def test_an_error_names_the_operator_and_the_line() -> None:
    with pytest.raises(DeclarationError, match=r"`filter_1` \(.*test_declaration\.py:\d+\)"):
        declared(lambda s: counted(s.filter("nope")))


def test_a_pipeline_that_publishes_nothing_is_refused() -> None:
    with pytest.raises(DeclarationError, match="publishes nothing"):
        declared(lambda s: s.discard())


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"every": "0 s"}, "every must be longer"),
        ({"every": "-1 s"}, "every must be longer than nothing, found '-1 s'"),
        ({"every": "1 minute", "idle_timeout": "-1"}, "idle_timeout: not a duration: '-1'"),
        (
            {"every": "1 minute", "takeover_after": timedelta(-1)},
            "takeover_after must be longer than nothing, found -1 day",
        ),
        ({"every": "soon"}, "not a duration"),
        (
            {"every": "1 us"},
            r"every='1 us' is below the shortest interval, 1 second: every batch is a run of a scheduler",
        ),
        ({"every": "999 ms"}, r"below the shortest interval, 1 second[\s\S]*fix: declare every=\"1 second\" or longer"),
    ],
)
def test_a_pipeline_with_impossible_times_is_refused(keywords: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        Pipeline("p", **keywords)


def test_a_batch_may_start_every_second() -> None:
    Pipeline("p", every="1 second")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"watermark": "ts", "delay": "10 s"}, "t is read with a delay of 10 seconds and with watermark='ts'"),
        ({"watermark": timedelta(seconds=1)}, "watermark is datetime.timedelta.*expected an expression"),
        ({"watermark": ""}, "expression"),
        ({"watermark": "ts -"}, "ts -"),
        ({"watermark": "tss"}, "watermark: there is no column `tss`(?s:.*)did you mean `ts`"),
        ({"watermark": "amount"}, "watermark: `amount` is bigint, expected a timestamp"),
        ({"watermark": "to_date(ts)"}, "watermark: `to_date.ts.` is date, expected a timestamp"),
        ({"watermark": "current_timestamp()"}, "current_timestamp"),
        ({"watermark": "max(ts)"}, "max"),
        ({"watermark": "NULL"}, "the same for every record"),
        ({"watermark": "TIMESTAMP '2024-01-01'"}, "the same for every record"),
    ],
)
def test_a_watermark_that_records_cannot_tell_is_refused(how: dict[str, Any], says: str) -> None:
    def declare() -> None:
        with Pipeline("p", every="1 minute") as pipeline:
            counted(pipeline.read("t", contract="events", event_time="ts", **how))
        bind(pipeline.spec, CONTRACTS)

    with pytest.raises(DeclarationError, match=says):
        declare()


@pytest.mark.parametrize("column", ["user", "amount", "nope"])
def test_event_time_must_be_a_timestamp_of_the_contract(column: str) -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        counted(pipeline.read("t", contract="events", event_time=column))
    with pytest.raises(DeclarationError, match=r"expected a timestamp|no column") as refused:
        bind(pipeline.spec, CONTRACTS)
    assert ("write logicalType: timestamp for it in events" in refused.value.fix) == (column != "nope")
    assert ("`epoch_ms`" in refused.value.fix) == (column == "amount")


def test_rows_that_lack_a_column_of_their_contract_are_mended_where_they_are_selected() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        pipeline.read("t", contract="events").select("user").publish("counts", contract="counts")
    with pytest.raises(DeclarationError, match="which are not published") as refused:
        bind(pipeline.spec, CONTRACTS)
    assert refused.value.fix == "change .select(...) or counts"


READ = Read(topic="t", contract="c", event_time=None, delay=duration("0 s"), start=StartFrom.EARLIEST)
PUBLISH = Publish(table="x", contract="c", trigger=None)


def graph(operators: dict[str, Any], *edges: tuple[str, str, str, str]) -> Graph:
    return Graph(operators, tuple(Edge(*e) for e in edges), {})


def test_a_cycle_is_refused_by_name() -> None:
    loop = {"a": Filter("true"), "b": Filter("true")}
    with pytest.raises(DeclarationError, match=r"cycle: (a -> b -> a|b -> a -> b)"):
        graph(loop, ("a", "out", "b", "in"), ("b", "out", "a", "in"))


@pytest.mark.parametrize(
    ("edge", "says"),
    [
        (("r", "out", "gone", "in"), "no operator `gone`"),
        (("r", "left", "p", "in"), "`r` has no output port `left`, it has: out"),
        (("r", "out", "p", "side"), "`p` has no input port `side`, it has: in"),
    ],
)
def test_an_edge_to_nowhere_is_refused(edge: tuple[str, str, str, str], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        graph({"r": READ, "p": PUBLISH}, edge)


def test_an_input_that_is_not_fed_is_refused() -> None:
    with pytest.raises(DeclarationError, match="input port `in` of `p` is fed by 0 edges"):
        graph({"r": READ, "p": PUBLISH, "d": Discard()}, ("r", "out", "d", "in"))


def test_paths_go_through_every_way_of_a_diamond() -> None:
    def build(stream: Any) -> None:
        parts = stream.split(big="amount > 5")
        counted(parts["big"].union(parts["rest"].with_columns(user="'x'")))

    flow = declared(build)
    ((left, right),) = flow.sinks[0].paths.values()
    assert [s.name for s in left] == ["split_1", "union_1"]
    assert [s.name for s in right] == ["split_1", "with_columns_1", "union_1"]


def test_a_declaration_gives_the_same_hash_each_time_and_another_when_it_changes() -> None:
    same = {a_flow().logical_hash, a_flow(window=Tumbling("10000 ms")).logical_hash}
    assert len(same) == 1
    assert a_flow(window=Tumbling("20 seconds")).logical_hash not in same
    assert a_flow(delay="1 s").logical_hash not in same


def test_a_declaration_knows_its_sinks() -> None:
    def build(stream: Any) -> None:
        counted(stream)
        stream.select("user").publish("users", contract="users")

    flow = declared(build, users=a_table("users", "user"))
    windowed, rows = flow.sinks
    assert isinstance(windowed, WindowedSink)
    assert isinstance(rows, RowSink)
    assert rows.columns == ("user",)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Quantiles("x", ranks=(1.5,)), "ranks lie between 0 and 1"),
        (lambda: Custom(partial={"a": "sum(x)"}, merge={"b": "sum({b})"}, finish="{a}").triple, "same names"),
    ],
)
def test_an_impossible_aggregate_is_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        make()


def test_aggregates_say_what_they_read() -> None:
    assert CountIf("status >= 500").over == ("status >= 500",)
    assert "_time, _topic, _partition, _offset" in First("x").triple.partial["value"]
    assert set(Average("x").triple.partial) == {"sum", "n"}


def test_case_of_columns_does_not_matter_and_the_contracts_is_kept() -> None:
    flow = declared(
        lambda s: (
            s.with_columns(user="upper(USER)")
            .filter("User <> ''")
            .select("ts", "User", "AMOUNT")
            .publish("rows", contract="rows")
        ),
        rows=replace(
            EVENTS,
            name="rows",
            format=None,
            fields=tuple(replace(f, name=n) for f, n in zip(EVENTS.fields, ("ts", "User", "AMOUNT"), strict=True)),
        ),
    )
    assert flow.sinks[0].columns == ("ts", "User", "AMOUNT")


def test_every_format_is_named_where_a_contract_has_none() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        counted(pipeline.read("t", contract="events", event_time="ts"))
    contracts = {**CONTRACTS, "events": replace(CONTRACTS["events"], format=None)}
    with pytest.raises(DeclarationError, match="contract `events` has no format") as error:
        bind(pipeline.spec, contracts)
    assert error.value.fix.endswith(f"`format`: {', '.join(Format)}")
