"""Types are known before a plan is written, and no value becomes null in silence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from batch.test_batch_flows import EVENTS, WINDOW, a_mill, a_table
from support.projects import Mill, an_event
from tidemill.core.contract.schema import Decimal, Scalar
from tidemill.core.declare.aggregates import Sum
from tidemill.core.errors import AuditBlocked, DeclarationError, Incompatible
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Audited
from tidemill.core.sql.expressions import filled
from tidemill.inspect.verify import Scope, verify
from tidemill.project.project import Project

pytestmark = pytest.mark.spark

UNBOUND = EVENTS.replace(", logicalTypeOptions: {maximum: 1000000}", "")
ROWS = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    events.DOES.publish("t", contract="t")
"""
OF_WINDOWS = 'window(Tumbling("10 s"), allowed_lateness="1 hour").aggregate({})'
LARGEST = 2**63 - 1


def a_pipeline(folder: Path, spark: Any, does: str, columns: Mapping[str, str], **settings: Any) -> Mill:
    contracts = {"events": UNBOUND, "t": a_table("t", columns)}
    return a_mill(folder, spark, ROWS.replace("DOES", does), contracts, ("events",), **settings)


def events_of(mill: Mill) -> list[Any]:
    """What the ledger holds."""
    ledger = mill.project.ledger(mill.name)
    return [entry.event for entry in ledger.entries()] if ledger.exists else []


def verdicts(mill: Mill) -> list[tuple[str, str, str]]:
    """Every rule that was broken, from the ledger."""
    audited = [e for e in events_of(mill) if isinstance(e, Audited)]
    return [(r.rule, r.severity.value, r.observed) for e in audited for r in e.verdict.broken]


REFUSED = {
    "a sum of an expression that is a double": (
        OF_WINDOWS.format('s=Sum("amount / 2")'),
        {**WINDOW, "s": "integer"},
        "`s` is double, but the contract says bigint",
    ),
    "a text made a number": (
        'select("user").with_columns(n="upper(user)")',
        {"user": "string", "n": "integer"},
        "`n` is string",
    ),
    "a time made a day": (
        'select("user").with_columns(d="_timestamp + interval 1 day")',
        {"user": "string", "d": "date"},
        "`d` is timestamp, but the contract says date",
    ),
    "an aggregate of one's own": (
        OF_WINDOWS.format('s=Custom(partial={"l": "sum(ln(amount))"}, merge={"l": "sum({l})"}, finish="exp({l})")'),
        {**WINDOW, "s": "integer"},
        "`s` is double, but the contract says bigint",
    ),
    "a sum of texts": (
        OF_WINDOWS.format('s=Sum("upper(user)")'),
        {**WINDOW, "s": "number"},
        "which is string and no number",
    ),
    "what Spark cannot run": (
        'with_columns(n="to_char(amount, repeat(\'ABC\', 1))").select("user", "n")',
        {"user": "string", "n": "string"},
        "Spark cannot run",
    ),
    "the clock without a cast": (
        'select("user").with_columns(b="_timestamp = \'today\'")',
        {"user": "string", "b": "boolean"},
        "cast\\(today as timestamp\\) gives another answer each time",
    ),
    "the clock after a blank": (
        'select("user").with_columns(t="coalesce(_timestamp, \' now\')")',
        {"user": "string", "t": "timestamp"},
        "cast\\( now as timestamp\\) gives another answer each time",
    ),
    "the clock behind many columns": (
        'select("user").with_columns(**{f"c{n}": "1" for n in range(30)}, t="coalesce(_timestamp, \'now\')")',
        {"user": "string", **{f"c{n}": "integer" for n in range(30)}, "t": "timestamp"},
        "cast\\(now as timestamp\\) gives another answer each time",
    ),
}


def test_what_could_lose_is_refused_before_a_plan_is_written(tmp_path: Path, spark: Any) -> None:
    for number, (case, (does, columns, says)) in enumerate(REFUSED.items()):
        mill = a_pipeline(tmp_path / str(number), spark, does, columns)
        mill.feed([an_event(1)])
        with pytest.raises(DeclarationError, match=says) as refused:
            mill.run()
        assert "pipeline.py:" in refused.value.message, case
        assert events_of(mill) == [], case


def test_a_value_that_does_not_fit_blocks_its_batch_and_names_the_column(tmp_path: Path, spark: Any) -> None:
    fits = "{logicalType: number, physicalType: 'decimal(4,0)'}".strip("{}")
    mill = a_pipeline(tmp_path, spark, 'select("user", "amount")', {"user": "string", "amount": fits})
    mill.feed([an_event(1, "a", 9999), an_event(2, "b", 10_000)])
    with pytest.raises(AuditBlocked, match=r"amount\.fits: 1 of 2 rows: values that do not fit decimal\(4,0\)"):
        mill.run()
    assert mill.published("t") == []


def test_a_sum_beyond_its_column_is_the_nearest_number_and_a_warning(tmp_path: Path, spark: Any) -> None:
    does = OF_WINDOWS.format(
        's=Sum("amount"), low=Sum("-amount"), none=Sum("amount", overflow="null"), exact=Sum("amount")'
    )
    wide = "logicalType: number, physicalType: 'decimal(38,0)'"
    columns = {
        **WINDOW,
        "s": "logicalType: integer, required: true",
        "low": "integer",
        "none": "integer",
        "exact": wide,
    }
    mill = a_pipeline(tmp_path, spark, does, columns)
    mill.feed([an_event(1, amount=LARGEST), an_event(2, amount=LARGEST), an_event(3, amount=7)])
    mill.feed([an_event(20, amount=LARGEST), an_event(21, amount=5), an_event(22, amount=-LARGEST)])
    commits = mill.catch_up()
    rows = {row["window_start"].second: row for row in mill.published("t")}
    assert "warning t: s.overflow: 1 of 2 rows: sums beyond bigint" in [
        text for c in commits for text in c.broken or ()
    ]
    assert [rows[0][c] for c in ("s", "low", "none")] == [LARGEST, -LARGEST - 1, None]
    assert int(rows[0]["exact"]) == 2 * LARGEST + 7
    assert [rows[20][c] for c in ("s", "low", "none")] == [5, -5, 5]
    assert ("s.overflow", "warning", "1 of 2 rows: sums beyond bigint") in verdicts(mill)
    assert [v.agrees for v in verify(an_amendment(mill), Scope())] == [True]


