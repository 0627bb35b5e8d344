"""Pages of what people can have done to a whole pipeline: first they say what would happen, then they start it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response, status
from starlette.concurrency import run_in_threadpool

from tidemill.core.errors import TidemillError
from tidemill_airflow.pages.access import Right, needs, visit_of
from tidemill_airflow.pages.routes.starting import MOST, fields_of, start, why_of
from tidemill_airflow.pages.site import Site, site_of
from tidemill_airflow.pages.tokens import FIELD, check_form
from tidemill_airflow.pages.views.plans import ACTIONS, Action
from tidemill_airflow.tasks.asked import DO

_CHOICES = 20
"""How many batches a field offers."""

planning = APIRouter()
"""The routes of replays, rewinds, rebuilds and verifications."""


def _planned(action: Action, request: Request, dag_id: str) -> Response:
    """The form of an action, and what it would do."""
    site = site_of(request)
    sight, target = site.sight(dag_id), action.dag_of(dag_id)
    asked = {field.name: request.query_params.get(field.name, "").strip()[:MOST] for field in action.fields}
    may = visit_of(request).may(Right.RUN, target) and site.access.has(target)
    shown: dict[str, Any] = {"lines": [], "fault": "", "given": {}, "complete": False, "batches": ()}
    if may:
        try:
            shown["given"] = action.given(asked)
            action.check(shown["given"])
            shown["complete"] = action.is_complete(shown["given"])
            shown["batches"] = [b.batch_id for b in sight.recent(_CHOICES)[1] if b.at is not None]
            shown["lines"] = action.lines(sight, shown["given"])
        except TidemillError as error:
            shown["fault"] = str(error)
    code = status.HTTP_400_BAD_REQUEST if shown["fault"] else status.HTTP_200_OK
    return site.page(request, "plan.jinja", code=code, action=action, asked=asked, may=may, **shown)


async def _started(action: Action, request: Request, dag_id: str) -> Response:
    """Start the action."""
    given = await fields_of(request)
    return await run_in_threadpool(_start, action, site_of(request), request, dag_id, given)


def _start(action: Action, site: Site, request: Request, dag_id: str, given: Mapping[str, str]) -> Response:
    target = action.dag_of(dag_id)
    check_form(request, visit_of(request), given.get(FIELD, ""))
    values = action.given(given)
    if action.plan is None:
        action.check(values)
        return start(site, request, target, values)
    mode, why = given.get("mode", DO), why_of(given)
    if mode not in (DO, *action.modes):
        raise HTTPException(status.HTTP_400_BAD_REQUEST, f"mode: {mode} is no mode of {target}")
    if mode == DO and not action.is_complete(values):
        raise HTTPException(status.HTTP_400_BAD_REQUEST, f"Nothing is chosen: {', '.join(action.needed)} is missing")
    action.check(values)
    form = {**(values if mode == DO else {}), "mode": mode, "why": why, "by": visit_of(request).name}
    return start(site, request, target, form)


for _action in ACTIONS:
    _place, _rights = f"/pipelines/{{dag_id}}/{_action.name}", (Right.READ_VALUES,) if _action.shows_values else ()
    planning.get(_place, dependencies=[needs(*_rights)])(partial(_planned, _action))
    planning.post(_place, dependencies=[needs(Right.RUN, of=_action.dag_of)])(partial(_started, _action))
