"""The page of a pipeline says what its declaration and its contracts say, in words and on one screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from support.projects import ROOT
from tidemill import AfterCount, AfterWatermark, CountPolicy, RecordWindows, TumblingBuffer
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.contract import Severity
from tidemill.core.contract.service_level import ServiceLevel
from tidemill.core.declare.graph import Step
from tidemill.core.declare.operators import Behind
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.time.trigger import Trigger
from tidemill.project.project import Project


def document(flow: Flow, lake: str = "/srv/lake") -> str:
    """The page of a pipeline; Airflow is imported only inside of tests."""
    from tidemill_airflow.dags.documents import document as written

    return written(flow, lake)


@pytest.fixture
def page(flow: Flow) -> str:
    return document(flow)


def test_page_begins_with_the_description_and_names_owner_and_schedule(page: str) -> None:
    assert page.startswith("Views of each page.\n")
    assert "| **owner** | web |" in page
    assert "| **runs** | every 2 minutes, one batch at a time |" in page


def test_page_without_a_description_says_what_the_pipeline_connects(flow: Flow) -> None:
    silent = replace(flow, spec=replace(flow.spec, description=" \n"))
    assert document(silent).startswith("web.access to bot_hits, page_views_by_minute, every 2 minutes\n")


def test_page_names_topics_with_contract_version_event_time_and_delay(page: str) -> None:
    said = "topic `web.access`, contract `web_access` 1.2.0; event time `ts`, out of order by at most 10 seconds"
    assert f"| **from** | {said} |" in page


def test_page_tells_windowed_tables_from_tables_of_rows(page: str) -> None:
    assert "table `page_views_by_minute`: one row per tumbling 1 minute window and `path`, published when it" in page
    assert "late records count for 1 hour" in page
    assert "table `bot_hits`: each row once, as it is" in page


def test_page_says_where_each_table_is_and_how_to_open_it(flow: Flow) -> None:
    page = document(flow, "s3://lake/shop")
    for table in ("bot_hits", "page_views_by_minute"):
        assert f"PATH is `s3://lake/shop/published/{table}`, for Spark `s3a://lake/shop/published/{table}`" in page
    assert "PATH is `/srv/lake/published/bot_hits`. Open it with" in document(flow)
    for way in (
        '`polars.read_delta("PATH")`',
        '`spark.read.format("delta").load("PATH")`',
        "SELECT * FROM delta.`PATH`",
    ):
        assert way in page


def test_page_shows_columns_and_counts_rules(page: str) -> None:
    assert "| `views` | bigint | requests \\| page and minute |" in page
    assert "| `bytes` | bigint, may be null |  |" in page
    assert "1 rule of the contract is checked before a row is published" in page
    assert "Among them: no empty row" in page


def test_rules_that_only_warn_are_counted_apart(flow: Flow) -> None:
    rows, windows = flow.sinks
    [rule] = windows.contract.table_rules
    warning = replace(rule, severity=Severity.WARNING, description="")
    both = replace(windows, contract=replace(windows.contract, table_rules=(rule, warning, warning)))
    assert "2 rules of the contract are only warned of." in document(replace(flow, sinks=(rows, both)))


def test_on_time_adds_delay_and_schedule_for_windows_alone(flow: Flow) -> None:
    page = document(flow)
    assert "a window appears about 130 seconds after its end, if newer records arrive" in page
    assert "a record is in its table about 2 minutes after its arrival" in page
    early = tuple(replace(s, trigger=Trigger.ON_UPDATE) if isinstance(s, WindowedSink) else s for s in flow.sinks)
    assert "after its end" not in document(replace(flow, sinks=early))


def test_a_table_of_a_second_read_comes_as_much_later_as_its_delay_is_longer(flow: Flow) -> None:
    rows, windows = flow.sinks
    assert isinstance(windows, WindowedSink)
    [(source, paths)] = windows.paths.items()
    behind = tuple((Step("read_2", Behind(timedelta(minutes=8)), "out"), *path) for path in paths)
    page = document(replace(flow, sinks=(rows, windows, replace(windows, table="final", paths={source: behind}))))
    assert f"a window of `{windows.table}` appears about 130 seconds after its end" in page
    assert "a window of `final` appears about 610 seconds after its end" in page


def test_firings_that_wait_for_the_watermark_come_after_the_end_of_their_window(flow: Flow) -> None:
    _, windows = flow.sinks
    assert isinstance(windows, WindowedSink)
    common = {name: getattr(windows, name) for name in ("table", "contract", "keys", "aggregates", "paths")}
    around, early = AfterWatermark(), AfterWatermark(early=AfterCount(1))
    for window, waits in (
        (RecordWindows("1 minute"), True),
        (TumblingBuffer(CountPolicy(3)), False),
        (EventWindows(windows.window.panes, around), True),
        (EventWindows(windows.window.panes, early, accumulation="discarding"), False),
    ):
        declared = windows.window if isinstance(window, EventWindows) else window
        sink = FiringSink(declared=declared, window=window, **common)
        assert ("after its end, if newer" in document(replace(flow, sinks=(sink,)))) is waits
    last = TumblingBuffer(CountPolicy(3), order="event_time")
    page = document(replace(flow, sinks=(FiringSink(declared=last, window=last, **common),)))
    assert "a record is in its buffer about 130 seconds after its event time, if newer records arrive" in page


def test_service_levels_of_contracts_are_promised(flow: Flow) -> None:
    rows, windows = flow.sinks
    level = ServiceLevel(name="freshness", text="5 minutes", most=300_000_000)
    promised = replace(windows, contract=replace(windows.contract, levels=(level,)))
    page = document(replace(flow, sinks=(rows, promised)))
    assert "| **promised** | `page_views_by_minute`: freshness of at most 5 minutes |" in page


def test_page_links_to_the_other_dags_behind_any_prefix(page: str) -> None:
    assert "[read the past again](dags/page_views.backfill)" in page
    assert "[tidy up](dags/tidemill.maintenance)" in page


@pytest.mark.parametrize(
    ("period", "said"),
    [
        (timedelta(minutes=1), "every minute"),
        (timedelta(hours=2), "every 2 hours"),
        (timedelta(seconds=90), "every 90 seconds"),
        (timedelta(hours=11), "every 11 hours"),
    ],
)
def test_period_is_said_in_words(period: timedelta, said: str) -> None:
    from tidemill_airflow.dags.documents import every

    assert every(period) == said


def test_text_with_backticks_and_lines_stays_one_cell_of_code(flow: Flow) -> None:
    from tidemill_airflow.dags.documents import code

    assert code("a `b`\n| c") == "`` a `b` | c ``"


def test_page_of_the_reference_pipeline_fits_one_screen_and_shows_no_objects_of_python() -> None:
    project = Project.load(ROOT)
    page = document(project.declared("page_views"), project.settings.lake)
    assert len(page.splitlines()) < 50
    assert not any(text in page for text in ("=<", "expression=", "error:", "timedelta", "None"))
