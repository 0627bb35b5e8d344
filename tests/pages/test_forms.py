"""Actions: only from a page that this user got, and only as a run of a DAG."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from pages.people import People
from tidemill.project.project import Project
from tidemill_airflow.pages.sight import Sight
from tidemill_airflow.pages.views.plans import REWIND

USER = {"x-user": "user"}
HOST = "http://airflow.test"


def token(client: TestClient, path: str, user: str = "user") -> str:
    """The token of the forms of a page."""
    text = client.get(f"/tidemill{path}", headers={"x-user": user}).text
    found = re.search(r'name="token" value="([^"]+)"', text)
    assert found is not None, text
    return html.unescape(found[1])


def decision(client: TestClient, **more: Any) -> dict[str, Any]:
    return {"token": token(client, "/pipelines/strict"), "batch": "2", "decision": "divert", "why": "broken", **more}


def decide(client: TestClient, data: dict[str, Any], **headers: str) -> Any:
    return client.post("/tidemill/pipelines/strict/decide", data=data, headers={**USER, **headers})


def test_a_decision_is_a_run_of_its_dag_in_the_name_of_the_user(client: TestClient, people: People) -> None:
    answer = decide(client, decision(client, by="somebody else"), origin=HOST)
    assert answer.status_code == 303
    form = {"decision": "divert", "batch": 2, "why": "broken", "by": "user"}
    assert people.started == [("user", "strict.decide", form)]
    back = client.get(f"/tidemill/pipelines/strict/{answer.headers['location']}".replace("/decide/../", "/"))
    assert back.status_code == 401
    after = client.get("/tidemill/pipelines/strict?started=strict.decide/manual__1", headers=USER).text
    assert 'href="../../dags/strict.decide/runs/manual__1" target="_top"' in after


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        ({"token": ""}, {}),
        ({"token": "x"}, {}),
        ({}, {"origin": "http://evil.test"}),
        ({}, {"origin": "null"}),
        ({}, {"origin": "http://airflow.test.evil.test"}),
        ({}, {"sec-fetch-site": "cross-site"}),
        ({}, {"sec-fetch-site": "same-site"}),
    ],
)
def test_a_form_of_another_site_is_refused(
    client: TestClient, people: People, data: dict[str, str], headers: dict[str, str]
) -> None:
    assert decide(client, decision(client, **data), **headers).status_code == 403
    assert not people.started


def test_a_token_of_another_pipeline_or_user_is_refused(client: TestClient, people: People) -> None:
    other = token(client, "/pipelines/sums/rebuild")
    assert decide(client, decision(client, token=other)).status_code == 403
    data = decision(client)
    assert client.post("/tidemill/pipelines/strict/decide", data=data, headers={"x-user": "viewer"}).status_code == 403
    assert not people.started


def test_a_form_goes_only_to_a_page_that_was_open_for_half_a_day(
    client: TestClient, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = decision(client)
    monkeypatch.setattr("tidemill_airflow.pages.tokens.LIFETIME", -1)
    answer = decide(client, data)
    assert (answer.status_code, "open for too long" in answer.text) == (403, True)


@pytest.mark.parametrize("wrong", [{"decision": "forget"}, {"batch": "0"}, {"batch": "x"}, {"why": ""}])
def test_a_decision_that_says_nothing_usable_is_refused(
    client: TestClient, people: People, wrong: dict[str, str]
) -> None:
    assert decide(client, decision(client, **wrong)).status_code == 400
    assert not people.started


def test_a_replay_names_what_it_takes(client: TestClient, people: People) -> None:
    data = {"token": token(client, "/pipelines/sums/replay?records=quarantine"), "why": "mended"}
    data |= {"records": "quarantine"}
    more = {"rule": "amount.maximum", "batch": "2-3", "table": ""}
    answer = client.post("/tidemill/pipelines/sums/replay", data={**data, **more}, headers=USER)
    assert answer.status_code == 303
    form = {"mode": "do it", "records": "quarantine", "rule": "amount.maximum", "batch": "2-3", "why": "mended"}
    assert people.started == [("user", "sums.replay", {**form, "by": "user"})]


def test_a_backfill_is_previewed_and_then_started(client: TestClient, people: People) -> None:
    place = "/tidemill/pipelines/sums/backfill"
    asked = {"from_offsets": "events-0:0", "to_offsets": "events-0:20"}
    shown = client.get(place, params=asked, headers=USER)
    assert "What it would do" in shown.text
    assert not people.started
    hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', shown.text))
    answer = client.post(place, data={**hidden, "why": "a wrong day"}, headers=USER)
    assert answer.status_code == 303
    assert people.started == [
        ("user", "sums.backfill", {"mode": "do it", **asked, "why": "a wrong day", "by": "user"}),
    ]


def test_limits_of_a_backfill_count_in_its_preview_and_are_sent(client: TestClient, people: People) -> None:
    place = "/tidemill/pipelines/sums/backfill"
    asked = {"from_offsets": "events-0:0", "to_offsets": "events-0:20"}
    one = {**asked, "batch_records": "1", "accept_loss": "yes"}
    batches = [
        re.findall(r"in about (\d+) batch", client.get(place, params=p, headers=USER).text) for p in (asked, one)
    ]
    assert batches[0] == ["1"]
    assert int(batches[1][0]) > 1
    data = {"token": token(client, "/pipelines/sums/rebuild"), **one, "why": "small steps"}
    assert client.post(place, data=data, headers=USER).status_code == 303
    form = {**asked, "batch_records": 1, "accept_loss": True, "mode": "do it", "why": "small steps", "by": "user"}
    assert people.started == [("user", "sums.backfill", form)]


@pytest.mark.parametrize("records", ["0", "-1", "many", "1.5"])
def test_a_limit_that_is_none_is_refused_before_anything_starts(
    client: TestClient, people: People, records: str
) -> None:
    asked = {"from_offsets": "events-0:0", "batch_records": records}
    place = "/tidemill/pipelines/sums/backfill"
    shown = client.get(place, params=asked, headers=USER)
    assert (shown.status_code, "expected a whole number of at least 1" in shown.text) == (400, True)
    data = {"token": token(client, "/pipelines/sums/rebuild"), **asked, "why": "small steps"}
    assert client.post(place, data=data, headers=USER).status_code == 409
    assert not people.started


@pytest.mark.parametrize("asked", [{"from_offsets": "x"}, {"from_time": "yesterday"}, {"from_window": "2026-01-01"}])
def test_a_preview_that_would_be_refused_says_why(client: TestClient, asked: dict[str, str]) -> None:
    answer = client.get("/tidemill/pipelines/sums/backfill", params=asked, headers=USER)
    assert (answer.status_code, "This backfill would be refused" in answer.text) == (400, True)


@pytest.mark.parametrize("action", ["backfill", "replay", "rewind"])
def test_an_action_about_everything_is_refused(client: TestClient, people: People, action: str) -> None:
    data = {"token": token(client, "/pipelines/sums/rebuild"), "why": "no reason"}
    assert client.post(f"/tidemill/pipelines/sums/{action}", data=data, headers=USER).status_code == 400
    assert not people.started


def started(client: TestClient, place: str, **more: str) -> Any:
    """What the plan of an action sends when it is started."""
    shown = client.get(f"/tidemill/pipelines/sums/{place}", headers=USER)
    assert shown.status_code == 200, shown.text
    hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', html.unescape(shown.text)))
    action = place.partition("?")[0]
    return client.post(f"/tidemill/pipelines/sums/{action}", data={**hidden, **more}, headers={**USER, "origin": HOST})


PLANS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("rewind?to=2", {}, {"to": 2, "mode": "do it"}),
    ("rebuild", {}, {"mode": "do it"}),
    ("rebuild?accept_loss=yes&batch_records=9", {}, {"accept_loss": True, "batch_records": 9, "mode": "do it"}),
    ("rebuild?batch_records=9", {"mode": "cancel"}, {"mode": "cancel"}),
    ("replay?records=quarantine&batch=1-9", {}, {"records": "quarantine", "batch": "1-9", "mode": "do it"}),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan[0])
def test_a_plan_is_shown_and_then_started(client: TestClient, people: People, plan: Any) -> None:
    place, more, form = plan
    answer = started(client, place, why="a reason", **more)
    assert answer.status_code == 303, answer.text
    dag = f"sums.{place.partition('?')[0]}"
    assert people.started == [("user", dag, {**form, "why": "a reason", "by": "user"})]


def test_a_verification_changes_nothing_and_needs_no_reason(client: TestClient, people: People) -> None:
    assert started(client, "verify", sample="12.5").status_code == 303
    assert people.started == [("user", "sums.verify", {"sample": 12.5})]


def test_a_rewind_without_a_batch_lists_those_that_there_are(client: TestClient) -> None:
    text = client.get("/tidemill/pipelines/sums/rewind", headers=USER).text
    assert "What you can choose" in text
    assert "batch 7, repair" in text
    assert '<option value="7">' in text
    assert "Start the rewind" not in text


def test_a_rewind_of_nothing_says_that_there_is_nothing(street: Project) -> None:
    assert REWIND.lines(Sight(street, "unknown"), {})[1:] == ["no batch has committed yet"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("rewind?to=x", "to: expected the number of a batch, found &#39;x&#39;"),
        ("rewind?to=-1", "found &#39;-1&#39;"),
        ("rewind?to=1_0", "found &#39;1_0&#39;"),
        (f"rewind?to={'9' * 400}", "expected the number of a batch"),
        ("rewind?to=999999999999999999", "999999999999999999"),
        ("rebuild?batch_records=0", "at least 1"),
        ("replay?records=nothing", "expected quarantine or late"),
        ("replay?records=late&rule=x", "only rejected records have one"),
        ("replay?records=quarantine&batch=9-1", "batch"),
        ("replay?records=quarantine&since=<b>", "&lt;b&gt;"),
    ],
)
def test_a_plan_of_wrong_values_says_what_is_wrong(client: TestClient, place: str, said: str) -> None:
    answer = client.get(f"/tidemill/pipelines/sums/{place}", headers=USER)
    assert (answer.status_code, "This would be refused" in answer.text) == (400, True), answer.text
    assert said in answer.text


@pytest.mark.parametrize(
    ("action", "data"),
    [
        ("rewind", {"to": "x"}),
        ("rewind", {"to": "2", "mode": "cancel"}),
        ("rebuild", {"batch_records": "-1"}),
        ("rebuild", {"mode": "plan only"}),
        ("rebuild", {"why": ""}),
        ("verify", {"sample": "101"}),
        ("verify", {"from_window": "2026-01-01"}),
        ("backfill", {"from_offsets": "events-0:0", "from_time": "2026-01-01"}),
    ],
)
def test_wrong_values_start_nothing(client: TestClient, people: People, action: str, data: dict[str, str]) -> None:
    sent = {"token": token(client, "/pipelines/sums/rebuild"), "why": "a reason", **data}
    answer = client.post(f"/tidemill/pipelines/sums/{action}", data=sent, headers=USER)
    assert answer.status_code in (400, 409), answer.text
    assert not people.started


def test_an_action_without_its_dag_is_not_offered(client: TestClient, people: People) -> None:
    people.dags = ()
    shown = client.get("/tidemill/pipelines/strict", headers=USER).text
    assert "or Airflow does not have this DAG" in shown
    assert "<form" not in shown
