"""What a changed declaration or contract takes from readers of published tables, before a batch runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Field, PrimitiveType, Schema

from machine.tiny import TinyAttempt
from support.commands import Type
from support.projects import Mill, an_event
from tidemill.core.errors import Incompatible
from tidemill.core.exit_code import ExitCode
from tidemill.inspect.table_changes import Outcome, table_changes
from tidemill.project.project import Project
from tidemill.run import batch

COLUMNS = {
    "window_start": "timestamp",
    "window_end": "timestamp",
    "user": "string",
    "n": "long",
    "amount": "long",
    "batch_id": "long",
    "published_at": "timestamp",
}
ROWS_PIPELINE = """
from tidemill import Pipeline

with Pipeline("sums", every="1 minute") as pipeline:
    read = pipeline.read("events", contract="events", event_time="ts")
    read.select("ts", "user").publish("people", contract="people")
"""
PEOPLE_CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: people
version: 1.0.0
status: active
schema:
  - name: people
    logicalType: object
    properties:
      - {name: ts, logicalType: timestamp, required: true}
      - {name: user, logicalType: string}
"""

Declare = Callable[[str, str, str], None]


@pytest.fixture
def declare(mill: Mill) -> Declare:
    """Change a text of the project."""

    def change(file: str, old: str, new: str) -> None:
        path = mill.project.folder / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


