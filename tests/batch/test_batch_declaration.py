"""What a run does with a declaration that changed, is wrong, or fails for some row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from support.projects import Mill, an_event, sums
from tidemill.core.errors import DeclarationError, EngineError, Incompatible
from tidemill.engine.spark.failures import explained
from tidemill.project.project import Project
from tidemill.run.claiming import check_compatibility

pytestmark = pytest.mark.spark


def changed(mill: Mill, *replacements: tuple[str, str]) -> Mill:
    file = mill.project.folder / "pipelines" / "pipeline.py"
    text = file.read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('Sum("amount")', 'Max("amount")', "aggregate amount: sum(amount), now max(amount)"),
        ('Tumbling("10 seconds")', 'Tumbling("20 seconds")', "window: tumbling(10 seconds), now tumbling(20 seconds)"),
    ],
)  # fmt: skip
def test_state_of_another_meaning_is_not_merged(tmp_path: Path, spark: Any, old: str, new: str, told: str) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    mill.run()
    mill.feed([an_event(2)])
    other = changed(mill, (old, new), ("Count, Pipeline,", "Count, Max, Pipeline,"))
    with pytest.raises(Incompatible, match="state of sums was built by another declaration") as error:
        other.run()
    assert told in str(error.value)
    assert other.project.ledger("sums").view().last_batch_id == 1
    assert changed(other, (new, old)).run().batch_id == 2


def test_what_does_not_touch_state_may_change(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    mill.run()
    other = changed(mill, ("!= 'nobody'", "<>  'nobody'"), ('allowed_lateness="0 s"', 'allowed_lateness="9 s"'))
    check_compatibility(other.project.pipeline("sums"), other.project.ledger("sums").view())
    other.feed([an_event(2), an_event(30)])
    assert other.run().batch_id == 2


def test_two_contracts_of_one_file_are_called_by_their_schema_objects(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    folder = mill.project.folder / "data_contracts"
    records, rows = ((folder / f"{name}.odcs.yaml").read_text() for name in ("events", "sums"))
    (folder / "shop.odcs.yaml").write_text(records + rows.partition("schema:\n")[2])
    for name in ("events", "sums"):
        (folder / f"{name}.odcs.yaml").unlink()
    mill = changed(mill, ('contract="events"', 'contract="shop#events"'), ('contract="sums"', 'contract="shop#sums"'))
    mill.feed([an_event(1), an_event(20), b"no record"])
    commit = mill.run()
    assert (commit.batch_id, sum(commit.reasons.values())) == (1, 1)
    assert [r["n"] for r in mill.published()] == [1]


def test_no_text_takes_a_pattern_more_than_linear_time(tmp_path: Path, spark: Any) -> None:
    """A matcher that tries would take years for these values, in the decoder as in the audit."""
    option = "logicalType: string, logicalTypeOptions: {pattern: '(.*a){25}'}"
    mill = sums(
        tmp_path, spark, output=lambda text: text.replace("name: user, logicalType: string", f"name: user, {option}")
    )
    file = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    file.write_text(file.read_text().replace("name: user, logicalType: string", f"name: user, {option}"))
    mill = Mill(Project.load(mill.project.folder), mill.session, mill.name)
    mill.feed([an_event(1, user="a" * 60), an_event(2, user="a" * 24 + "b" * 40), an_event(3, user="a" * 60 + "b")])
    mill.feed([an_event(20, user="a" * 60)])
    commit = mill.run()
    assert commit.reasons == {"user.pattern": 2}
    assert [r["user"] for r in mill.published()] == ["a" * 60]


def test_an_expression_that_is_no_sql_is_the_users_to_correct(tmp_path: Path, spark: Any) -> None:
    mill = changed(sums(tmp_path, spark), ("coalesce(user, 'unknown')", "to_char(amount, repeat('ABC', 1))"))
    mill.feed([an_event(1), an_event(20)])
    with pytest.raises(DeclarationError, match="Spark cannot run what sums is computed by") as error:
        mill.run()
    assert "'ABC'" in str(error.value)
    assert "JVM" not in str(error.value)
    corrected = changed(mill, ("to_char(amount, repeat('ABC', 1))", "coalesce(user, 'unknown')"))
    assert corrected.run().batch_id == 1
    assert [r["n"] for r in corrected.published()] == [1]


def test_an_expression_that_fails_for_a_row_is_the_users_to_correct(tmp_path: Path, spark: Any) -> None:
    mill = changed(sums(tmp_path, spark), ("coalesce(user, 'unknown')", "cast(1 / amount AS string)"))
    mill.feed([an_event(1, amount=0)])
    with pytest.raises(DeclarationError, match=r"fails for some row[\s\S]*DIVIDE_BY_ZERO"):
        mill.run()


@pytest.mark.parametrize(
    ("side", "predicate", "values"),
    [
        ("events", "7 / amount > 1", {"amount": 0}),
        ("events", "cast(user AS int) > 1", {"user": "x"}),
        ("sums", "1 / (n - 1) > 0", {}),
        ("sums", "cast(user AS int) > 1", {"user": "x"}),
    ],
)
def test_a_rule_that_fails_for_a_row_is_named_with_file_and_line(
    tmp_path: Path, spark: Any, side: str, predicate: str, values: dict[str, Any]
) -> None:
    mill = sums(tmp_path, spark)
    file = mill.project.folder / "data_contracts" / f"{side}.odcs.yaml"
    rules = [
        f"      - {{type: custom, engine: tidemill, name: {n}, implementation: '{p}'}}"
        for n, p in (("fine", "length(user) > 0"), ("failing", predicate))
    ]
    text = file.read_text().rstrip("\n") + "\n    quality:\n" + "\n".join(rules) + "\n"
    file.write_text(text)
    line = text.split("\n").index(rules[1]) + 1
    mill = Mill(Project.load(mill.project.folder), mill.session, mill.name)
    mill.feed([an_event(1, **values), an_event(20, **values)])
    with pytest.raises(DeclarationError, match="fails for some row") as error:
        mill.run()
    assert f"{side}.odcs.yaml:{line}: rule `failing`: {predicate}" in str(error.value)
    assert "`fine`" not in str(error.value)


def test_whatever_else_spark_refuses_is_worth_another_try() -> None:
    with pytest.raises(EngineError, match="p: batch 7: Spark failed: gone") as error, explained("p: batch 7"):
        raise ConnectionResetError("gone")
    assert (error.value.retryable, error.value.exit_code) == (True, 6)


@pytest.mark.parametrize("gone", ["[PATH_NOT_FOUND] Path does not exist", "[FAILED_READ_FILE.FILE_NOT_EXIST] File"])
def test_a_file_that_goes_away_under_spark_is_no_expression(gone: str) -> None:
    with pytest.raises(EngineError, match="a file went away while the batch read it") as error, explained("p: batch 7"):
        raise AnalysisException(f"{gone}: file:/log/events/0/00.parquet. SQLSTATE: 42K03")
    assert (error.value.retryable, error.value.exit_code) == (True, 6)


def test_two_pipelines_do_not_publish_one_table(tmp_path: Path, spark: Any) -> None:
    sums(tmp_path, spark)
    text = (tmp_path / "pipelines" / "pipeline.py").read_text()
    (tmp_path / "pipelines" / "second.py").write_text(text.replace('Pipeline("sums"', 'Pipeline("more"'))
    with pytest.raises(DeclarationError, match="`more` publishes sums, which `sums` publishes"):
        Project.load(tmp_path).pipeline("sums")
