"""Pages about contracts as a browser shows them: no error, no request, readable in light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Type
from cli.test_contract_docs import evil_contract
from support.projects import ROOT, Mill

CHROMIUM = Path("/usr/bin/chromium")
SEEN = ROOT / "build" / "contract_pages"
PAGES = ("index.html", "sums.html", "evil.html")


@pytest.fixture
def chromium() -> Any:
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


def test_pages_ask_for_nothing_and_fit_the_window_in_light_and_dark(
    tidemill: Type, mill: Mill, tmp_path: Path, chromium: Any
) -> None:
    evil_contract(mill.project.folder / "data_contracts")
    assert tidemill("contract", "docs", "--out", tmp_path / "pages").code == 0
    SEEN.mkdir(parents=True, exist_ok=True)
    grounds = {}
    for scheme in ("light", "dark"):
        page = chromium.new_page(color_scheme=scheme, viewport={"width": 1000, "height": 800})
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message, into=said: into.append(message.text))
        page.on("pageerror", lambda error, into=said: into.append(str(error)))
        page.on("dialog", lambda dialog, into=said: into.append(dialog.message))
        page.on("request", lambda request, into=asked: into.append(request.url))
        for name in PAGES:
            url = (tmp_path / "pages" / name).as_uri()
            page.goto(url, timeout=60_000)
            page.screenshot(path=SEEN / f"{name}.{scheme}.png", full_page=True)
            assert (said, asked) == ([], [url])
            asked.clear()
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.close()
    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}
