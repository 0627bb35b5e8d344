"""The types of a declaration are what Spark finds, where they are found without it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.firings import firings
from support.projects import NO_SPARK, SUMS_CONTRACT, a_project, an_event, sums, totals
from support.random_pipelines import draw
from tidemill.core.errors import DeclarationError, Incompatible, TidemillError
from tidemill.engine.aggregate import native_types, types
from tidemill.project.project import Project

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def asked(module: Any, monkeypatch: pytest.MonkeyPatch, check: Callable[[], Any]) -> Iterator[tuple[Any, ...]]:
    """Which types a check compares, with what."""
    found: list[tuple[Any, ...]] = []
    with monkeypatch.context() as patched:
        patched.setattr(module, "check_fits", lambda where, name, of, _: found.append(("published", where, name, of)))
        patched.setattr(module, "check_numbers", lambda where, name, _, of: found.append(("over", where, name, of)))
        patched.setattr(module, "check_state", lambda _, sink, __, of: found.append(("state", sink.table, *of.items())))
        check()
    yield from found


def assert_as_spark_says(spark: Any, project: Project, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, uris = project.pipeline(name), project.uris(name)
    mine = [*asked(native_types, monkeypatch, lambda: native_types.checked_natively(flow, uris))]
    theirs = [*asked(types, monkeypatch, lambda: types.check_types(spark, flow, uris))]
    assert mine
    assert sorted(map(by_name, mine)) == sorted(map(by_name, theirs))


def by_name(told: tuple[Any, ...]) -> str:
    """What is told of the types, whatever the order of the columns of state."""
    return repr([told[0], *sorted(told[1:], key=repr)])


@pytest.mark.parametrize("seed", range(12))
def test_types_of_random_pipelines_are_those_of_spark(
    tmp_path: Path, spark: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = draw(random.Random(seed))
    assert_as_spark_says(spark, a_project(tmp_path, drawn.pipeline, drawn.contracts), "drawn", monkeypatch)


def test_types_of_the_reference_pipeline_are_those_of_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_spark_says(spark, Project.load(ROOT), "page_views", monkeypatch)


@pytest.mark.parametrize("bounds", [False, True], ids=["without bounds", "with bounds"])
def test_types_of_tables_of_firings_are_those_of_spark(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, *, bounds: bool
) -> None:
    window = "TumblingBuffer(TimePolicy('10 s'))" if bounds else "TumblingBuffer(CountPolicy(3))"
    mill = firings(tmp_path, spark, window, bounds=bounds, collect=False)
    assert_as_spark_says(spark, mill.project, mill.name, monkeypatch)


def test_types_of_a_table_without_windows_are_those_of_spark(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = totals(tmp_path, spark)
    assert_as_spark_says(spark, mill.project, mill.name, monkeypatch)


def test_types_of_an_aggregate_over_a_hidden_column_are_those_of_spark(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = sums(tmp_path, spark)
    file = next(mill.project.folder.rglob("pipelines/*.py"))
    file.write_text(file.read_text().replace('Sum("amount")', 'Sum("_partition")'))
    assert_as_spark_says(spark, Project.load(mill.project.folder), mill.name, monkeypatch)


@pytest.mark.parametrize("window", ['Tumbling("10 seconds")', 'Sliding("80 seconds", "10 seconds")', 'Session("5 s")'])
def test_first_batch_of_a_pipeline_needs_no_spark(tmp_path: Path, spark: Any, window: str) -> None:
    mill = replace(sums(tmp_path, spark, window=window), session=NO_SPARK)
    mill.feed([an_event(n) for n in range(30)])
    assert mill.run(drain=True).published["sums"] > 0


@pytest.mark.parametrize("settings", [{"driver_records": 0}, {"aggregate": "spark"}], ids=repr)
def test_where_spark_computes_it_checks_the_types(tmp_path: Path, spark: Any, settings: dict[str, Any]) -> None:
    mill = replace(sums(tmp_path, spark, **settings), session=NO_SPARK)
    mill.feed([an_event(1)])
    with pytest.raises(AttributeError):
        mill.run()


WRONG = {
    "a sum in too narrow a column": ("amount, logicalType: integer", "amount, logicalType: integer, physicalType: int"),
    "a number in a text": ("n, logicalType: integer", "n, logicalType: string"),
}


@pytest.mark.parametrize(("old", "new"), WRONG.values(), ids=WRONG)
def test_values_that_would_be_lost_are_refused_in_the_same_words(
    tmp_path: Path, spark: Any, old: str, new: str
) -> None:
    assert old in SUMS_CONTRACT
    said = set()
    for way, settings in {"natively": {}, "by Spark": {"driver_records": 0}}.items():
        mill = sums(tmp_path / way, spark, **settings)
        contract = next(mill.project.folder.rglob("sums.*ml"))
        contract.write_text(contract.read_text().replace(old, new))
        mill.feed([an_event(1)])
        with pytest.raises(DeclarationError) as caught:
            replace(mill, session=NO_SPARK if not settings else spark).run()
        said.add(text_of(caught.value, tmp_path / way))
    assert len(said) == 1


def test_state_of_another_type_is_refused_in_the_same_words(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    file = next(mill.project.folder.rglob("pipelines/*.py"))
    text = file.read_text().replace("import ", "import Max, ", 1)
    assert 'Sum("amount")' in text
    file.write_text(text.replace('Sum("amount")', 'Max("amount")'))
    mill = replace(mill, project=Project.load(mill.project.folder))
    mill.feed([an_event(1)])
    mill.run()
    file.write_text(text.replace('Sum("amount")', 'Max("if(amount > 0, 1, 0)")'))
    mill = replace(mill, project=Project.load(mill.project.folder))
    flow, uris = mill.project.pipeline("sums"), mill.project.uris("sums")
    said = []
    for check in (lambda: native_types.checked_natively(flow, uris), lambda: types.check_types(spark, flow, uris)):
        with pytest.raises(Incompatible) as caught:
            check()
        said.append(text_of(caught.value, tmp_path))
    assert said[0] == said[1]


def text_of(error: TidemillError, folder: Path) -> str:
    return f"{error.message} {error.fix}".replace(str(folder), "")
