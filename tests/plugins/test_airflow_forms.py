"""The page about runs by REST has the fields of all forms, as the forms have them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.projects import ROOT
from tidemill.core.bind.flow import Flow
from tidemill_airflow.dags.entities import pipeline_dag
from tidemill_airflow.naming import MAINTENANCE

PAGE = ROOT / "docs" / "guides" / "airflow-runs.md"
LIMITS = {2**31 - 1: "2^31-1", 2**53 - 1: "2^53-1", 1 - 2**53: "-(2^53-1)", 2**63 - 1: "2^63-1"}


def said(schema: dict[str, Any], default: Any) -> str:
    """What the page says of a field's values."""
    kinds = {schema["type"]} if isinstance(schema.get("type"), str) else {*schema.get("type", ())}
    if "enum" in schema:
        text = ", ".join(f"`{each}`" for each in schema["enum"])
    elif "boolean" in kinds:
        text = "`true`, `false`"
    elif "integer" in kinds:
        low, high = (LIMITS.get(schema[bound], str(schema[bound])) for bound in ("minimum", "maximum"))
        text = f"whole number, {low} to {high}"
    elif "number" in kinds:
        text = f"above {schema['exclusiveMinimum']}, up to {schema['maximum']}"
    else:
        text = "time" if schema.get("format") == "date-time" else "text"
    absent = str(default).lower() if isinstance(default, bool) else default
    return text if default is None else f"{text}; absent: `{absent}`"


def on_the_page() -> dict[str, dict[str, str]]:
    """The values of each key, by DAG, in the order of the page."""
    found: dict[str, dict[str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"### `(.+)`", line):
            found[heading[1].replace("PIPELINE", "page_views")] = {}
        elif found and (row := re.match(r"\| `(\w+)` \| (.+?) \| ", line)):
            list(found.values())[-1][row[1]] = row[2]
    return found


@pytest.fixture
def forms(flow: Flow) -> dict[str, Any]:
    """The parameters of each DAG with a form."""
    from tidemill_airflow.dags.maintaining import maintenance_dag
    from tidemill_airflow.dags.options import DagOptions
    from tidemill_airflow.factory import _ids_of

    entity = pipeline_dag(flow, "/srv/shop", "/srv/lake")
    made = {dag_id: make(entity).params for dag_id, make in _ids_of("page_views").items()}
    return {**made, MAINTENANCE: maintenance_dag([entity], DagOptions()).params}


def test_the_page_has_every_key_of_every_form_with_its_values(forms: dict[str, Any]) -> None:
    shown = on_the_page()
    assert shown.keys() == forms.keys()
    for dag_id, params in forms.items():
        fields = {name: params.get_param(name) for name in params}
        assert shown[dag_id] == {name: said(p.schema, p.value) for name, p in fields.items()}, dag_id
        assert [*shown[dag_id]] == [*fields], dag_id


def test_the_page_and_the_forms_say_who_must_give_a_reason(forms: dict[str, Any]) -> None:
    required = {
        d for d, params in forms.items() if "why" in params and "required" in params.get_param("why").schema["title"]
    }
    assert required == {f"page_views.{kind}" for kind in ("decide", "rebuild", "rewind")}
    for part in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        dag_id = part.split("`")[1].replace("PIPELINE", "page_views")
        assert ("| `why` | text | required " in part) == (dag_id in required), dag_id
