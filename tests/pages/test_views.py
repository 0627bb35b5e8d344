"""What pages compute before they draw: plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pages.street import RUN
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.protocol.account import Account
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.inspect.flow_graph import FlowGraph, flow_graph
from tidemill.inspect.recent_batches import BatchFacts, BatchState, RecentBatches, batches_between
from tidemill.inspect.window_map import WindowState, state_of
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill_airflow.pages import shown
from tidemill_airflow.pages.access import Run
from tidemill_airflow.pages.links import AirflowTask, Links, task_of
from tidemill_airflow.pages.sight import Sight
from tidemill_airflow.pages.views.drawing import drawing_of
from tidemill_airflow.pages.views.timeline import series_of, spreads

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_batch(
    number: int, *, read: int = 10, seconds: float = 2, identity: str = "somebody", **more: object
) -> BatchFacts:
    at = NOW + timedelta(seconds=60 * number)
    return BatchFacts(
        batch_id=number,
        state=BatchState.COMMITTED,
        planned_at=at,
        started=at,
        at=at + timedelta(seconds=seconds),
        executor=this_process(identity),
        account=Account(read=read, aggregated=read),
        watermark=BEGINNING,
    )


def test_series_are_in_the_order_of_batches_whatever_the_order_was() -> None:
    found = series_of([a_batch(3, read=60), a_batch(2), a_batch(1)], {}, [0, 5, None])
    assert (found["batch"], found["lag"]) == ([1, 2, 3], [None, 5, 0])
    assert found["rate"] == [None, pytest.approx(10 / 60, abs=0.01), 1.0]
    assert found["processing"] == [2, 2, 2]


def test_a_batch_of_no_run_has_no_scheduling_delay() -> None:
    of_airflow = a_batch(1, identity="airflow:sums/manual__1/batch")
    due = Run(run_id="manual__1", due=of_airflow.planned_at - timedelta(seconds=4), state="success")
    found = series_of([of_airflow, a_batch(2)], {"manual__1": due}, [None, None])
    assert found["scheduling"] == [4.0, None]


def test_two_commits_at_one_moment_have_no_rate() -> None:
    one = a_batch(1)
    found = series_of([one, a_batch(2, seconds=-58)], {}, [None, None])
    assert found["rate"] == [None, None]


@pytest.mark.parametrize("values", [[3.0], [2.0, 2.0, 2.0], [0.0, 1.0, 100.0]])
def test_a_histogram_counts_every_value_once(values: list[float]) -> None:
    batches = [a_batch(n, seconds=value) for n, value in enumerate(values, 1)]
    found = {s.name: s for s in spreads(series_of(batches, {}, [None] * len(batches)))}
    assert sum(bar.count for bar in found["processing"].bars) == len(values)
    assert max(bar.height for bar in found["processing"].bars) == 1
    assert "lag" not in found


@pytest.mark.parametrize(
    ("watermark", "state"),
    [
        (BEGINNING, WindowState.OPEN),
        (99, WindowState.OPEN),
        (100, WindowState.ENDED),
        (109, WindowState.ENDED),
        (110, WindowState.CLOSED),
        (END, WindowState.CLOSED),
    ],
)
def test_a_window_is_closed_once_its_lateness_has_passed(watermark: int, state: WindowState) -> None:
    assert state_of(100, watermark, 10) is state


def edges(graph: FlowGraph) -> dict[tuple[str, str], int | None]:
    titles = {node.name: node.title for node in graph.nodes}
    return {(titles[e.source], titles[e.target]): e.count for e in graph.edges}


def test_edges_have_the_counts_that_the_ledger_knows(street: Project) -> None:
    batch = a_batch(1)
    account = Account(read=100, aggregated=60, filtered=20, rejected=15, late=5)
    counted = BatchFacts(
        batch_id=1,
        state=BatchState.COMMITTED,
        planned_at=NOW,
        executor=batch.executor,
        account=account,
        accounts={"events": account},
        published={"sums": 7},
    )
    found = flow_graph(street.pipeline("sums"), [counted, counted])
    assert edges(found) == {
        ("events", "decode"): 200,
        ("decode", "quarantine"): 30,
        ("decode", "filter"): 170,
        ("filter", "columns"): 130,
        ("columns", "windows"): 130,
        ("windows", "late"): 10,
        ("windows", "sums"): 14,
    }
    assert found.batches == 2
    [selectivity] = [e.share for e in found.edges if e.count == 130 and e.share is not None]
    assert selectivity == pytest.approx(130 / 170)


def test_a_pipeline_without_batches_is_drawn_without_counts(street: Project) -> None:
    found = drawing_of(flow_graph(street.pipeline("sums"), []))
    assert (found.batches, {line.label for line in found.lines}) == (0, {()})
    boxes = [(box.x, box.y, box.height) for box in found.boxes]
    assert len(set(boxes)) == len(boxes)
    assert all(x + found.box <= found.width and y + height <= found.height for x, y, height in boxes)


def test_what_is_kept_of_a_ledger_is_what_a_new_look_finds(street: Project) -> None:
    kept = RecentBatches(street.ledger("sums"))
    assert [b.batch_id for b in kept.look(2)[1]] == [7, 6]
    whole = kept.look(100)[1]
    assert [b.batch_id for b in whole] == [7, 6, 5, 4, 3, 2, 1]
    assert kept.look(100)[1] == whole == RecentBatches(street.ledger("sums")).look(100)[1]
    assert [b.batch_id for b in kept.look(3)[1]] == [7, 6, 5]


def test_batches_of_a_time_are_found_however_many_came_after(street: Project) -> None:
    ledger = street.ledger("sums")
    whole = RecentBatches(ledger).look(100)[1]
    second, third = whole[-2], whole[-3]
    assert second.at is not None
    assert third.at is not None
    assert batches_between(ledger, second.at, third.at, most=10) == [third, second]
    assert batches_between(ledger, second.at, third.at, most=1) == [third]
    assert batches_between(ledger, third.at, second.at, most=10) == []
    assert batches_between(street.ledger("unknown"), second.at, third.at, most=1) == []


def test_a_run_has_its_batches_however_many_came_after(street: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill_airflow.pages.sight._CLOCKS_DIFFER", timedelta(0))
    first = RecentBatches(street.ledger("sums")).look(100)[1][-1]
    task = AirflowTask("sums", RUN)
    run = Run(run_id=RUN, due=first.planned_at, state="success", ended=first.at)
    sight = Sight(street, "sums")
    assert [b.batch_id for b in sight.of_run(task, run, most=3)] == [1]
    assert sight.of_run(task, None, most=3) == []
    assert sight.of_run(AirflowTask("sums", "another"), run, most=3) == []


def test_a_blocked_batch_is_blocked_in_what_is_kept(street: Project) -> None:
    newest, first = RecentBatches(street.ledger("strict")).look(10)[1]
    assert (newest.state, newest.broken, newest.at) == (BatchState.BLOCKED, 1, None)
    assert (first.state, first.broken) == (BatchState.COMMITTED, 0)


@pytest.mark.parametrize(
    ("identity", "task"),
    [
        ("airflow:sums/manual__1/batch", AirflowTask("sums", "manual__1")),
        ("airflow:sums/manual__a/b+1/batch[3]", AirflowTask("sums", "manual__a/b+1")),
        ("process 7 on a host (tidemill run)", None),
        ("airflow:", None),
        ("airflow:sums/batch", None),
    ],
)
def test_a_run_is_known_by_the_identity_of_its_task(identity: str, task: AirflowTask | None) -> None:
    assert task_of(identity) == task


def test_links_are_relative_and_quoted() -> None:
    links = Links("../../")
    assert links.to("pipelines", "a b/c", last=None, reason="x&y") == "../../pipelines/a%20b%2Fc?reason=x%26y"
    assert links.run("sums", "manual__2026+00:00/x") == "../../../dags/sums/runs/manual__2026%2B00%3A00%2Fx"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (b"\xff\x00<b>", r"\xff\x00<b>"),
        ("a\u202eb", r"a\u202eb"),
        ("y" * 301, "y" * 300 + "…"),
        (b"z" * 10_000_000, "z" * 300 + "…"),
        (NOW, "2026-01-01 12:00:00"),
        (3, "3"),
    ],
)
def test_a_value_is_shown_short_and_without_control_characters(value: object, text: str) -> None:
    assert shown.text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "\N{EN DASH}"), (0.004, "0.00 s"), (59, "59.0 s"), (61, "1 min 1 s"), (7_200, "2 h"), (90_061, "1 d 1 h")],
)
def test_a_duration_is_shown_in_units_that_fit(value: float | None, text: str) -> None:
    assert shown.seconds(value) == text


def test_offsets_are_shown_by_partition() -> None:
    ranges = {"a": (OffsetRange(TopicPartition("a", 0), 1_000, 2_000),)}
    assert shown.offsets(ranges) == ["a-0 1,000 to 2,000"]
