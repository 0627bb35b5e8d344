"""What a task makes of the outcomes and the errors of its batches."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.core.errors import AuditBlocked, Busy, CommitUnknown, EngineError, Fenced, TidemillError
from tidemill.core.plan.position import Position
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.events import Claimed, Committed, Executor
from tidemill.core.time.times import micros

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
IDENTITY = "airflow:page_views/manual__1/batch"


SINK = SimpleNamespace(
    table="page_views_by_minute",
    paths=(),
    contract=SimpleNamespace(name="page_views", version="2.1.0", levels=()),
)


def a_commit(batch_id: int = 17, *, watermark: int = micros(NOW), rows: int = 7) -> Committed:
    return Committed(
        batch_id=batch_id,
        attempt=1,
        plan_hash="plan",
        position=Position(batch_id=batch_id, watermark=watermark),
        accounts={"a": Account(read=5, aggregated=4, late=1), "b": Account(read=2, rejected=2)},
        tables={"page_views_by_minute": 3} if rows else {},
        published={"page_views_by_minute": rows},
        steps={"aggregate": 1.5},
        started=NOW,
        at=NOW + timedelta(seconds=2),
    )


class Batches:
    """Stands for the runner of batches: gives the scripted outcomes in turn, then nothing to do."""

    def __init__(self, *outcomes: Committed | TidemillError | Callable[[], None]) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, project: Any, pipeline: str, **arguments: Any) -> Callable[[], Committed | None]:
        self.asked.append({"pipeline": pipeline, **arguments})
        return self.run

    def run(self) -> Committed | None:
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome() if callable(outcome) else outcome


class Task:
    """A MicroBatchOperator as its DAG makes it, in a run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, batches: Batches, *ledger: Any, try_number: int = 1) -> None:
        from airflow.sdk import Asset
        from airflow.sdk.execution_time.context import OutletEventAccessors

        from tidemill_airflow.assets import batch_asset, table_asset
        from tidemill_airflow.tasks.micro_batch import MicroBatchOperator

        entries = [SimpleNamespace(event=event) for event in ledger]
        project = SimpleNamespace(
            ledger=lambda _: SimpleNamespace(entries=lambda last: entries[-last:]),
            pipeline=lambda _: SimpleNamespace(sinks=[SINK], inputs=(), patterns=()),
            uris=lambda _: SimpleNamespace(published_table=lambda sink: SimpleNamespace(uri=f"/lake/{sink.table}")),
        )
        monkeypatch.setattr("tidemill_airflow.tasks.micro_batch.Project", SimpleNamespace(load=lambda _: project))
        monkeypatch.setattr("tidemill_airflow.tasks.micro_batch.batch_runner", batches)
        self.batch_asset, self.table_asset = batch_asset("page_views"), table_asset("page_views_by_minute")
        self.operator = MicroBatchOperator(
            task_id="batch",
            pipeline="page_views",
            max_batches=3,
            outlets=[self.batch_asset, self.table_asset, Asset.ref(name="somebody's own")],
        )
        self.events = OutletEventAccessors()
        self.left: dict[str, Any] = {}
        ti = SimpleNamespace(
            dag_id="page_views",
            run_id="manual__1",
            task_id="batch",
            map_index=-1,
            try_number=try_number,
            xcom_push=lambda key, value: self.left.update({key: value}),
        )
        self.context: Any = {"ti": ti, "outlet_events": self.events}

    def execute(self) -> dict[str, Any]:
        return self.operator.execute(self.context)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Task]:
    def make(*outcomes: Any, ledger: tuple[Any, ...] = (), try_number: int = 1) -> Task:
        return Task(monkeypatch, Batches(*outcomes), *ledger, try_number=try_number)

    return make


def test_every_committed_batch_is_a_partition_with_its_facts(run: Callable[..., Task]) -> None:
    task = run(a_commit(17), a_commit(18))
    task.execute()
    event = task.events[task.batch_asset]
    assert event.partition_keys == {"17", "18"}
    assert event.extra["pipeline"] == "page_views"
    assert event.extra["batches"]["18"] == {
        "batch_id": 18,
        "attempt": 1,
        "kind": "live",
        "offsets": None,
        "lag": None,
        "read": 7,
        "aggregated": 4,
        "filtered": 0,
        "rejected": 2,
        "late": 1,
        "shed": 0,
        "reasons": {},
        "rows": {"page_views_by_minute": 7},
        "versions": {"page_views_by_minute": 3},
        "watermark": "2026-01-01T12:00:00+00:00",
        "verdict": None,
        "broken": [],
        "seconds": 2.0,
        "steps": {"aggregate": 1.5},
        "records_per_second": 3.5,
    }


