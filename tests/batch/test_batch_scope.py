"""Rules with `scope: table` count the rows that a table keeps, whichever batches wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from batch.test_batch_flows import EVENTS, WINDOW, a_mill, a_table
from support.commands import type_command
from support.projects import Mill, an_event
from support.writers import WRITERS
from tidemill.core.errors import AuditBlocked
from tidemill.tables import handles
from tidemill.tables.interface import TableSpec

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("writer", WRITERS)]

READ = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
"""
ROWS = f"""{READ}
    events.select("ts", "user", "amount").publish("t", contract="t")
"""
WINDOWS = f"""{READ}
    users = events.key_by("user").window(Tumbling("10 s"), allowed_lateness="5 minutes")
    users.aggregate(n=Count()).publish("t", contract="t")
"""
TABLE = "customProperties: [{property: scope, value: table}]"
AMOUNT = f"logicalType: integer, quality: [{{metric: nullValues, mustBeLessThan: 2, {TABLE}}}]"
OF_ROWS = f"""    quality:
      - {{metric: rowCount, mustBeLessThan: 6, {TABLE}}}
      - {{metric: duplicateValues, arguments: {{properties: [user]}}, mustBeLessThan: 50, unit: percent, {TABLE}}}
      - {{type: sql, name: large, query: "SELECT COUNT(*) FROM t WHERE amount * 2 > 10", mustBeLessThan: 2, {TABLE}}}
      - {{metric: rowCount, name: of_a_batch, mustBeLessThan: 4}}
"""
OF_WINDOWS = f"    quality: [{{metric: rowCount, mustBeLessOrEqualTo: 4, {TABLE}}}]\n"


def a_mill_of_rows(folder: Path, spark: Any, **settings: Any) -> Mill:
    contract = a_table("t", {"ts": "timestamp", "user": "string", "amount": AMOUNT}) + OF_ROWS
    return a_mill(folder, spark, ROWS, {"events": EVENTS, "t": contract}, ("events",), **settings)


def audited(mill: Mill, *batch: str) -> dict[str, Any]:
    """What the audit found, by rule."""
    said = type_command(mill.project.folder, "audit", "show", "p", "--json", *batch)
    assert said.code == 0, said.err
    return {each["rule"]: each for each in map(json.loads, said.out.splitlines())}


def test_rules_of_the_table_count_the_rows_of_earlier_batches(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = a_mill_of_rows(tmp_path, spark, writer=writer)
    mill.feed([an_event(1, "a", 9), an_event(2, "b", 1), an_event(3, None, None)])
    mill.run()
    mill.feed([an_event(4, "c", 9), an_event(5, "a", None), an_event(6, "b", 1)])
    with pytest.raises(AuditBlocked) as blocked:
        mill.run()
    assert "t: rowCount: 6 rows; expected at most 5 rows; it looked at the whole table" in str(blocked.value)
    found = audited(mill)
    assert {name: each["observed"] for name, each in found.items() if not each["passed"]} == {
        "rowCount": "6 rows",
        "amount.nullValues": "2 of 6 rows",
        "duplicateValues(user)": "4 of 6 rows",
        "large": "2 of 6 rows",
    }
    assert [row["amount"] for row in found["large"]["failing_rows"]] == [9]
    assert found["of_a_batch"]["looks_at"] == "the rows of the batch"
    assert found["large"]["expected"] == "that less than 2 rows break this: NOT ((amount * 2 > 10))"


def test_a_backfill_is_judged_by_its_last_batch(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = a_mill_of_rows(tmp_path, spark, writer=writer, batch_records=2)
    for second in (1, 3):
        mill.feed([an_event(second, f"a{second}"), an_event(second + 1, f"b{second}")])
        mill.run()
    said = type_command(
        mill.project.folder, "backfill", "p", "--from-offsets", "events-0:0", session=lambda _: mill.session
    )
    assert said.code == 0, said.err
    assert set(audited(mill, "--batch", "3")) == {"of_a_batch"}
    assert {"rowCount", "large", "of_a_batch"} < set(audited(mill, "--batch", "4"))
    assert len(mill.published("t")) == 4


def test_windows_that_are_published_again_are_counted_once(tmp_path: Path, spark: Any, writer: str) -> None:
    contract = a_table("t", {**WINDOW, "user": "string", "n": "integer"}) + OF_WINDOWS
    mill = a_mill(tmp_path, spark, WINDOWS, {"events": EVENTS, "t": contract}, ("events",), writer=writer)
    mill.feed([an_event(1, "a"), an_event(2, None), an_event(30, "b")])
    mill.run()
    # Late records change both windows, and 30 to 40 closes with a third row.
    mill.feed([an_event(3, "a"), an_event(4, None), an_event(50, None)])
    mill.run()
    mill.feed([an_event(5, None), an_event(70, "a")])
    mill.run()
    assert len(mill.published("t")) == 4
    said = type_command(
        mill.project.folder, "backfill", "p", "--from-offsets", "events-0:0", session=lambda _: mill.session
    )
    assert said.code == 0, said.err
    mill.feed([an_event(90, "z")])
    with pytest.raises(AuditBlocked, match="rowCount: 5 rows"):
        mill.run()


def opened_by_a_batch(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a batch of one record opens the published table."""
    opened, real = list[str](), handles._open

    def noted(spec: TableSpec, version: int | None) -> Any:
        opened.append(spec.uri)
        return real(spec, version)

    monkeypatch.setattr(handles, "_open", noted)
    mill.feed([an_event(2, "b", 1)])
    mill.run()
    monkeypatch.setattr(handles, "_open", real)
    return opened.count(mill.project.published_uri("t"))


def test_a_table_is_opened_once_for_its_keys_and_for_its_rules(
    tmp_path: Path, spark: Any, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "logicalType: string, primaryKey: true, primaryKeyPosition: 1"
    plain = a_table("t", {"ts": "timestamp", "user": "string", "amount": "integer"})
    looked_at = a_table("t", {"ts": "timestamp", "user": key, "amount": AMOUNT}) + OF_ROWS
    times = []
    for name, contract in (("plain", plain), ("looked_at", looked_at)):
        folder, contracts = tmp_path / name, {"events": EVENTS, "t": contract}
        folder.mkdir()
        mill = a_mill(folder, spark, ROWS, contracts, ("events",), writer=writer)
        mill.feed([an_event(1, "a", 9)])
        mill.run()
        times.append(opened_by_a_batch(mill, monkeypatch))
    assert times[1] == times[0] + 1
    mill.feed([an_event(3, "a", 1)])
    with pytest.raises(AuditBlocked):
        mill.run()
