"""The version of semantics says when records and expressions give other answers, and sessions are pinned to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from golden.semantics import added, golden, newer_golden, semantics
from support.projects import a_project, an_event, sums
from tidemill.core.declare.aggregates import Average, single
from tidemill.core.errors import ConfigError
from tidemill.core.identity.semantics import PINNED, SEMANTICS, check_pinned
from tidemill.engine.read.decode import raw
from tidemill.engine.spark.settings import SESSION_CONF, pin, server_conf, settle

RAISE = (
    "The same plan gives other answers now, and another version may have left a batch half published: raise SEMANTICS "
    "in core/identity/semantics.py and write a new fixture with `python tests/golden/semantics.py`; "
    "say so in CHANGELOG.md. A new window, aggregate, field or format changes no answer and raises nothing: "
    "leave `everything` in tests/support/declarations.py as it is, and add to `newer`. What changed: "
)
ADD = "new, so no version is raised: `python tests/golden/semantics.py` adds it to the fixture of what is newer"


def test_what_the_code_makes_of_records_and_declarations_is_that_of_its_version(tmp_path: Path) -> None:
    assert golden(SEMANTICS).exists(), f"there is no {golden(SEMANTICS).name}: `python tests/golden/semantics.py`"
    fixture = json.loads(golden(SEMANTICS).read_text())
    known, now = fixture["digests"], semantics(tmp_path)
    assert sorted(name for name, digest in known.items() if now.get(name) != digest) == [], RAISE
    assert dict(PINNED) == fixture["pinned"], RAISE
    newer, more = json.loads(newer_golden(SEMANTICS).read_text()), added(now, SEMANTICS)
    assert sorted(more.keys() - newer.keys()) == [], ADD
    assert sorted(name for name, digest in newer.items() if more.get(name) != digest) == [], RAISE


def test_a_change_of_an_answer_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = semantics(tmp_path)
    assert before == semantics(tmp_path)
    monkeypatch.setattr(Average, "triple", single("avg(amount)", "avg({value})"))
    changed = {name for name, digest in semantics(tmp_path).items() if before[name] != digest}
    of_tables = {"sql: windows of all_of_them", "sql: folded state of all_of_them"}
    assert {name.partition(" as ")[0] for name in changed} == {"sql: aggregate mean", *of_tables}
    monkeypatch.undo()
    decode = raw.TextDecoder.decode
    monkeypatch.setattr(raw.TextDecoder, "decode", lambda self, values: decode(self, values[::-1]))
    changed = {name for name, digest in semantics(tmp_path).items() if before[name] != digest}
    assert {name.rpartition(",")[0] for name in changed} == {"decoded: text"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.sql.caseSensitive", "True"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("SPARK.sql.parser.escapedStringLiterals", "true"),
    ],
)
def test_a_setting_that_changes_answers_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"tidemill.toml:\d+: \[spark.conf\] spark.sql.*found {value}, but") as error:
        a_project(tmp_path, "", {}, conf={name: value})
    assert "leave it out" in error.value.fix


def test_a_setting_that_says_what_is_pinned_is_no_fault() -> None:
    check_pinned({"spark.sql.ansi.enabled": "True", "spark.sql.session.timeZone": "utc", "spark.x": "y"}, "here")


def test_every_place_is_started_with_what_is_pinned() -> None:
    assert PINNED.items() <= server_conf(()).items()
    assert PINNED.items() <= SESSION_CONF.items()


class Conf:
    """The settings of a session on a server, and how often it was asked."""

    def __init__(self, **held: str) -> None:
        self.held, self.trips = dict(held), 0

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802  as Spark calls it
        self.trips += 1
        return dict(self.held)

    def set(self, name: str, value: str) -> None:
        self.trips += 1
        self.held[name] = value


class ServerSession:
    """A session as Spark Connect has it, as far as it is asked here."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, **held: str) -> None:
        self.conf = Conf(**held)


def test_a_session_of_a_server_of_others_is_pinned_and_asked_once() -> None:
    ours = {**PINNED, "spark.sql.ansi.enabled": "false"}
    session: Any = ServerSession(**ours)
    pin(session)
    assert session.conf.held == PINNED
    assert session.conf.trips == 2
    pin(session)
    assert session.conf.trips == 2


@pytest.mark.spark
def test_a_session_that_others_made_answers_as_ours_does(tmp_path: Path, spark: Any) -> None:
    other = spark.newSession()
    for name, value in {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.variable.substitute": "true",
    }.items():
        other.conf.set(name, value)
    mill = sums(tmp_path, cast("Any", other))
    file = tmp_path / "pipelines" / "pipeline.py"
    text = r"""concat(date_format(ts, 'HH'), '\\x')"""
    file.write_text(file.read_text().replace("coalesce(user, 'unknown')", text.replace("\\", "\\\\")))
    mill.feed([an_event(1), an_event(20)])
    assert mill.run().batch_id == 1
    assert [r["user"] for r in mill.published()] == [r"00\x"]
    assert {name: other.conf.get(name) for name in PINNED} == dict(PINNED)
    assert settle(other, {}) is other
    with pytest.raises(ConfigError):
        settle(other, {"spark.sql.ansi.enabled": "false"})
