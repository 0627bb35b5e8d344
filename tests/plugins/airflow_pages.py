"""A program for tests: asks every route of the pages in Airflow's own API server, as people with its own roles.

    python airflow_pages.py PROJECT ANSWER

Pages are mounted where the plugin mounts them. ANSWER is the file, of JSON, that is written. Without ANSWER only
Airflow's database is made, with the DAGs of the project.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.dag_processing.dagbag import DagBag
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.serialization.serialized_objects import LazyDeserializedDAG
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from sqlalchemy import select, update
from starlette.testclient import TestClient

from pages.asking import place, routes
from tidemill_airflow.pages.app import airflow_app

PEOPLE = {"anonymous": None, "viewer": "VIEWER", "user": "USER", "admin": "ADMIN"}
BOUNDS = "from_offsets=events-0:0&to_offsets=events-0:9"
BASE = "http://testserver/airflow/"


def known(project: str) -> None:
    """Airflow's database with the DAGs of the project."""
    folder = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    folder.mkdir()
    (folder / "dags.py").write_text(
        f"from tidemill_airflow.factory import dags_for\nglobals().update(dags_for({project!r}))\n"
    )
    initdb()
    bag = DagBag(str(folder))
    assert not bag.import_errors, bag.import_errors
    from airflow.dag_processing.collection import update_dag_parsing_results_in_db

    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
        session.flush()
        dags = [LazyDeserializedDAG.from_dag(dag) for dag in bag.dags.values()]
        update_dag_parsing_results_in_db(
            bundle_name="dags-folder",
            bundle_version=None,
            version_data=None,
            dags=dags,
            import_errors={},
            parse_duration=None,
            warnings=set(),
            session=session,
        )
        session.commit()
        assert session.scalar(select(DagModel.dag_id).where(DagModel.dag_id == "sums"))


def browser(app: Any, role: str | None) -> TestClient:
    """A browser with the cookie that Airflow's login sets."""
    client = TestClient(app, base_url=BASE, root_path="/airflow", follow_redirects=False)
    if role is not None:
        user = SimpleAuthManagerUser(username=role.lower(), role=role)
        client.cookies.set("_token", get_auth_manager().generate_jwt(user))
    return client


def acted(client: TestClient, name: str) -> dict[str, Any]:
    """A replay from the page, with the token that it has and without it."""
    page = client.get("tidemill/pipelines/sums/replay?records=quarantine&rule=not+an+event").text
    found = re.search(r'name="token" value="([^"]+)"', page)
    if found is None:
        return {"offered": False}
    form = {"records": "quarantine", "rule": "not an event", "why": "mended"}
    without = client.post("tidemill/pipelines/sums/replay", data=form).status_code
    origin = {"origin": "http://testserver"}
    data = {**form, "token": html.unescape(found[1])}
    elsewhere = client.post("tidemill/pipelines/sums/replay", data=data, headers={"origin": "http://x.test"})
    answer = client.post("tidemill/pipelines/sums/replay", data=data, headers=origin)
    return {
        "offered": True,
        "without": without,
        "elsewhere": elsewhere.status_code,
        "with": answer.status_code,
        "text": answer.text[:2000],
    }


def planned(client: TestClient) -> dict[str, tuple[int, str]]:
    """The answer to every action that a page plans first, sent as its plan sends it; Airflow checks the values."""
    asked = {"rewind": "to=1", "rebuild": "accept_loss=yes&batch_records=7", "verify": "", "backfill": BOUNDS}
    answers = {}
    for action, query in asked.items():
        page = html.unescape(client.get(f"tidemill/pipelines/sums/{action}?{query}").text)
        hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page))
        data = {**hidden, "why": "a reason", **({"sample": "12.5"} if action == "verify" else {})}
        answer = client.post(f"tidemill/pipelines/sums/{action}", data=data)
        answers[action] = (answer.status_code, answer.text[-900:])
        token = hidden["token"]
    with create_session() as session:
        session.execute(update(DagModel).where(DagModel.dag_id == "sums.verify").values(is_paused=True))
    answer = client.post("tidemill/pipelines/sums/verify", data={"token": token})
    return {**answers, "paused": (answer.status_code, answer.text[-900:])}


def main(project: str) -> dict[str, Any]:
    known(project)
    app = create_app(apps="core")
    asked = [(method, place(path)) for path, method in routes(airflow_app())]
    answers: dict[str, Any] = {}
    actions: dict[str, Any] = {}
    for name, role in PEOPLE.items():
        client = browser(app, role)
        for method, path in asked:
            answers[f"{method} {path} {name}"] = client.request(method, f"tidemill{path}").status_code
        actions[name] = acted(client, name)
    plans = planned(browser(app, "USER"))
    with create_session() as session:
        columns = (DagRun.dag_id, DagRun.triggering_user_name, DagRun.conf)
        runs = [list(row) for row in session.execute(select(*columns)).all()]
    from airflow import plugins_manager

    views, _ = plugins_manager._get_ui_plugins()
    listed = browser(app, "VIEWER").get("tidemill/").text
    return {"answers": answers, "actions": actions, "plans": plans, "runs": runs, "views": views, "listed": listed}


if __name__ == "__main__" and len(sys.argv) == 2:
    known(sys.argv[1])
elif __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(main(sys.argv[1]), default=str))
