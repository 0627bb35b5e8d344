"""What is written down of a declaration stays the same when Python's names change, and says when it is another one."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from core.newer import FIXTURE, known_keys, persisted, unreadable, written_of_newer
from support.builders import NOW, a_commit, a_flow, a_plan
from support.declarations import AGGREGATES, CONTRACTS, everything
from tidemill import Count, Max, Pipeline, Sliding, Sum, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.change.compatibility import check_compatibility
from tidemill.core.declare import aggregates, sketches
from tidemill.core.declare.aggregates import Aggregate, Triple, single
from tidemill.core.declare.operators import Operator, Publish
from tidemill.core.errors import DeclarationError, Incompatible
from tidemill.core.identity import declarations, legacy
from tidemill.core.identity.contracts import fingerprint_of
from tidemill.core.identity.declarations import FORMS, check_forms, digest, encoded
from tidemill.core.identity.forms import Form, Part
from tidemill.core.identity.legacy import legacy_hash, legacy_shape
from tidemill.core.identity.written import described, same
from tidemill.core.plan.position import Position
from tidemill.core.protocol.codec import encode, from_json, stored, to_json
from tidemill.core.protocol.events import Planned
from tidemill.core.protocol.view import View
from tidemill.core.time.windows import WindowSpec

GOLDEN = json.loads((Path(__file__).parent / "identity.json").read_text())
NEWER = json.loads(FIXTURE.read_text())


@cache
def golden_flow() -> Flow:
    contracts = {name: replace(c, fingerprint=fingerprint_of(c)) for name, c in CONTRACTS.items()}
    return bind(everything().spec, contracts)


def windowed() -> Iterator[WindowedSink]:
    return (sink for sink in golden_flow().sinks if isinstance(sink, WindowedSink))


def test_what_is_written_of_operators_windows_and_aggregates_is_that_of_the_fixture() -> None:
    operators = golden_flow().spec.graph.operators
    assert {name: encoded(operator) for name, operator in operators.items()} == GOLDEN["operators"]


def test_hashes_and_shapes_are_those_of_the_fixture() -> None:
    assert golden_flow().logical_hash == GOLDEN["logical_hash"]
    assert {sink.table: dict(sink.shape) for sink in windowed()} == GOLDEN["shapes"]
    assert {name: fingerprint_of(contract) for name, contract in CONTRACTS.items()} == GOLDEN["contracts"]


def test_ledgers_of_before_are_recognised_by_what_they_hold() -> None:
    assert golden_flow().hashes == (GOLDEN["logical_hash"], GOLDEN["legacy"]["logical_hash"])
    assert {sink.table: dict(sink.legacy_shape) for sink in windowed()} == GOLDEN["legacy"]["shapes"]


def test_what_was_added_since_is_written_as_in_its_fixture() -> None:
    now = written_of_newer()
    lacking = sorted(now.keys() - NEWER.keys())
    assert lacking == [], "a pipeline of `newer` is not in newer.json: `python tests/core/newer.py` adds it"
    assert now == NEWER


def all_kinds() -> set[type]:
    declared = (value for module in (aggregates, sketches) for value in vars(module).values())
    found = {v for v in declared if isinstance(v, type) and issubclass(v, Aggregate) and v is not Aggregate}
    return {*typing.get_args(Operator), *typing.get_args(WindowSpec), *found}


def test_every_operator_window_and_aggregate_has_a_form_and_stands_in_the_fixture() -> None:
    assert all_kinds() <= FORMS.keys()
    tags = [form.tag for form in FORMS.values()]
    assert len(set(tags)) == len(tags)
    text = json.dumps([GOLDEN["operators"], *(found["operators"] for found in NEWER.values())])
    lacking = [tag for tag in tags if f'"kind": "{tag}"' not in text]
    assert lacking == [], "give each a pipeline in `newer` of tests/support/declarations.py; `everything` is frozen"


def test_every_written_field_stands_in_a_fixture() -> None:
    """A default hides a field: only a value beside the default shows under which name it is written."""
    found: set[tuple[str, str]] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            found.update((value["kind"], name) for name in value if "kind" in value)
        for held in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(held)

    collect([GOLDEN["operators"], *(entry["operators"] for entry in NEWER.values())])
    expected = {(form.tag, part.name) for form in FORMS.values() for part in form.parts.values()}
    assert expected - found == set(), "give each field a value other than its default in a pipeline of `newer`"


@dataclass(frozen=True, slots=True)
class Product(Aggregate):
    """An aggregate that somebody adds."""

    expression: str

    @property
    def triple(self) -> Triple:
        return single(f"product({self.expression})", "product({value})")


def test_a_new_aggregate_without_a_form_fails_loudly() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        events = pipeline.read("t", contract="events", event_time="ts")
        events.window(Tumbling("1 s")).aggregate(n=Product("amount")).publish("counts", contract="counts")
    flow = bind(pipeline.spec, {**CONTRACTS, "events": CONTRACTS["orders"], "counts": CONTRACTS["hourly"]})
    with pytest.raises(DeclarationError, match=r"Product has no written form[\s\S]*Custom\("):
        _ = flow.logical_hash


def test_a_new_field_that_is_not_written_fails_loudly() -> None:
    with pytest.raises(TypeError, match="the written form of Sum has the fields"):
        check_forms({Sum: Form("sum")})
    check_forms(FORMS)


@dataclass(frozen=True, slots=True)
class Total:
    """`Sum` after its class and field were renamed, and with a new field."""

    value: str
    overflow: str = "null"


RENAMED = Form("sum", {"value": Part("of", sql=True), "overflow": Part("overflow", "null")})


def test_a_rename_and_a_new_field_with_its_default_change_nothing() -> None:
    forms = {**FORMS, Total: RENAMED}
    check_forms(forms)
    assert encoded(Total("amount"), forms) == encoded(Sum("amount"))
    assert encoded(Total("amount", overflow="decimal"), forms) != encoded(Sum("amount"))


def test_what_is_new_is_never_taken_for_something_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(typing.cast("dict[type, Form]", FORMS), Total, RENAMED)
    monkeypatch.setitem(typing.cast("dict[type, str]", legacy._CLASSES), Total, "Sum expression=value")
    total: dict[str, Any] = {"x": Total("amount")}
    assert legacy_shape((), Tumbling("1 s"), total)["aggregate x"] == "Sum(expression='amount')"
    total = {"x": Total("amount", overflow="decimal")}
    assert "aggregate x" not in legacy_shape((), Tumbling("1 s"), total)
    assert "aggregate p" not in legacy_shape((), Tumbling("1 s"), {"p": Product("amount")})
    monkeypatch.delitem(typing.cast("dict[type, str]", legacy._CLASSES), Count)
    flow = a_flow()
    assert legacy_hash(flow.name, flow.spec.graph, [], flow.spec.future_tolerance) is None
    assert flow.hashes == (flow.logical_hash,)


@dataclass(frozen=True, slots=True)
class Slot:
    """A kind of window that somebody adds, with the fields of `Sliding`."""

    size: str = "1 hour"
    slide: str = "1 hour"
    offset: str = "0 s"


def test_a_new_kind_of_window_is_never_taken_for_a_sliding_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert legacy_shape((), Sliding("1 hour", "1 hour"), {})["window"] == "sliding 1 hour by 1 hour"
    with pytest.raises(AssertionError):
        legacy_shape((), typing.cast("Any", Slot()), {})
    monkeypatch.setattr(legacy, "_window", legacy._declared)
    assert legacy_shape((), typing.cast("Any", Slot()), {}) == {"keys": ""}


def another(value: Any) -> Any:
    """A value of the same type."""
    match value:
        case Enum():
            return next(member for member in type(value) if member is not value)
        case bool():
            return not value
        case int() | str() | tuple():
            return value + type(value)(("x",) if isinstance(value, tuple) else "1")
        case timedelta():
            return value + timedelta(microseconds=1)
        case Mapping():
            return {**value, "more": next(iter(value.values()))}
        case None:
            return "x"
        case _:
            return Tumbling("7 s") if not isinstance(value, Tumbling) else Tumbling("8 s")


def parts_of(value: Any) -> Iterator[Any]:
    """The value, and all declared values inside it."""
    if type(value) in FORMS:
        yield value
        for name in FORMS[type(value)].parts:
            yield from parts_of(getattr(value, name))
    if isinstance(value, Mapping):
        for held in value.values():
            yield from parts_of(held)


def test_every_field_counts_but_those_that_are_ignored_on_purpose() -> None:
    for operator in golden_flow().spec.graph.operators.values():
        for value in parts_of(operator):
            for name in FORMS[type(value)].parts:
                changed = copy.copy(value)
                object.__setattr__(changed, name, another(getattr(value, name)))
                assert encoded(changed) != encoded(value), f"{type(value).__name__}.{name}"
    assert {kind: set(form.ignored) for kind, form in FORMS.items() if form.ignored} == {Publish: {"topic"}}


def test_lengths_of_time_and_defaults_that_are_written_out_mean_the_same() -> None:
    assert encoded(Tumbling("60 seconds", offset="0 s")) == encoded(Tumbling("1 minute"))
    assert encoded(Count("*")) == encoded(Count()) == {"kind": "count"}


def state_of(shape: Mapping[str, str]) -> View:
    return View(position=Position(shapes={"all_of_them": shape}))


def test_state_that_an_older_version_described_goes_on() -> None:
    check_compatibility(golden_flow(), state_of(GOLDEN["legacy"]["shapes"]["all_of_them"]))
    check_compatibility(golden_flow(), state_of(GOLDEN["shapes"]["all_of_them"]))


@pytest.mark.parametrize("form", ["legacy", "now"])
def test_a_difference_is_told_in_words(form: str) -> None:
    shapes = GOLDEN["legacy"]["shapes"] if form == "legacy" else GOLDEN["shapes"]
    other = dict(shapes["all_of_them"])
    other["aggregate most"] = other["aggregate least"]
    del other["aggregate rows"]
    other["aggregate gone"] = other["aggregate mean"]
    with pytest.raises(Incompatible, match="state of all_of_them was built by another declaration") as error:
        check_compatibility(golden_flow(), state_of(other))
    least = "Min(expression='amount')" if form == "legacy" else "min(amount)"
    mean = "Average(expression='amount')" if form == "legacy" else "average(amount)"
    assert error.value.message.splitlines()[1:] == [
        f"  aggregate most: {least}, now max(amount)",
        f"  aggregate gone: {mean}, now not there",
        "  aggregate rows: not there, now count()",
    ]


def test_how_an_expression_is_laid_out_does_not_matter_to_state() -> None:
    def sql(text: str) -> str:
        return declarations.written(encoded(Sum(text)))

    assert same(sql("case when a>5 then Abs(b) end"), sql("CASE  WHEN `a` > 5 THEN abs(b)\nEND"))
    for one, other in [("a > 5", "a >= 5"), ("'A'", "'a'"), ("a", "b"), ("f(a)", "g(a)"), ("1", "1.0"), ("'a'", "a")]:
        assert not same(sql(one), sql(other)), (one, other)
    assert not same(sql("'unclosed"), sql("'other"))
    assert not same(declarations.written(encoded(Sum("a"))), declarations.written(encoded(Max("a"))))


def test_windows_and_aggregates_are_shown_as_people_would_say_them() -> None:
    def shown(value: Any) -> str:
        return described(declarations.written(encoded(value)))

    assert shown(Sliding("1 hour", "10 minutes")) == "sliding(1 hour, slide=10 minutes)"
    assert shown(AGGREGATES["oftener"]) == "heavy_hitters(shop, k=3, tracked=50)"
    assert described("tumbling 10 seconds") == "tumbling 10 seconds"


def test_what_ledgers_hold_keeps_its_names_and_new_fields_are_none_by_default() -> None:
    found, known = persisted(), known_keys()
    assert known - found.keys() == set(), "a field was renamed: give it metadata=stored(its old name)"
    assert unreadable(found, known) == [], "older ledgers lack them: give them None by default"
    assert found.keys() - known == set(), "new, and not held yet: `python tests/core/newer.py` adds it"


def test_a_new_event_may_need_its_fields_and_a_new_field_of_an_old_one_may_not() -> None:
    found = {**persisted(), "paused.at": False, "claimed.lease.more": False, "planned.more": True}
    assert unreadable(found, known_keys()) == []
    assert unreadable({**found, "claimed.more": False}, known_keys()) == ["claimed.more"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """A persisted type after a rename, with a new field."""

    names: ClassVar[Mapping[str, str]] = {"begin": "from_offset"}
    begin: int = dataclasses.field(metadata=stored("from_offset"))
    more: str | None = None


def test_a_persisted_field_that_is_renamed_keeps_its_key() -> None:
    assert to_json(Renamed(begin=3)) == '{"from_offset":3}'
    assert from_json(Renamed, '{"from_offset":3}') == Renamed(begin=3)
    assert encode(Renamed(begin=3, more="x")) == {"from_offset": 3, "more": "x"}


def test_plans_and_commits_are_written_as_in_the_fixture() -> None:
    plan = a_plan()
    planned = Planned(plan=plan, executor=typing.cast("Any", None), at=NOW)
    assert {"plan": encode(planned.plan), "commit": encode(a_commit(plan))} == GOLDEN["events"]
    assert digest(GOLDEN["events"]["plan"]) == GOLDEN["events"]["commit"]["plan_hash"]
