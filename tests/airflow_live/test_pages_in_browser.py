"""The pages in Airflow's UI, in a real browser: what people do there, from the login to a decision."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_live.browsing import CHROMIUM, PASSWORD, PREFIX, api_server
from pages.street import RUN, a_street, one_more_batch
from support.projects import ROOT
from tidemill.project.project import Project

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.long,
    pytest.mark.skipif(not os.path.exists(CHROMIUM), reason="a browser is not installed: apt-get install chromium"),
]

_WIDE = ("pipelines/sums/records/quarantine", "pipelines/sums/backfill?from_offsets=events-0:0")
"""Pages with much in a row."""

PATIENCE = 90_000
"""Milliseconds to wait for anything on a busy machine."""


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return a_street(tmp_path_factory.mktemp("browser") / "street", batches=40)


@pytest.fixture(scope="module")
def airflow(street: Project) -> Iterator[str]:
    with api_server(street.folder.parent, street.folder) as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Person:
    """Somebody who has logged in. `strange` is what the browser complained about, and asked of other hosts."""

    def __init__(self, chromium: Any, address: str, name: str, **looks: Any) -> None:
        self.address = address
        self.tab = chromium.new_context(
            viewport=looks.pop("viewport", {"width": 1400, "height": 900}), **looks
        ).new_page()
        self.tab.set_default_timeout(PATIENCE)
        self.strange: list[str] = []
        self.tab.on("pageerror", lambda error: self.strange.append(str(error)))
        self.tab.on("request", self._note)
        self.tab.goto(f"{address}/")
        self.tab.locator("input[name=username]").fill(name)
        self.tab.locator("input[name=password]").fill(PASSWORD)
        self.tab.locator("button[type=submit]").click()
        self.tab.wait_for_url(lambda url: "/auth/" not in url)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.strange.append(request.url)

    def opens(self, path: str) -> Any:
        """The frame of a page of Airflow."""
        self.tab.goto(f"{self.address}/{path}")
        return self.tab.frame_locator("iframe")

    def looks_at(self, path: str) -> Any:
        """The frame of one of our pages; Airflow names it by its whole path."""
        return self.opens(f"plugin/tidemill{PREFIX}/tidemill/{path}")

    def has_started(self, dag_id: str) -> bool:
        """Whether the page says that a run was started, and leads to it."""
        frame = self.tab.frame_locator("iframe")
        frame.get_by_text("Started a run of").wait_for()
        link = frame.locator(".notice a").first.get_attribute("href") or ""
        return f"/dags/{dag_id}/runs/manual__" in link

    def shoots(self, name: str) -> None:
        """A picture for people."""
        self.tab.wait_for_timeout(1500)
        (ROOT / "build").mkdir(exist_ok=True)
        self.tab.screenshot(path=str(ROOT / "build" / f"pages_{name}.png"))

    def leaves(self) -> None:
        self.tab.context.close()


def test_somebody_follows_a_number_to_its_offsets_and_decides(airflow: str, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada")
    frame = ada.opens("plugin/tidemill")
    frame.get_by_text("batch 2 is blocked by its audit").wait_for()
    ada.shoots("list")
    frame.get_by_role("link", name="sums", exact=True).click()
    frame.locator(".plot canvas").first.wait_for()
    ada.shoots("pipeline")
    frame.locator(".windows a.closed").last.click()
    frame.get_by_role("link", name="Where from?").first.click()
    frame.get_by_role("heading", name="Batches that read its records").wait_for()
    assert re.search(r"events-\d [\d,]+ to [\d,]+", frame.locator("main").inner_text())
    ada.shoots("number")
    frame = ada.looks_at("pipelines/strict/batches/2")
    frame.get_by_text("Audit", exact=True).wait_for()
    ada.shoots("blocked")
    frame = ada.looks_at("pipelines/strict")
    frame.locator("input[value=divert]").check()
    frame.locator("input[name=why]").fill("too many")
    ada.shoots("decide")
    frame.get_by_role("button", name="Decide as ada").click()
    assert ada.has_started("strict.decide")
    assert ada.strange == []
    ada.leaves()


def test_a_pipeline_moves_while_somebody_looks_at_it(airflow: str, street: Project, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada")
    frame = ada.looks_at("pipelines/sums")
    frame.locator("#live").get_by_text("batch 41").wait_for()
    frame.locator("html").evaluate("root => root.dataset.same = 'page'")
    one_more_batch(street)
    frame.locator("#live").get_by_text("batch 42").wait_for()
    row = frame.locator("#newest tbody tr").first
    assert "manual__more" in row.inner_text()
    assert frame.locator("html").get_attribute("data-same") == "page"
    frame.get_by_role("link", name="42", exact=True).click()
    frame.get_by_role("heading", name="Batch 42").wait_for()
    assert "10" in frame.locator(".facts").inner_text()
    assert ada.strange == []
    ada.leaves()


def test_somebody_previews_a_backfill_and_starts_it_and_then_a_rewind(airflow: str, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada")
    frame = ada.looks_at("pipelines/sums")
    frame.get_by_text("Go back, or check").click()
    ada.shoots("actions")
    frame.get_by_role("link", name="Backfill").click()
    frame.locator("input[name=from_offsets]").fill("events-0:0")
    frame.locator("input[name=to_offsets]").fill("events-0:30")
    frame.get_by_role("button", name="Preview").click()
    frame.get_by_role("heading", name="What it would do").wait_for()
    frame.locator("input[name=why]").fill("a wrong day")
    ada.shoots("backfill")
    frame.get_by_role("button", name="Start the backfill as ada").click()
    assert ada.has_started("sums.backfill")
    frame = ada.looks_at("pipelines/sums/rewind")
    frame.locator("input[name=to]").fill("3")
    frame.get_by_role("button", name="Show the plan").click()
    frame.get_by_role("heading", name="What it would do").wait_for()
    frame.locator("input[name=why]").fill("a wrong contract")
    ada.shoots("rewind")
    frame.get_by_role("button", name="Start the rewind as ada").click()
    assert ada.has_started("sums.rewind")
    frame.locator(".notice a").first.click()
    ada.tab.wait_for_url(re.compile(r"/flow/dags/sums\.rewind/runs/manual__"))
    assert ada.strange == []
    ada.leaves()


def test_somebody_replays_what_was_rejected(airflow: str, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada")
    frame = ada.looks_at("pipelines/sums/records/quarantine")
    frame.locator("input[name=rule]").fill("not an event")
    frame.get_by_role("button", name="Show the plan").click()
    frame.get_by_role("heading", name="What it would do").wait_for()
    frame.locator("input[name=why]").fill("the contract is mended")
    ada.shoots("replay")
    frame.get_by_role("button", name="Start the replay as ada").click()
    assert ada.has_started("sums.replay")
    ada.leaves()


def test_tabs_of_dag_and_run_lead_to_the_pipeline_and_its_batch(airflow: str, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada")
    ada.opens("dags/sums/plugin/tidemill_dag").get_by_role("heading", name="sums", exact=True).wait_for()
    frame = ada.opens(f"dags/sums/runs/{RUN.replace('+', '%2B')}/plugin/tidemill_run")
    frame.get_by_text("Batches that run").wait_for()
    frame.get_by_role("link", name="1", exact=True).click()
    frame.get_by_role("heading", name="Batch 1").wait_for()
    ada.leaves()


def test_the_page_is_dark_where_airflow_is(airflow: str, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada", color_scheme="light")
    ada.tab.evaluate("localStorage.setItem('theme', 'dark')")
    frame = ada.looks_at("pipelines/strict")
    frame.locator(".plot canvas").first.wait_for()
    assert frame.locator("html").get_attribute("data-theme") == "dark"
    ada.shoots("dark")
    ada.leaves()


def test_a_narrow_screen_does_not_scroll_sideways(airflow: str, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada", viewport={"width": 390, "height": 844})
    for path in ("", "pipelines/sums", "pipelines/strict/batches/2", "pipelines/sums/rewind", *_WIDE):
        ada.tab.goto(f"{airflow}/tidemill/{path}")
        assert ada.tab.evaluate("document.documentElement.scrollWidth") == 390, path
    ada.tab.goto(f"{airflow}/tidemill/pipelines/sums")
    ada.shoots("narrow")
    ada.leaves()


def test_the_keyboard_reaches_the_content_and_the_first_pipeline(airflow: str, chromium: Any) -> None:
    ada = Person(chromium, airflow, "ada")
    ada.tab.goto(f"{airflow}/tidemill/")
    ada.tab.keyboard.press("Tab")
    assert ada.tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    ada.tab.keyboard.press("Enter")
    ada.tab.keyboard.press("Tab")
    assert ada.tab.evaluate("document.activeElement.textContent") == "strict"
    ada.tab.keyboard.press("Enter")
    ada.tab.wait_for_url(re.compile("pipelines/strict"))
    ada.leaves()


def test_a_viewer_sees_everything_and_starts_nothing(airflow: str, chromium: Any) -> None:
    vera = Person(chromium, airflow, "vera")
    frame = vera.looks_at("pipelines/strict")
    frame.get_by_text("You may not start runs of strict.decide").wait_for()
    assert frame.locator("form").count() == 0
    form = {"decision": "accept", "batch": "2", "why": "I may not", "from_offsets": "events-0:0", "to": "1"}
    for action in ("decide", "backfill", "replay", "rewind", "rebuild", "verify"):
        answer = vera.tab.request.post(f"{airflow}/tidemill/pipelines/strict/{action}", form=form)
        assert (action, answer.status) == (action, 403)
    frame = vera.looks_at("pipelines/sums/rewind")
    frame.get_by_text("You may not start runs of sums.rewind").wait_for()
    assert frame.locator("form").count() == 0
    vera.shoots("viewer")
    vera.leaves()


def test_somebody_who_is_not_logged_in_sees_nothing(airflow: str, chromium: Any, tmp_path: Path) -> None:
    context = chromium.new_context()
    answer = context.request.get(f"{airflow}/tidemill/pipelines/sums")
    assert (answer.status, "events-0" in answer.text()) == (401, False)
    context.close()
