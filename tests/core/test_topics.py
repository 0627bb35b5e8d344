"""Several topics that are read as one, and patterns."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from support.builders import CONTRACTS
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.declare.aggregates import Count
from tidemill.core.declare.operators import StartFrom
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.errors import DeclarationError
from tidemill.core.time.windows import Tumbling


def a_flow(*topics: str, pattern: str | None = None, start: str = "earliest", beside: Iterable[str] = ()) -> Flow:
    with Pipeline("p", every="1 minute") as pipeline:
        stream = pipeline.read(*topics, pattern=pattern, contract="events", start=start, name="all")
        others = [pipeline.read(topic, contract="events") for topic in beside]
        rows = stream.union(*others) if others else stream
        rows.window(Tumbling("10 seconds")).aggregate(n=Count()).publish("counts", contract="counts")
    return bind(pipeline.spec, CONTRACTS)


def topics(flow: Flow) -> list[str]:
    return [i.topic for i in flow.inputs]


def test_named_topics_are_inputs_of_one_name() -> None:
    flow = a_flow("a", "b")
    assert topics(flow) == ["a", "b"]
    assert {i.name for i in flow.inputs} == {"all"}
    assert [c.name for c in flow.contracts] == ["events", "counts"]


def test_a_pattern_matches_whole_names_and_what_is_named_stays() -> None:
    flow = a_flow(pattern=r"web\..+", beside=["shop"])
    assert topics(flow) == ["shop"]
    assert topics(flow.reading(["web.b", "web.", "web.a", "xweb.a", "shop"])) == ["shop", "web.a", "web.b"]


def test_what_a_pattern_matches_is_found_anew_and_changes_no_hash() -> None:
    flow = a_flow(pattern="web.*")
    first = flow.reading(["web1"])
    assert topics(first.reading(["web1", "web2"])) == ["web1", "web2"]
    assert {f.logical_hash for f in (flow, first, first.reading([]))} == {flow.logical_hash}
    assert flow.logical_hash != a_flow(pattern="web.+").logical_hash
    assert [s.topic for s in first.sources] == ["web.*"]


def test_what_a_pattern_finds_later_is_read_from_its_start() -> None:
    flow = a_flow(pattern="web.*", start="latest")
    assert [i.start for i in flow.reading(["web1"]).inputs] == [StartFrom.LATEST]
    assert [i.start for i in flow.reading(["web1"], known=["shop"]).inputs] == [StartFrom.LATEST]
    later = flow.reading(["web1", "web2"], known=["web1"])
    assert {i.start for i in later.inputs} == {StartFrom.EARLIEST}


def test_a_topic_is_never_read_twice() -> None:
    with pytest.raises(DeclarationError, match="topic `b` is read twice"):
        a_flow("b", "b")
    with pytest.raises(DeclarationError, match="topic `b` is read twice"):
        a_flow("a", "b", beside=["b"])
    flow = a_flow(pattern="web.*", beside=["web1"])
    with pytest.raises(DeclarationError, match="topic `web1` would be read twice"):
        flow.reading(["web1"])


@pytest.mark.parametrize(
    ("named", "pattern", "said"),
    [
        ((), None, "names of topics, or a pattern"),
        (("a",), "a.*", "names of topics, or a pattern"),
        ((), "a(", "no regular expression"),
        ((), "", "an empty pattern matches no topic"),
    ],
)
def test_a_read_without_sense_is_refused(named: tuple[str, ...], pattern: str | None, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        a_flow(*named, pattern=pattern)
