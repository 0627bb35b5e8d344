"""Forms and turns of the DAGs that go back, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.core.bind.flow import Flow
from tidemill.core.errors import AmendmentError, BackfillOpen, Busy
from tidemill.core.plan.work import Kind
from tidemill.core.repair.selection import OfTimes
from tidemill_airflow.dags.entities import pipeline_dag

IDENTITY = "airflow:page_views.backfill/manual__1/batches"


@pytest.mark.parametrize(
    ("form", "name", "bad"),
    [
        ("amendments.backfill", "mode", "forget"),
        ("amendments.backfill", "from_time", 7),
        ("amendments.backfill", "batch_records", 0),
        ("amendments.replay", "records", "everything"),
        ("amendments.replay", "mode", "resume"),
        ("amendments.replay", "partition", -1),
        ("amendments.replay", "offset", -1),
        ("deciding.decide", "decision", "forget"),
        ("deciding.decide", "batch", 0),
        ("rewinding.rewind", "to", -1),
        ("rewinding.rebuild", "mode", "resume"),
        ("rewinding.verify", "sample", 0),
        ("rewinding.verify", "sample", 101),
    ],
)
def test_forms_refuse_what_cannot_be_meant(flow: Flow, form: str, name: str, bad: Any) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    module, _, kind = form.partition(".")
    dags = import_module(f"tidemill_airflow.dags.{module}")
    dag = getattr(dags, f"{kind}_dag")(pipeline_dag(flow, "/srv/shop", "/srv/lake"))
    with pytest.raises(ParamValidationError):
        dag.params.get_param(name).resolve(bad)


@pytest.mark.parametrize("much", [10**30, 2**64, 1e30, 1e308])
def test_every_number_of_every_form_has_a_greatest_value(flow: Flow, much: float) -> None:
    """Airflow cannot send a whole number above 2**64 to a task: its process would die in each of its tries."""
    from airflow.sdk.exceptions import ParamValidationError

    from tidemill_airflow.factory import _ids_of

    numbers = 0
    for make in _ids_of("page_views").values():
        params = make(pipeline_dag(flow, "/srv/shop", "/srv/lake")).params
        for name in params:
            param = params.get_param(name)
            if not {"integer", "number"}.isdisjoint(_types(param.schema)):
                numbers += 1
                assert param.schema["maximum"] <= 2**63 - 1, name
                with pytest.raises(ParamValidationError):
                    param.resolve(much)
                param.resolve(param.schema["maximum"])
    assert numbers >= 11


def _types(schema: Any) -> list[str]:
    found = schema.get("type", [])
    return [found] if isinstance(found, str) else list(found)


def test_a_task_that_goes_back_lets_live_runs_go_first(flow: Flow) -> None:
    from tidemill_airflow.dags.amendments import backfill_dag, replay_dag
    from tidemill_airflow.dags.pipeline import make_dag
    from tidemill_airflow.dags.rewinding import rewind_dag

    entity = pipeline_dag(flow, "/srv/shop", "/srv/lake")
    [live] = make_dag(entity).tasks
    for dag in (backfill_dag(entity), replay_dag(entity), rewind_dag(entity)):
        [task] = dag.tasks
        assert task.pool == live.pool
        assert task.priority_weight < live.priority_weight


def test_a_decision_goes_before_live_runs_and_what_needs_no_slot_takes_none(flow: Flow) -> None:
    """A blocked pipeline has runs that fail all the time; a rebuild and a verification take hours beside them."""
    from tidemill_airflow.dags.deciding import decide_dag
    from tidemill_airflow.dags.pipeline import make_dag
    from tidemill_airflow.dags.rewinding import rebuild_dag, verify_dag

    entity = pipeline_dag(flow, "/srv/shop", "/srv/lake")
    [live] = make_dag(entity).tasks
    decide = decide_dag(entity).get_task("decide")
    assert (decide.pool, decide.priority_weight > live.priority_weight) == (live.pool, True)
    for dag in (rebuild_dag(entity), verify_dag(entity)):
        assert [task.pool for task in dag.tasks] == ["default_pool"]


def test_a_run_that_waits_does_not_keep_others_of_its_form_from_starting(flow: Flow) -> None:
    """Otherwise *resume* and *cancel* would wait behind the run that waits for them."""
    from tidemill_airflow.factory import _ids_of

    entity = pipeline_dag(flow, "/srv/shop", "/srv/lake")
    runs = {dag_id.partition(".")[2]: make(entity).max_active_runs for dag_id, make in _ids_of("page_views").items()}
    several = dict.fromkeys(("backfill", "decide", "rebuild", "replay", "rewind"), 16)
    assert runs == {"": 1, "verify": 1, **several}


def test_forms_have_sections_plain_help_and_the_fields_that_their_tasks_know(flow: Flow) -> None:
    from tidemill_airflow.factory import _ids_of

    entity = pipeline_dag(flow, "/srv/shop", "/srv/lake")
    for make in list(_ids_of(entity.pipeline).values())[1:]:
        dag = make(entity)
        params = {name: dag.params.get_param(name) for name in dag.params}
        [task] = [task for task in dag.tasks if hasattr(task, "fields")]
        assert task.fields == params.keys(), dag.dag_id
        for name, param in params.items():
            assert param.schema["section"], name
            assert param.schema["title"], name
            assert "pattern" not in param.schema, name
            assert param.description or param.schema.get("values_display"), name
        assert dag.is_paused_upon_creation is False, "a run of a paused DAG waits for ever"


def test_forms_that_do_nothing_yet_are_the_first_choice(flow: Flow) -> None:
    from tidemill_airflow.factory import _ids_of

    entity = pipeline_dag(flow, "/srv/shop", "/srv/lake")
    for make in list(_ids_of(entity.pipeline).values())[1:]:
        dag = make(entity)
        chosen = dag.params.get("mode", dag.params.get("decision", "reads only"))
        assert chosen in ("plan only", "show", "reads only"), dag.dag_id


class Turns:
    """Stands for the runner of amendments: each turn has its commits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *turns: list[Any] | Exception) -> None:
        self.turns, self.asked, self.state = list(turns), [], "none"
        self.announced: list[Any] = []
        module = "tidemill_airflow.tasks.batch_operator"
        past = SimpleNamespace(asked=lambda _: iter(()))
        ledger = SimpleNamespace(entries=lambda last: [], past=lambda: past)
        project = SimpleNamespace(ledger=lambda _: ledger)
        monkeypatch.setattr(f"{module}.Project", SimpleNamespace(load=lambda _: project))
        monkeypatch.setattr("tidemill_airflow.tasks.amendments.backfill_state", lambda *_: self.state)
        monkeypatch.setattr(f"{module}.amendment_runner", self.run)
        monkeypatch.setattr(f"{module}.commits_of", lambda *_: [commit(9)] if self.asked else [])
        monkeypatch.setattr(f"{module}.announce", lambda *a, **_: self.announced.append(a) or [])
        monkeypatch.setattr(f"{module}.summary", str)
        monkeypatch.setattr(f"{module}.rejected", lambda _: "")
        monkeypatch.setattr(f"{module}.note_of", lambda *_: "")
        monkeypatch.setattr(f"{module}.facts", lambda c, _: c.batch_id)

    def run(self, project: Any, pipeline: str, amendment: Any, **_: Any) -> Iterator[Any]:
        self.asked.append(amendment)
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        yield from turn


