"""Decisions and backfills. Each is a run of a DAG that its user starts; what else they can start is in `planning`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request, Response, status
from starlette.concurrency import run_in_threadpool

from tidemill.core.errors import TidemillError
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Decision
from tidemill.repair.job import AmendmentJob
from tidemill_airflow.naming import backfill_dag_of, decide_dag_of
from tidemill_airflow.pages.access import Right, needs, visit_of
from tidemill_airflow.pages.routes.starting import MOST, fields_of, start, why_of
from tidemill_airflow.pages.site import Site, site_of
from tidemill_airflow.pages.tokens import FIELD, check_form
from tidemill_airflow.pages.views.plans import ACCEPT_LOSS, BATCH_RECORDS, values_of
from tidemill_airflow.tasks.asked import BOUNDS, DO, backfill_of, records_of

if TYPE_CHECKING:
    from tidemill.repair.backfill import Preview

Text = Annotated[str, Form(max_length=MOST)]
Why = Annotated[str, Form(min_length=1, max_length=MOST)]

_LIMITS = (BATCH_RECORDS, ACCEPT_LOSS)
_FIELDS = (*BOUNDS, *(field.name for field in _LIMITS))

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
    check_form(request, visit_of(request), token)
    form = {"decision": decision.value, "batch": batch, "why": why, "by": visit_of(request).name}
    return start(site, request, decide_dag_of(dag_id), form)


@acting.get("/pipelines/{dag_id}/backfill", dependencies=[needs(Right.READ)])
def form(request: Request, dag_id: str) -> Response:
    """The form of a backfill, and what it would do."""
    site = site_of(request)
    asked = {name: request.query_params.get(name, "").strip()[:MOST] for name in _FIELDS}
    dag = backfill_dag_of(dag_id)
    may = visit_of(request).may(Right.RUN, dag) and site.access.has(dag)
    shown: dict[str, Any] = {"asked": asked, "may": may, "limits": _LIMITS, "preview": None, "fault": ""}
    site.sight(dag_id)
    if may and any(asked[name] for name in BOUNDS):
        try:
            shown["preview"] = _preview(site, dag_id, asked)
        except TidemillError as error:
            shown["fault"] = str(error)
    return site.page(request, "backfill.jinja", code=400 if shown["fault"] else 200, **shown)


@acting.post("/pipelines/{dag_id}/backfill", dependencies=[needs(Right.RUN, of=backfill_dag_of)])
async def backfill(request: Request, dag_id: str) -> Response:
    """Start a backfill."""
    given = await fields_of(request)
    check_form(request, visit_of(request), given.get(FIELD, ""))
    wanted = {name: given[name] for name in BOUNDS if given.get(name)} | values_of(_LIMITS, given)
    records_of(wanted)
    if backfill_of(wanted) is None:
        raise HTTPException(status.HTTP_400_BAD_REQUEST, "Nothing is chosen: fill in what the run shall read")
    form = {**wanted, "mode": DO, "why": why_of(given), "by": visit_of(request).name}
    return await run_in_threadpool(start, site_of(request), request, backfill_dag_of(dag_id), form)


def _preview(site: Site, dag_id: str, asked: Mapping[str, str]) -> Preview | None:
    """What a backfill would do now. Nothing is written."""
    from tidemill.repair.backfill import preview

    wanted, limits = backfill_of(asked), values_of(_LIMITS, asked)
    project, most = site.sight(dag_id).project, records_of(limits)
    job = AmendmentJob(project=project, pipeline=dag_id, reason=Reason(by="a preview"), most=most)
    loss = bool(limits.get(ACCEPT_LOSS.name))
    return None if wanted is None else preview(job, wanted, accept_loss=loss)
