"""What `contract diff` says about state is what `plan` does: it refuses the changes that break it, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.commands import type_command
from support.contract_changes import CASES, CSV, ID, JSON, OF_RECORDS, OF_TABLES, column, contract
from support.projects import NO_SPARK, SUMS_CONTRACT, SUMS_PIPELINE, Mill, a_project, an_event
from tidemill import Pipeline
from tidemill.contracts.changes.change import Breaks
from tidemill.contracts.changes.compare import changes_of
from tidemill.contracts.changes.described import described
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.meaning import meanings, of_input
from tidemill.core.change.redefinition import redefined
from tidemill.core.contract.contract import Contract, Format, RowRule
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.errors import TidemillError
from tidemill.core.plan.position import Position
from tidemill.core.protocol.events import Committed
from tidemill.run import batch

Given = dict[str, Any]
EVENT = (
    "{name: ts, logicalType: timestamp, required: true}",
    "{name: user, logicalType: string}",
    "{name: amount, logicalType: integer}",
)
OF_SUMS = SUMS_PIPELINE.replace("WINDOW", 'Tumbling("10 seconds")').replace("TRIGGER", "on_close")
OF_SUMS = OF_SUMS.replace("DELAY", "0 s").replace("LATENESS", "0 s").replace('contract="events"', 'contract="orders"')
TS = Field(name="ts", type=Scalar.TIMESTAMP, required=True)
OF_CSV = [
    ("column-moved", {"p": [ID, column()], "custom": CSV}, {"p": [column(), ID], "custom": CSV}),
    ("field-added", {"p": [ID], "custom": CSV}, {"p": [ID, column()], "custom": CSV}),
]
OF_JSON = [(kind, {**old, "custom": JSON}, {**new, "custom": JSON}) for kind, old, new in CASES]
FIRST = {case[0]: case for case in reversed(OF_JSON)}
"""Of each kind of change, the first one."""
NOT_SEEN = ("unit-changed",)
"""A plan sees no units: numbers look the same, and whoever changes the contract has to know."""


class AnyContract(TinyAttempt):
    """The tiny engine, which decodes events, whatever else their contract has."""

    def _read(self, source: Input) -> None:
        rule = RowRule(name="amount", predicate="amount <= 9")
        super()._read(replace(source, contract=replace(source.contract, row_rules=(rule,))))


def names(kind: object) -> str:
    return kind if isinstance(kind, str) else ""


def text(given: Given, *more: str) -> str:
    return contract(*more, *given["p"], **{key: value for key, value in given.items() if key != "p"})


def state_breaks(old: Path, new: Path) -> bool:
    """Whether the diff says that state breaks, leaving out what no plan can see."""
    found = changes_of(described(old)[0], described(new)[0])
    assert found
    return any(Breaks.STATE in change.breaks for change in found if change.kind not in NOT_SEEN)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        *FIRST.values(),
        *(pytest.param(*case, marks=pytest.mark.long) for case in OF_JSON if case is not FIRST[case[0]]),
        *OF_RECORDS,
        *OF_CSV,
    ],
    ids=names,
)
def test_a_plan_refuses_changes_of_records_that_break_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, old: Given, new: Given
) -> None:
    monkeypatch.setattr(batch, "Attempt", AnyContract)
    project = a_project(tmp_path, OF_SUMS, {"orders": text(old, *EVENT), "sums": SUMS_CONTRACT})
    mill = Mill(project, NO_SPARK, "sums")
    mill.log.create_topic("events", partitions=1)
    mill.feed([an_event(1), an_event(20)])
    assert isinstance(mill.run(), Committed)
    file, before = tmp_path / "data_contracts" / "orders.odcs.yaml", tmp_path / "before" / "orders.odcs.yaml"
    before.parent.mkdir()
    before.write_text(file.read_text())
    file.write_text(text(new, *EVENT))
    mill.feed([an_event(30)])
    said = type_command(tmp_path, "plan", "sums", "--dry-run")
    assert said.code == (5 if state_breaks(before, file) else 0), said.out + said.err


def of_rows(table: Contract, fields: Mapping[str, Field]) -> Flow:
    """A pipeline that publishes columns of a topic as they are; `fields` are other columns that the topic has."""
    columns = {**fields, **{field.name: field for field in table.fields}}
    required = (replace(field, required=True) for field in columns.values())
    records = Contract(name="records", version="1", format=Format.JSON, fields=(TS, *required))
    with Pipeline("rows", every="1 minute") as pipeline:
        read = pipeline.read("events", contract="records", event_time="ts")
        read.select(*table.columns).publish("orders", contract="orders")
    return bind(pipeline.spec, {"records": records, "orders": table})


@pytest.mark.parametrize(("kind", "old", "new"), [*CASES, *OF_TABLES], ids=names)
def test_a_plan_refuses_changes_of_tables_that_break_state(tmp_path: Path, kind: str, old: Given, new: Given) -> None:
    files = [tmp_path / name / "orders.odcs.yaml" for name in ("old", "new")]
    for given, file in zip((old, new), files, strict=True):
        file.parent.mkdir()
        file.write_text(text(given))
    first, second = (described(file)[0]["orders"].contract for file in files)
    try:
        before, after = (
            of_rows(one, {field.name: field for field in other.fields})
            for one, other in ((first, second), (second, first))
        )
        was, now = meanings(before)["orders"], meanings(after)["orders"]
        # Only the table is another one; what the topic holds is not asked here.
        read = {name: part for name, part in now.items() if of_input(name) is not None}
        own = {name: part for name, part in was.items() if of_input(name) is None}
        redefined(after, Position(batch_id=1, meanings={"orders": {**own, **read}}))
    except TidemillError as error:
        refused = error.message
    else:
        refused = ""
    assert bool(refused) is state_breaks(*files), refused or "not refused"
