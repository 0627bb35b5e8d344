"""What a declaration may be called, and what it says when a step is called where it does not belong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tidemill import Count, Pipeline, Sliding, Sum, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.contract import Contract, Format
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.declare.names import UnknownStep
from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import show_duration

HOUR = timedelta(hours=1)


def a_stream(pipeline: Pipeline) -> Any:
    return pipeline.read("t", contract="c", event_time="ts")


STEPS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a pipeline aggregated": (lambda s: s.pipeline.aggregate(n=Count()), r"call \.aggregate\(\.\.\.\) on \.window\("),
    "results aggregated": (lambda s: s.aggregate(n=Count()).aggregate(n=Count()), r"or a stream of rows"),
    "keys filtered": (lambda s: s.key_by("a").filter("x > 1"), r"before \.key_by\(\.\.\.\)"),
    "keys published": (lambda s: s.key_by("a").publish("t", contract="c"), r"on \.aggregate\(\.\.\.\)"),
    "windows keyed": (lambda s: s.window(Tumbling("1 h")).key_by("a"), r"before \.window\(\.\.\.\)"),
    "windows published": (lambda s: s.window(Tumbling("1 h")).publish("t"), r"on \.aggregate\(\.\.\.\)"),
    "results split": (lambda s: s.window(Tumbling("1 h")).aggregate(n=Count()).split(a="n > 1"), r"a stream of rows"),
    "misspelt": (lambda s: s.filtre("x > 1"), r"did you mean \.filter\(\.\.\.\)"),
    "a pipeline": (lambda s: s.pipeline.window(Tumbling("1 h")), r"a stream of rows"),
}


@pytest.mark.parametrize("case", STEPS)
def test_a_step_that_belongs_elsewhere_says_where(case: str) -> None:
    call, said = STEPS[case]
    with pytest.raises(UnknownStep, match=said) as error, Pipeline("p", every="1 minute") as pipeline:
        call(a_stream(pipeline))
    assert "has no step" in error.value.message
    assert "it has: " in error.value.message


def test_python_sees_no_such_attribute() -> None:
    stream = a_stream(Pipeline("p", every="1 minute"))
    assert not hasattr(stream, "having")
    assert not hasattr(stream, "_repr_html_")
    assert copy.copy(stream) == stream


def contract(name: str, *columns: str, key: tuple[str, ...] = (), of_records: bool = False) -> Contract:
    types = {"ts": Scalar.TIMESTAMP, "window_start": Scalar.TIMESTAMP, "window_end": Scalar.TIMESTAMP}
    fields = tuple(Field(name=c, type=types.get(c, Scalar.LONG)) for c in columns)
    return Contract(name=name, version="1", fields=fields, primary_key=key, format=Format.JSON if of_records else None)


INPUT = contract("c", "ts", "userId", "größe", of_records=True)


@pytest.mark.parametrize("name", ["userTotal", "Größe", "N1", "ID"])
def test_columns_may_be_called_as_contracts_call_them(name: str) -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        rows = a_stream(pipeline).with_columns(**{name: "userId + `größe`"})
        rows.window(Tumbling("1 h")).aggregate(**{name: Sum(f"`{name}`")}).publish("out", contract="out")
    out = contract("out", "window_start", "window_end", name)
    assert bind(pipeline.spec, {"c": INPUT, "out": out}).sinks[0].contract is out


@pytest.mark.parametrize("name", ["_time", "a b", "1a", "", "a.b", "a" * 129, "window_start", "Batch_Id"])
def test_names_that_no_column_can_have_are_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match=r"not a name for a column|a column of Tidemill's own"):  # noqa: PT012
        with Pipeline("p", every="1 minute") as pipeline:
            a_stream(pipeline).window(Tumbling("1 h")).aggregate(**{name: Count()}).publish("out", contract="out")
        bind(pipeline.spec, {"c": INPUT, "out": contract("out", "window_start", "window_end", name)})


def test_two_new_columns_of_one_name_are_refused() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        a_stream(pipeline).with_columns(n="1", N="2").publish("out", contract="out")
    with pytest.raises(DeclarationError, match="names `n` twice; case does not matter: n, N"):
        bind(pipeline.spec, {"c": INPUT, "out": contract("out", "ts", "userId", "größe", "n")})


@pytest.mark.parametrize("window", [Tumbling, lambda size, **more: Sliding(size, "1 h", **more)])
@pytest.mark.parametrize(("text", "same"), [("-8 hours", -8 * HOUR), (" - 1 hour", -HOUR), ("16 hours", 16 * HOUR)])
def test_an_offset_may_lie_before_1970_as_text_and_as_duration(window: Any, text: str, same: timedelta) -> None:
    assert window("1 day", offset=text) == window("1 day", offset=same)
    assert window("1 day", offset=text).panes == window("1 day", offset=same).panes
    assert show_duration(same) in str(window("1 day", offset=text))


def hashes(offset: Any) -> tuple[str, ...]:
    with Pipeline("p", every="1 minute") as pipeline:
        a_stream(pipeline).window(Tumbling("1 day", offset=offset)).aggregate(n=Count()).publish("out", contract="out")
    flow = bind(pipeline.spec, {"c": INPUT, "out": contract("out", "window_start", "window_end", "n")})
    sink = flow.sinks[0]
    assert isinstance(sink, WindowedSink)
    return (*flow.hashes, str(sink.shape), str(sink.legacy_shape))


def test_a_negative_offset_means_the_same_to_ledgers_as_text_and_as_duration() -> None:
    assert hashes("-8 hours") == hashes(-8 * HOUR)
    assert hashes("-8 hours") != hashes("8 hours")


@pytest.mark.parametrize("text", ["--1 hour", "- -1 hour", "-", "-1", "+1 hour", "-366000 days"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match=r"the offset of a window(: not a duration| is at most)"):
        Tumbling("1 day", offset=text)


def keyed(key: tuple[str, ...]) -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        counted = a_stream(pipeline).key_by("userId").window(Tumbling("1 h")).aggregate(n=Count())
        counted.publish("out", contract="out")
    out = contract("out", "window_start", "window_end", "userId", "n", key=key)
    bind(pipeline.spec, {"c": INPUT, "out": out})


@pytest.mark.parametrize("key", [(), ("window_start", "userId"), ("userId", "window_end"), ("window_end", "userId")])
def test_a_primary_key_that_tells_windows_and_keys_apart_passes(key: tuple[str, ...]) -> None:
    keyed(key)


@pytest.mark.parametrize(
    ("key", "lacks"), [(("userId",), "window_start"), (("window_start",), "userId"), (("window_end",), "userId")]
)
def test_a_primary_key_that_does_not_is_refused_before_any_batch(key: tuple[str, ...], lacks: str) -> None:
    with pytest.raises(DeclarationError, match=f"rows that differ in {lacks} only would agree in it"):
        keyed(key)


@pytest.mark.parametrize("key", [("n",), ("n", "window_end", "userId"), ("userId", "n", "window_start", "window_end")])
def test_a_primary_key_with_an_aggregate_is_refused_before_any_batch(key: tuple[str, ...]) -> None:
    with pytest.raises(
        DeclarationError, match=r"\.py:\d+\): the primary key of out has n, which is no window"
    ) as refused:
        keyed(key)
    assert "  fix: remove primaryKey at n: windows and keys are enough" in str(refused.value)


def named(
    start: Any = "minute", end: Any = None, timing: Any = "why", why: Scalar = Scalar.STRING, key: Any = "userId"
) -> Any:
    """The sink of a pipeline that publishes a window's bounds, and why, under these names."""
    with Pipeline("p", every="1 minute") as pipeline:
        windows = a_stream(pipeline).key_by("userId").window(Tumbling("1 h"), start=start, end=end)
        windows.aggregate(n=Count()).publish("out", contract="out", timing=timing)
    types = {start: Scalar.TIMESTAMP, end: Scalar.TIMESTAMP, timing: why}
    fields = [Field(name=c, type=types.get(c, Scalar.LONG)) for c in (start, "userId", "n", end, timing) if c]
    out = Contract(name="out", version="1", fields=tuple(fields), primary_key=(start, *{"userId", key}))
    return bind(pipeline.spec, {"c": INPUT, "out": out}).sinks[0]


