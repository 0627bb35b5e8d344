"""The page of a pipeline says what its declaration and its contracts say."""

from __future__ import annotations

import re

import pytest

from tidemill.core.bind.flow import Flow
from tidemill_airflow.dags.documents import document, flow_lines


@pytest.fixture
def page(flow: Flow) -> str:
    return document(flow)


def test_page_begins_with_the_description_and_names_owner_and_schedule(page: str) -> None:
    assert page.startswith("Views of each page.\n")
    assert "| owner | web |" in page
    assert "| a batch starts every | 2 minutes |" in page


def test_page_names_topics_with_contract_version_event_time_and_delay(page: str) -> None:
    assert "| `web.access` | `web_access` 1.2.0 | `ts` | 10 seconds |" in page


def test_page_tells_windowed_tables_from_tables_of_rows(page: str) -> None:
    assert "**`page_views_by_minute`** under `page_views_by_minute` 2.0.0: tumbling 1 minute windows by `path`" in page
    assert "**`bot_hits`** under `bot_hits` 1.0.0: rows as they are" in page


def test_page_shows_columns_rules_and_severities_of_published_tables(page: str) -> None:
    assert "| `views` | bigint | yes | requests \\| page and minute |" in page
    assert "- error: `some_views` no empty row" in page


def test_freshness_adds_delay_and_schedule(page: str) -> None:
    assert "about 130 seconds after it" in page


def test_flow_names_every_operator_after_those_that_feed_it(flow: Flow) -> None:
    lines = flow_lines(flow.spec.graph)
    seen: set[str] = set()
    for line in lines:
        fed_by = re.findall(r"(\w+?_\d+)", line.partition("  <- ")[2])
        assert seen.issuperset(fed_by)
        assert fed_by or "read web.access" in line
        seen.add(line.split()[0])
    assert seen == flow.spec.graph.operators.keys()


def test_flow_shows_the_port_where_an_operator_has_several(flow: Flow) -> None:
    select = next(line for line in flow_lines(flow.spec.graph) if line.startswith("select_1"))
    assert select.endswith("  <- split_1.bots")
