"""The function that the page on Python names for each command does what the command does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from machine.conftest import again
from machine.tiny import TinyAttempt
from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event
from support.readme import code, page
from tidemill.cli.spark import started_spark
from tidemill.core.errors import AuditBlocked
from tidemill.engine.spark.session import Spark, Started
from tidemill.run import batch

TEN = 36_000
HERE = {
    '"sales"': '"sums"',
    '"orders"': '"events"',
    '"sales_by_minute"': '"sums"',
    '{"shop": "north"}': '{"user": "a"}',
    '"shop": "north", "cents": 500': '"user": "a", "amount": 1',
    "partitions=2": "partitions=1",
}
"""What the names of the page are in a project of the tiny engine."""

AT_MOST = """
    quality:
      - {type: library, metric: rowCount, mustBeLessThan: 6, severity: error}
"""

ROWS = re.findall(r"^\| `tidemill ([^`]+)`[^|]*\| `([^|]+)` \| (.*)\|$", page("guides/python"), re.MULTILINE)


def here(text: str) -> str:
    """A text of the page, about the project of the test."""
    for theirs, ours in HERE.items():
        text = text.replace(theirs, ours)
    return text


@pytest.fixture
def mill(a_mill: Callable[..., Mill], monkeypatch: pytest.MonkeyPatch) -> Mill:
    """One batch has a late record for a second one, and one that is rejected."""
    monkeypatch.setattr(batch, "project_spark", lambda *_: NO_SPARK)
    mill = a_mill(output=lambda text: text.rstrip() + AT_MOST)
    mill.feed([an_event(TEN + 7), an_event(TEN + 50)])
    mill.catch_up(drain=False)
    mill.feed([an_event(TEN + 1), an_event(TEN + 55, amount=2_000_000), an_event(TEN + 70)])
    mill.catch_up(drain=False)
    return again(mill)


def names_of_the_page(mill: Mill) -> dict[str, Any]:
    """What its programs have defined; topic and pipeline are there already."""
    first, _, names = code("guides/python", "python")
    found: dict[str, Any] = {}
    program = first.replace('Project.load("shop")', f"Project.load({str(mill.project.folder)!r})")
    exec(here(program).partition("for commit in")[0], found)
    found["job_session"] = lambda: NO_SPARK
    exec(here(names).replace("AmendmentJob(", "AmendmentJob(session=job_session, "), found)
    return found


def block(mill: Mill) -> None:
    """The audit blocks the next batch."""
    mill.feed([*(an_event(TEN + 80, user) for user in "abcdef"), an_event(TEN + 100)])
    with pytest.raises(AuditBlocked):
        mill.catch_up(drain=False)


def called(function: str, names: dict[str, Any], *, iterates: bool) -> Any:
    """What it returns: a list, if it runs batches."""
    result = eval(function, names)
    assert isinstance(result, Iterator) == iterates, function
    return list(result) if iterates else result


def test_functions_of_the_page_do_what_the_commands_do(mill: Mill) -> None:
    names, done = names_of_the_page(mill), {}
    for command, function, said in ROWS:
        if command.startswith("audit"):
            continue
        ours = here(function).replace('create_topic("events"', 'create_topic("spare"')
        done[function.split("(")[0], command.split()[0]] = called(ours, names, iterates="*iterate*" in said)
    assert len(done) == len(ROWS) - 1
    found = {f"{command} {function}": result for (function, command), result in done.items()}
    assert found["plan next_plan"].records == 2
    assert [c.accounts["events"].read for c in found["run run_batches"]] == [2]
    assert found["status status_of"].view.position.batch_id == 3
    assert found["explain lineage"].row["n"] == 1
    assert [v.agrees for v in found["verify verify"]] == [True]
    assert found["late job.side_tables.first"].total == 3
    assert found["late late_windows"]["records"].to_pylist() == [3]
    assert found["quarantine job.side_tables.first"].total == 1
    assert [len(found[name]) for name in ("late repair", "quarantine repair", "rewind rewind")] == [1, 1, 1]


def test_a_blocked_batch_goes_on_by_the_decision_of_the_page(mill: Mill) -> None:
    block(mill)
    names = names_of_the_page(again(mill))
    [decision] = [function for command, function, _ in ROWS if command.startswith("audit")]
    assert called(here(decision), names, iterates=False) == 3
    assert again(mill).run(drain=False).batch_id == 3


def test_commands_without_a_terminal_say_that_spark_starts(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    context: Any = SimpleNamespace(stop=lambda: None)
    spark, read, needs = Spark(lambda: Started(lambda: NO_SPARK, context)), TinyAttempt.read, list[Any]()
    monkeypatch.setattr("tidemill.cli.spark.start_spark", lambda *_: spark)
    monkeypatch.setattr(TinyAttempt, "read", lambda attempt: (needs and attempt.spark.context, read(attempt))[1])
    assert type_command(mill.project.folder, "run", "sums").err == ""
    for needed, more, err in ((0, (), ""), (1, (), "sums: starting Spark ...\n"), (1, ("--json",), "")):
        needs[:] = [True] * needed
        mill.feed([an_event(TEN + 71)])
        said = type_command(mill.project.folder, "run", "sums", *more)
        assert (said.code, said.err) == (0, err)
        assert "starting" not in said.out


@pytest.mark.parametrize(("before", "stops"), [(None, ["stopped"]), (object(), [])])
def test_a_command_stops_only_the_spark_that_it_started(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, before: object, stops: list[str]
) -> None:
    stopped: list[str] = []
    spark = SimpleNamespace(stop=lambda: stopped.append("stopped"))
    monkeypatch.setattr(SparkContext, "_active_spark_context", before)
    monkeypatch.setattr("tidemill.cli.spark.start_spark", lambda *_: spark)
    with started_spark(mill.project):
        assert stopped == []
    assert stopped == stops
