"""Pages that show values: records that were put aside, rows of a window, and where one number comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.responses import RedirectResponse

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import TidemillError
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import time_of
from tidemill_airflow.naming import replay_dag_of
from tidemill_airflow.pages.access import Right, needs, visit_of
from tidemill_airflow.pages.links import Links
from tidemill_airflow.pages.routes.looking import CHOICES, Last
from tidemill_airflow.pages.site import Site, site_of
from tidemill_airflow.pages.views.number import ROWS, newest_window, window_rows, windowed
from tidemill_airflow.pages.views.records import aside_of

KEY = "key."
"""Prefix of the parameters that name the columns of a key."""

Text = Annotated[str | None, Query(max_length=2_000)]


tracing = APIRouter()
"""The routes of side outputs, windows and numbers."""
reads = [needs(Right.READ_VALUES)]


@tracing.get("/pipelines/{dag_id}/records/{output}", dependencies=reads)
def records(  # noqa: PLR0913, PLR0917  the parameters of the page
    request: Request,
    dag_id: str,
    output: SideOutput,
    last: Last = CHOICES[0],
    batch: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    reason: Text = None,
) -> Response:
    """Records that were put aside, by reason, with samples."""
    site = site_of(request)
    sight, visit = site.sight(dag_id), visit_of(request)
    _, batches = sight.recent(last)
    found = aside_of(sight, output, batches, batch=batch, reason=reason or None)
    replay = replay_dag_of(dag_id)
    may = visit.may(Right.RUN, replay) and site.access.has(replay)
    asked = {"last": last, "batch": batch, "reason": reason}
    return site.page(request, "records.jinja", found=found, asked=asked, choices=CHOICES, may=may)


@tracing.get("/pipelines/{dag_id}/windows/{table}", dependencies=reads)
def window(request: Request, dag_id: str, table: str, start: Annotated[str, Query(max_length=60)] = "") -> Response:
    """The published rows of one window; without its start, the newest window that has rows."""
    site = site_of(request)
    sight = site.sight(dag_id)
    begin = time_of("the start of a window", start) if start else newest_window(sight, table)
    if begin is None:
        return RedirectResponse(Links.of(request).to("pipelines", dag_id))
    found = window_rows(sight, table, begin)
    return site.page(request, "window.jinja", found=found, most=ROWS, prefix=KEY)


@tracing.get("/pipelines/{dag_id}/number", dependencies=reads)
def number(request: Request, dag_id: str, table: Text = None, window: Text = None) -> Response:
    """The form that asks for a number, and where the number comes from."""
    site = site_of(request)
    sight = site.sight(dag_id)
    sinks = windowed(sight.flow())
    given = {n.removeprefix(KEY): v for n, v in request.query_params.items() if n.startswith(KEY)}
    asked = {"table": table or next(iter(sinks), ""), "window": window or "", "key": given}
    shown: dict[str, Any] = {"sinks": sinks, "asked": asked, "prefix": KEY, "found": None, "fault": ""}
    code = status.HTTP_200_OK
    if window or (given and key_alone(sinks, table)):
        try:
            shown["found"] = _lineage(site, dag_id, table, window, given)
        except TidemillError as error:
            shown["fault"], code = str(error), status.HTTP_400_BAD_REQUEST
    return site.page(request, "number.jinja", code=code, **shown)


def key_alone(sinks: Mapping[str, WindowedSink], table: str | None) -> bool:
    """Whether the key alone names a number of this table: it has no windows."""
    sink = sinks.get(table or "")
    return sink is not None and sink.start is None


def _lineage(site: Site, dag_id: str, table: str | None, window: str | None, given: Mapping[str, str]) -> Any:
    """Everything behind one number."""
    from tidemill.inspect.lineage import lineage

    sight = site.sight(dag_id)
    sinks = windowed(sight.flow())
    sink = sinks.get(table or "")
    keys = sink.keys if sink is not None else tuple(given)
    key = {name: given.get(name, "") for name in keys}
    start = time_of("the start of a window", window) if window else None
    return lineage(sight.project, dag_id, table or None, start, key)
