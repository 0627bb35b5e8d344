"""Which rows a rule looks at: what a contract may ask, what an audit counts, and who says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.commands import type_command
from tidemill.contracts.audit import audit
from tidemill.contracts.lint import lint
from tidemill.contracts.load import load_contract
from tidemill.core.contract.contract import Contract, Severity
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.verdict import CheckResult, Verdict, blocked
from tidemill.core.identity.contracts import fingerprint_of
from tidemill.core.protocol.codec import from_json, to_json

COLUMNS = "- {name: x, logicalType: integer}\n- {name: d, logicalType: number}"
SCOPE = "customProperties: [{property: scope, value: table}]"


class Kept:
    """A table of windows that keeps these rows, in parts of one row."""

    is_of_rows = False

    def __init__(self, rows: pa.Table) -> None:
        self.of, self.read = rows, list[str]()

    def rows(self, columns: Sequence[str]) -> None:
        return None

    def kept(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        self.read += columns
        yield from (self.of.slice(n, 1).select(columns or ["d"]) for n in range(len(self.of)))


def where(rows: pa.Table, columns: Sequence[str], predicate: str) -> pa.Table:
    """Answers `NOT (x % 2 = 0)`, in words of SQL."""
    odd = [n for n, x in enumerate(rows["x"].to_pylist()) if x is not None and x % 2]
    return rows.select(list(columns)).take(pa.array(odd, pa.int64()))


def rows(*values: int | None) -> pa.Table:
    return pa.table(
        {"x": pa.array(values, pa.int64()), "d": pa.array([1.0] * len(values)), "more": ["z"] * len(values)}
    )


def found(contract: Contract, *kept: int | None) -> tuple[CheckResult, list[str]]:
    beside = Kept(rows(*kept))
    [result] = audit("t", rows(1, None, 2), contract, beside, where)
    return result, beside.read


@pytest.mark.parametrize(
    ("rule", "kept", "observed", "expected"),
    [
        ("metric: rowCount, mustBeLessThan: 5", (7,), "", None),
        ("metric: rowCount, mustBeLessThan: 5", (7, 8), "5 rows", "at most 4 rows"),
        ("metric: rowCount, mustNotBe: 5", (7, 8), "5 rows", "any number but 5 rows"),
        ("metric: rowCount, mustBe: 1", (), "3 rows", "exactly 1 row"),
        (
            "{metric: nullValues, mustBeLessThan: 40, unit: percent}",
            (None,),
            "2 of 4 rows",
            "that less than 40 percent of the rows break this: x is there",
        ),
        (
            "{metric: duplicateValues, mustBeLessOrEqualTo: 1}",
            (2, 5, None),
            "2 of 6 rows",
            "that at most 1 row break this: no two rows have the same x",
        ),
        (
            "{type: sql, query: SELECT COUNT(*) FROM orders WHERE x % 2 = 1, mustBeLessThan: 2}",
            (3,),
            "2 of 4 rows",
            "that less than 2 rows break this: NOT ((x % 2 = 1))",
        ),
    ],
)
def test_a_rule_about_the_table_counts_what_it_keeps(
    file: Any, rule: str, kept: tuple[int | None, ...], observed: str, expected: str | None
) -> None:
    at_column = rule.startswith("{metric")
    scoped = f"{rule.strip('{}')}, {SCOPE}"
    columns = COLUMNS.replace("integer}", f"integer, quality: [{{{scoped}}}]}}") if at_column else COLUMNS
    path = file.an_output(columns, quality="" if at_column else f"- {{{scoped}}}")
    result, read = found(load_contract(path), *kept)
    assert (result.observed, result.expected, result.scope) == (observed, expected, Scope.TABLE)
    assert set(read) <= {"x"}


def test_a_rule_about_the_batch_reads_nothing_of_the_table(an_output: Any) -> None:
    result, read = found(an_output(COLUMNS, quality="- {metric: rowCount, mustBeLessThan: 4}"), *range(100))
    assert (result.passed, result.scope, read) == (True, Scope.BATCH, [])


def test_a_statistic_about_the_table_is_computed_of_all_rows(an_output: Any) -> None:
    mean = "implementation: {type: expect_column_max_to_be_between, kwargs: {max_value: 5}}"
    columns = COLUMNS.replace(
        "integer}", f"integer, quality: [{{type: custom, engine: greatExpectations, name: m, {mean}, {SCOPE}}}]}}"
    )
    result, _ = found(an_output(columns), 9)
    assert (result.observed, result.expected) == ("observed 9", "max of x at most 5")
    assert found(an_output(columns), 4)[0].passed


@pytest.mark.parametrize(
    ("rule", "message", "fix"),
    [
        ("{metric: nullValues, mustBe: 0, SCOPE}", "scope: table makes no difference here", "remove it"),
        (
            "{metric: nullValues, mustBeLessThan: 9, customProperties: [{property: scope, value: tabel}]}",
            "is the text 'tabel'",
            "table",
        ),
        (
            "{metric: nullValues, mustBeLessThan: 9, customProperties: [{property: scoop, value: table}]}",
            "unknown custom property `scoop`",
            "scope",
        ),
        ("{metric: nullValues, mustBeLessThan: 9, customProperties: [{property: scope}]}", "is nothing", ""),
        (
            "{metric: nullValues, mustBeLessThan: 9, "
            "customProperties: [{property: scope, value: table}, {property: scope, value: batch}]}",
            "`scope` stands twice",
            "",
        ),
    ],
)
def test_a_scope_that_means_nothing_is_refused(file: Any, rule: str, message: str, fix: str) -> None:
    path = file.an_output(f"- {{name: x, logicalType: integer, quality: [{rule.replace('SCOPE', SCOPE)}]}}")
    errors = [f for f in lint(path) if f.severity == "error"]
    assert any(message in error.message and fix in error.fix for error in errors), errors


def test_a_rule_of_records_has_no_scope(file: Any) -> None:
    path = file.an_input(f"- {{name: x, logicalType: integer, quality: [{{metric: nullValues, mustBe: 0, {SCOPE}}}]}}")
    assert any("scope belongs to rules of published tables" in f.message for f in lint(path))


def test_properties_of_others_are_information(file: Any) -> None:
    theirs = "{property: scoop, vendor: v, value: 1}, {property: by, value: me}"
    rule = f"{{metric: nullValues, mustBe: 0, customProperties: [{theirs}]}}"
    said = {
        f.message: f.severity for f in lint(file.an_output(f"- {{name: x, logicalType: integer, quality: [{rule}]}}"))
    }
    assert said["custom property `by` is not Tidemill's"] == "information"
    assert "error" not in said.values()


def test_lint_says_which_rows_rules_look_at(file: Any, tmp_path: Path) -> None:
    quality = f"- {{metric: rowCount, mustBe: 1, {SCOPE}}}\n- {{metric: rowCount, name: own, mustBe: 1}}"
    columns = "- {name: x, logicalType: integer, required: true, unique: true, logicalTypeOptions: {minimum: 1}}"
    file.an_output(columns, quality=quality)
    assert "looks at" not in type_command(None, "contract", "lint", tmp_path).out
    said = type_command(None, "contract", "lint", tmp_path, "--verbose", "--json")
    assert [f["message"] for f in map(json.loads, said.out.splitlines()) if f["severity"] == "information"] == [
        "rule `rowCount` looks at all rows of the table, as they are after the batch",
        "rule `own` looks at the rows of one batch",
        "rule `x.unique` looks at all rows of the table; in a table of windows, only the rows of one batch",
    ]


def test_only_a_scope_of_the_table_changes_a_fingerprint(an_output: Any) -> None:
    contract = an_output(COLUMNS, quality="- {metric: rowCount, mustBeLessThan: 4}")
    [rule] = contract.table_rules
    scoped = replace(contract, table_rules=(replace(rule, scope=Scope.TABLE),))
    assert fingerprint_of(scoped) != fingerprint_of(contract)
    batch = an_output(
        COLUMNS,
        quality="- {metric: rowCount, mustBeLessThan: 4, customProperties: [{property: scope, value: batch}]}",
    )
    assert batch.fingerprint == contract.fingerprint


def test_a_change_of_scope_is_a_change_for_readers(file: Any, tmp_path: Path) -> None:
    rule = "{metric: rowCount, mustBeLessThan: 4}"
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, text in ((old, rule), (new, rule.replace("}", f", {SCOPE}}}"))):
        folder.mkdir()
        replace(file, folder=folder).an_output(COLUMNS, quality=f"- {text}")
    said = type_command(None, "contract", "diff", old, new, "--json")
    [change] = [each for each in map(json.loads, said.out.splitlines()) if "rowCount" in json.dumps(each)]
    assert (said.code, change["breaks"]) == (1, ["readers"])


def test_a_blocked_batch_says_what_was_expected_and_which_rows_were_looked_at() -> None:
    result = CheckResult(
        table="t",
        rule="few",
        severity=Severity.ERROR,
        passed=False,
        observed="9 rows",
        expected="at most 5 rows",
        scope=Scope.TABLE,
    )
    said = str(blocked("p", 1, Verdict((result,))))
    assert "error t: few: 9 rows; expected at most 5 rows; it looked at the whole table" in said
    assert from_json(CheckResult, to_json(result)) == result


def test_a_verdict_of_an_older_version_is_read() -> None:
    stored = '{"table":"t","rule":"r","severity":"error","passed":false,"observed":"1 of 2 rows","failing_rows":[]}'
    result = from_json(CheckResult, stored)
    assert str(result) == "error t: r: 1 of 2 rows"
    assert to_json(result) == to_json(from_json(CheckResult, stored))
