"""`tidemill contract infer`: a first contract from a sample."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import write_deltalake

from support.commands import Said, type_command
from tidemill.cli.commands.contract_infer import _OF_CSV
from tidemill.contracts.lint import lint


def inferred(sample: Path, *words: object) -> tuple[Path, dict[str, dict[str, Any]], Said]:
    """The contract as a file that lint accepts, its columns by name, and what was said."""
    said = type_command(None, "contract", "infer", sample, "--name", "it", *words)
    assert said.code == 0, said.err
    assert type_command(None, "contract", "infer", sample, "--name", "it", *words) == said
    path = sample.parent / "it.odcs.yaml"
    path.write_text(said.out, encoding="utf-8")
    assert [f for f in lint(path) if f.severity == "error"] == []
    (schema,) = yaml.safe_load(said.out)["schema"]
    return path, {p["name"]: p for p in schema["properties"]}, said


def holds(contract: Path, sample: Path) -> bool:
    return type_command(None, "contract", "test", contract, sample).code == 0


def as_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def test_types_and_required_fields_hold_for_the_sample(tmp_path: Path) -> None:
    sample = as_lines(
        tmp_path / "a.jsonl",
        {"ts": "2026-01-01T10:00:00Z", "day": "2026-01-01", "n": 1, "x": 1, "b": True, "o": {"a": [{"c": 1}]}},
        {"ts": "2026-01-01 10:00", "day": "2026-02-28", "n": 2, "x": 1.5, "b": None, "o": {"a": []}, "late": "a"},
    )
    path, columns, said = inferred(sample)
    types = {name: column["logicalType"] for name, column in columns.items()}
    plain = {"ts": "timestamp", "day": "date", "n": "integer", "x": "number", "b": "boolean", "late": "string"}
    assert types == {**plain, "o": "object"}
    assert {name for name, column in columns.items() if column.get("required")} == {"ts", "day", "n", "x", "o"}
    assert columns["late"]["description"] == "In 1 of 2 records."
    (inner,) = columns["o"]["properties"]
    assert (inner["required"], inner["items"]["properties"][0]["required"]) == (True, True)
    assert "Inferred from 2 records." in said.out
    assert said.err == ""
    assert holds(path, sample)


@pytest.mark.parametrize(
    "value",
    [
        *(2**31, -(2**63), 2**63, 10**37, 10**38, 10**400, -1.5e300),
        *(
            "2026-02-29",
            "2026-01-01T25:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "20260101",
            "2026-01-01T10:00:00.1234567Z",
        ),
        *("", " ", "no", "null", "1e5", "\x00\x1f", "ü𝄞", {"no": "yes", "1": {"~": 0}}, [[1], []]),
    ],
    ids=repr,
)
def test_one_record_of_any_value_gives_a_contract_that_takes_it(tmp_path: Path, value: object) -> None:
    sample = as_lines(tmp_path / "a.jsonl", {"v": value, "other": 1})
    path, columns, _ = inferred(sample)
    assert "other" in columns
    assert holds(path, sample)


def test_what_has_no_one_type_or_no_usable_name_is_left_out_and_named(tmp_path: Path) -> None:
    record = {'a"b': 1, "": 1, "A": 1, "a": 1, "_extra": 1, "_offset": 1, "none": None, "empty": [], "mixed": [1, "a"]}
    sample = as_lines(tmp_path / "a.jsonl", {**record, "o": {}, "é: #'": 1})
    path, columns, said = inferred(sample)
    assert list(columns) == ["A", "é: #'"]
    for name in ('a"b', "", "a", "_extra", "_offset", "none", "empty[]", "mixed[]", "o"):
        assert f"warning: `{name}` is left out: " in said.err
    assert holds(path, sample)


def test_lines_that_are_no_objects_and_keys_that_stand_twice_are_named(tmp_path: Path) -> None:
    sample = tmp_path / "a.jsonl"
    sample.write_bytes(b'{"a":1}\n\xff\n[]\n{"a":1,"a":2}\n' + b"[" * 5000 + b'\n{"a":NaN}\n{"a":"\\ud800"}\n')
    said = type_command(None, "contract", "infer", sample)
    assert said.code == 0
    assert said.err.splitlines() == [
        "warning: 5 lines (2, 3, 5, 6, 7): no JSON object, and not looked at",
        "warning: 1 line (4): an object with a key twice, which a pipeline rejects; not looked at",
    ]
    assert "In 1 of 1 record." in said.out


def test_an_enum_needs_few_values_in_many_records(tmp_path: Path) -> None:
    many = [{"kind": "ab"[n % 2], "id": f"x{n}", "rare": "once" if n == 7 else "often"} for n in range(200)]
    _, columns, _ = inferred(as_lines(tmp_path / "a.jsonl", *many))
    (rule,) = columns["kind"]["quality"]
    assert (rule["arguments"]["validValues"], rule["severity"]) == (["a", "b"], "warning")
    assert "quality" not in {*columns["id"], *columns["rare"]}
    _, columns, _ = inferred(as_lines(tmp_path / "a.jsonl", *many[:199]))
    assert "quality" not in columns["kind"]


def test_csv_gives_a_contract_of_its_lines(tmp_path: Path) -> None:
    sample = tmp_path / "a.csv"
    sample.write_text("zip;n;when;x;b;\n01234;1;2026-01-01;1.5;true;a\n99999;2;2026-01-02;2;false;\n")
    path, columns, said = inferred(sample, "--delimiter", ";")
    assert said.err == f"({_OF_CSV})\n"
    types = ["string", "integer", "date", "number", "boolean", "string"]
    assert [column["logicalType"] for column in columns.values()] == types
    assert list(columns) == ["zip", "n", "when", "x", "b", "column_6"]
    assert "required" not in columns["column_6"]
    body = tmp_path / "body.csv"
    body.write_text("".join(sample.read_text().splitlines(keepends=True)[1:]))
    assert holds(path, body)


def test_a_column_of_csv_that_is_always_empty_is_a_guess_and_says_so(tmp_path: Path) -> None:
    sample = tmp_path / "a.csv"
    sample.write_text("n,gap,seldom\n" + "1,,\n" * 250 + "2,,x\n")
    path, columns, said = inferred(sample)
    assert columns["gap"] == {
        "name": "gap",
        "logicalType": "string",
        "description": "Empty in 251 records: the type is a guess, check it.",
    }
    assert columns["seldom"]["description"] == "In 1 of 251 records."
    assert said.err.splitlines() == [
        "warning: `gap` is always empty: that it is a string is a guess",
        f"({_OF_CSV})",
    ]
    body = tmp_path / "body.csv"
    body.write_text("".join(sample.read_text().splitlines(keepends=True)[1:]))
    assert holds(path, body)
    # Whatever stands there one day is a string, too.
    body.write_text("3,2026-01-01,\n")
    assert holds(path, body)


def test_csv_with_nothing_but_empty_cells_gives_strings_that_are_guesses(tmp_path: Path) -> None:
    sample = tmp_path / "a.csv"
    sample.write_text("a,b\n,\n,\n")
    _, columns, said = inferred(sample)
    assert [(c["logicalType"], c["description"]) for c in columns.values()] == [
        ("string", "Empty in 2 records: the type is a guess, check it.")
    ] * 2
    assert said.err.count("is a guess") == 2


def test_a_column_of_parquet_without_a_type_is_left_out_and_named(tmp_path: Path) -> None:
    sample = tmp_path / "a.parquet"
    rows = pa.table({"id": [1], "gap": pa.array([None], pa.null()), "text": pa.array([None], pa.string())})
    pq.write_table(rows, sample)
    _, columns, said = inferred(sample)
    assert list(columns) == ["id", "text"]
    assert said.err == "warning: `gap` is left out: it is always null, so it has no type\n"


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_rows_with_types_keep_them(tmp_path: Path, form: str) -> None:
    moments = pa.array([0, 1], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": [1, 2], "ts": moments, "s": ["a", None], "m": pa.array([{"a": 1}, None])})
    sample = tmp_path / f"a.{form}"
    if form == "delta":
        write_deltalake(str(sample), rows)
    else:
        pq.write_table(rows, sample)
    path, columns, _ = inferred(sample)
    assert [c["logicalType"] for c in columns.values()] == ["integer", "timestamp", "string", "object"]
    assert {n for n, c in columns.items() if c.get("required")} == {"id", "ts"}
    assert holds(path, sample)


def test_parquet_is_a_table_unless_it_is_said_to_hold_records(tmp_path: Path) -> None:
    sample = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1], "t": pa.array([0], pa.timestamp("us"))}), sample)
    of_table = type_command(None, "contract", "infer", sample)
    assert "format" not in of_table.out
    assert "`t` is left out: its times have no zone" in of_table.err
    of_records = type_command(None, "contract", "infer", sample, "--of", "records")
    assert "value: json" in of_records.out
    assert ("records of this contract are lines of JSON" in of_records.err, "name: t" in of_records.out) == (True, True)


def test_what_a_contract_is_about_is_not_said_of_what_it_cannot_be(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "rows"), pa.table({"id": [1]}))
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    for sample, of in (("rows", "records"), ("a.jsonl", "table")):
        said = type_command(None, "contract", "infer", tmp_path / sample, "--of", of)
        assert said.code == 5
        assert f"fix: leave out --of {of}" in said.err


def test_nothing_can_be_inferred_from_nothing(tmp_path: Path) -> None:
    for name, text in {"a.jsonl": "", "b.jsonl": "[]\n", "c.csv": "", "d.csv": "a,b\n", "e.csv": "a,b\n1\n"}.items():
        (tmp_path / name).write_text(text)
        said = type_command(None, "contract", "infer", tmp_path / name)
        assert (said.code, said.out) == (5, "")
        assert said.err.startswith("error: ")
        assert "fix: " in said.err
    assert type_command(None, "contract", "infer", tmp_path / "nowhere").code == 5


def test_a_column_of_csv_keeps_its_place_whatever_its_header(tmp_path: Path) -> None:
    sample = tmp_path / "a.csv"
    sample.write_text('a,A,,"q""q",_offset,z\n1,x,2,y,3,true\n', encoding="utf-8")
    _, columns, said = inferred(sample)
    types = {name: column["logicalType"] for name, column in columns.items()}
    numbered = {"column_2": "string", "column_3": "integer", "column_4": "string", "column_5": "integer"}
    assert types == {"a": "integer", **numbered, "z": "boolean"}
    assert [line.split(":")[1].split("header ")[1] for line in said.err.splitlines()[:-1]] == [
        "'A' stands twice",
        "'q\"q' is no name that a column can have",
        "'_offset' is no name that a column can have",
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason", "fix"),
    [
        ("a.csv", b"a;b\n1;2\n", "the header is one cell, 'a;b'", "--delimiter ';'"),
        ("a.csv", b"a\tb\n1\t2\n", "the header is one cell", "--delimiter $'"),
        ("a.jsonl", b'{\n "a": 1\n}\n', "3 lines (1, 2, 3): no JSON object", "one object a line"),
        ("a.jsonl", b"[1]\n", "1 line (1): no JSON object", "one object a line"),
        ("a.jsonl", '{"a": 1}\n'.encode("utf-16"), "no JSON object", "in UTF-8"),
        ("a.jsonl", b'{"a": NaN}\n', "no JSON object", ""),
        ("a.jsonl", b'{"a": true}\n{"a": 1}\n', "1 times boolean and 1 times integer", ""),
        ("a.parquet", None, "there is no such file", "check its path"),
    ],
)
def test_the_reason_is_said_where_nothing_can_be_inferred(
    tmp_path: Path, name: str, content: bytes | None, reason: str, fix: str
) -> None:
    sample = tmp_path / name
    if content is not None:
        sample.write_bytes(content)
    said = type_command(None, "contract", "infer", sample)
    shown = " ".join(said.err.split())
    assert (said.code != 0, reason in shown, fix in shown) == (True, True, True), shown


def test_a_name_that_is_a_path_is_refused(tmp_path: Path) -> None:
    sample = as_lines(tmp_path / "a.jsonl", {"a": 1})
    said = type_command(None, "contract", "infer", sample, "--name", "a/b")
    assert (said.code, "use letters" in said.err) == (5, True)


def test_a_table_with_a_broken_log_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / "00000000000000000000.json").write_text("{garbage", encoding="utf-8")
    said = type_command(None, "contract", "infer", tmp_path / "t")
    assert (said.code, len(said.err.splitlines()), "_delta_log" in said.err) == (6, 2, True), said.err


def test_parquet_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    sample = tmp_path / "twice.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]), sample)
    (tmp_path / "t.sql").write_text("CREATE TABLE t (id BIGINT PRIMARY KEY);\n", encoding="utf-8")
    table, records = tmp_path / "t.odcs.yaml", tmp_path / "r.odcs.yaml"
    table.write_text(type_command(None, "contract", "import", "sql", tmp_path / "t.sql").out, encoding="utf-8")
    lines = as_lines(tmp_path / "a.jsonl", {"id": 1})
    records.write_text(type_command(None, "contract", "infer", lines).out, encoding="utf-8")
    for words in (("infer", sample), ("test", table, sample)):
        said = type_command(None, "contract", *words)
        assert (said.code, f"{sample}: the column `id` stands twice in it" in said.err) == (5, True), said.err
    said = type_command(None, "contract", "test", records, sample)
    assert (said.code, "has columns twice: id" in said.err) == (5, True), said.err


def test_the_parser_of_sql_logs_nothing_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    script.write_text("CREATE TABLE a (id BIGINT);\nALTER TABLE a ENABLE ROW LEVEL SECURITY;\n", encoding="utf-8")
    words = ["contract", "import", "sql", str(script), "--dialect", "postgres"]
    start = "import sys; from tidemill.cli.main import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True, check=True)
    assert done.stderr == "warning: ALTER TABLE a ENABLE ROW LEVEL SECURITY is not applied\n"
