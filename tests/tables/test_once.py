"""What every table promises about transactions: once, in order, of one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tables.table_writers import (
    PLAN,
    DeltaRsWriter,
    Interrupted,
    Row,
    Writer,
    a_row,
    a_spec,
    append,
    batch,
    load,
    minutes,
    seen,
    state_of,
    upsert,
)
from tidemill.core.errors import CommitUnknown, Fenced
from tidemill.core.plan.slices import slice_number
from tidemill.tables.interface import AlreadyThere, Landed, Transaction


def write(kind: str, table: Any, writer: Writer, rows: list[Row], number: int, *, plan_hash: str = PLAN) -> Any:
    if kind == "append":
        return append(table, writer, rows, number, plan_hash)
    return upsert(table, writer, rows, number, plan_hash=plan_hash)


@pytest.fixture(params=["append", "upsert"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of write in turn."""
    return request.param


def test_a_zombie_is_refused_before_it_writes(tmp_path: Path, writer: Writer, kind: str) -> None:
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 3)
    before = state_of(table.spec)
    with pytest.raises(Fenced, match=r"batch 2 of pipeline/views .* already holds batch 3"):
        write(kind, table, writer, [a_row(0, views=9)], 2)
    assert state_of(table.spec) == before


def test_the_same_batch_again_writes_nothing(tmp_path: Path, writer: Writer, kind: str) -> None:
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 3)
    load(table.spec, [a_row(1)])
    before = state_of(table.spec)
    assert write(kind, table, writer, [a_row(0, views=9)], 3) == AlreadyThere(1)
    assert state_of(table.spec) == before


def test_the_same_batch_of_another_plan_is_refused(tmp_path: Path, writer: Writer, kind: str) -> None:
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 3)
    before = state_of(table.spec)
    with pytest.raises(Fenced, match=r"plan-b\) must not be written: .* another plan: plan-a"):
        write(kind, table, writer, [a_row(0, views=9)], 3, plan_hash="plan-b")
    assert state_of(table.spec) == before


def test_each_writer_knows_the_transactions_of_the_other(tmp_path: Path, writer: Writer, kind: str) -> None:
    table = writer.table(a_spec(tmp_path))
    other = DeltaRsWriter()
    assert write(kind, table, writer, [a_row(0)], 3) == Landed(1)
    assert table.transaction_version("pipeline/views") == 3
    assert append(other.table(table.spec), other, [a_row(0)], 3) == AlreadyThere(1)
    with pytest.raises(Fenced, match="already holds batch 3"):
        append(other.table(table.spec), other, [a_row(0)], 2)
    assert seen(table, writer) == [(0, "/", 1)]


def test_a_zombie_is_refused_at_the_commit(tmp_path: Path, writer: Writer, kind: str) -> None:
    table = writer.table(a_spec(tmp_path))
    table.before = lambda: load(table.spec, [a_row(0, views=3)], 3)
    with pytest.raises(Fenced, match="already holds batch 3"):
        write(kind, table, writer, [a_row(0, views=2)], 2)
    assert seen(table, writer) == [(0, "/", 3)]


def test_a_rival_of_another_plan_is_noticed_at_the_commit(tmp_path: Path, writer: Writer) -> None:
    table, other = writer.table(a_spec(tmp_path)), DeltaRsWriter()
    table.before = lambda: append(other.table(table.spec), other, [a_row(0, views=3)], 2, "plan-b")
    with pytest.raises(Fenced, match="another plan: plan-b"):
        append(table, writer, [a_row(0, views=2)], 2)
    assert seen(table, writer) == [(0, "/", 3)]