def commit(batch_id: int, kind: Kind = Kind.BACKFILL, *, more: bool = False) -> Any:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return SimpleNamespace(
        batch_id=batch_id, started=at, kind=kind, position=SimpleNamespace(backfill=object() if more else None)
    )


def executed(request: dict[str, Any]) -> Any:
    from tidemill_airflow.tasks.amendments import BackfillOperator

    operator = BackfillOperator(task_id="batches", pipeline="page_views", batches_a_turn=2)
    operator.request = request
    ti = SimpleNamespace(
        dag_id="page_views.backfill",
        run_id="manual__1",
        task_id="batches",
        map_index=-1,
        try_number=1,
        xcom_push=lambda **_: None,
    )
    return operator.execute({"ti": ti, "outlet_events": {}})  # type: ignore[arg-type]


def test_a_backfill_gives_its_slot_back_after_some_batches_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowRescheduleException

    live = commit(2, Kind.LIVE, more=True)
    turns = Turns(monkeypatch, [commit(1, more=True), live, commit(3, more=True), commit(4, more=True)], [commit(4)])
    asked = {"mode": "do it", "from_time": "2026-01-01T00:00:00+00:00", "to_time": None, "from_offsets": None}
    with pytest.raises(AirflowRescheduleException):
        executed(asked)
    assert turns.asked[0].wanted == OfTimes(since=datetime(2026, 1, 1, tzinfo=UTC), until=None)
    assert not turns.announced
    turns.state = "open"
    assert executed(asked) == {"pipeline": "page_views", "batches": [9]}
    assert [a.what for a in turns.asked] == ["backfill", "resume"]
    turns.state = "complete"
    assert executed(asked)["batches"] == [9]
    assert len(turns.asked) == 2


def test_a_turn_ends_with_the_live_batch_that_follows_its_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowRescheduleException

    left = iter([commit(1, more=True), commit(2, more=True), commit(3, Kind.LIVE, more=True), commit(4, more=True)])
    Turns(monkeypatch, left)  # type: ignore[arg-type]
    with pytest.raises(AirflowRescheduleException):
        executed({"mode": "do it", "from_time": "2026-01-01"})
    assert [c.batch_id for c in left] == [4]


def test_a_busy_pipeline_is_tried_again_and_a_wrong_request_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

    Turns(monkeypatch, Busy("held"), BackfillOpen("somebody's"), AmendmentError("nothing was read"))
    for _ in range(2):
        with pytest.raises(AirflowRescheduleException) as later:
            executed({"mode": "do it", "from_time": "2026-01-01"})
        assert later.value.reschedule_date > datetime.now(UTC)
    with pytest.raises(AirflowFailException, match="nothing was read"):
        executed({"mode": "do it", "from_time": "2026-01-01"})
    with pytest.raises(AirflowFailException, match="wants offsets, or times, or windows"):
        executed({"mode": "do it"})
    with pytest.raises(AirflowFailException, match="resume is about the backfill that is open"):
        executed({"mode": "resume", "from_time": "2026-01-01"})
    with pytest.raises(AirflowFailException, match="no field 'until'"):
        executed({"mode": "do it", "until": "2026-01-01"})


@pytest.mark.parametrize(
    ("run_type", "found"), [("backfill", True), ("scheduled", False), ("manual", False), ("asset_triggered", False)]
)
def test_only_runs_of_airflows_own_backfill_compute_their_interval_again(run_type: str, found: bool) -> None:
    from airflow.utils.types import DagRunType

    from tidemill_airflow.tasks.micro_batch import backfilled_interval

    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    # A backfill may use the runs of a schedule again.
    run_id = "scheduled__2026-01-02T00:00:00+00:00"
    run = SimpleNamespace(
        run_id=run_id, run_type=DagRunType(run_type), data_interval_start=start, data_interval_end=end
    )
    assert backfilled_interval({"dag_run": run}) == ((start, end) if found else None)  # type: ignore[arg-type,typeddict-item]
