"""Lint finds everything at once, and never raises for what a file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemill.contracts import document
from tidemill.contracts.findings import Findings, Level
from tidemill.contracts.lint import Finding, lint
from tidemill.core.contract.contract import Severity

GOOD = "- {name: x, logicalType: string, required: true, primaryKey: true, description: Ex.}"


def warnings(findings: list[Finding]) -> list[str]:
    assert all(f.severity is Level.WARNING for f in findings), findings
    return [f.message for f in findings]


def test_all_problems_of_a_file_are_found_in_the_order_of_its_lines(file: Any) -> None:
    path = file.an_output(
        """
        - {name: x, logicalType: uuid}
        - {name: y, logicalType: integer, logicalTypeOptions: {minimum: low, maxLength: 3}}
        - {name: y, logicalType: string, color: red}
        - name: z
          logicalType: string
          quality:
            - {type: sql, query: SELECT 1, mustBe: 0}
            - {metric: rows, mustBe: 1}
        """,
        top="owner: me",
    )
    errors = [f for f in lint(path) if f.severity is Level.ERROR]
    assert [f.message.split(";")[0] for f in errors] == [
        "unknown key `owner` in a contract",
        "logicalType `uuid` cannot be run",
        "`y`.maxLength: cannot be run for this type",
        "`y`.minimum: expected a number of at most 38 digits, found the text 'low'",
        "property `y` stands twice, first in line 11",
        "unknown key `color` in a property",
        "the query cannot be run: it reads `no table`, not its own object",
        "metric rows: unknown",
    ]
    assert [f.line for f in errors] == sorted(f.line for f in errors)
    assert {f.file for f in errors} == {str(path)}
    assert errors[1].fix == "write logicalType: string"


def test_a_good_contract_has_no_findings(file: Any) -> None:
    text = file.an_output(GOOD, top="description: {purpose: To test.}")
    assert lint(text) == []


def test_what_readers_would_miss_is_a_warning(file: Any) -> None:
    path = file.an_output("- {name: x, logicalType: string}")
    assert warnings(lint(path)) == [
        "no description",
        "no primary key: readers do not know which columns identify a row",
        "no rule: every value of the right type passes",
        "`x` has no description",
    ]
    [key] = [found for found in lint(path) if found.message.startswith("no primary key")]
    assert "Leave it out for firings of buffers" in key.fix


@pytest.mark.parametrize(
    "broken",
    [
        "logicalTypeOptions: {minimum: low}",
        "logicalTypeOption: {minimum: 0}",
        "quality: [{metric: nulValues, mustBe: 0}]",
        "primaryKeyPosition: 1",
    ],
)
def test_a_broken_rule_or_key_is_not_missing_as_well(file: Any, broken: str) -> None:
    path = file.an_output(
        f"- {{name: n, logicalType: integer, description: d, {broken}}}", top="description: {purpose: p}"
    )
    [finding] = lint(path)
    assert finding.severity is Level.ERROR


def test_a_topic_needs_no_primary_key(file: Any) -> None:
    path = file.an_input(
        "- {name: n, logicalType: integer, description: A number., logicalTypeOptions: {minimum: 0}}",
        top="description: {purpose: To test.}",
    )
    assert lint(path) == []


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ("cast(x as int) > 0", "`cast` in `CAST(x AS INT)`"),
        ("n / m > 1", "`/` in `n / m`"),
        ("n % m = 1", "`%` in `n % m`"),
        ("n div m = 1", "`div` in `n DIV m`"),
        ("to_date(x) > DATE '2024-01-01'", "`to_date`"),
    ],
)
def test_a_predicate_that_could_fail_a_batch_is_a_warning(file: Any, predicate: str, found: str) -> None:
    quality = f'- type: custom\n  engine: tidemill\n  implementation: "{predicate}"'
    properties = "\n".join(f"- {{name: {c}, logicalType: {t}, description: d}}" for c, t in COLUMNS)
    path = file.an_input(properties, quality=quality, top="description: {purpose: p}")
    (message,) = warnings(lint(path))
    assert message == f"{found} fails the whole batch at the first value that it cannot take"


@pytest.mark.parametrize(
    ("predicate", "says", "fix"),
    [
        ("n + 1", "a condition is true or false, but 'n + 1' is a number", "(n + 1) <> 0"),
        ("x", "a condition is true or false, but 'x' is of type string", "(x) IS NOT NULL"),
        ("x > 0", "x is a text (string), but is compared as a number in 'x > 0'", "try_cast(x AS DOUBLE) > 0"),
        ("n = 'many'", "'many' is compared as a number", "write a number"),
    ],
)
def test_a_predicate_that_is_no_condition_or_converts_a_text_is_refused_with_its_line(
    file: Any, predicate: str, says: str, fix: str
) -> None:
    quality = f'- type: custom\n  engine: tidemill\n  implementation: "{predicate}"'
    properties = "\n".join(f"- {{name: {c}, logicalType: {t}, description: d}}" for c, t in COLUMNS)
    path = file.an_input(properties, quality=quality, top="description: {purpose: p}")
    (finding,) = [each for each in lint(path) if each.severity is Level.ERROR]
    assert says in finding.message
    assert fix in finding.fix
    assert path.read_text().splitlines()[finding.line - 1].strip().startswith("implementation:")


COLUMNS = [("x", "string"), ("n", "integer"), ("m", "integer")]


@pytest.mark.parametrize("predicate", ["try_cast(x as int) > 0", "x <> 'a/b%cast('", "try_divide(n, m) > 1"])
def test_a_predicate_that_cannot_fail_is_no_warning(file: Any, predicate: str) -> None:
    quality = f'- type: custom\n  engine: tidemill\n  implementation: "{predicate}"'
    properties = "\n".join(f"- {{name: {c}, logicalType: {t}, description: d}}" for c, t in COLUMNS)
    assert lint(file.an_input(properties, quality=quality, top="description: {purpose: p}")) == []


@pytest.mark.parametrize("content", [b"\xff", b"", b"a: [", b"12", b"apiVersion: v3.2.0\nschema: 3\nkind: [a]\n"])
def test_an_unreadable_contract_is_a_finding(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.odcs.yaml"
    path.write_bytes(content)
    findings = lint(path)
    assert findings
    assert all(f.severity is Level.ERROR and f.line >= 1 for f in findings)


def test_a_path_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    assert [f.message for f in lint(tmp_path / "a.odcs.yaml")] == ["there is no such file"]


def test_a_folder_is_linted_file_by_file(file: Any, tmp_path: Path) -> None:
    text = file.an_output(GOOD, top="description: {purpose: p}").read_text(encoding="utf-8")
    (tmp_path / "orders.odcs.yaml").unlink(missing_ok=True)
    for name in ("b", "a"):
        wrong = text.replace("kind: DataContract", "kind: X").replace("orders", name)
        (tmp_path / f"{name}.odcs.yaml").write_text(wrong, encoding="utf-8")
    assert [Path(f.file).name for f in lint(tmp_path)] == ["a.odcs.yaml", "b.odcs.yaml"]


def test_names_and_ids_of_contracts_that_differ_or_repeat_are_warnings(file: Any, tmp_path: Path) -> None:
    text = file.an_output(GOOD, top="description: {purpose: p}").read_text(encoding="utf-8")
    [made] = tmp_path.glob("*.odcs.yaml")
    assert lint(tmp_path) == []
    (tmp_path / "z.odcs.yaml").write_text(text, encoding="utf-8")
    named, same = lint(tmp_path)
    assert [Path(f.file).name for f in (named, same)] == ["z.odcs.yaml", "z.odcs.yaml"]
    name = made.name.removesuffix(".odcs.yaml")
    assert named.message.startswith(f"the schema is called `{name}`, the file `z`")
    assert same.message.endswith(f"is that of {made.name}, too")
    assert {f.severity for f in (named, same)} == {Level.WARNING}


def test_a_table_of_windows_needs_no_primary_key(file: Any) -> None:
    columns = "\n".join(f"- {{name: window_{end}, logicalType: timestamp, description: d}}" for end in ("start", "end"))
    found = [f.message for f in lint(file.an_output(columns, top="description: {purpose: p}"))]
    assert not any("primary key" in message for message in found)


def test_a_folder_without_a_contract_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.odcs.yaml").write_text("", encoding="utf-8")
    (tmp_path / "notes.yaml").write_text("kind: Deployment", encoding="utf-8")
    (finding,) = lint(tmp_path)
    assert finding.severity is Level.ERROR
    assert finding.message == "no contract in this folder or below it, found no *.odcs.yaml"


def test_two_files_with_the_name_of_one_contract_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    paths = [tmp_path / "a.odcs.yaml", tmp_path / "below" / "a.yml"]
    for path in paths:
        path.write_text("kind: DataContract", encoding="utf-8")
    twice = [f for f in lint(tmp_path) if f.message == f"two files are the contract `a`: {paths[0]} and {paths[1]}"]
    assert [(f.file, f.severity, f.fix) for f in twice] == [(str(paths[1]), Level.ERROR, "rename one of them")]


def test_each_schema_object_of_a_file_is_linted(file: Any, an_output: Any) -> None:
    an_output("- {name: x, logicalType: string}")
    path = Path(an_output("- {name: x, logicalType: string}").source)
    broken = "  - name: second\n    properties: [{name: y, logicalType: strings}]\n"
    path.write_text(path.read_text(encoding="utf-8") + broken, encoding="utf-8")
    found = lint(path)
    assert len(found) == len(set(found))
    assert [f.line for f in found if f.severity is Level.ERROR] == [len(path.read_text(encoding="utf-8").splitlines())]
    assert {"`x` has no description", "`y` has no description"} <= {f.message for f in found}


def test_a_fault_that_nobody_foresaw_is_a_finding_and_hides_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise RuntimeError("so deep")

    monkeypatch.setattr("tidemill.contracts.compile.compile_document", defect)
    (tmp_path / "a.odcs.yaml").write_text("a: 1", encoding="utf-8")
    (tmp_path / "b.odcs.yaml").write_text("", encoding="utf-8")
    assert [f.message for f in lint(tmp_path)] == [
        "cannot be used: unexpected RuntimeError: so deep",
        "the document is empty",
    ]


def test_a_finding_prints_as_file_line_and_message() -> None:
    finding = Finding(file="a.odcs.yaml", line=7, severity=Severity.WARNING, message="no description")
    assert str(finding) == "a.odcs.yaml:7: no description"


def test_a_file_is_read_once(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file.an_output("- {name: x, logicalType: string}")
    read: list[str] = []
    parse = document.parse

    def counted(text: str, findings: Findings, *, first_line: int = 1) -> document.Node | None:
        read.append(text)
        return parse(text, findings, first_line=first_line)

    monkeypatch.setattr(document, "parse", counted)
    lint(path)
    assert len(read) == 1