def test_published_table_changes_once_per_run_with_the_newest_facts_and_no_partition(run: Callable[..., Task]) -> None:
    task = run(a_commit(17), a_commit(18), a_commit(19, rows=0))
    task.execute()
    event = task.events[task.table_asset]
    assert event.partition_keys == set()
    assert event.extra == {
        "pipeline": "page_views",
        "table": "page_views_by_minute",
        "version": 3,
        "rows": 14,
        "batch_id": 18,
        "batches": [17, 18],
        "kind": "live",
        "watermark": "2026-01-01T12:00:00+00:00",
        "path": "/lake/page_views_by_minute",
        "contract": "page_views",
        "contract_version": "2.1.0",
    }


def test_table_that_no_batch_wrote_is_not_announced(run: Callable[..., Task]) -> None:
    task = run(a_commit(17, rows=0))
    task.execute()
    assert task.events[task.batch_asset].partition_keys == {"17"}
    # Airflow would make an event of its own for each outlet that is left.
    assert task.table_asset not in task.operator.outlets
    assert len(task.operator.outlets) == 2


def test_cleared_run_announces_nothing_that_it_has_announced(
    run: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = run(a_commit(18), ledger=(claimed(17, IDENTITY), a_commit(17)), try_number=2)
    module = "tidemill_airflow.tasks.announcing"
    monkeypatch.setattr(f"{module}.announced", lambda *_: {"17"})
    assert [batch["batch_id"] for batch in task.execute()["batches"]] == [17, 18]
    assert task.events[task.batch_asset].partition_keys == {"18"}
    again = run(ledger=(claimed(17, IDENTITY), a_commit(17)), try_number=2)
    again.execute()
    assert len(again.events) == 0
    assert [type(outlet).__name__ for outlet in again.operator.outlets] == ["AssetNameRef"]


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        (None, "skipped: nothing to do"),
        (Busy("batch 3 is open"), "skipped: busy: batch 3 is open"),
        (AuditBlocked("rule n is broken", fix="mend it"), "FAILED: rule n is broken\n  fix: mend it"),
    ],
)
def test_run_without_a_commit_leaves_the_reason_as_its_note(
    run: Callable[..., Task], outcome: TidemillError | None, note: str
) -> None:
    from tidemill_airflow.naming import NOTE

    task = run(*([outcome] if outcome else []))
    with pytest.raises(Exception, match=r"nothing|busy|broken"):
        task.execute()
    assert task.left == {NOTE: note}


def test_note_that_cannot_be_left_fails_no_run(run: Callable[..., Task]) -> None:
    task = run(a_commit(17))
    del task.context["ti"].xcom_push
    assert len(task.execute()["batches"]) == 1


def test_result_for_later_tasks_lists_the_batches(run: Callable[..., Task]) -> None:
    result = run(a_commit(17), a_commit(18)).execute()
    assert [batch["batch_id"] for batch in result["batches"]] == [17, 18]


def test_run_stops_at_its_number_of_batches(run: Callable[..., Task]) -> None:
    assert len(run(*(a_commit(n) for n in range(1, 9))).execute()["batches"]) == 3


@pytest.mark.parametrize("outcome", [None, Busy("batch 3 is open: run X holds it")])
def test_run_without_a_commit_is_skipped_and_updates_no_asset(
    run: Callable[..., Task], outcome: TidemillError | None
) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    task = run(*([outcome] if outcome else []))
    with pytest.raises(AirflowSkipException, match="busy: batch 3 is open: run X" if outcome else "nothing to do"):
        task.execute()
    assert len(task.events) == 0


def test_run_that_committed_before_another_run_took_the_next_batch_succeeds(run: Callable[..., Task]) -> None:
    assert len(run(a_commit(17), Busy("batch 18 is open")).execute()["batches"]) == 1


