"""Pages about pipelines and batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response, status
from fastapi.responses import JSONResponse, RedirectResponse

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import TidemillError
from tidemill.inspect.flow_graph import flow_graph
from tidemill.inspect.recent_batches import BatchFacts
from tidemill.inspect.window_map import WindowCell, window_map
from tidemill_airflow.naming import backfill_dag_of, decide_dag_of, replay_dag_of
from tidemill_airflow.pages.access import Right, Run, Visit, needs, signed_in, visit_of
from tidemill_airflow.pages.links import AirflowTask, Links, task_of
from tidemill_airflow.pages.sight import Sight
from tidemill_airflow.pages.site import Site, site_of
from tidemill_airflow.pages.views.batch import in_order, story_of
from tidemill_airflow.pages.views.drawing import drawing_of, names
from tidemill_airflow.pages.views.standing import Health, Standing, standing_of
from tidemill_airflow.pages.views.timeline import TITLES, series_of, spreads

CHOICES = (60, 240, 1_000)
"""How many batches a page can look back."""

ROWS = 15
"""How many batches the table of a pipeline's page shows first."""

WINDOWS = 120
"""How many windows the map of a table shows."""

Last = Annotated[int, Query(ge=1, le=CHOICES[-1])]


looking = APIRouter()
"""The routes of the list, of a pipeline and of a batch."""
reads = [needs(Right.READ)]


@looking.get("/", dependencies=[Depends(signed_in)])
def pipelines(request: Request) -> Response:
    """The pipelines that the visitor may see, those that need somebody first."""
    site = site_of(request)
    visit, found = visit_of(request), site.projects.found()
    readable = site.access.readable(visit.user)
    lines = [standing_of(sight)[0] for name, sight in sorted(found.pipelines.items()) if name in readable]
    lines.sort(key=lambda line: list(Health).index(line.health))
    hidden = not readable and bool(found.pipelines)
    faults = found.faults if readable else ()
    return site.page(request, "pipelines.jinja", lines=lines, faults=faults, hidden=hidden)


@looking.get("/pipelines/{dag_id}", dependencies=reads)
def pipeline(request: Request, dag_id: str, last: Last = CHOICES[0], rows: Last = ROWS) -> Response:
    """Where a pipeline stands, and how it has been."""
    site = site_of(request)
    sight = site.sight(dag_id)
    standing, batches = standing_of(sight, last)
    values = _pipeline(site, sight, standing, batches) if standing.view is not None else {}
    may = _actions(site, visit_of(request), dag_id)
    shown: dict[str, Any] = {"standing": standing, "batches": batches, "last": last, "choices": CHOICES}
    started = request.query_params.get("started", "").partition("/")
    if started[0].rpartition(".")[0] != dag_id:
        started = ("", "", "")
    return site.page(request, "pipeline.jinja", **shown, shown=rows, may=may, started=started, found=values)


@looking.get("/pipelines/{dag_id}/timeline.json", dependencies=reads)
def timeline(request: Request, dag_id: str, last: Last = CHOICES[0]) -> Response:
    """The values of a pipeline's charts."""
    site = site_of(request)
    sight = site.sight(dag_id)
    _, batches = sight.recent(last)
    series = series_of(batches, _runs(site, dag_id, batches), sight.lags(batches))
    return JSONResponse({"series": dict(series), "titles": TITLES})


@looking.get("/pipelines/{dag_id}/batches/{batch_id}", dependencies=reads)
def batch(request: Request, dag_id: str, batch_id: Annotated[int, Path(ge=1, le=2**62)]) -> Response:
    """One batch, in full."""
    site = site_of(request)
    story = story_of(site.sight(dag_id), batch_id)
    if story is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"The ledger of {dag_id} has no batch {batch_id}")
    visit, task = visit_of(request), task_of(story.facts.executor.identity)
    may = _actions(site, visit, dag_id)
    values = visit.may(Right.READ_VALUES)
    results = in_order(story.results)
    return site.page(request, "batch.jinja", story=story, results=results, task=task, may=may, values=values)


@looking.get("/dags/{dag_id}", dependencies=reads)
@looking.get("/dags/{dag_id}/runs/{run_id:path}", dependencies=reads)
def of_dag(request: Request, dag_id: str, run_id: str = "") -> Response:
    """The tab of a DAG leads to its pipeline; that of a run shows the batches that it executed."""
    site = site_of(request)
    pipeline = dag_id.partition(".")[0]
    known = pipeline in site.projects.found().pipelines and visit_of(request).may(Right.READ, pipeline)
    if known and not run_id:
        return RedirectResponse(Links.of(request).to("pipelines", pipeline))
    batches: Sequence[BatchFacts] = ()
    if known:
        run = site.access.runs(dag_id, [run_id]).get(run_id)
        batches = site.sight(pipeline).of_run(AirflowTask(dag_id, run_id), run, CHOICES[1])
    return site.page(
        request, "dag.jinja", dag_id=dag_id, run_id=run_id, pipeline=pipeline if known else "", batches=batches
    )


def _pipeline(site: Site, sight: Sight, standing: Standing, batches: Sequence[BatchFacts]) -> dict[str, Any]:
    """Everything on a pipeline's page that needs its batches."""
    assert standing.status is not None
    flow = standing.status.flow
    series = series_of(batches, _runs(site, sight.name, batches), sight.lags(batches))
    drawing = drawing_of(flow_graph(flow, batches))
    return {
        "spreads": spreads(series),
        "drawing": drawing,
        "names": names(drawing.boxes),
        "maps": {
            s.table: _map(sight, s, standing, batches)
            for s in flow.sinks
            if isinstance(s, WindowedSink) and s.start is not None and not s.merging
        },
        "every": flow.spec.every,
    }


def _map(
    sight: Sight, sink: WindowedSink, standing: Standing, batches: Sequence[BatchFacts]
) -> Sequence[WindowCell] | str:
    """The map of a table's windows, or why there is none."""
    assert standing.view is not None
    try:
        return window_map(sight.project, sight.name, sink, standing.view, batches, most=WINDOWS)
    except TidemillError as error:
        return error.message


def _runs(site: Site, dag_id: str, batches: Sequence[BatchFacts]) -> Mapping[str, Run]:
    """The runs of the pipeline's DAG that executed these batches."""
    tasks = (task_of(b.executor.identity) for b in batches)
    return site.access.runs(dag_id, sorted({t.run_id for t in tasks if t is not None and t.dag_id == dag_id}))


def _actions(site: Site, visit: Visit, pipeline: str) -> Mapping[str, bool]:
    """Which actions the visitor may start, and whether Airflow has their DAGs."""
    dags = {
        "decide": decide_dag_of(pipeline),
        "backfill": backfill_dag_of(pipeline),
        "replay": replay_dag_of(pipeline),
    }
    return {what: visit.may(Right.RUN, dag) and site.access.has(dag) for what, dag in dags.items()}
