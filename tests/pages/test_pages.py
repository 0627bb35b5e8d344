"""What each page answers."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from pages.people import People
from pages.street import HOSTILE, RUN
from tidemill.project.project import Project
from tidemill_airflow.pages.app import pages_app, prepare
from tidemill_airflow.pages.projects import Projects

USER = {"x-user": "user"}


def page(client: TestClient, path: str) -> str:
    answer = client.get(f"/tidemill{path}", headers=USER)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_the_list_begins_with_what_needs_somebody(client: TestClient) -> None:
    text = page(client, "/")
    assert text.index("pipelines/strict") < text.index("pipelines/sums")
    assert "batch 2 is blocked by its audit: a person must decide" in text


def test_a_pipeline_shows_its_batches_with_offsets_versions_and_run(client: TestClient) -> None:
    text = page(client, "/pipelines/sums?rows=60")
    assert f'href="../../dags/sums/runs/{RUN.replace(":", "%3A").replace("+", "%2B")}" target="_top">{RUN}</a>' in text
    for part in ("events-0 0 to ", "v1", "5 hold", "repair", "up to date", "Windows of sums", "Data flow"):
        assert part in text, part


def test_the_time_line_has_a_value_for_each_committed_batch(client: TestClient) -> None:
    series = client.get("/tidemill/pipelines/sums/timeline.json", headers=USER).json()["series"]
    assert series["batch"] == [1, 2, 3, 4, 5, 6, 7]
    assert {len(values) for values in series.values()} == {7}
    assert series["rate"][0] is None
    assert all(value > 0 for value in series["processing"])
    assert series["scheduling"][0] > 0
    assert series["lag"][-1] == 0


def test_a_blocked_batch_shows_broken_rules_first_with_rows(client: TestClient) -> None:
    text = page(client, "/pipelines/strict/batches/2")
    assert text.index("n.maximum") < text.index("window_start.required")
    for part in ("5 rules hold, 1 are broken", "of the rows that break it", "waits for a decision", "Decide as user"):
        assert part in text, part


def test_a_batch_that_does_not_exist_is_not_found(client: TestClient) -> None:
    answer = client.get("/tidemill/pipelines/sums/batches/99", headers=USER)
    assert (answer.status_code, "no batch 99" in answer.text) == (404, True)


def test_a_table_without_a_window_leads_to_its_newest_rows(client: TestClient) -> None:
    assert "Where from?" in page(client, "/pipelines/sums/windows/sums")
    answer = client.get("/tidemill/pipelines/sums/windows/unknown", headers=USER)
    assert (answer.status_code, answer.headers["location"]) == (307, "../../../pipelines/sums")


@pytest.mark.parametrize(
    "text",
    [
        "9999-12-31T23:59:59.999999",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "0001-01-01",
        "2026-13-45",
        "9" * 60,
        HOSTILE,
        "\x00",
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        "windows/sums?start=",
        "number?key.user=a&window=",
        "backfill?from_time=",
        "backfill?to_window=2026-01-01&from_window=",
        "replay?records=quarantine&since=",
    ],
)
def test_times_at_the_edges_are_answered_or_refused_in_words(client: TestClient, place: str, text: str) -> None:
    answer = client.get(f"/tidemill/pipelines/sums/{place}{quote(text)}", headers=USER)
    assert answer.status_code in (200, 400, 409), answer.text
    assert HOSTILE not in answer.text


def test_nobody_can_make_a_page_say_that_something_else_was_started(client: TestClient) -> None:
    shown = "Started a run of"
    assert shown in page(client, "/pipelines/sums?started=sums.verify/manual__1")
    for forged in ("strict.verify/x", "Call%20us/x", f"{HOSTILE}/x", "sums/x"):
        assert shown not in page(client, f"/pipelines/sums?started={forged}")


@pytest.mark.parametrize("number", ["0", "-1", "9223372036854775808", "1e3", "x"])
def test_a_batch_with_a_strange_number_is_refused_in_words(client: TestClient, number: str) -> None:
    answer = client.get(f"/tidemill/pipelines/sums/batches/{number}", headers=USER)
    assert answer.status_code in (400, 404)
    assert "Traceback" not in answer.text


def test_a_pipeline_that_nobody_declares_is_not_found(client: TestClient) -> None:
    answer = client.get("/tidemill/pipelines/other", headers=USER)
    assert (answer.status_code, "[tidemill] projects" in answer.text) == (404, True)


def test_quarantine_counts_reasons_and_shows_samples(client: TestClient) -> None:
    text = page(client, "/pipelines/sums/records/quarantine")
    assert "amount too large" in text
    narrowed = page(client, "/pipelines/sums/records/quarantine?reason=not+an+event")
    assert "Samples of not an event" in narrowed


def test_values_of_records_are_escaped_and_cut(client: TestClient) -> None:
    text = page(client, "/pipelines/sums/records/quarantine")
    assert HOSTILE not in text
    assert html.escape(HOSTILE) in text
    assert r"\x00\xff" in text
    assert "x" * 400 not in text


def test_late_records_say_which_window_refused_them(client: TestClient, street: Project) -> None:
    text = page(client, "/pipelines/strict/records/late")
    assert "None in these batches" in text


def test_a_number_leads_to_its_batches_and_their_offsets(client: TestClient) -> None:
    at, text = "/tidemill/pipelines/sums", page(client, "/pipelines/sums")
    window = re.findall(r'class="(?:closed|ended)[^"]*" href="([^"]+)"', text)[-1]
    at, text = follow(client, at, window)
    row = re.findall(r'<a href="([^"]+)">Where from', text)[0]
    at, text = follow(client, at, row)
    assert "Batches that read its records" in text
    assert re.search(r"events-\d [\d,]+ to [\d,]+", text)
    assert "ON_TIME" in text
    batch = re.findall(r'<th scope="row"><a href="([^"]+)"', text)[0]
    _, text = follow(client, at, batch)
    assert "Who and when" in text


@pytest.mark.parametrize(
    "asked",
    [
        "window=yesterday",
        "window=2026-01-01T00:00:03",
        "window=2026-01-01",
        "table=other&window=2026-01-01",
        "window=%00",
    ],
)
def test_a_question_without_an_answer_says_why(client: TestClient, asked: str) -> None:
    answer = client.get(f"/tidemill/pipelines/sums/number?{asked}", headers=USER)
    assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)


def test_the_tab_of_a_run_shows_the_batches_that_it_executed(client: TestClient) -> None:
    text = page(client, f"/dags/sums/runs/{RUN}")
    assert text.count('<th scope="row">') == 1
    assert 'pipelines/sums/batches/1"' in text


def test_the_tab_of_a_dag_leads_to_its_pipeline(client: TestClient) -> None:
    for dag in ("sums", "sums.backfill"):
        answer = client.get(f"/tidemill/dags/{dag}", headers=USER)
        assert answer.status_code == 307
        assert urljoin(f"/tidemill/dags/{dag}", answer.headers["location"]) == "/tidemill/pipelines/sums"
    assert "is not a DAG of a pipeline" in page(client, "/dags/other")


def test_every_link_works_behind_a_path_prefix(client: TestClient) -> None:
    places = (
        "/",
        "/pipelines/sums",
        "/pipelines/sums/batches/1",
        "/pipelines/sums/records/late",
        f"/dags/sums/runs/{RUN}",
    )
    for place in places:
        text = page(client, place)
        found = {urljoin(f"/some/prefix/tidemill{place}", html.unescape(link)) for link in links_in(text)}
        assert all(link.startswith(("/some/prefix/tidemill/", "/some/prefix/dags/", "#")) for link in found), found
        assert any(link.endswith("/tidemill/static/tidemill.css") for link in found)


def test_answers_say_that_nothing_comes_from_elsewhere(client: TestClient) -> None:
    headers = client.get("/tidemill/", headers=USER).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_no_answer_names_the_folder_or_a_setting_of_the_project(client: TestClient, street: Project) -> None:
    for place in ("/", "/pipelines/sums", "/pipelines/strict", "/pipelines/strict/batches/2"):
        assert str(street.folder) not in page(client, place)


def test_a_project_with_a_fault_shows_it_beside_the_others(people: People, street: Project, tmp_path: Path) -> None:
    app = pages_app(people, Projects(lambda: [str(street.folder), str(tmp_path / "nowhere"), str(street.folder)]))
    text = TestClient(app).get("/", headers=USER).text
    assert "pipelines/sums" in text
    assert "there is no tidemill.toml" in text
    assert "another project declares" in text


def test_a_pipeline_that_was_added_appears(people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill_airflow.pages.projects.LOOK_AGAIN", 0.0)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "tidemill.toml").write_text("")
    projects = Projects(lambda: [str(tmp_path)])
    assert not projects.found().pipelines
    (tmp_path / "pipelines" / "broken.py").write_text("1 / 0")
    assert "division by zero" in projects.found().faults[0]


def links_in(text: str) -> list[str]:
    return re.findall(r'(?:href|src|action|hx-get|data-timeline)="([^"]+)"', text.replace('href="data:,"', ""))


def follow(client: TestClient, at: str, link: str) -> tuple[str, str]:
    """The place that a link of a page leads to, and its text."""
    there = urljoin(at, html.unescape(link))
    answer = client.get(there, headers=USER)
    assert answer.status_code == 200, answer.text
    return there, answer.text


def test_pages_that_were_prepared_compile_nothing_when_somebody_asks(
    pages: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(pages)
    monkeypatch.setattr("jinja2.Environment.compile", lambda *_, **__: pytest.fail("a template was compiled"))
    for place in ("/", "/pipelines/sums", "/pipelines/strict/batches/2"):
        assert page(client, place)


def test_an_application_is_made_with_its_first_request() -> None:
    from tidemill_airflow.pages.lazy import LazyApp

    made: list[FastAPI] = []

    def make() -> FastAPI:
        made.append(FastAPI())
        return made[-1]

    lazy = LazyApp(make)
    assert not made
    client = TestClient(lazy)
    assert [client.get("/x").status_code, client.get("/y").status_code] == [404, 404]
    assert len(made) == 1
