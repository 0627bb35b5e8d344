"""A change of what published numbers mean is a decision; a change that cannot matter is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from support.builders import NOW, a_table, tp
from tidemill import Count, Pipeline, Sum, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.meaning import VERSION, meanings
from tidemill.core.bind.rule_bounds import implied
from tidemill.core.change.redefinition import meaning_after, redefined
from tidemill.core.contract.contract import Contract, ExtraFields, Format, RowRule, Severity, TableRule, Unique
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.errors import AmendmentError, BackfillOpen, Incompatible
from tidemill.core.history.past import Past
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Reason, Redefined, Repair, SideOutput
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.planning import ReadLimit, TopicBounds, plan_batch
from tidemill.core.plan.position import Position, Since
from tidemill.core.plan.slices import BatchRange
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.codec import decode, encode
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import backfill_of, plan_backfill, plan_repair

EVENTS = Contract(
    name="events",
    version="1",
    format=Format.JSON,
    fields=(
        Field(name="ts", type=Scalar.TIMESTAMP, required=True),
        Field(name="sent", type=Scalar.TIMESTAMP),
        Field(name="user", type=Scalar.STRING),
        Field(name="amount", type=Scalar.LONG),
    ),
    row_rules=(RowRule(name="amount.maximum", predicate="`amount` <= 10"),),
)
SUMS = a_table("sums", "window_start", "window_end", "user", "n", "amount")
ROWS = a_table("rows", "user", "amount")
REASON = Reason(by="ana", why="nobody is nobody")


def build(stream: Any, **knobs: Any) -> None:
    """The pipeline that all others are held against."""
    changed = stream.filter(knobs.get("keep", "user != 'nobody'"), name=knobs.get("name")).with_columns(
        amount=knobs.get("amount", "amount*2")
    )
    windowed = changed.key_by("user").window(Tumbling("1 minute"), allowed_lateness=knobs.get("lateness", "0 s"))
    windowed.aggregate(n=Count(), amount=Sum("amount")).publish(
        "sums", contract="sums", trigger=knobs.get("trigger", "on_close"), topic=knobs.get("topic")
    )
    changed.select("user", "amount").publish("rows", contract="rows")


def a_flow(
    make: Callable[[Any], None] = build,
    *,
    read: dict[str, Any] | None = None,
    every: str = "1 minute",
    **contracts: Any,
) -> Flow:
    with Pipeline("p", every=every) as pipeline:
        make(pipeline.read("t", **{"contract": "events", "event_time": "ts", **(read or {})}))
    return bind(pipeline.spec, {"events": EVENTS, "sums": SUMS, "rows": ROWS, **contracts})


def of(**knobs: Any) -> Flow:
    return a_flow(lambda stream: build(stream, **knobs))


def input_contract(**changes: Any) -> Flow:
    return a_flow(events=replace(EVENTS, **changes))


def split(stream: Any, *routes: tuple[str, str], port: str = "a", default: str = "rest") -> None:
    ports = stream.split(default=default, **dict(routes))
    build(ports.pop(port))
    for other in ports.values():
        other.discard()


COMMITTED = Position(batch_id=4, meanings=meanings(a_flow()))
A, B = ("a", "amount > 1"), ("b", "amount > 2")
MATTERS: dict[str, Flow] = {
    "another filter": of(keep="user != 'somebody'"),
    "another column": of(amount="amount * 3"),
    "another event time": a_flow(read={"event_time": "sent"}),
    "the log's time": a_flow(read={"event_time": None}),
    "a decoder's option": input_contract(options={"timestamp": "epoch_ms"}),
    "extra fields": input_contract(extra_fields=ExtraFields.REJECT),
    "a field more": input_contract(fields=(*EVENTS.fields, Field(name="x", type=Scalar.STRING))),
    "a field that is required": input_contract(
        fields=(*EVENTS.fields[:3], Field(name="amount", type=Scalar.LONG, required=True))
    ),
    "a tighter rule": input_contract(row_rules=(RowRule(name="amount.maximum", predicate="`amount` <= 9"),)),
    "another rule": input_contract(row_rules=(RowRule(name="amount.maximum", predicate="`amount` % 2 = 0"),)),
    "a rule more": input_contract(row_rules=(*EVENTS.row_rules, RowRule(name="m", predicate="`amount` >= 0"))),
    "a step more": a_flow(lambda s: build(s.filter("amount > 0"))),
    "twice the same rows": a_flow(lambda s: build(s.union(s))),
    "a route": a_flow(lambda s: split(s, A)),
}
with Pipeline("p", every="1 minute") as _elsewhere:
    build(_elsewhere.read("other", contract="events", event_time="ts"))
MATTERS["another topic"] = bind(_elsewhere.spec, {"events": EVENTS, "sums": SUMS, "rows": ROWS})


@pytest.mark.parametrize("name", MATTERS)
def test_a_change_of_meaning_is_refused_with_three_ways(name: str) -> None:
    with pytest.raises(Incompatible, match="changed what published numbers mean; nothing was moved") as error:
        redefined(MATTERS[name], COMMITTED)
    assert "\n sums\n" in error.value.message
    for way in ("tidemill rebuild p", "tidemill run p --from-now --why TEXT", "undo the change"):
        assert way in error.value.fix
    found = redefined(MATTERS[name], COMMITTED, REASON)
    assert found is not None
    assert set(found.tables) == {"sums", "rows"}


def described_rules() -> tuple[RowRule, ...]:
    warning = RowRule(name="w", predicate="`amount` > 1", severity=Severity.WARNING)
    return (replace(EVENTS.row_rules[0], name="other name", description="a text"), warning)


SAME: dict[str, Flow] = {
    "nothing": a_flow(),
    "layout and case": of(keep="`user`!='nobody'", amount="amount  *  2"),
    "how often": a_flow(every="5 minutes"),
    "names of operators": of(name="known"),
    "allowed lateness": of(lateness="1 hour"),
    "delay": a_flow(read={"delay": "1 minute"}),
    "where it begins": a_flow(read={"start": "latest"}),
    "a topic to send to": of(topic="sent"),
    "a selection": a_flow(lambda s: build(s.select("ts", "user", "amount"))),
    "a column that nobody uses": a_flow(lambda s: build(s.with_columns(more="amount + 1"))),
    "rules that only warn, names and descriptions": input_contract(row_rules=described_rules(), description="events"),
    "a rule that only lets more records in": input_contract(
        row_rules=(RowRule(name="amount.maximum", predicate="amount <= 11"),)
    ),
    "a rule less": input_contract(row_rules=()),
    "a rule that only warns now": input_contract(row_rules=(replace(EVENTS.row_rules[0], severity=Severity.WARNING),)),
    "a field that may be null now": input_contract(
        fields=(replace(EVENTS.fields[0], required=False), *EVENTS.fields[1:])
    ),
    "the audit": a_flow(
        sums=replace(SUMS, table_rules=(TableRule(name="u", check=Unique(columns=("user",))),), description="x")
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_cannot_matter_passes(name: str) -> None:
    assert redefined(SAME[name], COMMITTED) is None


def test_the_difference_is_told_by_table_part_and_step() -> None:
    flow = of(keep="user != 'somebody'", amount="amount * 3", name="known")
    with pytest.raises(Incompatible) as error:
        redefined(flow, COMMITTED)
    assert error.value.message.splitlines()[1:7] == [
        " sums",
        f"  t: the steps to the table from `known` ({flow.spec.graph.places['known']}) on:",
        "    - filter(user != 'nobody')",
        "    + filter(user != 'somebody')",
        "    - with_columns([amount = amount*2])",
        "    + with_columns([amount = amount * 3])",
    ]
    with pytest.raises(Incompatible, match="  t: event time: ts, now sent"):
        redefined(MATTERS["another event time"], COMMITTED)


def branched(*keeps: str) -> Flow:
    """A pipeline that unites filters of one stream, each with a name that begins as its text."""

    def make(stream: Any) -> None:
        first, *others = [stream.filter(keep, name=f"keep_{keep[-1]}") for keep in keeps]
        build(first.union(*others) if others else first)

    return a_flow(make)


@pytest.mark.parametrize(
    ("keeps", "told"),
    [
        (("amount > 1", "amount > 4", "amount > 3"), ["the branch to the table through `keep_4` (", "-2", "+4"]),
        (("amount > 3", "amount > 1"), ["a branch to the table that is declared no more:", "-2"]),
        (
            ("amount > 0", "amount > 1", "amount > 2", "amount > 3"),
            ["the branch to the table through `keep_0` (", "+0"],
        ),
        (("amount > 3", "amount > 2", "amount > 1"), []),
    ],
    ids=["changed", "removed", "new", "in another order"],
)
def test_of_several_branches_those_that_changed_are_told_by_a_step_of_theirs(keeps: tuple[str, ...], told: Any) -> None:
    before = Position(batch_id=4, meanings=meanings(branched("amount > 1", "amount > 2", "amount > 3")))
    flow = branched(*keeps)
    if not told:
        assert redefined(flow, before) is None
        return
    with pytest.raises(Incompatible) as error:
        redefined(flow, before)
    of_sums = error.value.message.partition("\n sums\n")[2].partition("\n rows\n")[0].splitlines()
    assert told[0] in of_sums[0]
    assert len([line for line in of_sums if line.startswith("  t:")]) == 1
    changed = [line for line in of_sums[1:] if "filter(amount >" in line]
    assert [f"{line.strip()[0]}{line.strip()[-2]}" for line in changed] == told[1:]


def test_a_branch_that_a_split_feeds_is_told_by_its_port() -> None:
    def make(stream: Any, more: str) -> None:
        ports = stream.split(default="rest", high=more)
        build(ports["high"].union(ports["rest"].with_columns(amount="0")))

    before = Position(batch_id=4, meanings=meanings(a_flow(lambda s: make(s, "amount > 1"))))
    with pytest.raises(Incompatible, match=r"the branch to the table through `split_1` \(.*\), port `high`:"):
        redefined(a_flow(lambda s: make(s, "amount > 2")), before)


@pytest.mark.parametrize(
    ("before", "now", "easier"),
    [
        ("`a` >= 1 AND `a` <= 5", "`a` >= 0 AND `a` <= 5.5", True),
        ("`a` >= 1 AND `a` <= 5", "`a` <= 5", True),
        ("`a` >= 1", "`a` >= 1 AND `a` <= 5", False),
        ("`a` > -1.5D", "`a` > -2D", True),
        ("`a` > 1", "`a` >= 1", True),
        ("`a` >= 1", "`a` > 1", False),
        ("`a` >= 5", "`a` > 4", True),
        ("`a` > 4", "`a` >= 5", False),
        ("`a` < 5", "`a` <= 5", True),
        ("`a` <= 5", "`a` < 5", False),
        ("`a` <= 4", "`a` > 4", False),
        ("`a` <= 1", "`b` <= 1", False),
        ("length(`a`) <= 1", "length(`a`) <= 2", True),
        ("`a` <= 5 OR `b` <= 5", "`a` <= 5 OR `b` <= 6", False),
        ("`a` = 1 AND `b` <= 5", "`a` = 1  AND b <= 5", True),
        ("NOT (`a` <= 5)", "NOT (`a` <= 6)", False),
        ("NOT `a` <= 5", "NOT `a` <= 6", False),
        ("-`a` <= 5", "-`a` <= 6", False),
    ],
)
def test_a_rule_is_easier_only_when_its_bounds_show_it(before: str, now: str, easier: bool) -> None:
    assert implied([before], [now]) is easier


def routed(*routes: tuple[str, str], **knobs: Any) -> Flow:
    return a_flow(lambda s: split(s, *routes, **knobs))


def test_a_route_means_its_predicate_and_those_before_it() -> None:
    known = Position(meanings=meanings(routed(A)))
    assert redefined(routed(A, B), known) is None
    assert redefined(routed(("z", "amount > 1"), port="z", default="d"), known) is None
    with pytest.raises(Incompatible):
        redefined(routed(B, A), known)
    rest = Position(meanings=meanings(routed(A, port="rest")))
    with pytest.raises(Incompatible):
        redefined(routed(A, B, port="rest"), rest)


def test_an_input_more_changes_no_number_that_is_there_and_one_less_does() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        one = pipeline.read("t", contract="events", event_time="ts")
        build(one.union(pipeline.read("u", contract="events", event_time="ts")))
    both = bind(pipeline.spec, {"events": EVENTS, "sums": SUMS, "rows": ROWS})
    assert redefined(both, COMMITTED) is None
    with pytest.raises(Incompatible, match="u: event time: ts, now not there"):
        redefined(a_flow(), Position(meanings=meanings(both)))


def test_windows_that_would_wait_for_ever_are_refused_and_the_way_back_is_free() -> None:
    with pytest.raises(Incompatible, match="trigger: on_close, now on_update") as error:
        redefined(of(trigger="on_update"), COMMITTED)
    assert "--from-now" not in error.value.fix
    with pytest.raises(Incompatible, match="cannot go on with it"):
        redefined(of(trigger="on_update"), COMMITTED, REASON)
    assert redefined(of(), Position(meanings=meanings(of(trigger="on_update")))) is None


def test_other_types_are_a_decision_too_and_whether_state_can_take_them_is_for_spark_to_say() -> None:
    other = tuple(replace(f, type=Scalar.DOUBLE) if f.name == "amount" else f for f in EVENTS.fields)
    for flow in (input_contract(fields=other), a_flow(rows=replace(ROWS, fields=(ROWS.fields[0], other[-1])))):
        with pytest.raises(Incompatible, match=r"bigint(?s:.*)double"):
            redefined(flow, COMMITTED)
        assert redefined(flow, COMMITTED, REASON) is not None


def planned(flow: Flow, position: Position, *, until: int, decided: Reason | None = None) -> BatchPlan | None:
    bounds = {"t": TopicBounds(topic_id="id", partitions={0: OffsetRange(tp(), 0, until)})}
    return plan_batch(
        flow,
        position,
        bounds,
        batch_id=position.batch_id + 1,
        clock=NOW,
        limit=ReadLimit(),
        redefined=redefined(flow, position, decided),
    )


def committed(flow: Flow, plan: BatchPlan | None) -> Position:
    assert plan is not None
    return meaning_after(flow, plan, plan.position_after(1, {}, {"t": 0}, shapes={}, panes={}))


def test_a_ledger_without_meanings_takes_the_one_of_its_next_batch() -> None:
    plan = planned(a_flow(), Position(), until=3)
    assert plan is not None
    assert plan.live.redefined is None
    after = committed(a_flow(), plan)
    assert after.meanings == meanings(a_flow())
    assert after.since is None
    with pytest.raises(Incompatible):
        planned(of(keep="true"), after, until=9)


def test_a_decision_is_kept_with_its_batch_even_when_there_is_nothing_to_read() -> None:
    before = committed(a_flow(), planned(a_flow(), Position(), until=3))
    other = of(keep="true")
    plan = planned(other, before, until=3, decided=REASON)
    assert plan is not None
    assert plan.records == 0
    assert decode(BatchPlan, encode(plan)) == plan
    after = committed(other, plan)
    assert decode(Position, encode(after)) == after
    assert [after.first_of_meaning(table) for table in ("sums", "rows", "none")] == [2, 2, 0]
    assert after.since is not None
    assert (after.since["sums"].by, after.since["sums"].why) == ("ana", "nobody is nobody")
    assert planned(other, after, until=3, decided=REASON) is None
    with pytest.raises(Incompatible):
        redefined(a_flow(), after)


def test_a_decision_about_no_change_changes_nothing() -> None:
    assert redefined(a_flow(), COMMITTED, REASON) is None
    assert redefined(a_flow(), Position(), REASON) is None


def test_a_new_version_of_the_code_may_word_our_rules_otherwise_but_nothing_else() -> None:
    old = {t: {**m, VERSION: "0"} for t, m in meanings(a_flow()).items()}
    assert redefined(MATTERS["another rule"], Position(meanings=old)) is None
    with pytest.raises(Incompatible):
        redefined(MATTERS["another filter"], Position(meanings=old))


def test_nothing_goes_back_before_somebody_decided() -> None:
    view = View(position=COMMITTED, last_batch_id=4)
    other = MATTERS["another filter"]
    repair = Repair(source=SideOutput.LATE, version=1, batches=(BatchRange(2, 3),), only="sums", reason=REASON)
    with pytest.raises(Incompatible):
        plan_repair(other, view, repair, {}, clock=NOW)
    job = backfill_of(a_flow(), view, Past(), (), {})
    with pytest.raises(Incompatible):
        plan_backfill(other, view, job, clock=NOW, most=10)


def test_records_that_were_put_aside_before_are_not_added_to_numbers_of_before() -> None:
    position = replace(COMMITTED, since={"sums": Since(batch_id=4, by="ana")})
    view = View(position=position, last_batch_id=4)
    repair = Repair(source=SideOutput.LATE, version=1, batches=(BatchRange(2, 6),), only="sums", reason=REASON)
    with pytest.raises(AmendmentError, match=r"batches 2 to 3 put some of these records aside before batch 4"):
        plan_repair(a_flow(), view, repair, {}, clock=NOW)
    assert plan_repair(a_flow(), view, replace(repair, mixed=True), {}, clock=NOW).kind is Kind.REPAIR
    assert plan_repair(a_flow(), view, replace(repair, only="rows"), {}, clock=NOW).kind is Kind.REPAIR
    later = replace(repair, batches=(BatchRange(4, 6),))
    assert plan_repair(a_flow(), view, later, {}, clock=NOW).kind is Kind.REPAIR
    with pytest.raises(AmendmentError):
        plan_repair(a_flow(), view, replace(repair, source=SideOutput.QUARANTINE, only=None), {}, clock=NOW)


def test_a_backfill_that_is_open_is_completed_before_numbers_mean_something_else() -> None:
    job = backfill_of(a_flow(), View(position=COMMITTED, last_batch_id=4), Past(), (), {})
    with pytest.raises(BackfillOpen, match="its batches must all mean the same"):
        redefined(MATTERS["another filter"], replace(COMMITTED, backfill=job), REASON)


def test_what_was_decided_is_in_the_plan_in_words() -> None:
    found = redefined(MATTERS["another event time"], COMMITTED, REASON)
    lines = ("  t: event time: ts, now sent",)
    assert found == Redefined(tables={"sums": lines, "rows": lines}, reason=REASON)
