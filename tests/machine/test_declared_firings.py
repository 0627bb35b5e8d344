"""What tables of firings cannot declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.firings import firings
from support.projects import NO_SPARK, Mill
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.meaning import meanings
from tidemill.core.errors import DeclarationError
from tidemill.project.project import Project

EACH = 'trigger=Repeatedly(AfterCount(1)), accumulation="discarding"'


def changed(mill: Mill, file: str, old: str, new: str) -> None:
    path = mill.project.folder / file
    path.write_text(path.read_text().replace(old, new))


def test_two_things_told_of_a_firing_cannot_share_a_column(tmp_path: Path) -> None:
    told = f'{EACH}, timing="timing", operation="timing"'
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=told, bounds=True)
    changed(mill, "data_contracts/firings.odcs.yaml", "name: operation", "name: other")
    with pytest.raises(DeclarationError, match="publishes `timing` twice"):
        mill.project.pipeline("firings")


@pytest.mark.parametrize("name", ["piece_id", "KEY_STATE", "key_as_of"])
def test_a_key_cannot_have_the_name_of_a_column_of_state(tmp_path: Path, name: str) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))")
    changed(mill, "pipelines/pipeline.py", 'marker="amount = -1")', f'{name}="user")')
    changed(mill, "pipelines/pipeline.py", 'key_by("user")', f'key_by("{name}")')
    changed(mill, "data_contracts/firings.odcs.yaml", "name: user", f"name: {name}")
    with pytest.raises(
        DeclarationError, match=rf"pipeline.py:\d+\): state of firings has a column `{name}` of its own"
    ):
        mill.project.pipeline("firings")


def test_records_cannot_have_a_column_that_the_fold_adds(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", collect=False)
    changed(mill, "data_contracts/events.odcs.yaml", "name: amount", "name: _value")
    changed(mill, "pipelines/pipeline.py", "amount = -1", "_value = -1")
    changed(mill, "pipelines/pipeline.py", 'Sum("amount")', 'Sum("_value")')
    with pytest.raises(DeclarationError, match="has a column `_value` of its own"):
        mill.project.pipeline("firings")


@pytest.mark.parametrize(
    ("old", "new"),
    [('allowed_lateness="0 s"', 'allowed_lateness="5 s"'), ("empty_on_time=False", "empty_on_time=True")],
)
def test_what_changes_earlier_firings_changes_the_meaning_of_the_table(tmp_path: Path, old: str, new: str) -> None:
    told = f'{EACH}, index="nth", empty_on_time=False'
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=told, bounds=True)
    [before] = meanings(mill.project.pipeline("firings")).values()
    changed(mill, "pipelines/pipeline.py", old, new)
    [after] = meanings(Project.load(tmp_path).pipeline("firings")).values()
    assert before != after
    assert "column nth" not in before


def test_firings_are_not_published_at_most_once(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))")
    changed(mill, "pipelines/pipeline.py", 'every="1 minute"', 'every="1 minute", guarantee="at_most_once"')
    with pytest.raises(
        DeclarationError, match=r"pipeline.py:\d+\): with guarantee=\"at_most_once\" .* would fire again"
    ):
        mill.project.pipeline("firings")


@pytest.mark.parametrize(
    ("window", "told", "said"),
    [
        (
            "TumblingBuffer(CountPolicy(2))",
            'index="nth"',
            "index is about windows of event time with a trigger",
        ),
        (
            "Tumbling('10 s')",
            'operation="operation"',
            "operation is about windows that fire by a trigger such as .* there is none here",
        ),
        ("Tumbling('10 s')", "accumulation='discarding'", "accumulation is about windows that fire by a trigger"),
    ],
)
def test_columns_of_firings_need_windows_with_a_trigger(tmp_path: Path, window: str, told: str, said: str) -> None:
    mill = firings(tmp_path, NO_SPARK, window, trigger=told, bounds=window.startswith("Tumbling("))
    with pytest.raises(DeclarationError, match=said):
        mill.project.pipeline("firings")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("pipelines/pipeline.py", 'index="nth"', 'operation="nth"', "so none is deleted and there is no operation"),
        ("pipelines/pipeline.py", ".publish(", ".with_columns(user=\"'x'\").publish(", "which tells rows apart"),
        ("pipelines/pipeline.py", ".publish(", '.select("user", "n").publish(', "which tells rows apart"),
        (
            "data_contracts/firings.odcs.yaml",
            "name: n, logicalType: integer,",
            "name: n, logicalType: integer, primaryKey: true, primaryKeyPosition: 1,",
            "no window and no key",
        ),
    ],
)
def test_rows_that_firings_update_must_be_told_apart(tmp_path: Path, file: str, old: str, new: str, said: str) -> None:
    told = 'trigger=Repeatedly(AfterCount(1)), accumulation="accumulating_and_replacing", index="nth"'
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=told, bounds=True, collect=False)
    mill.project.pipeline("firings")
    changed(mill, file, old, new)
    with pytest.raises(DeclarationError, match=said):
        Project.load(tmp_path).pipeline("firings")


def test_firings_that_update_rows_cannot_begin_to_append_them(tmp_path: Path) -> None:
    told = 'trigger=Repeatedly(AfterCount(1)), accumulation="accumulating_and_replacing"'
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=told, bounds=True, collect=False)
    replacing = mill.project.pipeline("firings").sinks[0]
    changed(mill, "pipelines/pipeline.py", "accumulating_and_replacing", "accumulating")
    appending = Project.load(tmp_path).pipeline("firings").sinks[0]
    assert isinstance(replacing, FiringSink)
    assert isinstance(appending, FiringSink)
    assert {name for name, part in replacing.shape.items() if appending.shape[name] != part} == {"accumulation"}
