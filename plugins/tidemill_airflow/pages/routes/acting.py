"""What people do: decide, backfill, replay. Each action is a run of a DAG that its user starts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request, Response, status
from fastapi.responses import RedirectResponse

from tidemill.core.errors import TidemillError
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Decision
from tidemill.core.repair.selection import wanted
from tidemill_airflow.naming import backfill_dag_of, decide_dag_of, replay_dag_of
from tidemill_airflow.pages.access import Right, needs, visit_of
from tidemill_airflow.pages.links import Links
from tidemill_airflow.pages.site import Site, site_of
from tidemill_airflow.pages.tokens import FIELD, check_form

DO = "do it"
"""The mode of the forms of DAGs that does something; without it, they only say what they would do."""

BOUNDS = ("from_time", "to_time", "from_window", "to_window", "from_offsets", "to_offsets")
"""The fields that say what a backfill reads, by arrival, by windows, or by offsets."""

FILTERS = ("rule", "table", "batch", "topic")
"""The fields that say which records a replay takes."""

_MOST = 2_000
Text = Annotated[str, Form(max_length=_MOST)]
Why = Annotated[str, Form(min_length=1, max_length=_MOST)]


acting = APIRouter()
"""The routes of actions. `by` is always the user of the request."""


@acting.post("/pipelines/{dag_id}/decide", dependencies=[needs(Right.RUN, of=decide_dag_of)])
def decide(  # noqa: PLR0913, PLR0917  the fields of the form
    request: Request,
    dag_id: str,
    decision: Annotated[Decision, Form()],
    batch: Annotated[int, Form(ge=1, le=2**62)],
    why: Why,
    token: Text = "",
) -> Response:
    """Start a run that records a decision about a blocked batch."""
    site = site_of(request)
    return _start(site, request, decide_dag_of(dag_id), token, decision=decision.value, batch=batch, why=why)


@acting.get("/pipelines/{dag_id}/backfill", dependencies=[needs(Right.READ)])
def form(request: Request, dag_id: str) -> Response:
    """The form of a backfill, and what it would do."""
    site = site_of(request)
    asked = {name: request.query_params.get(name, "").strip()[:_MOST] for name in BOUNDS}
    dag = backfill_dag_of(dag_id)
    may = visit_of(request).may(Right.RUN, dag) and site.access.has(dag)
    shown: dict[str, Any] = {"asked": asked, "may": may, "preview": None, "fault": ""}
    site.sight(dag_id)
    if may and any(asked.values()):
        try:
            shown["preview"] = _preview(site, dag_id, asked)
        except TidemillError as error:
            shown["fault"] = str(error)
    return site.page(request, "backfill.jinja", code=400 if shown["fault"] else 200, **shown)


@acting.post("/pipelines/{dag_id}/backfill", dependencies=[needs(Right.RUN, of=backfill_dag_of)])
async def backfill(request: Request, dag_id: str) -> Response:
    """Start a backfill."""
    site = site_of(request)
    return await _from_fields(site, request, backfill_dag_of(dag_id), BOUNDS)


@acting.post("/pipelines/{dag_id}/replay", dependencies=[needs(Right.RUN, of=replay_dag_of)])
async def replay(request: Request, dag_id: str) -> Response:
    """Start a replay."""
    site = site_of(request)
    return await _from_fields(site, request, replay_dag_of(dag_id), ("records", *FILTERS))


async def _from_fields(site: Site, request: Request, dag_id: str, fields: tuple[str, ...]) -> Response:
    """Start a run with the fields that are filled in."""
    from starlette.concurrency import run_in_threadpool

    given = {name: str(value).strip() for name, value in (await request.form()).items()}
    values = {name: given[name][:_MOST] for name in fields if given.get(name)}
    if not values:
        raise HTTPException(status.HTTP_400_BAD_REQUEST, "Nothing is chosen: fill in what the run shall read")
    if not given.get("why"):
        raise HTTPException(status.HTTP_400_BAD_REQUEST, "Say why: the ledger keeps it")
    token, why = given.get(FIELD, ""), given["why"][:_MOST]
    return await run_in_threadpool(_start, site, request, dag_id, token, mode=DO, why=why, **values)


def _start(site: Site, request: Request, target: str, token: str, /, **form: Any) -> Response:
    """Start a run of the DAG that does it, and go back to the pipeline."""
    visit = visit_of(request)
    check_form(request, visit, token)
    run_id = site.access.start(visit.user, target, {**form, "by": visit.name})
    back = Links.of(request).to("pipelines", visit.dag_id, started=f"{target}/{run_id}")
    return RedirectResponse(back, status.HTTP_303_SEE_OTHER)


def _preview(site: Site, dag_id: str, asked: dict[str, str]) -> Any:
    """What a backfill would do now. Nothing is written."""
    from tidemill.repair.backfill import preview
    from tidemill.repair.job import AmendmentJob

    sight = site.sight(dag_id)
    windows = "/".join(filter(None, (asked["from_window"], asked["to_window"]))) or None
    parts = {name: asked[name] or None for name in BOUNDS if "window" not in name}
    job = AmendmentJob(project=sight.project, pipeline=dag_id, reason=Reason(by="a preview"))
    return preview(job, wanted(**parts, windows=windows))