def test_a_sum_beyond_the_digits_of_a_decimal_is_the_nearest_one_and_a_warning(tmp_path: Path, spark: Any) -> None:
    of = 'Sum("try_cast(amount AS decimal(12,2))")'
    null = 'Sum("amount", overflow="null")'
    does = OF_WINDOWS.format(f's={of}, whole=Sum("amount"), none={null}, low=Sum("try_cast(-amount AS decimal(12,2))")')
    small, whole = (f"logicalType: number, physicalType: 'decimal({digits})'" for digits in ("5,2", "3,0"))
    mill = a_pipeline(tmp_path, spark, does, {**WINDOW, "s": small, "whole": whole, "none": whole, "low": small})
    mill.feed([an_event(1, amount=999), an_event(2, amount=1), an_event(20, amount=998), an_event(21, amount=1)])
    mill.feed([an_event(40, amount=None)])
    mill.catch_up()
    rows = {row["window_start"].second: row for row in mill.published("t")}
    assert [str(rows[0][c]) for c in ("s", "whole", "none", "low")] == ["999.99", "999", "None", "-999.99"]
    assert [str(rows[20][c]) for c in ("s", "whole", "none", "low")] == ["999.00", "999", "999", "-999.00"]
    assert [rows[40][c] for c in ("s", "whole", "none", "low")] == [None] * 4
    told = [f"{column}.overflow" for column in ("low", "none", "s", "whole")]
    assert sorted(rule for rule, severity, _ in verdicts(mill) if severity == "warning") == told
    assert [v.agrees for v in verify(an_amendment(mill), Scope())] == [True]


def test_a_sum_is_exact_in_whatever_order_and_cut_it_is_added(tmp_path: Path, spark: Any) -> None:
    values = [LARGEST, 5, -LARGEST, -(2**62), LARGEST, -1, -LARGEST - 1, 2**62]
    wide = "logicalType: number, physicalType: 'decimal(38,0)'"
    mill = a_pipeline(
        tmp_path, spark, OF_WINDOWS.format('s=Sum("amount"), w=Sum("amount")'), {**WINDOW, "s": "integer", "w": wide}
    )
    mill.feed(an_event(1, amount=v) for v in values)
    mill.catch_up(limit=3)
    [row] = mill.published("t")
    assert (row["s"], int(row["w"])) == (sum(values), sum(values))


def test_state_of_before_is_merged_with_that_of_now(spark: Any) -> None:
    """Rows without halves: a value, none at all, and a sum that was lost."""
    triple = Sum("x").triple
    names = {part: f"`{part}`" for part in triple.merge}
    merged = ", ".join(f"{filled(text, names)} AS `{part}`" for part, text in triple.merge.items())
    finish = filled(Sum("x").finish_as(Decimal(38)), names)
    beyond = filled(Sum("x").overflowed(Scalar.LONG) or "", names)
    rows = [
        f"(1, {LARGEST}L, 2L, null, null)",
        f"(1, null, 2L, {2**32}L, 6L)",
        "(1, -3L, 1L, null, null)",
        "(1, null, 0L, null, null)",
        "(2, null, 2L, null, null)",
        "(2, 4L, 1L, 0L, 4L)",
        f"(3, -1L, 1L, -1L, {2**32 - 1}L)",
    ]
    text = f"""
        SELECT k, {finish} AS s, {filled(triple.finish, names)} AS n, {beyond} AS over FROM (
            SELECT k, {merged} FROM VALUES {", ".join(rows)} AS t(k, value, n, high, low) GROUP BY k) ORDER BY k"""
    found = spark.sql(text).collect()
    exact = LARGEST + 2**64 + 6 - 3
    assert [(r.s, r.n, r.over) for r in found] == [(exact, LARGEST, True), (None, None, True), (-1, -1, False)]


def test_a_column_of_another_type_is_refused_before_the_plan_and_says_rebuild(tmp_path: Path, spark: Any) -> None:
    mill = a_pipeline(tmp_path, spark, OF_WINDOWS.format('s=Max("amount")'), {**WINDOW, "s": "integer"})
    mill.feed([an_event(1)])
    mill.run()
    planned = len(events_of(mill))
    for name in ("events", "t"):
        file = tmp_path / f"data_contracts/{name}.odcs.yaml"
        text = file.read_text().replace("{name: amount, logicalType: integer", "{name: amount, logicalType: number")
        file.write_text(text.replace("{name: s, logicalType: integer", "{name: s, logicalType: number"))
    changed = Mill(Project.load(tmp_path), spark, "p")
    changed.feed([an_event(2)])
    for _ in range(2):
        with pytest.raises(
            Incompatible, match=r"`s__value` as bigint, and it would be double now(?s:.*)tidemill rebuild p"
        ):
            changed.run(from_now=Reason(by="somebody", why="a test"))
    assert len(events_of(changed)) == planned