def test_the_columns_of_a_window_may_have_other_names_and_its_end_none() -> None:
    sink = named()
    assert (sink.bounds, sink.row_key, sink.timing) == (("minute",), ("minute", "userId"), "why")
    assert [f.name for f in sink.computed] == ["minute", "userId", "n"]
    assert sink.shape["columns of the window"] == '["minute"]'
    assert "columns of the window" not in named("window_start", "window_end").shape
    assert named(end="until", timing=None).bounds == ("minute", "until")


def test_why_a_row_was_published_is_no_part_of_its_primary_key() -> None:
    with pytest.raises(DeclarationError, match="the primary key of out has why, which is no window and no key"):
        named(key="why")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"start": None}, "not a name for a column: None"),
        ({"start": "_start"}, "not a name for a column: '_start'"),
        ({"end": 5}, "not a name for a column: 5"),
        ({"timing": "a b"}, "not a name for a column: 'a b'"),
        ({"end": "Minute"}, "publishes `minute` twice"),
        ({"start": "userId"}, "publishes `userId` twice"),
        ({"timing": "N"}, "publishes `n` twice"),
        ({"start": "batch_id"}, "batch_id are added by Tidemill"),
        ({"why": Scalar.LONG}, "`why`.*(string|text)"),
    ],
)
def test_columns_of_a_window_that_cannot_be_are_refused(names: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        named(**names)