def test_commits_before_an_error_that_needs_a_person_are_announced_and_the_next_run_fails(
    run: Callable[..., Task],
) -> None:
    task = run(a_commit(17), a_commit(18), AuditBlocked("rule n"))
    result = task.execute()
    assert [batch["batch_id"] for batch in result["batches"]] == [17, 18]
    assert len(task.events) > 0


def test_blocked_audit_fails_without_a_retry_and_says_which_rule_and_rows(run: Callable[..., Task]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    error = AuditBlocked("rule `some_views` of page_views_by_minute is broken by 2 rows: views=0", fix="mend it")
    with pytest.raises(AirflowFailException, match=r"some_views.*2 rows: views=0\n  fix: mend it"):
        run(error).execute()


def test_fenced_attempt_fails_without_a_retry(run: Callable[..., Task]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="attempt 1 is fenced"):
        run(Fenced("attempt 1 is fenced")).execute()


@pytest.mark.parametrize("error", [EngineError("Spark went away"), CommitUnknown("no answer")])
def test_error_that_may_pass_is_left_to_airflows_retries(run: Callable[..., Task], error: TidemillError) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(type(error)) as raised:
        run(error).execute()
    assert not isinstance(raised.value, AirflowFailException)


def claimed(batch_id: int, identity: str) -> Claimed:
    return Claimed(batch_id=batch_id, attempt=1, executor=Executor(identity=identity, host="h", pid=1), at=NOW)


def test_retry_announces_what_its_earlier_try_committed_and_counts_it(run: Callable[..., Task]) -> None:
    ledger = (claimed(17, IDENTITY), a_commit(17), claimed(18, "another run"), a_commit(18))
    result = run(*(a_commit(n) for n in range(19, 29)), ledger=ledger, try_number=2).execute()
    assert [batch["batch_id"] for batch in result["batches"]] == [17, 19, 20]


def test_first_try_does_not_read_the_ledgers_history(run: Callable[..., Task]) -> None:
    ledger = (claimed(17, IDENTITY), a_commit(17))
    assert [b["batch_id"] for b in run(a_commit(18), ledger=ledger).execute()["batches"]] == [18]


def test_all_tries_of_a_task_have_one_identity_and_mapped_tasks_have_their_own() -> None:
    from tidemill_airflow.tasks.micro_batch import identity_of

    def identity(run_id: str = "manual__1", map_index: int = -1) -> str:
        names = {"dag_id": "page_views", "run_id": run_id, "task_id": "batch", "map_index": map_index}
        return identity_of(SimpleNamespace(**names))  # type: ignore[arg-type]

    assert identity() == IDENTITY
    assert len({identity(), identity(run_id="manual__2"), identity(map_index=0), identity(map_index=1)}) == 4


def test_batches_get_the_identity_of_the_task_and_the_runs_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(a_commit())
    task = Task(monkeypatch, batches)
    task.operator.max_records = "250"
    task.execute()
    [asked] = batches.asked
    del asked["watcher"]
    assert asked == {"pipeline": "page_views", "identity": IDENTITY, "max_records": 250}


@pytest.mark.parametrize("value", [0, -1, "many", True, "1.5"])
def test_limit_that_is_no_count_fails_before_any_batch(run: Callable[..., Task], value: Any) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    task = run(a_commit())
    task.operator.max_records = value
    with pytest.raises(AirflowFailException, match="max_records: expected a whole number of at least 1"):
        task.execute()


@pytest.fixture
def terminable() -> Iterator[Callable[[Task], None]]:
    """Installs the handler that Airflow's task runner installs."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda task: signal.signal(signal.SIGTERM, lambda *_: task.operator.on_kill()) and None
    signal.signal(signal.SIGTERM, before)


def test_killed_batch_stops_where_it_stands(run: Callable[..., Task], terminable: Callable[[Task], None]) -> None:
    reached = []

    def batch() -> None:
        signal.raise_signal(signal.SIGTERM)
        reached.append("published")

    task = run(batch)
    terminable(task)
    with pytest.raises(SystemExit, match="killed"):
        task.execute()
    assert reached == []


def test_kill_after_the_batch_has_ended_changes_nothing(run: Callable[..., Task]) -> None:
    task = run(a_commit(17))
    result = task.execute()
    task.operator.on_kill()
    assert result["batches"][0]["batch_id"] == 17
