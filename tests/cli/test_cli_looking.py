"""`explain`, `contract lint`, `doctor` and `jars`: what is declared, and whether it can work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.commands import type_command
from support.firings import firings
from support.projects import NO_SPARK, ROOT, an_event
from tidemill.core.exit_code import ExitCode
from tidemill.engine.spark.jars import locked_jars
from tidemill.engine.spark.session import Spark


def test_explain_shows_operators_in_order_with_ports(tidemill):
    found = tidemill("explain", "sums", "--json").json
    kinds = [each["kind"] for each in found["operators"]]
    assert kinds == ["Read", "Filter", "WithColumns", "KeyBy", "WindowBy", "AggregateBy", "Publish"]
    assert found["operators"][1]["fed_by"] == ["read_1.out"]
    assert found["operators"][1]["does"] == "coalesce(user, '') != 'nobody'"


def test_explain_shows_the_triple_of_each_aggregate(tidemill):
    (sink,) = tidemill("explain", "sums", "--json").json["sinks"]
    assert sink["aggregates"]["n"] == {
        "call": "Count()",
        "partial": {"value": "count(*)"},
        "merge": {"value": "sum({value})"},
        "finish": "{value}",
    }
    assert sink["window"] == "tumbling 10 seconds in panes of 10 seconds"


def test_explain_names_no_column_that_expressions_cannot_read(tidemill, mill):
    file = mill.project.folder / "pipelines" / "pipeline.py"
    text = file.read_text().replace("import ", "import First, ", 1).replace("Count()", "First('amount')")
    file.write_text(text)
    (sink,) = tidemill("explain", "sums", "--json").json["sinks"]
    partial = sink["aggregates"]["n"]["partial"]["value"]
    assert partial == "min(struct(event_time, _topic, _partition, _offset, amount AS value))"


def test_explain_has_the_logical_hash_of_the_flow_whatever_the_place(tidemill, mill):
    before = tidemill("explain", "sums", "--json").json
    assert before["logical_hash"] == mill.project.pipeline("sums").logical_hash
    file = mill.project.folder / "tidemill.toml"
    file.write_text(file.read_text().replace("[spark]", '[spark]\nwriter = "spark"\nremote = "sc://far:1"\n'))
    after = tidemill("explain", "sums", "--json").json
    assert after["logical_hash"] == before["logical_hash"]
    assert before["physical"]["writer"] == "delta-rs up to 500,000 rows, Spark's Delta writer beyond"
    assert after["physical"]["writer"] == "Spark's Delta writer, whatever the number of rows"
    assert after["physical"]["place"] == "Spark Connect at sc://far:1"


def test_explain_names_what_aggregates_and_the_expression_that_needs_spark(tidemill, mill):
    def ways():
        return tidemill("explain", "sums", "--json").json["physical"]["aggregate"]

    here = "DuckDB, in this process up to 1,000,000 records"
    assert ways() == f"{here}, in Spark's Python workers beyond"
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("coalesce(user, 'unknown')", "soundex(user)"))
    assert ways().startswith("Spark SQL, because of SOUNDEX(user)")
    file.write_text(file.read_text().replace('read("events",', 'read(pattern="ev.*", name="events",'))
    assert ways().startswith("Spark SQL, because of SOUNDEX(user)")
    file = mill.project.folder / "tidemill.toml"
    file.write_text(file.read_text().replace("[spark]", '[spark]\naggregate = "spark"\n'))
    assert ways() == "Spark SQL, because of the setting `aggregate`"


def test_explain_names_what_merges_windows_and_the_expression_that_needs_spark(tidemill, mill):
    def merges():
        return tidemill("explain", "sums", "--json").json["physical"]["merge"]

    assert merges() == "DuckDB, in this process up to 500,000 rows, Spark beyond"
    file = mill.project.folder / "pipelines" / "pipeline.py"
    before = file.read_text()
    file.write_text(before.replace(".publish(", '.with_columns(n="n + length(soundex(user)) - 4").publish(', 1))
    assert merges() == "sums: Spark, because of SOUNDEX(user)"
    file.write_text(file.read_text().replace('read("events",', 'read(pattern="ev.*", name="events",'))
    assert merges() == "sums: Spark, because of SOUNDEX(user)"
    assert "\nmerge      sums: Spark, because of SOUNDEX(user)\n" in tidemill("explain", "sums").out
    file.write_text(before.replace("coalesce(user, 'unknown')", "soundex(user)"))
    assert merges().startswith("DuckDB or Spark: only Spark knows")


def test_explain_maps_each_step_of_a_batch_to_jobs_and_writes(tidemill):
    steps = tidemill("explain", "sums", "--json").json["physical"]["steps"]
    assert [s["name"] for s in steps] == ["claim", "read", "aggregate", "stage", "audit", "publish", "commit"]
    assert steps[2]["writes"] == "state of sums: append"
    one = "1: read to partial aggregate, counted on the way"
    assert steps[2]["jobs"] == f"none in this process, 1 in Spark's Python workers; by Spark SQL {one}"
    assert steps[5]["writes"] == "quarantine, late: append; sums: upsert by window_start, user"


def test_explain_names_no_other_way_than_that_of_the_settings(tidemill, mill):
    file = mill.project.folder / "tidemill.toml"
    file.write_text(file.read_text().replace("[spark]", '[spark]\naggregate = "spark"\n'))
    steps = tidemill("explain", "sums", "--json").json["physical"]["steps"]
    assert steps[2]["jobs"] == "1: read to partial aggregate, counted on the way"


def test_explain_for_people_keeps_brackets_of_expressions(tidemill, mill):
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("coalesce(user, 'unknown')", "split(user, '[a]')[0]"))
    assert "user = split(user, '[a]')[0]" in tidemill("explain", "sums").out


@pytest.mark.spark
def test_explain_spark_shows_the_plan_of_the_job(tidemill, mill, spark, monkeypatch):
    monkeypatch.setattr("tidemill.cli.spark.start_spark", lambda *_: Spark.of(spark))
    mill.feed([b"{}"])
    found = tidemill("explain", "sums", "--spark", "--json").json
    assert "MapInArrow" in found["spark"]["sums"]
    assert "HashAggregate" in found["spark"]["sums"]
    assert found["spark"]["sums"].endswith("Windows are merged in the driver")
    assert not mill.project.ledger("sums").exists


def test_late_records_of_windows_without_bounds_are_shown(tmp_path):
    told = 'trigger=Repeatedly(AfterCount(3)), accumulation="accumulating_and_replacing"'
    mill = firings(tmp_path, NO_SPARK, "Global()", trigger=told, collect=False)
    mill.feed([an_event(1, "a", 1)])
    mill.run(drain=True)
    mill.feed([an_event(2, "a", 1)])
    assert mill.run().accounts["events"].late == 1
    for words in (("ls",), ("windows",), ("admit", "--dry-run")):
        found = type_command(mill.project.folder, "late", words[0], "firings", *words[1:])
        assert found.code == ExitCode.DONE, found
    [row] = type_command(mill.project.folder, "late", "windows", "firings", "--json").lines
    assert (row["window_start"], row["window_end"], row["records"]) == (None, None, 1)


@pytest.mark.spark
def test_explain_spark_does_not_look_at_the_state_that_firings_have(spark, monkeypatch, tmp_path):
    monkeypatch.setattr("tidemill.cli.spark.start_spark", lambda *_: Spark.of(spark))
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(3))", collect=False)
    for number in range(2):
        mill.feed([an_event(number, "a", 1)])
        mill.run()
    found = type_command(mill.project.folder, "explain", "firings", "--spark", "--json").json
    assert "MapInArrow" in found["spark"]["firings"]


def test_lint_of_good_contracts_is_done(tidemill, mill):
    assert tidemill("contract", "lint").code == ExitCode.DONE
    said = tidemill("contract", "lint", ROOT / "data_contracts")
    assert said.code == ExitCode.DONE
    assert "no errors, 0 warnings" in said.out


def test_lint_names_file_line_and_fix_of_an_error(tidemill, mill):
    file = mill.project.folder / "data_contracts" / "sums.odcs.yaml"
    file.write_text(file.read_text().replace("logicalType: integer", "logicalType: whole"))
    said = tidemill("contract", "lint", file, "--json")
    assert said.code == ExitCode.WRONG
    finding = next(each for each in said.lines if each["severity"] == "error")
    assert finding["file"] == str(file)
    assert "whole" in finding["message"]
    assert finding["line"] > 1
    assert f"{file}:{finding['line']}: error: " in tidemill("contract", "lint", file).out


def test_findings_and_their_fixes_have_a_line_each_in_a_file(tidemill, tmp_path):
    file = tmp_path / f"{'long' * 15}.odcs.yaml"
    file.write_text("apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\nstatuses: active\nschema: []\n")
    lines = tidemill("contract", "lint", file).out.splitlines()
    assert max(map(len, lines)) > 200
    assert all(line.startswith((f"{file}:", "  fix: ")) for line in lines[:-1])


def test_doctor_does_not_say_that_all_is_there_while_a_topic_is_missing(tmp_path):
    assert type_command(None, "init", tmp_path / "shop").code == 0
    said = type_command(tmp_path / "shop", "doctor", "--no-spark")
    assert (said.code, "no topic 'orders'" in said.out) == (0, True)
    assert said.out.splitlines()[-1] == "no problems, but not all topics are there: see topics of sales"
    made = type_command(tmp_path / "shop", "log", "create", "orders", "--partitions", "1")
    assert "topic orders with 1 partition, id" in made.out
    assert "everything is there" in type_command(tmp_path / "shop", "doctor", "--no-spark").out


def test_lint_of_nothing_is_wrong_input(tidemill, tmp_path):
    said = tidemill("contract", "lint", tmp_path / "none.odcs.yaml")
    assert said.code == ExitCode.WRONG
    assert "there is no such file or folder" in said.err


def states(said) -> dict[str, str]:  # type: ignore[no-untyped-def]
    return {each["name"]: each["state"] for each in said.lines}


def test_doctor_finds_everything_in_order(tidemill):
    said = tidemill("doctor", "--no-spark", "--json")
    assert said.code == ExitCode.DONE, said.out
    found = states(said)
    assert set(found) >= {
        "python",
        "java",
        "project",
        "jars",
        "lake",
        "log",
        "contracts",
        "pipelines",
        "ledger of sums",
    }
    assert "problem" not in found.values()
    assert "everything is there" in tidemill("doctor", "--no-spark").out


def test_doctor_without_a_project_says_so(tmp_path):
    said = type_command(tmp_path / "none", "doctor", "--json")
    assert said.code == ExitCode.WRONG
    assert states(said)["project"] == "problem"


def test_doctor_finds_a_jar_with_other_bytes(tidemill, mill, tmp_path, monkeypatch):
    jars = tmp_path / "jars"
    shutil.copytree(mill.project.settings.jars, jars)
    (jars / locked_jars()[0].file_name).write_bytes(b"other")
    monkeypatch.setenv("TIDEMILL_JARS", str(jars))
    said = tidemill("doctor", "--no-spark", "--json")
    found = next(each for each in said.lines if each["name"] == "jars")
    assert said.code == ExitCode.WRONG
    assert locked_jars()[0].file_name in found["found"]
    assert found["fix"] == "tidemill jars fetch"


def test_doctor_finds_a_pipeline_that_does_not_fit_its_contract(tidemill, mill):
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("n=Count()", "m=Count()"))
    found = states(tidemill("doctor", "--no-spark", "--json"))
    name = mill.project.pipeline_names()[0]
    assert [each for each, state in found.items() if state == "problem"] == [f"pipeline {name}"]
    assert found["pipelines"] == "note"


def test_doctor_finds_a_java_that_is_too_old(tidemill, tmp_path, monkeypatch):
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    found = next(each for each in tidemill("doctor", "--no-spark", "--json").lines if each["name"] == "java")
    assert found["state"] == "problem"
    assert found["found"].startswith("11.0.2 at ")
    assert "Java 17 or newer" in found["fix"]


def test_doctor_finds_a_folder_that_cannot_be_made(tidemill, mill):
    Path(mill.project.settings.lake).write_text("in the way")
    found = next(each for each in tidemill("doctor", "--no-spark", "--json").lines if each["name"] == "lake")
    assert found["state"] == "problem"
    assert "cannot be written to" in found["found"]


def test_doctor_finds_a_ledger_that_cannot_be_read(tidemill, mill, tmp_path):
    ledger = Path(mill.project.table_uri("sums", "ledger")) / "_delta_log"
    ledger.mkdir(parents=True)
    (ledger / f"{0:020}.json").write_text("{damaged")
    said = tidemill("doctor", "--no-spark", "--json")
    assert states(said)["ledger of sums"] == "problem"
    assert said.code == ExitCode.WRONG


def test_doctor_notes_a_topic_that_is_not_there_yet(tidemill, mill):
    mill.log.delete_topic("events")
    said = tidemill("doctor", "--no-spark", "--json")
    found = next(each for each in said.lines if each["name"] == "topics of sums")
    assert (found["state"], found["fix"]) == ("note", "tidemill log create events")
    assert said.code == ExitCode.DONE


def test_jars_that_are_there_are_left_alone(tidemill, mill):
    found = tidemill("jars", "fetch", "--json").json
    assert found["folder"] == mill.project.settings.jars
    assert found["jars"] == [jar.file_name for jar in locked_jars(kafka=True, s3=True)]
