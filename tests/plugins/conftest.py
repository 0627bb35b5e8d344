"""Airflow as a library, in this process: no home, no logging, no database of the user is touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.contract.contract import Between, Contract, Format, TableRule
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.declare.aggregates import Count, Sum
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.time.windows import Tumbling


@pytest.fixture(scope="session", autouse=True)
def airflow_as_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Airflow reads these when it is first imported, so the tests here import it in functions only."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("_AIRFLOW__AS_LIBRARY", "1")
        environment.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow_home")))
        environment.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        yield


@pytest.fixture
def flow() -> Flow:
    """A pipeline with every kind of page content: a split, a discarded port, windows, rows, rules."""
    with Pipeline("page_views", every="2 minutes", owner="web", description="Views of each page.") as pipeline:
        hits = pipeline.read("web.access", contract="web_access", event_time="ts", delay="10 seconds")
        parts = hits.split(bots="agent RLIKE 'bot|crawler'")
        parts["bots"].select("ts", "path").publish("bot_hits", contract="bot_hits")
        (
            parts["rest"]
            .key_by("path")
            .window(Tumbling("1 minute"), allowed_lateness="1 hour")
            .aggregate(views=Count(), bytes=Sum("bytes"))
            .publish("page_views_by_minute", contract="page_views_by_minute")
        )
    return bind(pipeline.spec, {c.name: c for c in (WEB_ACCESS, BOT_HITS, PAGE_VIEWS)})


def fields(**types: Scalar) -> tuple[Field, ...]:
    return tuple(Field(name=name, type=type_) for name, type_ in types.items())


WEB_ACCESS = Contract(
    name="web_access",
    version="1.2.0",
    format=Format.JSON,
    fields=fields(ts=Scalar.TIMESTAMP, path=Scalar.STRING, agent=Scalar.STRING, bytes=Scalar.LONG),
)
BOT_HITS = Contract(name="bot_hits", version="1.0.0", fields=fields(ts=Scalar.TIMESTAMP, path=Scalar.STRING))
PAGE_VIEWS = Contract(
    name="page_views_by_minute",
    version="2.0.0",
    fields=(
        *fields(window_start=Scalar.TIMESTAMP, window_end=Scalar.TIMESTAMP, path=Scalar.STRING),
        Field(name="views", type=Scalar.LONG, required=True, description="requests | page and minute"),
        Field(name="bytes", type=Scalar.LONG),
    ),
    table_rules=(TableRule(name="some_views", check=Between(column="views", minimum=1), description="no empty row"),),
)
