"""The application behind `/tidemill` of Airflow's API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from threading import Thread

from fastapi import FastAPI, HTTPException, Request, Response, status
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles

from tidemill.core.errors import TidemillError
from tidemill_airflow.pages.access import Access
from tidemill_airflow.pages.projects import Projects
from tidemill_airflow.pages.routes.acting import acting
from tidemill_airflow.pages.routes.looking import looking
from tidemill_airflow.pages.routes.planning import planning
from tidemill_airflow.pages.routes.tracing import tracing
from tidemill_airflow.pages.site import Site

STATIC = Path(__file__).parent / "static"

_LATER = (
    "pyarrow.parquet",
    "tidemill.core.contract.reasons",
    "tidemill.inspect.lineage",
    "tidemill.inspect.recent_batches",
    "tidemill.ledger.index",
    "tidemill.repair.backfill",
    "tidemill.repair.repair",
    "tidemill.repair.rewind",
)
"""What functions import, because commands and tasks that do not need it should not wait for it."""

_HEADERS = {
    # Nothing comes from elsewhere, nothing goes elsewhere, and only Airflow's own pages may frame these.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def pages_app(access: Access, projects: Projects) -> FastAPI:
    """The pages over some projects, for the users that `access` knows."""
    site = Site(access=access, projects=projects)
    app = FastAPI(title="Tidemill", openapi_url=None, docs_url=None, redoc_url=None)
    app.state.site, app.state.access = site, access
    for routes in (looking, tracing, acting, planning):
        app.include_router(routes)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _tell_refusals(app, site)

    @app.middleware("http")
    async def with_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers.update(_HEADERS)
        if "/static/" not in request.url.path:
            response.headers["Cache-Control"] = "no-store"
        return response

    return app


def airflow_app() -> FastAPI:
    """The pages in Airflow's API server. What later answers need is prepared while somebody reads the first one."""
    from tidemill_airflow.pages.airflow_access import AirflowAccess, folders

    app = pages_app(AirflowAccess(), Projects(folders))
    Thread(target=prepare, args=(app,), name="tidemill pages", daemon=True).start()
    return app


def prepare(app: FastAPI) -> None:
    """Compile the templates, and import what routes import when they are asked: half of the time of first answers."""
    templates = app.state.site.templates
    for name in templates.list_templates():
        templates.get_template(name)
    for module in _LATER:
        import_module(module)


def _tell_refusals(app: FastAPI, site: Site) -> None:
    """A refusal is a page with a sentence, never a trace."""

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return site.refusal(request, error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    def wrong(request: Request, error: RequestValidationError) -> Response:
        each = error.errors()[0]
        where = ".".join(str(part) for part in each["loc"][1:])
        return site.refusal(request, status.HTTP_400_BAD_REQUEST, f"{where}: {each['msg']}")

    @app.exception_handler(TidemillError)
    def fault(request: Request, error: TidemillError) -> Response:
        return site.refusal(request, status.HTTP_409_CONFLICT, str(error))
