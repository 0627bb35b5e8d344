"""The audit of rows in memory: what breaks a rule, what is reported, and that no rule is forgotten."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import subprocess
import sys
import threading
from decimal import Decimal as Exact
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidemill.contracts.audit import MAX_FAILING_ROWS, audit
from tidemill.contracts.load import load_contract
from tidemill.core.contract.contract import (
    Between,
    Check,
    Compare,
    Contract,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    Severity,
    TableRule,
    Unique,
)
from tidemill.core.contract.row_checks import NotNullInside
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar
from tidemill.core.contract.verdict import CheckResult, Verdict
from tidemill.core.errors import ContractError, EngineError
from tidemill.tables.arrow_types import arrow_type

NAN = float("nan")
NOON = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)


def a_contract(*checks: Check, types: dict[str, DataType], key: tuple[str, ...] = ()) -> Contract:
    return Contract(
        name="orders",
        version="1.0.0",
        fields=tuple(Field(name=n, type=t) for n, t in types.items()),
        primary_key=key,
        table_rules=tuple(TableRule(name=f"rule{i}", check=check) for i, check in enumerate(checks)),
    )


def the_result(values: pa.Array, data_type: DataType, check: Check) -> CheckResult:
    (result,) = audit("orders", pa.table({"x": values}), a_contract(check, types={"x": data_type}))
    return result


BIG = 2**63 - 1


@pytest.mark.parametrize(
    ("check", "data_type", "values", "failing"),
    [
        (NotNull(column="x"), Scalar.LONG, pa.array([1, None, 3]), [None]),
        (NotNull(column="x"), Scalar.DOUBLE, pa.array([NAN, 1.0]), []),
        (NotNull(column="x"), Array(Scalar.LONG), pa.array([[1], None, []]), [None]),
        (Unique(columns=("x",)), Scalar.STRING, pa.array(["a", "b", "a", None, None]), ["a", "a"]),
        (Unique(columns=("x",)), Scalar.LONG, pa.array([BIG, BIG - 1, None]), []),
        (Unique(columns=("x",)), Scalar.LONG, pa.array([BIG, BIG, None]), [BIG, BIG]),
        (Between(column="x", minimum=1), Scalar.LONG, pa.array([0, 1, None]), [0]),
        (Between(column="x", maximum=2**53), Scalar.LONG, pa.array([2**53, 2**53 + 1]), [2**53 + 1]),
        (Between(column="x", maximum=2**53), Scalar.LONG, pa.array([2**53, 2**53 + 1, None]), [2**53 + 1]),
        (Between(column="x", maximum=BIG - 1), Scalar.LONG, pa.array([BIG - 1, BIG, None]), [BIG]),
        (Between(column="x", minimum=BIG), Scalar.LONG, pa.array([BIG - 1, BIG]), [BIG - 1]),
        (Between(column="x", maximum=2**70), Scalar.LONG, pa.array([BIG, -BIG - 1, None]), []),
        (Between(column="x", minimum=0, exclusive_minimum=True), Scalar.INTEGER, pa.array([0, 1], pa.int32()), [0]),
        (Between(column="x", maximum=0.5), Scalar.LONG, pa.array([0, 1]), [1]),
        (
            Between(column="x", minimum=1, maximum=3, exclusive_maximum=True),
            Scalar.LONG,
            pa.array([0, 1, 2, 3]),
            [0, 3],
        ),
        (Between(column="x", minimum=0), Scalar.DOUBLE, pa.array([NAN, None, 0.0, float("inf")]), ["nan"]),
        (Between(column="x", maximum=0), Scalar.DOUBLE, pa.array([NAN, None, 0.0, float("-inf")]), ["nan"]),
        (
            Between(column="x", minimum=0.1),
            Decimal(38, 20),
            pa.array([Exact("0.1"), Exact("0.09999999999999999999"), None], pa.decimal128(38, 20)),
            ["0.09999999999999999999"],
        ),
        (OneOf(column="x", values=("a",)), Scalar.STRING, pa.array(["a", "b", "", None]), ["b", ""]),
        (OneOf(column="x", values=(BIG,)), Scalar.LONG, pa.array([BIG, BIG - 1, None]), [BIG - 1]),
        (OneOf(column="x", values=(1,)), Scalar.INTEGER, pa.array([1, 2], pa.int32()), [2]),
        (OneOf(column="x", values=(True,)), Scalar.BOOLEAN, pa.array([True, False, None]), [False]),
        (OneOf(column="x", values=(1, 0.5)), Scalar.DOUBLE, pa.array([1.0, 0.5, NAN, None]), ["nan"]),
        (
            OneOf(column="x", values=(0.1,)),
            Decimal(9, 2),
            pa.array([Exact("0.10"), Exact("0.11")], pa.decimal128(9, 2)),
            ["0.11"],
        ),
        (
            OneOf(column="x", values=("2024-01-31",)),
            Scalar.DATE,
            pa.array([dt.date(2024, 1, 31), dt.date(2024, 2, 1), None]),
            ["2024-02-01"],
        ),
        (
            Matches(column="x", pattern="e[0-9]+|f"),
            Scalar.STRING,
            pa.array(["e2", "f", "e2\n", "xe2", "e٢", "", None]),
            ["e2\n", "xe2", "e٢", ""],
        ),
        (
            LengthBetween(column="x", minimum=1, maximum=2),
            Scalar.STRING,
            pa.array(["äö", "", "abc", None]),
            ["", "abc"],
        ),
        (LengthBetween(column="x", maximum=2), Scalar.STRING, pa.array(["äö", "abc", None]), ["abc"]),
    ],
)
def test_a_rule_is_broken_by_these_values_and_no_others(
    check: Check, data_type: DataType, values: pa.Array, failing: list[Any]
) -> None:
    result = the_result(values, data_type, check)
    assert [row["x"] for row in result.failing_rows] == failing
    assert result.passed == (not failing)
    assert result.observed == (f"{len(failing)} of {len(values)} rows" if failing else "")


@pytest.mark.parametrize(
    ("operator", "failing"),
    [("<", [2, 3]), ("<=", [3]), (">", [1, 2]), (">=", [1]), ("=", [1, 3])],
)
def test_two_columns_are_compared_row_by_row(operator: str, failing: list[int]) -> None:
    rows = pa.table({"a": pa.array([1, 2, 3, None, 5]), "b": pa.array([2, 2, 2, 2, None])})
    contract = a_contract(Compare(left="a", operator=operator, right="b"), types={"a": Scalar.LONG, "b": Scalar.LONG})
    (result,) = audit("orders", rows, contract)
    assert [row["a"] for row in result.failing_rows] == failing


def test_what_is_missing_inside_an_object_is_found_through_arrays() -> None:
    inner = Object((Field(name="price", type=Scalar.LONG, required=True),))
    order = Object((Field(name="id", type=Scalar.LONG, required=True), Field(name="lines", type=Array(inner))))
    values: list[Any] = [
        None,
        {"id": 1, "lines": None},
        {"id": 2, "lines": []},
        {"id": 3, "lines": [{"price": 1}, None]},
        {"id": 4, "lines": [{"price": 1}, {"price": None}]},
        {"id": None, "lines": [{"price": 1}]},
    ]
    rows = pa.table({"i": range(6), "x": pa.array(values, arrow_type(order))})
    checks = NotNullInside(column="x", path=("id",)), NotNullInside(column="x", path=("lines", "[]", "price"))
    contract = a_contract(*checks, types={"i": Scalar.LONG, "x": order}, key=("i",))
    for part in (rows, pa.concat_tables([rows.slice(0, 3), rows.slice(3)])):
        first, second = audit("orders", part, contract)
        assert [row["i"] for row in first.failing_rows] == [5]
        assert [row["i"] for row in second.failing_rows] == [4]


def test_comparisons_are_exact_in_microseconds_and_64_bits() -> None:
    later = NOON + dt.timedelta(microseconds=1)
    rows = pa.table(
        {
            "a": pa.array([NOON, later], pa.timestamp("us", "UTC")),
            "b": pa.array([later, NOON], pa.timestamp("us", "UTC")),
            "m": pa.array([BIG - 1, BIG]),
            "n": pa.array([BIG, BIG - 1]),
        }
    )
    types: dict[str, DataType] = {
        "a": Scalar.TIMESTAMP,
        "b": Scalar.TIMESTAMP,
        "m": Scalar.LONG,
        "n": Scalar.LONG,
    }
    checks = Compare(left="a", operator="<", right="b"), Compare(left="m", operator="<", right="n")
    first, second = audit("orders", rows, a_contract(*checks, types=types))
    assert first.failing_rows == (
        {"a": "2024-01-31T12:00:00.000001Z", "b": "2024-01-31T12:00:00Z", "m": BIG, "n": BIG - 1},
    )
    assert [row["m"] for row in second.failing_rows] == [BIG]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "="])
def test_nan_breaks_every_comparison(operator: str) -> None:
    rows = pa.table({"i": [0, 1, 2, 3], "a": [NAN, 1.0, NAN, None], "b": [1.0, NAN, NAN, NAN]})
    types: dict[str, DataType] = {"i": Scalar.LONG, "a": Scalar.DOUBLE, "b": Scalar.DOUBLE}
    contract = a_contract(Compare(left="a", operator=operator, right="b"), types=types, key=("i",))
    (result,) = audit("orders", rows, contract)
    assert [row["i"] for row in result.failing_rows] == [0, 1, 2]


def test_keys_of_several_columns_repeat_only_as_a_whole_and_without_nulls() -> None:
    rows = pa.table({"a": ["x", "x", "x", None, None], "b": [1, 2, 1, 3, 3]})
    contract = a_contract(Unique(columns=("a", "b")), types={"a": Scalar.STRING, "b": Scalar.LONG})
    (result,) = audit("orders", rows, contract)
    assert result.failing_rows == ({"a": "x", "b": 1}, {"a": "x", "b": 1})
    assert result.observed == "2 of 5 rows"


@pytest.mark.parametrize(
    ("minimum", "maximum", "passed"), [(3, 3, True), (4, None, False), (None, 2, False), (None, None, True)]
)
def test_the_number_of_rows_is_observed(minimum: int | None, maximum: int | None, passed: bool) -> None:
    result = the_result(pa.array([1, 2, 3]), Scalar.LONG, RowCountBetween(minimum=minimum, maximum=maximum))
    assert (result.passed, result.failing_rows) == (passed, ())
    assert result.observed == ("" if passed else "3 rows")


EVERY_CHECK: tuple[Check, ...] = (
    NotNull(column="x"),
    Unique(columns=("x",)),
    Unique(columns=("x", "y")),
    Between(column="y", minimum=1, maximum=2),
    OneOf(column="x", values=("a",)),
    Matches(column="x", pattern="a"),
    LengthBetween(column="x", minimum=1),
    Compare(left="y", operator="<", right="z"),
    RowCountBetween(maximum=0),
)
TYPES: dict[str, DataType] = {"x": Scalar.STRING, "y": Scalar.LONG, "z": Scalar.LONG}


def test_without_rows_every_rule_passes_but_those_about_their_number() -> None:
    empty = pa.table({"x": pa.array([], pa.string()), "y": pa.array([], pa.int64()), "z": pa.array([], pa.int64())})
    contract = a_contract(*EVERY_CHECK, RowCountBetween(minimum=1), types=TYPES)
    results = audit("orders", empty, contract)
    assert [r.passed for r in results] == [True] * len(EVERY_CHECK) + [False]
    assert results[-1].observed == "0 rows"


def test_columns_of_nulls_break_only_not_null() -> None:
    rows = pa.table({"x": pa.nulls(2, pa.string()), "y": pa.nulls(2, pa.int64()), "z": pa.nulls(2, pa.int64())})
    results = audit("orders", rows, a_contract(*EVERY_CHECK[:-1], types=TYPES))
    assert [r.passed for r in results] == [False] + [True] * 7


def test_results_are_in_the_order_of_the_rules_with_their_severity() -> None:
    contract = a_contract(
        RowCountBetween(minimum=2), NotNull(column="x"), NotNull(column="y"), types={"x": Scalar.LONG, "y": Scalar.LONG}
    )
    first, second, third = contract.table_rules
    contract = dataclasses.replace(
        contract, table_rules=(first, dataclasses.replace(second, severity=Severity.WARNING), third)
    )
    results = audit("orders", pa.table({"x": pa.array([None, 1]), "y": [1, 2]}), contract)
    assert [(r.table, r.rule, r.severity, r.passed) for r in results] == [
        ("orders", "rule0", Severity.ERROR, True),
        ("orders", "rule1", Severity.WARNING, False),
        ("orders", "rule2", Severity.ERROR, True),
    ]
    assert not Verdict(results).blocks
    assert Verdict(audit("orders", pa.table({"x": [1], "y": [1]}), contract)).blocks


def test_at_most_twenty_failing_rows_are_shown_and_all_are_counted() -> None:
    result = the_result(pa.array([0] * 5_000 + [1]), Scalar.LONG, Between(column="x", minimum=1))
    assert len(result.failing_rows) == MAX_FAILING_ROWS == 20
    assert result.observed == "5000 of 5001 rows"


def test_failing_rows_name_their_window_and_key_in_plain_values(our_contracts: Path) -> None:
    contract = load_contract(our_contracts / "page_views_by_minute.odcs.yaml")
    rows = page_views(2).set_column(3, "requests", pa.array([1, 0]))
    results = {r.rule: r for r in audit("page_views_by_minute", rows, contract)}
    assert [name for name, r in results.items() if not r.passed] == ["requests.minimum"]
    assert results["requests.minimum"].failing_rows == (
        {"window_start": "2024-01-31T12:01:00Z", "page": "/1", "requests": 0},
    )
    assert json.dumps(results["requests.minimum"].failing_rows)


def page_views(count: int) -> pa.Table:
    starts = [NOON + dt.timedelta(minutes=i) for i in range(count)]
    numbers = {f"status_{n}xx": pa.array([0] * count) for n in (2, 3, 4, 5)}
    return pa.table(
        {
            "window_start": pa.array(starts, pa.timestamp("us", "UTC")),
            "window_end": pa.array([s + dt.timedelta(minutes=1) for s in starts], pa.timestamp("us", "UTC")),
            "page": [f"/{i}" for i in range(count)],
            "requests": pa.array([1] * count),
            "bytes": pa.array([None] * count, pa.int64()),
            "visitors": pa.array([1] * count),
            **numbers,
            "batch_id": pa.array([7] * count),
        }
    )


def test_our_own_contract_passes_good_rows_and_names_what_bad_rows_break(our_contracts: Path) -> None:
    contract = load_contract(our_contracts / "page_views_by_minute.odcs.yaml")
    good = page_views(3)
    assert all(r.passed for r in audit("t", good, contract))
    twice = pa.concat_tables([good, good.slice(0, 1)])
    assert broken(twice, contract) == ["primaryKey"]
    turned = good.rename_columns(
        [{"window_start": "window_end", "window_end": "window_start"}.get(c, c) for c in good.column_names]
    )
    assert broken(turned, contract) == ["window_is_not_empty"]
    nobody = good.set_column(2, "page", pa.nulls(3, pa.string()))
    assert broken(nobody, contract) == ["page.required"]
    negative = good.set_column(4, "bytes", pa.array([None, -1, 0]))
    assert broken(negative, contract) == ["bytes.minimum"]


def broken(rows: pa.Table, contract: Contract) -> list[str]:
    return [r.rule for r in audit("t", rows, contract) if not r.passed]


def test_bytes_objects_and_odd_numbers_are_shown_as_text() -> None:
    rows = pa.table(
        {
            "x": pa.array([None], pa.int64()),
            "b": pa.array([b"\xff"]),
            "o": pa.array([{"a": 1}]),
            "d": pa.array([Exact("1.50")]),
            "t": pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")),
        }
    )
    types: dict[str, DataType] = {
        "x": Scalar.LONG,
        "b": Scalar.BINARY,
        "o": Array(Scalar.LONG),
        "d": Decimal(9, 2),
        "t": Scalar.TIMESTAMP,
    }
    (result,) = audit("orders", rows, a_contract(NotNull(column="x"), types=types))
    assert result.failing_rows == ({"x": None, "b": "/w==", "o": "{'a': 1}", "d": "1.50", "t": "2024-01-31T12:00:00"},)


def test_a_column_that_is_not_staged_is_named() -> None:
    contract = a_contract(NotNull(column="y"), types={"y": Scalar.LONG})
    with pytest.raises(
        ContractError, match="rule `rule0` is about the column `y`, but what is staged for orders has x"
    ):
        audit("orders", pa.table({"x": [1]}), contract)


def test_a_contract_without_table_rules_has_no_results() -> None:
    assert audit("orders", pa.table({"x": [1]}), a_contract(types={"x": Scalar.LONG})) == ()


def test_a_rule_that_cannot_be_computed_is_no_broken_rule() -> None:
    contract = a_contract(Between(column="x", minimum=0), types={"x": Scalar.LONG})
    with pytest.raises(EngineError, match="rule `rule0` could not be checked"):
        audit("orders", pa.table({"x": ["text"]}), contract)


def test_a_value_of_another_type_is_no_allowed_value() -> None:
    for data_type, values in ((Scalar.LONG, [1]), (Scalar.BOOLEAN, [True])):
        assert the_result(pa.array(values), data_type, OneOf(column="x", values=(values[0],))).passed
    assert the_result(pa.array([2]), Scalar.LONG, OneOf(column="x", values=(True,))).passed is False


def test_audits_of_several_threads_do_not_disturb_each_other() -> None:
    contracts = [a_contract(Between(column="x", minimum=n), types={"x": Scalar.LONG}) for n in range(4)]
    rows = pa.table({"x": pa.array(range(4))})
    found: dict[int, str] = {}

    def work(n: int) -> None:
        for _ in range(5):
            found[n] = audit("orders", rows, contracts[n])[0].observed

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: "", 1: "1 of 4 rows", 2: "2 of 4 rows", 3: "3 of 4 rows"}


def test_importing_the_audit_does_not_import_great_expectations() -> None:
    code = (
        "import sys; import tidemill.contracts.audit, tidemill.contracts.load, tidemill.contracts.lint; "
        "print(sorted({'great_expectations', 'pandas', 'pyspark', 'open_data_contract_standard'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
