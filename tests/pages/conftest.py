"""Pages over a project of the tiny engine, for people with invented rights: no Airflow and no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from pages.people import People
from pages.street import a_street
from tidemill.project.project import Project
from tidemill_airflow.pages.app import pages_app
from tidemill_airflow.pages.projects import Projects


@pytest.fixture(scope="session")
def street(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project that the pages show. Nobody changes it."""
    return a_street(tmp_path_factory.mktemp("street"))


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def pages(street: Project, people: People) -> FastAPI:
    """The application alone, as the plugin mounts it."""
    return pages_app(people, Projects(lambda: [str(street.folder)]))


@pytest.fixture
def client(pages: FastAPI) -> TestClient:
    """A browser that goes to Airflow, with the pages at `/tidemill`."""
    airflow = FastAPI()
    airflow.mount("/tidemill", pages)
    return TestClient(airflow, base_url="http://airflow.test", follow_redirects=False)


def folder_of(project: Project) -> Path:
    return project.folder
