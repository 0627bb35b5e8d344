"""What tests of users' pipelines may give, and how pytest reports what Tidemill refuses in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest

from support.commands import type_command
from support.projects import ROOT
from tidemill.core.errors import ConfigError, LogInputError
from tidemill.log.records import NewRecord
from tidemill.project.project import Project
from tidemill.testing import Trial
from tidemill.testing.given import as_record


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A new project."""
    assert type_command(None, "init", tmp_path / "shop").code == 0
    return tmp_path / "shop"


REFUSED = """
import pytest

@pytest.fixture(scope="session")
def tidemill_session():
    return None  # nothing here needs Spark

def helper(sales):
    sales.rows("other")

def test_in_a_helper(trial):
    helper(trial("sales"))

def test_of_no_pipeline(trial):
    trial("sale")
"""


def test_reports_of_refusals_end_at_the_line_of_the_test(made: Path) -> None:
    said = report_of(made, REFUSED)
    assert '>       sales.rows("other")\nE       tidemill.core.errors.ConfigError: sales publishes sales_by_m' in said
    assert "E         fix: name one of them\n\ntests/test_refused.py:9: ConfigError" in said
    assert '>       trial("sale")\n' in said
    assert "E         fix: did you mean `sales`?\n\ntests/test_refused.py:15: DeclarationError" in said
    assert "trial.py" not in said
    assert "2 failed" in said


REJECTED = """
from datetime import UTC, datetime

def test_turnover(trial):
    sales = trial("sales")
    at = datetime(2026, 1, 1, 10, tzinfo=UTC)
    sales.give("orders", {"ts": at, "shop": "north", "cents": 500}, {"ts": at, "shop": "north", "cents": -500})
    sales.end()
    assert [row["cents"] for row in sales.rows()] == [1000]
"""


@pytest.mark.spark
def test_a_failed_test_says_what_became_of_its_records(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMILL_JARS", str(ROOT / ".tidemill" / "jars"))
    said = report_of(made, REJECTED)
    assert "what became of the records" in said
    assert "sales: batch 1: read 2 = aggregated 1 + rejected 1; published: sales_by_minute 1" in said
    assert "  rejected 1: cents.minimum" in said


def test_the_whole_trace_is_there_for_who_asks(made: Path) -> None:
    said = report_of(made, REFUSED, "--full-trace")
    assert "spark_jobs/tidemill/testing/trial.py" in said
    assert "fix: name one of them" in said


def test_errors_that_tidemill_did_not_mean_keep_their_frames(made: Path) -> None:
    said = report_of(made, REFUSED.replace('sales.rows("other")', "sales.rows([])"))
    assert "TypeError: unhashable type: 'list'" in said
    assert "trial.py" in said


def test_a_project_that_cannot_be_read_is_reported_as_its_text(made: Path) -> None:
    (made / "tidemill.toml").write_text("[lake]\npath = 7\n", encoding="utf-8")
    said = report_of(made, REFUSED)
    [first, *_] = said.partition("ERROR at setup of test_in_a_helper")[2].splitlines()[1:]
    assert first.startswith(str(made / "tidemill.toml")), said
    assert "fixtures.py" not in said
    assert "2 errors" in said


def report_of(project: Path, test: str, *options: str) -> str:
    (project / "tests" / "test_refused.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_refused.py", *options]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "spark_jobs"), "TIDEMILL_PROJECT": str(project)}
    done = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, timeout=250, check=False)
    return done.stdout


NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (2**70, "1180591620717411303424"),
        (0.1, "0.1"),
        (Decimal("12345678901234567890.1234567890"), "12345678901234567890.1234567890"),
        ("grün\n", '"grün\\n"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (NOON.replace(tzinfo=UTC), '"2026-01-01T12:00:00+00:00"'),
        (NOON.replace(tzinfo=timezone(timedelta(hours=2))), '"2026-01-01T12:00:00+02:00"'),
        ([1, (2, {"a": None})], '[1, [2, {"a": null}]]'),
        (MappingProxyType({"a": []}), '{"a": []}'),
    ],
)
def test_values_of_fields_are_written_as_a_producer_writes_them(value: object, written: str) -> None:
    assert as_record("orders", 1, {"x": value}).value == f'{{"x": {written}}}'.encode()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"x": object}, "field `x`: JSON has no type, found <class 'object'>\n  fix: write text, numbers"),
        (
            {"x": NOON},
            "field `x`: the time 2026-01-01 12:00:00 has no time zone\n  fix: write datetime(..., tzinfo=UTC)",
        ),
        ({"x": b"a"}, "field `x`: JSON has no bytes, found b'a'\n  fix: decode them to text"),
        ({"x": {1}}, "field `x`: JSON has no set, found {1}"),
        ({"x": timedelta(1)}, "field `x`: JSON has no timedelta"),
        ({"x": float("nan")}, "field `x`: JSON has no number nan\n  fix: write None, or give the whole record as text"),
        ({"x": Decimal("-Infinity")}, "field `x`: JSON has no number -Infinity"),
        ({"x": 10**5000}, "field `x`: a number with too many digits"),
        ({"x": "\ud800"}, "field `x`: UTF-8 has no character '\\ud800'"),
        ({"lines": [{}, {"price": float("inf")}]}, "field `lines[1].price`: JSON has no number inf"),
        ({"x": {1: 2}}, "field `x`: names of fields are text, found 1\n  fix: write '1'"),
        ({1: 2}, "orders: names of fields are text, found 1"),
    ],
)
def test_values_that_no_record_can_have_are_refused_with_their_field(fields: Mapping[str, Any], said: str) -> None:
    with pytest.raises(LogInputError) as refused:
        as_record("orders", 3, fields)
    assert f"record 3 given to orders{', ' if said.startswith('field') else said[6:]}" in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"a": 1}], "found [{'a': 1}]\n  fix: give(topic, *records) gives each of a list"),
        (7, "expected fields, text, bytes, None or a NewRecord, found 7"),
        ("\ud800", "UTF-8 has no character"),
        (NewRecord(value=cast("Any", {"a": 1})), "expected bytes or None as value and as key, found {'a': 1} and None"),
        (NewRecord(value=b"", key=cast("Any", "a")), "found b'' and 'a'\n  fix: encode them: NewRecord(value="),
    ],
)
def test_what_is_no_record_is_refused(given: Any, said: str) -> None:
    with pytest.raises(LogInputError) as refused:
        as_record("orders", 1, given)
    assert said in str(refused.value)


def test_nothing_is_appended_if_one_of_the_records_is_refused(made: Path, tmp_path: Path) -> None:
    trial = Trial(Project.load(made), "sales", tmp_path / "lake", cast("Any", None))
    trial.give("orders", {"shop": "north"})
    with pytest.raises(LogInputError, match="record 2 given to orders, field `ts`"):
        trial.give("orders", {"shop": "north"}, {"ts": NOON})
    assert trial.project.log().bounds("orders")[0].until_offset == 1


def test_times_of_a_trial_have_a_zone(made: Path, tmp_path: Path) -> None:
    trial = Trial(Project.load(made), "sales", tmp_path / "lake", cast("Any", None))
    trial.clock = NOON
    with pytest.raises(ConfigError, match="clock: 2026-01-01 12:00:00 is no time with a zone"):
        trial.run()
    for year in (1, 1969, 9999):
        trial.clock = datetime(year, 1, 1, tzinfo=UTC)
        with pytest.raises(ConfigError, match="is not between the years 1970 and 9000"):
            trial.run()
    with pytest.raises(ConfigError, match="firings: expected the start of a window, found 'noon'"):
        trial.firings(cast("Any", "noon"))
