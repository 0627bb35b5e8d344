"""Every route with every kind of person: what they may see and do, and nothing is open."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from pages.asking import place, routes
from pages.people import RIGHTS, People

VALUES = ("records", "windows", "number", "replay")
"""What shows values of records or rows."""


def expected(path: str, method: str, person: str | None) -> set[int]:
    """The answers that a person may get."""
    if person is None:
        return {401}
    if path == "/":
        return {200}
    rights = {right.name for right in RIGHTS[person]}
    needed = {"READ"}
    shows = path.split("/")[3:4] and path.split("/")[3] in VALUES and method == "GET"
    needed |= {"READ_VALUES"} if shows else set()
    needed |= {"RUN"} if method == "POST" else set()
    if not needed <= rights:
        return {403}
    # A form without its token is refused, and a page without what it asks for is no page.
    return {400, 403} if method == "POST" else {200, 307, 400}


def table(pages: FastAPI, client: TestClient) -> dict[tuple[str, str, str | None], int]:
    """The answer to each person, by route and method."""
    answers = {}
    for path, method in routes(pages):
        for person in (None, *RIGHTS):
            headers = {} if person is None else {"x-user": person}
            answers[path, method, person] = client.request(
                method, f"/tidemill{place(path)}", headers=headers
            ).status_code
    return answers


def test_every_route_asks_for_the_permission_that_it_needs(pages: FastAPI, client: TestClient, people: People) -> None:
    answers = table(pages, client)
    assert len(answers) == len(routes(pages)) * (1 + len(RIGHTS)) >= 60
    wrong = {key: code for key, code in answers.items() if code not in expected(*key)}
    assert not wrong
    assert not people.started
    print(*(f"{method:5} {path:45} {person!s:8} {code}" for (path, method, person), code in answers.items()), sep="\n")


def test_there_is_no_route_that_describes_the_others(client: TestClient) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(f"/tidemill{path}", headers={"x-user": "user"}).status_code == 404


@pytest.mark.parametrize("path", ["/", "/pipelines/sums", "/pipelines/strict/batches/2"])
def test_a_refusal_is_a_page_that_says_what_to_do(client: TestClient, path: str) -> None:
    answer = client.get(f"/tidemill{path}")
    assert answer.status_code == 401
    assert "Log in to Airflow" in answer.text
    assert answer.headers["content-type"].startswith("text/html")


def test_the_list_shows_only_what_one_may_read(client: TestClient, people: People) -> None:
    assert "pipelines/sums" in client.get("/tidemill/", headers={"x-user": "reader"}).text
    nobody = client.get("/tidemill/", headers={"x-user": "nobody"}).text
    assert "pipelines/sums" not in nobody
    assert "You may not read the DAG of any pipeline" in nobody


def test_rows_of_a_blocked_batch_need_the_right_to_see_values(client: TestClient) -> None:
    shown = client.get("/tidemill/pipelines/strict/batches/2", headers={"x-user": "viewer"}).text
    hidden = client.get("/tidemill/pipelines/strict/batches/2", headers={"x-user": "reader"}).text
    assert "of the rows that break it" in shown
    assert "You may not see rows" in hidden
    assert "of the rows that break it" not in hidden
