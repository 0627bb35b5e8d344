"""The folder of a demonstration, and the processes that run there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from demo.oracle import segments
from support.projects import ROOT
from tidemill.core.errors import AuditBlocked, ConfigError, EngineError
from tidemill.core.protocol.failpoints import VARIABLE
from tidemill.demo.child import Run, execute
from tidemill.demo.site import (
    PARTITIONS,
    PIPELINE,
    TOPIC,
    Source,
    make_site,
    source_of,
    write_file,
    write_lines,
)
from tidemill.demo.story import _reasons
from tidemill.demo.traffic import Traffic, lines
from tidemill.log.reading import read_topic


@pytest.fixture
def source() -> Source:
    return source_of(str(ROOT))


def test_reference_pipeline_is_found_in_the_project_of_the_option(source):
    assert source.pipelines == str(ROOT / "spark_jobs" / "pipelines")
    assert source.contracts == str(ROOT / "data_contracts")


def test_reference_pipeline_is_found_from_anywhere_in_a_checkout(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEMILL_PROJECT", raising=False)
    assert source_of(None) == source


def test_project_without_the_reference_pipeline_is_refused(tmp_path):
    (tmp_path / "tidemill.toml").write_text("")
    with pytest.raises(ConfigError, match="no pipeline `page_views`"):
        source_of(str(tmp_path))


def test_installed_package_without_a_checkout_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEMILL_PROJECT", raising=False)
    monkeypatch.setattr("tidemill.__file__", str(tmp_path / "lib" / "tidemill" / "__init__.py"))
    with pytest.raises(ConfigError, match="no pipeline `page_views`") as error:
        source_of(None)
    assert "a checkout of Tidemill" in error.value.fix


def test_site_is_a_project_of_its_own(tmp_path, source):
    project = make_site(tmp_path / "demo", source)
    assert project.pipeline(PIPELINE).name == PIPELINE
    assert Path(project.settings.lake) == tmp_path / "demo" / "lake"


def test_site_that_is_made_again_is_empty(tmp_path, source):
    project = make_site(tmp_path / "demo", source)
    write_lines(project, lines(Traffic(records=10)), written=lambda _: None)
    again = make_site(tmp_path / "demo", source)
    assert again.log().topics() == []


def test_folder_of_somebody_else_is_never_emptied(tmp_path, source):
    kept = tmp_path / "log" / "kept"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(ConfigError, match="is not empty, and no demo made it"):
        make_site(tmp_path, source)
    assert kept.read_text() == "mine"


def test_made_up_lines_are_spread_over_partitions_by_client(tmp_path, source):
    project = make_site(tmp_path / "demo", source)
    made = list(lines(Traffic(records=500)))
    assert write_lines(project, made, written=lambda _: None) == 500
    records = list(read_topic(project.log(), TOPIC))
    assert sorted(r.value for r in records) == sorted(line.value for line in made)
    partitions = {r.key: r.partition for r in records}
    assert all(r.partition == partitions[r.key] for r in records)
    assert set(partitions.values()) == set(range(PARTITIONS))
    assert len(segments(project)) == PARTITIONS


def test_lines_of_a_file_stay_as_they_are_and_in_order(tmp_path, source):
    file = tmp_path / "access.log"
    file.write_bytes(b"one\n\n\xff\nlast")
    project = make_site(tmp_path / "demo", source)
    assert write_file(project, file) == 4
    assert [r.value for r in read_topic(project.log(), TOPIC)] == [b"one", b"", b"\xff", b"last"]


def run_of(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str, **more: str) -> Run:
    """A run whose process executes a script instead of batches."""
    monkeypatch.setattr(Run, "command", property(lambda _: [sys.executable, "-c", script]))
    return Run(project=folder, pipeline="p", limit=1, **more)


COMMIT = json.dumps({"event": "committed", "batch_id": 1})


def test_commits_of_a_process_are_told_as_they_come(monkeypatch, tmp_path):
    told = []
    assert execute(run_of(monkeypatch, tmp_path, f"print('{COMMIT}')"), told.append)
    assert told == [json.loads(COMMIT)]


def test_process_that_was_to_be_killed_and_was_is_told_apart(monkeypatch, tmp_path):
    asked = f"os.environ['{VARIABLE}'] == 'here@1=kill'"
    script = f"import os, signal\nif {asked}: os.kill(os.getpid(), signal.SIGKILL)"
    assert not execute(run_of(monkeypatch, tmp_path, script, failpoint="here@1"), print)


def test_failpoint_of_the_environment_does_not_reach_a_process(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "anywhere=kill")
    assert execute(run_of(monkeypatch, tmp_path, f"import os; assert '{VARIABLE}' not in os.environ"), print)


def test_process_killed_by_somebody_else_is_an_error(monkeypatch, tmp_path):
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(EngineError, match="ended with code -9"):
        execute(run_of(monkeypatch, tmp_path, script), print)


def test_error_of_a_process_is_raised_here(monkeypatch, tmp_path):
    event = {"event": "failed", "error": "AuditBlocked", "message": "rule n", "fix": "mend it"}
    script = f"print('''{json.dumps(event)}'''); raise SystemExit(4)"
    with pytest.raises(AuditBlocked, match="rule n") as error:
        execute(run_of(monkeypatch, tmp_path, script), print)
    assert error.value.fix == "mend it"


def test_process_that_dies_without_a_word_names_its_log(monkeypatch, tmp_path):
    script = "import sys; sys.stderr.write('no java'); sys.exit(1)"
    with pytest.raises(EngineError) as error:
        execute(run_of(monkeypatch, tmp_path, script), print)
    assert str(tmp_path / "run.log") in error.value.fix
    assert (tmp_path / "run.log").read_text() == "no java"


def test_reasons_of_one_kind_are_added_up():
    class Commit:
        def __init__(self, **reasons: int) -> None:
            self.reasons = {name.replace("_", " "): count for name, count in reasons.items()}

    first = Commit(**{"not UTF-8 at byte 3": 2, "`ts`: expected a time, found 'x'": 1})
    second = Commit(**{"not UTF-8 at byte 40": 1, "status.maximum": 1})
    assert _reasons([first, second]) == {"not_utf8": 3, "wrong_value(ts)": 1, "status.maximum": 1}