def test_a_rival_of_the_same_plan_did_the_work(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    table.before = lambda: load(table.spec, [a_row(0)], 2)
    assert append(table, writer, [a_row(0)], 2).version == 1
    assert seen(table, writer) == [(0, "/", 1)]


def _lost() -> None:
    raise Interrupted("the connection was closed")


def test_a_write_whose_answer_was_lost_has_landed(tmp_path: Path, writer: Writer, kind: str) -> None:
    table = writer.table(a_spec(tmp_path))
    table.after = _lost
    assert write(kind, table, writer, [a_row(0)], 1) == Landed(1)
    assert write(kind, table, writer, [a_row(0)], 1) == AlreadyThere(1)
    assert seen(table, writer) == [(0, "/", 1)]


def test_a_write_that_failed_may_be_tried_again(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    table.before = _lost
    with pytest.raises(CommitUnknown, match=r"batch 1 of pipeline/views failed .* connection was closed") as caught:
        append(table, writer, [a_row(0)], 1)
    assert caught.value.retryable
    assert seen(table, writer) == []
    assert append(table, writer, [a_row(0)], 1) == Landed(1)


def test_a_lost_answer_without_a_transaction_is_unknown(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    table.after = _lost
    with pytest.raises(CommitUnknown, match="an append without a transaction"):
        append(table, writer, [a_row(0)], None)
    assert append(table, writer, [a_row(1)], None) == Landed(2)
    assert table.transaction_version("pipeline/views") is None


def test_other_app_ids_have_transactions_of_their_own(tmp_path: Path) -> None:
    writer = DeltaRsWriter()
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 7)
    landed = table.append(writer.rows([a_row(1)]), transaction=batch(1, "other/views"), plan_hash=PLAN)
    assert (landed, table.transaction_version("other/views")) == (Landed(2), 1)
    assert table.transaction_version("pipeline/views") == 7


def test_the_plan_of_a_batch_is_found_behind_many_commits(tmp_path: Path) -> None:
    writer = DeltaRsWriter()
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 1)
    for minute in range(20):
        load(table.spec, [a_row(minute)])
    assert append(table, writer, [a_row(0)], 1) == AlreadyThere(1)
    with pytest.raises(Fenced, match="another plan"):
        append(table, writer, [a_row(0)], 1, "plan-b")


def test_a_batch_whose_plan_the_log_forgot_is_refused(tmp_path: Path) -> None:
    writer = DeltaRsWriter()
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 1)
    load(table.spec, [a_row(1)])
    DeltaTable(table.spec.uri).create_checkpoint()
    for version in (0, 1):
        (Path(table.spec.uri) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(Fenced, match="no longer says of which plan"):
        append(table, writer, [a_row(0)], 1)


def test_an_upsert_is_computed_again_when_another_write_came_between(tmp_path: Path) -> None:
    writer = DeltaRsWriter()
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0, "/a")], 1)
    table.before = lambda: load(table.spec, [a_row(0, "/b", 5)])
    assert upsert(table, writer, [a_row(0, "/a", 2), a_row(0, "/b", 2)], 2) == Landed(3)
    assert seen(table, writer) == [(0, "/a", 2), (0, "/b", 2)]


def test_a_table_that_never_rests_makes_an_upsert_give_up(tmp_path: Path) -> None:
    writer = DeltaRsWriter()
    table = writer.table(a_spec(tmp_path))

    def step_in() -> None:
        load(table.spec, [a_row(0, "/rival")])
        table.before = step_in

    table.before = step_in
    with pytest.raises(CommitUnknown, match="batch 1 of pipeline/views failed"):
        upsert(table, writer, [a_row(0)], 1, within=minutes(0, 1))
    assert {page for _, page, _ in seen(table, writer)} == {"/rival"}


def test_a_slice_is_named_by_batch_and_attempt_when_it_is_refused(tmp_path: Path, writer: Writer) -> None:
    table, second = (
        writer.table(a_spec(tmp_path)),
        Transaction("pipeline/state/views", slice_number(7, 2), by_slice=True),
    )
    first = Transaction("pipeline/state/views", slice_number(7, 1), by_slice=True)
    rows = writer.rows([a_row(0)])
    assert table.append(rows, transaction=second, plan_hash=PLAN) == Landed(1)
    assert table.append(rows, transaction=second, plan_hash=PLAN) == AlreadyThere(1)
    with pytest.raises(Fenced, match=r"batch 7 attempt 1 of pipeline/state/views .* holds batch 7 attempt 2"):
        table.append(rows, transaction=first, plan_hash=PLAN)
    with pytest.raises(Fenced, match="another plan: plan-a"):
        table.append(rows, transaction=second, plan_hash="plan-b")
    assert seen(table, writer) == [(0, "/", 1)]