def run(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    return Mill(Project.load(mill.project.folder), mill.session, mill.name).run()


def table(mill: Mill, columns: dict[str, str], *, partitions: Sequence[str] = (), required: str = "") -> None:
    """A table that is there before the first batch."""
    fields = [Field(name, PrimitiveType(kind), nullable=name != required) for name, kind in columns.items()]
    DeltaTable.create(
        mill.project.published_uri("sums"),
        Schema(fields),
        partition_by=list(partitions),
        configuration={"tidemill.owner": "sums"},
        raise_if_key_not_exists=False,
    )


def planned(tidemill: Type) -> tuple[int, list[dict[str, Any]]]:
    said = tidemill("plan", "sums", "--dry-run", "--json")
    return said.code, said.json["tables"]


def test_nothing_is_said_of_a_table_that_is_not_there_yet(tidemill: Type, mill: Mill) -> None:
    mill.feed([an_event(1)])
    assert planned(tidemill) == (ExitCode.DONE, [])


def test_nothing_is_said_when_nothing_changed(
    tidemill: Type, mill: Mill, monkeypatch: pytest.MonkeyPatch, declare: Declare
) -> None:
    mill.feed([an_event(1), an_event(15)])
    assert run(mill, monkeypatch).published == {"sums": 1}
    mill.feed([an_event(31)])
    declare("data_contracts/sums.odcs.yaml", "version: 1.0.0", "version: 1.0.1")
    assert planned(tidemill) == (ExitCode.DONE, [])
    assert "readers of" not in tidemill("doctor", "--no-spark").out
    assert "readers" not in tidemill("plan", "sums", "--dry-run").out


def without(name: str) -> dict[str, str]:
    return {column: kind for column, kind in COLUMNS.items() if column != name}


@pytest.mark.parametrize(
    ("columns", "change", "column", "outcome", "lost"),
    [
        ({**COLUMNS, "n": "integer"}, "has a wider type", "n", "refused", "fail at larger values"),
        ({**COLUMNS, "n": "decimal(30,0)"}, "has a narrower type", "n", "refused", "are not published"),
        ({**COLUMNS, "n": "string"}, "has another type", "n", "refused", "as string fails, or means something else"),
        ({**COLUMNS, "old": "string"}, "is dropped", "old", "takes", "`old` is not published any more"),
        (without("amount"), "is new", "amount", "takes", ""),
        ({**without("user"), "User": "string"}, "is spelt in another way", "user", "stops", "do not find `User`"),
    ],
)
def test_each_difference_of_columns_is_told(  # noqa: PLR0917  a row of the table above
    tidemill: Type, mill: Mill, columns: dict[str, str], change: str, column: str, outcome: str, lost: str
) -> None:
    table(mill, columns)
    mill.feed([an_event(1)])
    code, [found] = planned(tidemill)
    assert (found["change"], found["column"], found["outcome"]) == (change, column, outcome)
    assert lost in found["readers"]
    assert bool(lost) == bool(found["readers"]) == found["is_wrong"]
    assert code == (ExitCode.WRONG if lost else ExitCode.DONE)
    doctor = tidemill("doctor", "--no-spark", "--json")
    rows = [row for row in doctor.lines if row["name"] == "readers of sums"]
    assert [row["state"] for row in rows] == ["problem" if lost else "note"]


@pytest.mark.parametrize(("partitions", "required"), [(["user"], ""), ([], "amount")])
def test_partitions_and_nulls_that_the_table_refuses_are_told(
    tidemill: Type, mill: Mill, partitions: list[str], required: str
) -> None:
    table(mill, COLUMNS, partitions=partitions, required=required)
    code, [found] = planned(tidemill)
    assert (code, found["outcome"]) == (ExitCode.WRONG, "stops")
    assert found["change"] == ("is partitioned by other columns" if partitions else "may be null")
    text = " ".join(tidemill("plan", "sums", "--dry-run").out.split())
    assert "the next batch stops when it publishes, and stays open" in text


def test_a_batch_stops_where_the_plan_says_so(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    table(mill, COLUMNS, partitions=["user"])
    mill.feed([an_event(1), an_event(15)])
    with pytest.raises(Incompatible, match=r"the partitions: expected \[\], found \['user'\]"):
        run(mill, monkeypatch)
    assert mill.project.ledger("sums").view().open_batch is not None


def test_a_dropped_aggregate_and_another_key_are_told_with_the_refusal(
    tidemill: Type, mill: Mill, monkeypatch: pytest.MonkeyPatch, declare: Declare
) -> None:
    mill.feed([an_event(1), an_event(15)])
    run(mill, monkeypatch)
    declare("pipelines/pipeline.py", ', amount=Sum("amount")', "")
    declare("data_contracts/sums.odcs.yaml", "      - {name: amount, logicalType: integer}\n", "")
    declare("pipelines/pipeline.py", '"user"', '"who"')
    declare("pipelines/pipeline.py", "with_columns(user=", "with_columns(who=")
    declare("data_contracts/sums.odcs.yaml", "name: user", "name: who")
    said = tidemill("plan", "sums", "--dry-run", "--json")
    assert said.code == ExitCode.WRONG
    assert "was built by another declaration" in said.json["refused"]
    found = {(row["column"], row["change"]): row["outcome"] for row in said.json["tables"]}
    assert found == {
        ("", "has other keys"): "refused",
        ("who", "is new"): "refused",
        ("user", "is dropped"): "refused",
        ("amount", "is dropped"): "refused",
    }


def test_a_column_of_rows_that_is_dropped_waits_for_a_decision_and_then_is_told_no_more(mill: Mill) -> None:
    folder = mill.project.folder
    (folder / "pipelines" / "pipeline.py").write_text(ROWS_PIPELINE)
    (folder / "data_contracts" / "people.odcs.yaml").write_text(PEOPLE_CONTRACT)
    project = Project.load(folder)
    flow, view = project.pipeline("sums"), project.ledger("sums").view()
    uri = project.published_uri("people")
    columns = {"ts": "timestamp", "user": "string", "age": "long", "batch_id": "long", "published_at": "timestamp"}
    DeltaTable.create(uri, Schema([Field(name, PrimitiveType(kind)) for name, kind in columns.items()]))
    known = {"column ts": '"timestamp"', "column user": '"string"'}

    def after(meaning: dict[str, str]) -> list[Outcome]:
        position = replace(view.position, meanings={"people": meaning})
        return [change.outcome for change in table_changes(project, flow, replace(view, position=position))]

    assert after({**known, "column age": '"bigint"'}) == [Outcome.DECIDES]
    assert after(known) == []


def test_a_table_that_no_step_publishes_any_more_is_told(
    tidemill: Type, mill: Mill, monkeypatch: pytest.MonkeyPatch, declare: Declare
) -> None:
    mill.feed([an_event(1), an_event(15)])
    run(mill, monkeypatch)
    declare("pipelines/pipeline.py", '.publish("sums"', '.publish("totals"')
    code, found = planned(tidemill)
    assert code == ExitCode.WRONG
    assert [(row["table"], row["change"]) for row in found] == [("sums", "is published no more")]


def test_rows_with_null_where_the_contract_now_requires_a_value_are_counted(tidemill: Type, mill: Mill) -> None:
    kinds = {"timestamp": pa.timestamp("us", "UTC"), "string": pa.string(), "long": pa.int64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    write_deltalake(mill.project.published_uri("sums"), pa.Table.from_pylist([{"user": "a"}] * 3, schema=schema))
    _, found = planned(tidemill)
    told = {row["column"]: row["before"] for row in found}
    assert told["n"] == "3 rows with null"
    assert "user" not in told
    assert "amount" not in told
    assert not any(row["is_wrong"] for row in found)
