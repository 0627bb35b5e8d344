"""`tidemill contract docs`: pages about contracts, safe to open whatever a contract says."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cli.conftest import Type
from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill
from tidemill.core.contract.contract import Severity
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.verdict import CheckResult
from tidemill.inspect.contract_pages import pages, verdicts
from tidemill.inspect.contract_pages.pages import page_of
from tidemill.run import batch

REASON = "not an event"
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;{{ 7*7 }}"
KNOWN = frozenset(("html", "head", "meta", "title", "style", "body", "a", "h1", "h2", "p", "div", "table", "tr", "th"))
KNOWN |= {"td", "code", "span", "ul", "li"}


class Tags(HTMLParser):
    """The tags of a page, what they refer to, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def evil_contract(folder: Path) -> None:
    quoted = "'" + EVIL.replace("'", "''") + "'"
    # Names of properties have no quotes.
    name = quoted.replace('"', "")
    (folder / "evil.odcs.yaml").write_text(
        f"""apiVersion: v3.1.0
kind: DataContract
id: {quoted}
version: {quoted}
status: {quoted}
domain: {quoted}
slaProperties: [{{property: latency, value: 1, unit: m, element: evil, driver: {quoted}}}]
schema:
  - name: evil
    logicalType: object
    description: {quoted}
    properties:
      - name: {name}
        logicalType: string
        description: {quoted}
        logicalTypeOptions: {{maxLength: 5}}
        quality:
          - metric: invalidValues
            name: {quoted}
            description: {quoted}
            arguments: {{validValues: [{quoted}]}}
            mustBe: 0
    customProperties: [{{property: format, value: json}}]
""",
        encoding="utf-8",
    )


def test_what_contracts_say_cannot_become_part_of_a_page(tidemill: Type, mill: Mill, tmp_path: Path) -> None:
    evil_contract(mill.project.folder / "data_contracts")
    said = tidemill("contract", "docs", "--out", tmp_path / "pages")
    assert said.err == ""
    assert said.code == 0
    written = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert written == ["events.html", "evil.html", "index.html", "sums.html"]
    for name in written:
        page = (tmp_path / "pages" / name).read_text(encoding="utf-8")
        tags = Tags(page)
        assert tags.names <= KNOWN
        assert {name for name, _ in tags.attributes if name.startswith("on") or name == "src"} == set()
        links = [value for name, value in tags.attributes if name == "href"]
        assert all((tmp_path / "pages" / link).is_file() for link in links)
        assert not re.search(r"https?:|url\(|@import", page)
        assert "49" not in tags.text
    assert Tags((tmp_path / "pages" / "evil.html").read_text()).text.count(EVIL) >= 8


def test_a_page_says_fields_rules_users_and_the_last_audit(
    tidemill: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = (
        CheckResult(table="sums", rule="n.required", severity=Severity.ERROR, passed=True),
        CheckResult(
            table="sums",
            rule="primaryKey",
            severity=Severity.ERROR,
            passed=False,
            observed="2 of 3 rows",
            expected="other keys",
            scope=Scope.BATCH,
            failing_rows=({"user": EVIL},),
        ),
    )
    audit = verdicts.Audit(pipeline="sums", table="sums", batch=7, at="2026-01-01", results=results)
    monkeypatch.setattr(pages, "last_audits", lambda _: {"sums": [audit]})
    assert tidemill("contract", "docs", "--out", tmp_path / "pages").code == 0
    text = " ".join(Tags((tmp_path / "pages" / "sums.html").read_text()).text.split())
    for expected in (
        "window_start key timestamp no",
        "A batch is checked before anyone can see its rows",
        "primaryKey no two rows have the same window_start, user all rows of the table; in a table of windows, only",
        "pipeline sums publishes table sums: nothing committed yet",
        "Pipeline sums, batch 7, 2026-01-01",
        "n.required error holds primaryKey error the rows of the batch broken 2 of 3 rows; expected other keys",
        f"Some rows that broke primaryKey : user: {' '.join(EVIL.split())}",
    ):
        assert expected in text
    assert "broken" in Tags((tmp_path / "pages" / "index.html").read_text()).text
    events = Tags((tmp_path / "pages" / "events.html").read_text()).text
    assert "pipeline sums reads events" in events
    assert "amount <= 1000000" in events
    assert "Each record is checked alone." in events


def test_a_contract_that_cannot_be_used_is_named_and_others_have_pages(
    tidemill: Type, mill: Mill, tmp_path: Path
) -> None:
    (mill.project.folder / "data_contracts" / "bad.odcs.yaml").write_text("kind: DataContract\n")
    said = tidemill("contract", "docs", "--out", tmp_path / "pages")
    assert said.code == 5
    assert "bad.odcs.yaml:1: apiVersion is nothing" in said.err
    assert "bad.odcs.yaml" in (tmp_path / "pages" / "index.html").read_text()
    assert (tmp_path / "pages" / "sums.html").is_file()
    (tmp_path / "file").write_text("")
    assert tidemill("contract", "docs", "--out", tmp_path / "file").code == 5


def test_statistics_are_said_in_the_words_of_great_expectations(tidemill: Type, mill: Mill, tmp_path: Path) -> None:
    path = mill.project.folder / "data_contracts" / "sums.odcs.yaml"
    rules = """        quality:
          - type: custom
            engine: greatExpectations
            name: plausible
            implementation: {type: expect_column_mean_to_be_between, kwargs: {min_value: 1, max_value: 5}}
"""
    text = path.read_text()
    plain = "      - {name: amount, logicalType: integer}\n"
    assert plain in text
    path.write_text(text.replace(plain, f"      - name: amount\n        logicalType: integer\n{rules}"))
    assert tidemill("contract", "docs", "--out", tmp_path / "pages").code == 0
    asked = "amount mean must be greater than or equal to 1 and less than or equal to 5."
    assert asked in Tags((tmp_path / "pages" / "sums.html").read_text()).text


def test_names_of_pages_are_safe_and_different() -> None:
    names = ["a", "index", "../a", "a/b", "a#b", "a b", "ü", "x" * 300]
    found = [page_of(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+\.html", name) for name in found)
    assert "index.html" not in found


def test_the_last_audit_comes_from_the_ledger(
    tidemill: Type, mill: Mill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    mill.feed([b'{"ts":"2026-01-01T10:00:00Z","user":"a","amount":1}', b'{"ts":"2026-01-01T12:00:00Z"}'])
    assert tidemill("run", "sums", session=lambda _: NO_SPARK).code == 0
    assert tidemill("contract", "docs", "--out", tmp_path / "pages").code == 0
    text = Tags((tmp_path / "pages" / "sums.html").read_text()).text
    assert "Last audit of table sums" in text
    assert re.search(r"Pipeline sums, batch 1, 2\d{3}-\d\d-\d\d", text)
    assert "those of 1 committed batch" in text
    events = " ".join(Tags((tmp_path / "pages" / "events.html").read_text()).text.split())
    assert "Last batch of pipeline sums Batch 1, 2" in events
    assert f"rejected {REASON} 1" in events, events


def test_without_contracts_there_are_no_pages(tidemill: Type, mill: Mill, tmp_path: Path) -> None:
    folder = mill.project.folder / "data_contracts"
    for path in folder.iterdir():
        path.unlink()
    said = tidemill("contract", "docs", "--out", tmp_path / "pages")
    assert (said.code, "there is no contract in this folder" in said.err) == (5, True)
    folder.rmdir()
    said = tidemill("contract", "docs", "--out", tmp_path / "pages")
    assert (said.code, "there is no such folder of contracts" in said.err) == (5, True)
    assert not (tmp_path / "pages").exists()
