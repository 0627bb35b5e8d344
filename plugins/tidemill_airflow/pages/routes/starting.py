"""How a page starts a run of a DAG: for whom, and from which form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import HTTPException, Request, Response, status
from fastapi.responses import RedirectResponse

from tidemill_airflow.pages.access import visit_of
from tidemill_airflow.pages.links import Links
from tidemill_airflow.pages.site import Site

MOST = 2_000
"""The most characters of a field."""


async def fields_of(request: Request) -> dict[str, str]:
    """The texts of a form that was sent, without blanks around them; files are ignored."""
    sent = (await request.form(max_files=0)).items()
    return {name: value.strip()[:MOST] for name, value in sent if isinstance(value, str)}


def why_of(given: Mapping[str, str]) -> str:
    """The reason that a form gives.

    Raises:
        HTTPException: it gives none.
    """
    if not given.get("why"):
        raise HTTPException(status.HTTP_400_BAD_REQUEST, "Say why: the ledger keeps it")
    return given["why"]


def start(site: Site, request: Request, target: str, form: Mapping[str, Any]) -> Response:
    """Start a run of the DAG that does it, and go back to the pipeline. The route has checked the form's token.

    Raises:
        HTTPException: Airflow refuses the run.
    """
    visit = visit_of(request)
    run_id = site.access.start(visit.user, target, form)
    back = Links.of(request).to("pipelines", visit.dag_id, started=f"{target}/{run_id}")
    return RedirectResponse(back, status.HTTP_303_SEE_OTHER)
