"""What all routes share: projects, access and templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fastapi import HTTPException, Request, status
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from tidemill_airflow.pages.access import Access, Right, visit_of
from tidemill_airflow.pages.links import Links, task_of
from tidemill_airflow.pages.projects import Projects
from tidemill_airflow.pages.shown import FILTERS
from tidemill_airflow.pages.sight import Sight
from tidemill_airflow.pages.tokens import FIELD, token_of


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("tidemill_airflow.pages", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals.update(Right=Right, task_of=task_of, form_field=FIELD)
    return made


@dataclass(frozen=True, kw_only=True)
class Site:
    """The pages over some projects, for users of `access`."""

    access: Access
    projects: Projects
    templates: Environment = field(default_factory=_environment)

    def sight(self, dag_id: str) -> Sight:
        """The pipeline whose DAG has this id.

        Raises:
            HTTPException: no project that is shown declares it.
        """
        found = self.projects.found().pipelines.get(dag_id)
        if found is None:
            raise HTTPException(
                status.HTTP_404_NOT_FOUND,
                f"No project that is shown here declares a pipeline {dag_id}. "
                "The setting [tidemill] projects names the folders to show",
            )
        return found

    def page(self, request: Request, template: str, *, code: int = 200, **values: Any) -> HTMLResponse:
        """A page for the visitor of a route."""
        visit = visit_of(request)
        text = self.templates.get_template(template).render(
            links=Links.of(request), visit=visit, token=token_of(visit), **values
        )
        return HTMLResponse(text, status_code=code)

    def refusal(self, request: Request, code: int, what: str) -> HTMLResponse:
        """A page that says why there is no answer."""
        text = self.templates.get_template("refused.jinja").render(links=Links.of(request), code=code, what=what)
        return HTMLResponse(text, status_code=code)


def site_of(request: Request) -> Site:
    """The pages that a request is for."""
    found = request.app.state.site
    assert isinstance(found, Site)
    return found
