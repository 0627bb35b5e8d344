"""`tidemill contract test`: a contract against records and tables, without a batch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from cli.conftest import Type
from support.commands import type_command

HEAD = "apiVersion: v3.1.0\nkind: DataContract\nid: it\nversion: 1.0.0\nstatus: active\nschema:\n"
ORDERS = f"""{HEAD}  - name: orders
    logicalType: object
    description: One order.
    customProperties:
      - {{property: format, value: json}}
    properties:
      - {{name: ts, logicalType: timestamp, required: true, description: when}}
      - {{name: shop, logicalType: string, description: where, logicalTypeOptions: {{pattern: "[a-z]+"}}}}
      - {{name: cents, logicalType: integer, description: total, logicalTypeOptions: {{minimum: 0}}}}
    quality:
      - {{type: custom, engine: tidemill, name: paid, severity: warning, implementation: "cents > 0 OR shop = 'void'"}}
"""
SUMS = f"""{HEAD}  - name: sums
    logicalType: object
    description: Sums.
    properties:
      - {{name: id, logicalType: integer, required: true, primaryKey: true, description: who}}
      - {{name: v, logicalType: number, description: what, logicalTypeOptions: {{minimum: 0}}}}
"""
FORMS = ("junit", "sarif", "github")
GOOD = {"ts": "2026-01-01T00:00:00Z", "shop": "north", "cents": 5}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.odcs.yaml"
    path.write_text(ORDERS, encoding="utf-8")
    return path


@pytest.fixture
def sums_contract(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.odcs.yaml"
    path.write_text(SUMS, encoding="utf-8")
    return path


def lines(*records: dict[str, object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def try_it(contract: Path, data: object, *words: object, given: bytes | str = "") -> dict[str, dict[str, object]]:
    """What each rule said, by its name; and the exit code, as `code`."""
    said = type_command(None, "contract", "test", contract, data, "--json", *words, given=given)
    return {line["rule"]: line for line in said.lines} | {"code": {"is": said.code}}


def test_records_that_keep_every_promise_end_with_zero(orders: Path) -> None:
    said = type_command(None, "contract", "test", orders, "-", given=lines(GOOD, GOOD))
    assert (said.code, said.out) == (0, "2 records: 3 of 3 rules hold\n")


def test_each_broken_promise_is_counted_with_its_line_and_samples(orders: Path) -> None:
    bad = lines(GOOD, {**GOOD, "ts": "noon"}, {**GOOD, "shop": "N"}, {**GOOD, "cents": -1}, {**GOOD, "cents": -2})
    found = try_it(orders, "-", given=bad + "\xff{\n")
    assert found["code"] == {"is": 5}
    assert {rule: said["message"] for rule, said in found.items() if said.get("message")} == {
        "wrong_value(ts)": "1 of 6 records",
        "malformed_json": "1 of 6 records",
        "shop.pattern": "1 of 6 records",
        "cents.minimum": "2 of 6 records",
        "paid": "2 of 6 records",
    }
    told = {rule: said["is_rule"] for rule, said in found.items() if "is_rule" in said}
    assert {rule for rule, is_rule in told.items() if not is_rule} == {"wrong_value(ts)", "malformed_json"}
    assert type_command(None, "contract", "test", orders, "-", given=bad + "\xff{\n").out.endswith(
        "6 records: 0 of 3 rules hold, and 2 other things are wrong\n"
    )
    text = ORDERS.splitlines()
    assert "cents" in text[int(str(found["cents.minimum"]["line"])) - 1]
    assert "name: ts" in text[int(str(found["wrong_value(ts)"]["line"])) - 1]
    numbers = [sample["record"] for sample in found["cents.minimum"]["samples"]]  # type: ignore[attr-defined]
    assert numbers == [4, 5]


def test_a_warning_ends_with_zero_unless_warnings_fail(orders: Path) -> None:
    one = lines({**GOOD, "cents": 0})
    assert try_it(orders, "-", given=one)["code"] == {"is": 0}
    found = try_it(orders, "-", "--fail-on", "warning", given=one)
    assert found["code"] == {"is": 5}
    assert (found["paid"]["severity"], found["paid"]["message"]) == ("warning", "1 of 1 record")


def test_systems_of_ci_get_what_is_broken_with_file_and_line(orders: Path) -> None:
    words = ("contract", "test", orders, "-")
    said = type_command(None, *words, "--format", "github", given=lines({**GOOD, "shop": "N"}))
    (told,) = [line for line in said.out.splitlines() if "shop.pattern" in line]
    assert told.startswith("::error ")
    assert "orders.odcs.yaml,line=14" in told
    assert said.code == 5
    for form in ("junit", "sarif"):
        assert "shop.pattern" in type_command(None, *words, "--format", form, given=lines({**GOOD, "shop": "N"})).out


def test_nothing_to_look_at_is_no_success(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    said = type_command(None, "contract", "test", orders, tmp_path / "empty")
    assert (said.code, said.out) == (7, "nothing to look at\n")


def test_rows_of_csv_and_parquet_are_records_in_json(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,shop\n2026-01-01T00:00:00Z,north\n2026-01-01T00:00:00Z,N\n")
    assert try_it(orders, tmp_path / "a.csv")["shop.pattern"]["message"] == "1 of 2 records"
    pq.write_table(pa.table({"ts": ["2026-01-01T00:00:00Z"], "cents": [-1]}), tmp_path / "a.parquet")
    assert try_it(orders, tmp_path / "a.parquet")["cents.minimum"]["message"] == "1 of 1 record"


@pytest.mark.parametrize("words", [(), ("--input-format", "csv")])
def test_what_is_wrong_with_csv_is_mended_by_no_option_of_another_command(
    orders: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for text in ("ts,shop\n2026-01-01T00:00:00Z\n", 'ts,shop\n2026-01-01T00:00:00Z,"\n', "ts,shop\na,\udcff\n"):
        (tmp_path / "a.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
        said = type_command(None, "contract", "test", orders, tmp_path / "a.csv", *words)
        assert (said.code, "a.csv" in said.err) == (5, True), said.err
        assert "--raw" not in said.err
        assert "--delimiter" not in said.err


def test_a_contract_of_csv_takes_its_own_lines(orders: Path, tmp_path: Path) -> None:
    orders.write_text(ORDERS.replace("value: json", "value: csv"))
    (tmp_path / "a.csv").write_text("2026-01-01T00:00:00Z,north,5\n2026-01-01T00:00:00Z,N,5\n")
    found = try_it(orders, tmp_path / "a.csv")
    assert (found["decoded"]["holds"], found["shop.pattern"]["message"]) == (True, "1 of 2 records")


@pytest.mark.parametrize("form", ["delta", "parquet", "jsonl"])
def test_rows_of_a_table_are_audited_together(sums_contract: Path, tmp_path: Path, form: str) -> None:
    rows = pa.table({"id": [1, 1, 2, None], "v": [0.0, -2.0, 3.0, None]})
    place = tmp_path / f"rows.{form}"
    if form == "delta":
        write_deltalake(str(place), rows)
    elif form == "parquet":
        pq.write_table(rows, place)
    else:
        place.write_text(lines(*({k: v for k, v in r.items() if v is not None} for r in rows.to_pylist()[:3])))
    found = try_it(sums_contract, place)
    count = 3 if form == "jsonl" else 4
    assert (found["primaryKey"]["message"], found["v.minimum"]["message"]) == (
        f"2 of {count} rows",
        f"1 of {count} rows",
    )
    assert found["id.required"]["message"] == ("" if form == "jsonl" else "1 of 4 rows")
    assert found["code"] == {"is": 5}


def test_conditions_and_counts_in_sql_of_a_table_are_tried(sums_contract: Path, tmp_path: Path) -> None:
    text = sums_contract.read_text(encoding="utf-8")
    rules = (
        "      - {type: custom, engine: tidemill, name: odd, implementation: 'id % 2 = 1 OR id > 10'}\n"
        "      - {type: sql, name: few, query: 'SELECT COUNT(*) FROM ${object} WHERE id > 10', mustBe: 3}\n"
    )
    assert "    quality:\n" not in text
    sums_contract.write_text(f"{text}    quality:\n{rules}", encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(lines(*({"id": n, "v": 1} for n in (1, 2, 12))), encoding="utf-8")
    tried = try_it(sums_contract, tmp_path / "rows.jsonl")
    assert tried["odd"]["message"] == "1 of 3 rows"
    assert tried["few"]["message"] == "1 of 3 rows"
    assert tried["few"]["expected"] == "that exactly 3 rows break this: NOT ((id > 10))"


def test_a_table_without_a_column_or_with_another_type_says_so(sums_contract: Path, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "rows"), pa.table({"v": ["a"]}))
    found = try_it(sums_contract, tmp_path / "rows")
    assert found["id.type"]["message"] == "there is no such column"
    assert found["v.type"]["message"] == "the column is string, the contract says double"
    assert found["v.minimum"]["message"] == "cannot be checked: `v` is wrong"


def test_what_is_asked_wrongly_is_told_without_a_stack_trace(orders: Path, tmp_path: Path, tidemill: Type) -> None:
    write_deltalake(str(tmp_path / "rows"), pa.table({"v": ["a"]}))
    for words, expected in {
        (orders, tmp_path / "rows"): "is about records of the format json",
        (orders, tmp_path / "nowhere"): "does not exist",
        ("event", "-"): "did you mean `events`?",
        (f"{orders}#other", "-"): "has no schema object called `other`",
        (tmp_path / "nowhere.yaml", "-"): "there is no such file",
    }.items():
        said = tidemill("contract", "test", *words)
        assert said.code == 5
        assert expected in said.err
    assert tidemill("contract", "test", "events#events", "-", given=lines({"ts": GOOD["ts"]})).code == 0


def test_reports_name_rules_that_hold_and_show_what_broke_the_others(orders: Path, tmp_path: Path) -> None:
    bad = lines(GOOD, {**GOOD, "cents": -7})
    said = {f: type_command(None, "contract", "test", orders, "-", "--format", f, given=bad).out for f in FORMS}
    cases = re.findall(r'<testcase name="(\S+) in line', said["junit"])
    assert sorted(cases) == ["cents.minimum", "decoded", "paid", "shop.pattern"]
    assert 'tests="4" failures="1"' in said["junit"]
    for form in FORMS:
        assert "-7" in said[form], form


def test_samples_of_tables_are_json(sums_contract: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "v": [-1.5]}), tmp_path / "rows.parquet")
    found = try_it(sums_contract, tmp_path / "rows.parquet")
    (sample,) = found["v.minimum"]["samples"]  # type: ignore[misc]
    assert json.loads(sample["text"])["v"] == -1.5


def test_no_line_of_a_report_begins_with_what_a_record_says(orders: Path) -> None:
    bad = lines({**GOOD, "shop": "A\n::error::x\x1b[31m"}) + "::error::y\n"
    for form in ("text", "github"):
        said = type_command(None, "contract", "test", orders, "-", "--format", form, given=bad)
        assert [line for line in said.out.splitlines() if line.startswith("::error::")] == [], said.out
        assert "\x1b[31m" not in said.out


def test_a_header_of_csv_is_recognised_and_left_out_when_asked(tmp_path: Path) -> None:
    sample = tmp_path / "a.csv"
    sample.write_text("n;day\n1;2026-01-01\n2;2026-01-02\n", encoding="utf-8")
    made = type_command(None, "contract", "infer", sample, "--name", "a", "--delimiter", ";")
    contract = tmp_path / "a.odcs.yaml"
    contract.write_text(made.out, encoding="utf-8")
    said = type_command(None, "contract", "test", contract, sample)
    assert (said.code, "line 1 looks like a header" in said.err) == (5, True), said
    without = type_command(None, "contract", "test", contract, sample, "--input-format", "csv")
    assert (without.code, without.out.split(":")[0], without.err) == (0, "2 records", "")


def test_a_wrong_input_format_is_explained(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(lines(GOOD), encoding="utf-8")
    parquet = type_command(None, "contract", "test", orders, tmp_path / "one.txt", "--input-format", "parquet")
    assert (parquet.code != 0, "--input-format" in parquet.err) == (True, True)
    csv = type_command(None, "contract", "test", orders, tmp_path / "one.txt", "--input-format", "csv")
    assert (csv.code, "the first line of CSV is its header" in csv.err) == (7, True)


def test_each_broken_rule_says_what_it_expects_and_what_to_do_about_it(sums_contract: Path, tmp_path: Path) -> None:
    text = sums_contract.read_text(encoding="utf-8")
    sums_contract.write_text(f"{text}    quality: [{{metric: rowCount, mustBeLessThan: 2}}]\n", encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(lines({"id": 1, "v": -1}, {"id": 1, "v": "x"}, {"id": 1, "v": 2}))
    tried = try_it(sums_contract, tmp_path / "rows.jsonl")
    assert tried["primaryKey"]["expected"] == "no two rows have the same id"
    assert tried["rowCount"]["looks_at"] == "the rows of one batch"
    assert tried["v.minimum"]["looks_at"] == "each row by itself"
    assert len({each["fix"] for name, each in tried.items() if name != "code" and not each["holds"]}) == 4
    assert tried["rowCount"]["message"] == "cannot be checked: 1 row could not be read"
    (tmp_path / "rows.jsonl").write_text(lines({"id": 1, "v": -1}, {"id": 1, "v": 2}))
    said = type_command(None, "contract", "test", sums_contract, tmp_path / "rows.jsonl").out
    assert "rowCount: 2 rows; expected at most 1 row" in said
    assert "in a pipeline, this rule looks at the rows of one batch; here it looked at all rows" in said


def test_rules_that_count_are_not_judged_without_rows_that_cannot_be_read(sums_contract: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(lines({"id": 1, "v": 1}, {"id": 1, "v": "x"}, {"id": 2, "v": 2}))
    key = try_it(sums_contract, tmp_path / "rows.jsonl")["primaryKey"]
    assert (key["holds"], key["message"]) == (False, "cannot be checked: 1 row could not be read")
    (tmp_path / "rows.jsonl").write_text(lines({"id": 1, "v": 1}, {"id": 1, "v": 2}, {"id": 2, "v": "x"}))
    assert "cannot be checked" not in str(try_it(sums_contract, tmp_path / "rows.jsonl")["primaryKey"]["message"])


def test_a_sum_of_records_that_leaves_64_bits_is_compared_exactly_without_spark(orders: Path, tmp_path: Path) -> None:
    text = orders.read_text(encoding="utf-8")
    rule = "{type: custom, engine: tidemill, name: own, implementation: cents + 1 > 0 AND -cents < 9}"
    orders.write_text(f"{text}      - {rule}\n", encoding="utf-8")
    record = {"ts": "2026-01-01T00:00:00Z", "shop": "north"}
    (tmp_path / "a.jsonl").write_text(lines({**record, "cents": 2**63 - 1}, {**record, "cents": -(2**63)}))
    assert try_it(orders, tmp_path / "a.jsonl")["own"]["message"] == "1 of 2 records"
